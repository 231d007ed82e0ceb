"""ALTER TABLE: properties, columns and partition fields, all in the metadata of the namespace.

Leaves are not touched. A column that a leaf lacks reads NULL, a renamed one is found by its field
id, a narrower type is promoted: so these changes are safe, and what is not is refused.

A column that the partition fields need may be promoted, where equal values keep one partition
value; the same commit makes a spec version with wider result types. It may also be dropped: rows
are read and pruned as before, and nothing is written until a new spec does without the column.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from pennon.catalog.catalog import Catalog
from pennon.catalog.column_edits import edit_column, place_column
from pennon.catalog.partitioning import evolved_spec
from pennon.catalog.spark_types import arrow_type
from pennon.catalog.table import Table, load
from pennon.errors import MalformedMessage, UnknownColumn, UnsupportedTableChange, WriteConflict
from pennon.leaf.promotion import is_promotable
from pennon.manifest import ConcurrentChange, ManifestCommitted, ManifestOutcome, change_root
from pennon.spec.evolution import promoted_spec
from pennon.spec.schema import NamespaceSchema
from pennon.transforms.bucket import Bucket, MultiBucket
from pennon.transforms.identity import Identity
from pennon.transforms.truncate import Truncate

if TYPE_CHECKING:
    from pennon.catalog.directory import Name
    from pennon.spec.schema import SchemaField

__all__ = ["alter_partitioning", "alter_table"]

_ATTEMPTS = 5
_PROMOTED = (Identity, Truncate, Bucket, MultiBucket)
_FIXED = frozenset({"provider", "location", "transaction", "owner"})


@dataclass(frozen=True, slots=True)
class _Changed:
    """What a list of changes makes of a table."""

    schema: NamespaceSchema
    properties: Mapping[str, str] = field(default_factory=dict)
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
        WriteConflict: Others changed the table each time it was tried.
    """

    def change(table: Table) -> ManifestOutcome:
        changed = _Changed(table.snapshot.schema)
        for each in changes:
            changed = _apply(table, changed, each)
        is_same = changed.schema is table.snapshot.schema
        is_promoted = any(each.get("change") == "update_type" for each in changes)
        return change_root(
            table.snapshot,
            schema=None if is_same else changed.schema,
            spec=promoted_spec(table.snapshot.specs, changed.schema) if is_promoted else None,
            properties=changed.properties,
            removed_properties=changed.removed,
            comment=changed.comment,
        )

    return _until_committed(catalog, identifier, change)


def alter_partitioning(
    catalog: Catalog,
    identifier: Name,
    action: str,
    *,
    transform: Mapping[str, object] | None,
    dropped: object,
    name: str | None,
) -> Table:
    """ADD, DROP or REPLACE PARTITION FIELD: a new spec version for the rows to come.

    Spec: "Partition Evolution".
    """

    def change(table: Table) -> ManifestOutcome:
        snapshot = table.snapshot
        spec = evolved_spec(
            snapshot.specs,
            snapshot.schema,
            action,
            transform=transform,
            field=dropped,
            name=name,
        )
        return change_root(snapshot, spec=spec)

    return _until_committed(catalog, identifier, change)


def _until_committed(
    catalog: Catalog, identifier: Name, change: Callable[[Table], ManifestOutcome]
) -> Table:
    for _ in range(_ATTEMPTS):
        table = load(catalog, identifier)
        if table.is_plain:
            raise UnsupportedTableChange(
                change="change the definition",
                table=table.name,
                why="it is a plain Lance dataset",
                advice="Create a table from it with CREATE TABLE … AS SELECT",
            )
        table.snapshot.check_writable("change the definition of")
        match change(table):
            case ManifestCommitted():
                return load(catalog, identifier)
            case ConcurrentChange():
                continue
    why = f"other changes came first {_ATTEMPTS} times"
    raise WriteConflict(table=catalog.full_name(identifier), why=why)


def _apply(table: Table, changed: _Changed, change: Mapping[str, object]) -> _Changed:
    kind = change.get("change")
    if kind in ("set_property", "remove_property"):
        return _property(table, changed, change)
    column = change.get("column")
    if not isinstance(column, list | tuple) or not column:
        raise MalformedMessage(why=f"a change {kind} names no column")
    path = tuple(str(part) for part in column)
    arrow = _columns(table, changed.schema, path, change)
    return replace(changed, schema=changed.schema.evolved(arrow))


def _property(table: Table, changed: _Changed, change: Mapping[str, object]) -> _Changed:
    name, value = str(change.get("property")), change.get("value")
    if name in _FIXED:
        raise UnsupportedTableChange(
            change=f"change the property {name}",
            table=table.name,
            why="it is fixed when the table is created",
            advice="Create the table again with another value",
        )
    if name == "comment":
        return replace(changed, comment=str(value) if value is not None else "")
    if change.get("change") == "set_property":
        removed = tuple(each for each in changed.removed if each != name)
        return replace(
            changed, properties={**changed.properties, name: str(value)}, removed=removed
        )
    properties = {key: text for key, text in changed.properties.items() if key != name}
    return replace(changed, properties=properties, removed=(*changed.removed, name))


def _columns(
    table: Table, schema: NamespaceSchema, path: tuple[str, ...], change: Mapping[str, object]
) -> pa.Schema:
    arrow = schema.arrow
    kind = change.get("change")
    if kind == "add_column":
        return place_column(arrow, path, _added(table, path, change), change.get("position"))
    there = schema.field_by_path(path)
    if there is None:
        if kind == "delete_column" and change.get("if_exists"):
            return arrow
        names = ", ".join(str(each) for each in schema.fields)
        raise UnknownColumn(column=".".join(path), columns=names)
    match kind:
        case "rename_column":
            new_name = str(change["new_name"])
            taken = schema.field_by_path((*there.path[:-1], new_name))
            if taken is not None and taken.id != there.id:
                raise _refused(
                    table, path, "rename", f"there is a column {taken}", "Choose another name"
                )
            return edit_column(arrow, there.path, lambda found: found.with_name(new_name))
        case "update_comment":
            comment = change.get("comment")
            return edit_column(arrow, there.path, lambda found: _with(found, "comment", comment))
        case "update_default":
            default = change.get("default")
            return edit_column(
                arrow, there.path, lambda found: _with(found, "CURRENT_DEFAULT", default)
            )
        case "update_nullability" if change.get("nullable"):
            return edit_column(arrow, there.path, lambda found: found.with_nullable(True))
        case "update_nullability":
            why = "rows that are stored already may be NULL there"
            raise _refused(table, path, "make NOT NULL", why, "Create the table again")
        case "update_position":
            return place_column(arrow, there.path, None, change.get("position"))
        case "update_type":
            wanted = arrow_type(change["type"], ".".join(path))
            if not is_promotable(there.field.type, wanted):
                why = f"not every value of {there.field.type} is one of {wanted}"
                raise _refused(table, path, "change the type of", why, "Add a new column")
            _check_partitioned(table, there, path, wanted)
            return edit_column(arrow, there.path, lambda found: found.with_type(wanted))
        case "delete_column":
            if len(arrow) == 1 and len(there.path) == 1:
                raise _refused(table, path, "drop", "it is the only column", "Drop the table")
            return edit_column(arrow, there.path, lambda _: None)
        case _:
            raise MalformedMessage(why=f"there is no change {kind!r}")


def _added(table: Table, path: tuple[str, ...], change: Mapping[str, object]) -> pa.Field:
    if table.snapshot.schema.field_by_path(path) is not None:
        raise _refused(table, path, "add", "there is such a column", "Choose another name")
    if not change.get("nullable", True):
        why = "rows that are stored already have no value there"
        raise _refused(table, path, "add", why, "Add it without NOT NULL")
    if change.get("default") is not None:
        why = "rows that are stored already would have to read the default"
        raise _refused(table, path, "add", why, "Add it without DEFAULT, then set one for new rows")
    added = pa.field(path[-1], arrow_type(change["type"], ".".join(path)))
    return _with(added, "comment", change.get("comment"))


def _with(found: pa.Field, key: str, value: object) -> pa.Field:
    metadata = {name: text for name, text in (found.metadata or {}).items() if name != key.encode()}
    if value is not None:
        metadata[key.encode()] = str(value).encode()
    return found.with_metadata(metadata or None)


def _check_partitioned(
    table: Table, column: SchemaField, path: tuple[str, ...], wanted: pa.DataType
) -> None:
    """Refuse a promotion after which equal values may have different partition values."""
    keeps = _is_numeric_widening(column.field.type, wanted)
    for spec in table.snapshot.specs.values():
        for each in spec.fields:
            is_kept = keeps and isinstance(each.transform, _PROMOTED)
            if column.id in each.source_ids and column.field.type != wanted and not is_kept:
                why = (
                    f"the partition field {each.field_id} of spec version {spec.spec_version} is"
                    f" made of it, and may give another value of {wanted}"
                )
                raise _refused(table, path, "change the type of", why, "Add a new column")


def _is_numeric_widening(found: pa.DataType, wanted: pa.DataType) -> bool:
    if pa.types.is_decimal(found) and pa.types.is_decimal(wanted):
        return bool(found.scale == wanted.scale)
    kinds = (pa.types.is_integer, pa.types.is_floating)
    return any(kind(found) and kind(wanted) for kind in kinds)


def _refused(
    table: Table, path: tuple[str, ...], verb: str, why: str, advice: str
) -> UnsupportedTableChange:
    return UnsupportedTableChange(
        change=f"{verb} column {'.'.join(path)}", table=table.name, why=why, advice=advice
    )
