"""ALTER TABLE: properties, columns and partition fields, all in the metadata of the namespace.

Leaves are not touched; `column_changes` decides which changes of columns are safe.

A column that the partition fields need may be promoted, where equal values keep one partition
value; the same commit makes a spec version with wider result types. It is dropped only once the
newest spec does without it: older specs keep the partition values that they recorded.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING
from urllib.parse import unquote

import pyarrow as pa

from pennon.catalog.columns.projected_columns import (
    edit_column,
    find_column,
    inside_map_key,
    is_container_part,
    place_column,
    shown_path,
)
from pennon.catalog.columns.spark_types import (
    CURRENT_DEFAULT,
    arrow_type,
    declaration,
    declarations,
    declared_columns,
    length_limit,
)
from pennon.catalog.configured_catalog import Catalog
from pennon.catalog.ddl.statements import (
    STATEMENT,
    check_named_columns,
    check_names,
    not_supported,
)
from pennon.catalog.ddl.table_statement import OrderChange, run_statement, statement_of
from pennon.catalog.partitioning import FieldChange, evolved_spec, partitioned_by_columns
from pennon.catalog.table_name import by_name
from pennon.catalog.tables.loaded_table import Table, load
from pennon.errors import (
    MalformedMessage,
    NamespaceHasNoManifest,
    UnknownColumn,
    UnsupportedTableChange,
    WriteConflict,
)
from pennon.leaf.dataset import open_leaf
from pennon.leaf.schema.reconciliation import is_promotable, leaf_fields, match_fields, stream_type
from pennon.leaf.schema.schema_widening import PROMOTED_FROM, carried_default
from pennon.manifest import (
    ConcurrentChange,
    ManifestCommitted,
    ManifestOutcome,
    Snapshot,
    change_root,
)
from pennon.manifest.format.properties import ALTERED, REPLACED, check_retention, index_definitions
from pennon.manifest.table_identity import STRONG, WEAK, change_under_way
from pennon.spec.arrow_json import is_blob
from pennon.spec.column_defaults import INITIAL_DEFAULT, value_from_json, with_initial_default
from pennon.spec.column_names import LENGTH_LIMIT, check_column
from pennon.spec.evolution import promoted_spec
from pennon.spec.schema import NamespaceSchema
from pennon.spec.write_properties import (
    WRITE_ORDER,
    WriteOrder,
    check_isolation,
    check_row_change_modes,
)
from pennon.transaction.mode_change import settled, without_writers

if TYPE_CHECKING:
    from pennon.catalog.directory import Name
    from pennon.spec.schema import SchemaField

__all__ = [
    "alter_table",
    "changed_columns",
    "checked_order",
    "followed_order",
]

# One change of a column by ALTER TABLE: the changed schema, or why it is refused.
#
# Leaves are not touched. A column that a leaf lacks reads NULL, or the DEFAULT that it was added
# with; a renamed one is found by its field id; a narrower type is promoted.
#
# NOT NULL is never set where it was not, since rows that are stored may be NULL. It may come with
# an added column where the rows that are there have a value: the DEFAULT, or no row.

_RESHAPING = frozenset({"rename_column", "update_type", "delete_column"})
_ColumnChange = Mapping[str, object]


def changed_columns(
    table: Table, schema: NamespaceSchema, change: _ColumnChange
) -> NamespaceSchema:
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

    def changed(self, path: tuple[str, ...], change: _ColumnChange) -> pa.Schema:
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

    def _with_added(self, path: tuple[str, ...], change: _ColumnChange) -> pa.Schema:
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

    def _added(self, path: tuple[str, ...], change: _ColumnChange) -> pa.Field:
        data_type = arrow_type(change["type"], ".".join(path))
        check_column(path, data_type)
        added = pa.field(path[-1], data_type)
        declared = change.get("declared")
        if isinstance(declared, Mapping) and declared:
            columns, _ = declared_columns(pa.schema([added]), declared, self._table.name)
            added = columns.field(0)
            if is_blob(added) and len(path) > 1:
                raise self._refused(path, "add", "blobs are columns of their own", "Add a column")
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
        if stream_type(old_type).equals(stream_type(new_type)):  # as Spark has it: it stays
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

    def _limit(self, path: Sequence[str], change: _ColumnChange) -> str | None:
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


# The table property ``write.order`` in CREATE and ALTER TABLE: validated, and kept up to date.
#
# A renamed column keeps its place in the order. A column of the order cannot be dropped. A promoted
# one stays: what was written before in the narrower type no longer counts as sorted.


def checked_order(properties: Mapping[str, str], schema: NamespaceSchema) -> dict[str, str]:
    """Give the properties with a write order in full words.

    Raises:
        WriteOrderSyntax: The order is no list of columns.
        WriteOrderColumnNotFound: It names a column that is not there.
        WriteOrderTypeNotSupported: A column cannot be ordered by.
    """
    order = WriteOrder.of(properties, schema)
    return dict(properties) if order is None else {**properties, WRITE_ORDER: str(order)}


def followed_order(
    table: str, stored: Mapping[str, str], before: NamespaceSchema, after: NamespaceSchema
) -> dict[str, str]:
    """Give what the stored order becomes under a change of columns; nothing where it stays.

    Args:
        table: The table's name for errors.
        stored: The table's properties.
        before: The columns that the order was made for.
        after: The columns as they become.

    Raises:
        UnsupportedTableChange: A column of the order is dropped.
    """
    order = WriteOrder.known(stored, before)
    if order is None:
        return {}
    renamed = order.renamed(after)
    if renamed is None:
        dropped = next(field for field in order.fields if after.field_by_id(field.id) is None)
        raise UnsupportedTableChange(
            change=f"drop column {dropped}",
            table=table,
            why=f"writes are ordered by {order}",
            advice="Change the order first: ALTER TABLE … WRITE ORDERED BY, or WRITE UNORDERED",
        )
    return {} if str(renamed) == stored[WRITE_ORDER] else {WRITE_ORDER: str(renamed)}


_Change = Callable[[Table], ManifestOutcome]

_ATTEMPTS = 5
_AT_CREATION = (
    "it is fixed when the table is created",
    "Create the table again with another value",
)
_FIXED = {
    "provider": _AT_CREATION,
    "location": _AT_CREATION,
    "transaction": (
        "running writers have to be stopped for it",
        "CALL lance.system.set_transaction_mode(table, mode) changes it",
    ),
    "owner": ("the format has no owner of a table", "Write it as a property of another name"),
}


@dataclass(frozen=True, slots=True)
class _Changed:
    """What a list of changes makes of a table."""

    schema: NamespaceSchema
    properties: Mapping[str, str] = dataclasses.field(default_factory=dict)
    removed: tuple[str, ...] = ()
    comment: str | None = None


def alter_table(
    catalog: Catalog, identifier: Name, changes: Sequence[Mapping[str, object]]
) -> Table:
    """Apply the changes of one statement together.

    Args:
        catalog: The catalog.
        identifier: The table.
        changes: As the protocol has them, in order.

    Raises:
        UnsupportedTableChange: A change that is not safe.
        StatementNotSupported: A statement that means nothing here; it says what to type instead.
        PartitionFieldSyntax: What follows PARTITION FIELD is none.
        TagSyntax: What follows TAG is none.
        WriteOrderSyntax: The property ``write.order`` is no order of these columns.
        UnknownIsolation: A property about isolation has another value than it can have.
        RowChangeModeRefused: A property asks for rows to be changed in a way that there is not.
        InvalidRetention: A property about the versions that are kept is no number it can be.
        TablePropertyRefused: A property that another format acts upon.
        TransactionModeChanged: Another table is being put in its place.
        WriteConflict: Others changed the table each time it was tried.
    """
    statement = _statement(changes)
    if statement is not None:
        _check_meaning(catalog, identifier, statement)
        if run_statement(catalog, identifier, unquote(statement)):
            return load(catalog, identifier)
        match statement_of(statement):
            case FieldChange() as asked:
                return alter_partitioning(catalog, identifier, asked)
            case OrderChange(order):
                changes = [_order_property(order)]

    def change(table: Table, mode: str | None = None) -> ManifestOutcome:
        changed = _all_applied(table, changes)
        if not len(changed.schema.arrow):
            raise UnsupportedTableChange(
                change="drop all columns",
                table=table.name,
                why="a table has at least one",
                advice="Drop the table",
            )
        before = table.snapshot
        is_same = changed.schema is before.schema
        check_names(table.name, changed.properties)
        check_named_columns(table.name, changed.properties, changed.schema)
        properties = checked_order(changed.properties, changed.schema)
        check_isolation(properties)
        check_row_change_modes(properties)
        check_retention(properties)
        if not is_same:
            _check_sources_stay(table, changed.schema)
            if WRITE_ORDER not in {*properties, *changed.removed}:
                properties |= followed_order(
                    table.name, before.properties, before.schema, changed.schema
                )
        is_promoted = any(
            statement_change.get("change") == "update_type" for statement_change in changes
        )
        return change_root(
            table.snapshot,
            schema=None if is_same else changed.schema,
            spec=promoted_spec(table.snapshot.specs, changed.schema) if is_promoted else None,
            properties=properties,
            removed_properties=changed.removed,
            comment=changed.comment,
            mode=mode,
            indexes=_without_column(before, changed.schema),
        )

    return _until_committed(
        catalog,
        identifier,
        _beside_writers(change, changes) if any(map(_needs_no_rows, changes)) else change,
    )


def _beside_writers(
    change: Callable[[Table, str | None], ManifestOutcome],
    changes: Sequence[Mapping[str, object]],
) -> _Change:
    """Keep writers away until the change is made, which ends that, too.

    What is refused of the rows that are there already is refused before: it leaves no version.
    """

    def fenced(table: Table) -> ManifestOutcome:
        _all_applied(table, changes)
        mode = STRONG if table.snapshot.is_strong else WEAK
        with without_writers(table.snapshot, ALTERED) as fence:
            return change(replace(table, snapshot=fence.snapshot), mode)

    return fenced


def _all_applied(table: Table, changes: Sequence[Mapping[str, object]]) -> _Changed:
    changed = _Changed(table.snapshot.schema)
    declared: dict[str, str] = {}
    for change in changes:
        name = str(change.get("property", ""))
        if change.get("change") == "set_property" and declaration(name) is not None:
            declared[name] = str(change.get("value"))
        else:
            changed = _apply(table, changed, change)
    if declared:
        changed = replace(changed, schema=_with_declared(table, changed.schema, declared))
    return changed


def _needs_no_rows(change: Mapping[str, object]) -> bool:
    """Whether a column is added that the rows which are there have no value in, and have to."""
    is_required = change.get("change") == "add_column" and not change.get("nullable", True)
    return is_required and change.get("initial") is None


def alter_partitioning(catalog: Catalog, identifier: Name, asked: FieldChange) -> Table:
    """ADD, DROP or REPLACE PARTITION FIELD: a new spec version for the rows to come."""

    def change(table: Table) -> ManifestOutcome:
        snapshot = table.snapshot
        return change_root(snapshot, spec=evolved_spec(snapshot.specs, snapshot.schema, asked))

    return _until_committed(catalog, identifier, change)


def _statement(changes: Sequence[Mapping[str, object]]) -> str | None:
    """Give the statement that stands in the place of a change, if one does."""
    return next(
        (
            str(statement_change.get("value"))
            for statement_change in changes
            if statement_change.get("property") == STATEMENT
        ),
        None,
    )


def _check_meaning(catalog: Catalog, identifier: Name, statement: str) -> None:
    """Refuse a statement that means nothing for a table, and suggest one that does."""
    words = unquote(statement).split("(", 1)[0].split()
    error = not_supported(words, catalog.name, catalog.full_name(identifier))
    if error is not None:
        raise error


def _until_committed(catalog: Catalog, identifier: Name, change: _Change) -> Table:
    for _ in range(_ATTEMPTS):
        table = load(catalog, identifier)
        table.stored.check_alterable()
        try:
            with by_name(table.name):
                outcome = change(_kept(table))
        except NamespaceHasNoManifest:  # it was dropped, or another has its name by now
            continue
        match outcome:
            case ManifestCommitted():
                return load(catalog, identifier)
            case ConcurrentChange():
                continue
    why = f"other changes came first {_ATTEMPTS} times"
    raise WriteConflict(table=catalog.full_name(identifier), why=why)


def _kept(table: Table) -> Table:
    """Refuse to change a table while another one is put in its place, which would not have it."""
    notice = change_under_way(table.snapshot)
    if notice is None or notice.target != REPLACED:
        return table
    mode = STRONG if table.snapshot.is_strong else WEAK
    return replace(table, snapshot=settled(table.snapshot, mode))


def _without_column(before: Snapshot, after: NamespaceSchema) -> dict[str, None]:
    """Take out the indexes of columns that are dropped."""
    definitions = index_definitions(before.metadata).values()
    return {one.key: None for one in definitions if after.field_by_id(one.field_id) is None}


def _order_property(order: str | None) -> dict[str, object]:
    if order is None:
        return {"change": "remove_property", "property": WRITE_ORDER}
    return {"change": "set_property", "property": WRITE_ORDER, "value": order}


def _check_sources_stay(table: Table, after: NamespaceSchema) -> None:
    """Refuse to drop a column that the newest spec needs: no row could be written any more."""
    before = table.snapshot
    for transform, sources in partitioned_by_columns(before.current_spec, before.schema).items():
        for source in sources:
            if after.field_by_id(source.id) is None:
                raise UnsupportedTableChange(
                    change=f"drop column {source}",
                    table=table.name,
                    why=f"it is partitioned by {transform}",
                    advice=f"Run ALTER TABLE … DROP PARTITION FIELD {transform} first",
                )


def _apply(table: Table, changed: _Changed, change: Mapping[str, object]) -> _Changed:
    kind = change.get("change")
    if kind in ("set_property", "remove_property"):
        return _property(table, changed, change)
    return replace(changed, schema=changed_columns(table, changed.schema, change))


def _with_declared(
    table: Table, schema: NamespaceSchema, properties: Mapping[str, str]
) -> NamespaceSchema:
    """Give columns that no leaf has yet the types that properties say: vectors, blobs.

    Raises:
        UnsupportedTableChange: A leaf has the column, in the type that it has.
    """
    present = declarations(schema.arrow)
    new = {name: value for name, value in properties.items() if present.get(name) != value}
    arrow, _ = declared_columns(schema.arrow, new, table.name)
    for before, after in zip(schema.arrow, arrow, strict=True):
        if not before.type.equals(after.type) and _is_stored(table, before):
            raise UnsupportedTableChange(
                change=f"change the type of column {before.name}",
                table=table.name,
                why=f"there are rows that have it as {before.type}",
                advice="Add a new column, and set the property before rows are written to it",
            )
    return schema.evolved(arrow) if new else schema


def _is_stored(table: Table, column: pa.Field) -> bool:
    """Whether a leaf has a column, or rows have a default of it."""
    snapshot = table.snapshot
    leaves = snapshot.leaves().table.select(["location", "read_version"]).to_pylist()
    return INITIAL_DEFAULT in (column.metadata or {}) or any(
        match_fields(
            [column],
            leaf_fields(
                open_leaf(
                    snapshot.location,
                    leaf["location"],
                    leaf["read_version"],
                    snapshot.storage_options,
                )
            ),
            leaf["location"],
            list(snapshot.schema.arrow),
        )[0].stored
        is not None
        for leaf in leaves
    )


def _property(table: Table, changed: _Changed, change: Mapping[str, object]) -> _Changed:
    name, value = str(change.get("property")), change.get("value")
    if name in _FIXED:
        why, advice = _FIXED[name]
        raise UnsupportedTableChange(
            change=f"change the property {name}", table=table.name, why=why, advice=advice
        )
    if declaration(name) is not None:
        why, advice = "it says the type of a column", "Leave it as it is, or drop the column"
        raise UnsupportedTableChange(
            change=f"remove the property {name}", table=table.name, why=why, advice=advice
        )
    if name == "comment":
        return replace(changed, comment=str(value) if value is not None else "")
    if change.get("change") == "set_property":
        removed = tuple(gone for gone in changed.removed if gone != name)
        return replace(
            changed, properties={**changed.properties, name: str(value)}, removed=removed
        )
    properties = {key: text for key, text in changed.properties.items() if key != name}
    return replace(changed, properties=properties, removed=(*changed.removed, name))
