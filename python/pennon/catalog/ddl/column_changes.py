"""One change of a column by ALTER TABLE: the changed schema, or why it is refused.

Leaves are not touched. A column that a leaf lacks reads NULL, or the DEFAULT that it was added
with; a renamed one is found by its field id; a narrower type is promoted.

NOT NULL is never set where it was not, since rows that are stored may be NULL. It may come with an
added column where the rows that are there have a value: the DEFAULT, or no row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from pennon.catalog.columns.column_edits import edit_column, place_column
from pennon.catalog.columns.column_paths import (
    find_column,
    inside_map_key,
    is_container_part,
    shown_path,
)
from pennon.catalog.columns.spark_types import (
    CURRENT_DEFAULT,
    arrow_type,
    length_limit,
)
from pennon.errors import MalformedMessage, UnknownColumn, UnsupportedTableChange
from pennon.leaf.dataset import open_leaf
from pennon.leaf.schema.carried_default import carried_default
from pennon.leaf.schema.leaf_upgrade import PROMOTED_FROM
from pennon.leaf.schema.promotion import is_promotable
from pennon.spec.column_names import check_column
from pennon.spec.initial_default import value_from_json, with_initial_default
from pennon.spec.length_limit import LENGTH_LIMIT

if TYPE_CHECKING:
    from pennon.catalog.tables.loaded_table import Table
    from pennon.spec.schema import NamespaceSchema, SchemaField

__all__ = ["changed_columns"]

_RESHAPING = frozenset({"rename_column", "update_type", "delete_column"})
_Change = Mapping[str, object]


def changed_columns(table: Table, schema: NamespaceSchema, change: _Change) -> NamespaceSchema:
    """Apply one change of a column.

    Args:
        table: The table; its rows and its partition specs decide what is safe.
        schema: Its schema after the changes before this one.
        change: As the protocol has it.

    Raises:
        UnsupportedTableChange: The change is not safe.
        UnknownColumn: There is no such column.
    """
    column = change.get("column")
    if not isinstance(column, list | tuple) or not column:
        raise MalformedMessage(why=f"a change {change.get('change')} names no column")
    path = tuple(str(part) for part in column)
    arrow = _Columns(table, schema).changed(path, change)
    return schema.evolved(carried_default(schema.arrow, arrow))


class _Columns:
    """The columns before a change."""

    def __init__(self, table: Table, schema: NamespaceSchema) -> None:
        self._table = table
        self._schema = schema
        self._arrow = schema.arrow

    def changed(self, path: tuple[str, ...], change: _Change) -> pa.Schema:
        kind = change.get("change")
        if kind == "add_column":
            return self._with_added(path, change)
        target = find_column(self._schema, path)
        if target is None:
            if kind == "delete_column" and change.get("if_exists"):
                return self._arrow
            raise self._unknown(path)
        if kind in _RESHAPING:
            self._check_default_fits(target.path, str(kind).partition("_")[0])
        match kind:
            case "rename_column":
                return self._renamed(target, str(change["new_name"]))
            case "update_comment":
                return self._noted(target, "comment", change.get("comment"))
            case "update_default":
                if len(target.path) > 1:
                    raise self._nested_default(path)
                return self._noted(target, CURRENT_DEFAULT, change.get("default"))
            case "update_nullability":
                return self._made_nullable(target, path, is_nullable=bool(change.get("nullable")))
            case "update_position":
                if change.get("position") == {"after": target.path[-1]}:
                    why = "a column does not stand behind itself"
                    raise self._refused(path, "move", why, "Name another column after AFTER")
                return place_column(self._arrow, target.path, None, change.get("position"))
            case "update_type":
                return self._promoted(target, change["type"])
            case "delete_column":
                return self._without(target)
            case _:
                raise MalformedMessage(why=f"there is no change {kind!r}")

    def _with_added(self, path: tuple[str, ...], change: _Change) -> pa.Schema:
        if find_column(self._schema, path) is not None:
            raise self._refused(path, "add", "there is such a column", "Choose another name")
        above: tuple[str, ...] = ()
        if len(path) > 1:
            parent = find_column(self._schema, path[:-1])
            if parent is None:
                raise self._unknown(path[:-1])
            if not pa.types.is_struct(parent.field.type):
                why = f"{'.'.join(path[:-1])} is {parent.field.type}, not a struct"
                raise self._refused(path, "add", why, "Add a column of its own")
            above = parent.path
            self._check_not_key(parent.path, path, "add")
            self._check_default_fits((*parent.path, path[-1]), "add")
        added = self._added(path, change)
        return place_column(self._arrow, (*above, path[-1]), added, change.get("position"))

    def _added(self, path: tuple[str, ...], change: _Change) -> pa.Field:
        data_type = arrow_type(change["type"], ".".join(path))
        check_column(path, data_type)
        added = pa.field(path[-1], data_type)
        for key, value in (
            ("comment", change.get("comment")),
            (LENGTH_LIMIT, self._limit(path, change)),
        ):
            added = _with(added, key, value)
        if change.get("default") is not None:
            if len(path) > 1:
                raise self._nested_default(path)
            added = _with(added, CURRENT_DEFAULT, change["default"])
            added = with_initial_default(added, value_from_json(change.get("initial"), added))
        if change.get("nullable", True):
            return added
        if change.get("initial") is None and not self._is_empty():
            why = "rows that are stored already have no value there"
            raise self._refused(path, "add", why, "Add it with a DEFAULT, or without NOT NULL")
        return added.with_nullable(False)

    def _made_nullable(
        self, target: SchemaField, path: tuple[str, ...], *, is_nullable: bool
    ) -> pa.Schema:
        if is_nullable:
            return edit_column(self._arrow, target.path, lambda column: column.with_nullable(True))
        if target.field.nullable:
            why = "rows that are stored already may be NULL there"
            raise self._refused(path, "make NOT NULL", why, "Create the table again")
        return self._arrow  # it is NOT NULL already, as migrations that are run twice state

    def _renamed(self, target: SchemaField, new_name: str) -> pa.Schema:
        path = self._shown(target)
        if is_container_part(self._arrow, target.path):
            raise self._refused(path, "rename", "it has no name of its own", "Rename its column")
        check_column((*path[:-1], new_name))
        taken = find_column(self._schema, (*path[:-1], new_name))
        if taken is not None and taken.id != target.id:
            why = f"there is a column {'.'.join(self._shown(taken))}"
            raise self._refused(path, "rename", why, "Choose another name")
        return edit_column(self._arrow, target.path, lambda column: column.with_name(new_name))

    def _noted(self, target: SchemaField, key: str, value: object) -> pa.Schema:
        return edit_column(self._arrow, target.path, lambda column: _with(column, key, value))

    def _promoted(self, target: SchemaField, kind: object) -> pa.Schema:
        path, old_type = self._shown(target), target.field.type
        new_type = arrow_type(kind, ".".join(path))
        if not is_promotable(old_type, new_type):
            why = f"not every value of {old_type} is one of {new_type}"
            raise self._refused(path, "change the type of", why, "Add a new column")
        limit = length_limit(kind) if len(target.path) == 1 else None
        if old_type.equals(new_type):
            return self._noted(target, LENGTH_LIMIT, limit)
        self._check_partitioned(target, new_type)
        promoted_from = (target.field.metadata or {}).get(PROMOTED_FROM, b"").decode()
        earlier = ";".join([*filter(None, promoted_from.split(";")), str(old_type)])
        return edit_column(
            self._arrow,
            target.path,
            lambda column: _with(column.with_type(new_type), PROMOTED_FROM.decode(), earlier),
        )

    def _without(self, target: SchemaField) -> pa.Schema:
        path = self._shown(target)
        if is_container_part(self._arrow, target.path):
            raise self._refused(path, "drop", "its column is made of it", "Drop the column")
        self._check_not_key(target.path, path, "drop")
        above = self._schema.field_by_path(target.path[:-1])
        if above is not None and above.field.type.num_fields == 1:
            why = f"it is the only field of {'.'.join(path[:-1])}"
            raise self._refused(path, "drop", why, f"Drop {'.'.join(path[:-1])}")
        return edit_column(self._arrow, target.path, lambda _: None)

    def _check_default_fits(self, stored_path: Sequence[str], verb: str) -> None:
        """Refuse to change the fields of a column whose DEFAULT would lose its type with them."""
        top = self._arrow.field(stored_path[0])
        if len(stored_path) > 1 and CURRENT_DEFAULT.encode() in (top.metadata or {}):
            why = f"the DEFAULT of {top.name} would no longer be one of its type"
            advice = f"Run ALTER COLUMN {top.name} DROP DEFAULT first"
            raise self._refused(stored_path, verb, why, advice)

    def _check_not_key(self, stored_path: Sequence[str], path: Sequence[str], verb: str) -> None:
        if inside_map_key(self._arrow, stored_path):
            why = "several keys of a stored map could become equal"
            raise self._refused(path, verb, why, "Add a new column")

    def _check_partitioned(self, column: SchemaField, new_type: pa.DataType) -> None:
        """Refuse a promotion after which equal values may have different partition values."""
        keeps = _is_numeric_widening(column.field.type, new_type)
        for spec in self._table.snapshot.specs.values():
            for field in spec.fields:
                is_kept = keeps and field.derivation.survives_widening
                if column.id in field.source_ids and not is_kept:
                    why = (
                        f"the partition field {field.field_id} of spec version"
                        f" {spec.spec_version} is made of it, and may give another value of"
                        f" {new_type}"
                    )
                    path = self._shown(column)
                    raise self._refused(path, "change the type of", why, "Add a new column")

    def _is_empty(self) -> bool:
        """Whether no leaf has a row; those without statistics are asked."""
        snapshot = self._table.snapshot
        leaves = snapshot.leaves().table.select(["location", "read_version", "num_rows"])
        for leaf in leaves.to_pylist():
            num_rows = leaf["num_rows"]
            if num_rows is None:
                place, version = leaf["location"], leaf["read_version"]
                dataset = open_leaf(snapshot.location, place, version, snapshot.storage_options)
                num_rows = dataset.count_rows()
            if num_rows:
                return False
        return True

    def _limit(self, path: Sequence[str], change: _Change) -> str | None:
        limit = length_limit(change["type"])
        if limit is not None and len(path) > 1:
            why = f"{limit} is no type for a field of a struct"
            raise self._refused(path, "add", why, "Write STRING")
        return limit

    def _shown(self, target: SchemaField) -> tuple[str, ...]:
        return shown_path(self._arrow, target.path)

    def _unknown(self, path: Sequence[str]) -> UnknownColumn:
        names = ", ".join(".".join(self._shown(field)) for field in self._schema.fields)
        return UnknownColumn(column=".".join(path), columns=names)

    def _nested_default(self, path: Sequence[str]) -> UnsupportedTableChange:
        why = "a default is for a whole column"
        return self._refused(path, "set a default of", why, "Leave DEFAULT out")

    def _refused(
        self, path: Sequence[str], verb: str, why: str, advice: str
    ) -> UnsupportedTableChange:
        return UnsupportedTableChange(
            change=f"{verb} column {'.'.join(path)}",
            table=self._table.name,
            why=why,
            advice=advice,
        )


def _with(field: pa.Field, key: str, value: object) -> pa.Field:
    metadata = {name: text for name, text in (field.metadata or {}).items() if name != key.encode()}
    if value is not None:
        metadata[key.encode()] = str(value).encode()
    return field.with_metadata(metadata or None)


def _is_numeric_widening(old_type: pa.DataType, new_type: pa.DataType) -> bool:
    if pa.types.is_decimal(old_type) and pa.types.is_decimal(new_type):
        return bool(old_type.scale == new_type.scale)
    kinds = (pa.types.is_integer, pa.types.is_floating)
    return any(kind(old_type) and kind(new_type) for kind in kinds)
