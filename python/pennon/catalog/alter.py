"""ALTER TABLE: properties, columns and partition fields, all in the metadata of the namespace.

Leaves are not touched. A column that a leaf lacks reads NULL, a renamed one is found by its field
id, a narrower type is promoted: so these changes are safe, and what is not is refused.
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
from pennon.spec.schema import NamespaceSchema

if TYPE_CHECKING:
    from pennon.catalog.directory import Name

__all__ = ["alter_partitioning", "alter_table"]

_ATTEMPTS = 5
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
        return change_root(
            table.snapshot,
            schema=None if is_same else changed.schema,
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
            _check_unpartitioned(table, there.id, path, "change the type of")
            wanted = arrow_type(change["type"], ".".join(path))
            if not is_promotable(there.field.type, wanted):
                why = f"not every value of {there.field.type} is one of {wanted}"
                raise _refused(table, path, "change the type of", why, "Add a new column")
            return edit_column(arrow, there.path, lambda found: found.with_type(wanted))
        case "delete_column":
            _check_unpartitioned(table, there.id, path, "drop")
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


def _check_unpartitioned(table: Table, field_id: int, path: tuple[str, ...], verb: str) -> None:
    snapshot = table.snapshot
    users = [
        each.field_id
        for spec in snapshot.specs.values()
        for each in spec.fields
        if field_id in each.source_ids
        and (verb != "drop" or spec.spec_version == snapshot.current_spec.spec_version)
    ]
    if users:
        why = f"the partition field {users[0]} is made of it"
        raise _refused(table, path, verb, why, "Drop the partition field first")


def _refused(
    table: Table, path: tuple[str, ...], verb: str, why: str, advice: str
) -> UnsupportedTableChange:
    return UnsupportedTableChange(
        change=f"{verb} column {'.'.join(path)}", table=table.name, why=why, advice=advice
    )
