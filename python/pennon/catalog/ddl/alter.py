"""ALTER TABLE: properties, columns and partition fields, all in the metadata of the namespace.

Leaves are not touched; `column_changes` decides which changes of columns are safe.

A column that the partition fields need may be promoted, where equal values keep one partition
value; the same commit makes a spec version with wider result types. It is dropped only once the
newest spec does without it: older specs keep the partition values that they recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING
from urllib.parse import unquote

from pennon.catalog.configured_catalog import Catalog
from pennon.catalog.ddl.column_changes import changed_columns
from pennon.catalog.ddl.counted_columns_property import check_counted_columns
from pennon.catalog.ddl.foreign_properties import check_names
from pennon.catalog.ddl.statement_advice import not_supported
from pennon.catalog.ddl.table_statement import STATEMENT, OrderChange, statement_of
from pennon.catalog.ddl.tag_change import change_tag
from pennon.catalog.ddl.tag_statement import is_about_names, tag_change_of
from pennon.catalog.ddl.write_order_change import checked_order, followed_order
from pennon.catalog.failures_by_name import by_name
from pennon.catalog.partitioning import FieldChange, evolved_spec, partitioned_by_columns
from pennon.catalog.tables.loaded_table import Table, load
from pennon.errors import NamespaceHasNoManifest, UnsupportedTableChange, WriteConflict
from pennon.manifest import ConcurrentChange, ManifestCommitted, ManifestOutcome, change_root
from pennon.manifest.format.change_notice import ALTERED, REPLACED
from pennon.manifest.transaction_mode import STRONG, WEAK, change_under_way
from pennon.manifest.versions.retention import check_retention
from pennon.spec.evolution import promoted_spec
from pennon.spec.schema import NamespaceSchema
from pennon.spec.write_order import WRITE_ORDER
from pennon.transaction.abandoned_change import settled
from pennon.transaction.concurrency.isolation import check_isolation
from pennon.transaction.concurrency.row_change_mode import check_row_change_modes
from pennon.transaction.writer_fence import without_writers

if TYPE_CHECKING:
    from pennon.catalog.directory import Name

__all__ = ["alter_partitioning", "alter_table"]

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
        if is_about_names(unquote(statement)):
            name = catalog.full_name(identifier)
            change_tag(catalog, identifier, tag_change_of(unquote(statement), name))
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
        check_counted_columns(table.name, changed.properties, changed.schema)
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
    for change in changes:
        changed = _apply(table, changed, change)
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


def _property(table: Table, changed: _Changed, change: Mapping[str, object]) -> _Changed:
    name, value = str(change.get("property")), change.get("value")
    if name in _FIXED:
        why, advice = _FIXED[name]
        raise UnsupportedTableChange(
            change=f"change the property {name}", table=table.name, why=why, advice=advice
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
