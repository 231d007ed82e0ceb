"""Handlers of requests about metadata tables."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from pennon.catalog.columns.spark_types import arrow_schema, hidden_columns, shown_columns
from pennon.catalog.directory import Directory
from pennon.catalog.failures_by_name import by_name
from pennon.catalog.tables.change_range import ChangeBounds, find_changes
from pennon.catalog.tables.loaded_table import load
from pennon.errors import (
    MalformedMessage,
    NamespaceNotFound,
    TableNotFound,
    UnsupportedTableChange,
)
from pennon.execution import BatchStream
from pennon.metadata_tables import METADATA_TABLES, MetadataTable, Selection, tables_of
from pennon.metadata_tables.change_feed import ChangeRange, change_feed
from pennon.spec.column_names import listed_columns
from pennon.worker.messages import messages as m
from pennon.worker.messages.metadata_messages import LoadChanges, MetadataRows, ReadMetadata
from pennon.worker.messages.scan_messages import ReadReply
from pennon.worker.plans.kept_plans import snapshot_of
from pennon.worker.requests import data_plane
from pennon.worker.wire.failures import STORAGE_OPTION_VALUES
from pennon.worker.wire.json_fields import decode, encode
from pennon.worker.wire.tokens import MetadataToken, TableToken

if TYPE_CHECKING:
    from pennon.catalog.configured_catalog import Catalog
    from pennon.catalog.tables.loaded_table import Table
    from pennon.manifest import Snapshot
    from pennon.worker.wire.framing import FrameSocket

__all__ = ["find_metadata_table", "load_changes", "read_metadata", "refuse_change"]

_NET_CHANGES = "netchanges"
# Namespaces that are searched for the sake of a message.
_MOST_SEARCHED = 20
# What Iceberg's users write behind a table for one of its versions.
_VERSIONS_OF_ICEBERG: Final = ("tag_", "branch_", "snapshot_id_", "at_timestamp_")


def find_metadata_table(request: m.LoadTable) -> m.TableReply | None:
    """Answer ``load_table`` for ``table.partitions`` and its like; None where there is no table.

    Args:
        request: Names nothing else that the catalog knows.

    Raises:
        TableNotFound: There is a table and no such metadata, or such metadata and no table; lists
            what there is.
    """
    *above, name = request.identifier
    if not above:
        return None
    try:
        table = load(request.catalog, tuple(above), request.version, request.timestamp_micros)
    except (TableNotFound, NamespaceNotFound):
        _check_namespace_is_named(request.catalog, tuple(above), name)
        if name.lower() in METADATA_TABLES and not _is_namespace(request.catalog, tuple(above)):
            # SHOW PARTITIONS names the metadata table of a table that is not there.
            _check_is_no_metadata(request.catalog, tuple(above))
            raise
        return None
    metadata_tables = tables_of(has_manifest=table.stored.has_manifest)
    definition = metadata_tables.get(name.lower())
    if definition is None:
        near = f"{table.name} is a table, whose metadata tables are {', '.join(metadata_tables)}"
        if name.lower().startswith(_VERSIONS_OF_ICEBERG):
            near = f"earlier versions are read by {table.name} VERSION AS OF …"
        raise TableNotFound(table=request.catalog.full_name(request.identifier), near=near)
    return _described(request.catalog, table, definition)


def _is_namespace(catalog: Catalog, name: tuple[str, ...]) -> bool:
    try:
        Directory(catalog).properties(name)
    except NamespaceNotFound:
        return False
    return True


def _check_is_no_metadata(catalog: Catalog, table: tuple[str, ...]) -> None:
    """Fail for ``orders.files`` whose own metadata is looked for.

    Raises:
        TableNotFound: It is the metadata of a table.
    """
    *above, name = table
    if above and name.lower() in METADATA_TABLES and Directory(catalog).find(tuple(above)):
        near = f"it is metadata of the table {catalog.full_name(tuple(above))}"
        raise TableNotFound(table=catalog.full_name(table), near=near)


def _check_namespace_is_named(catalog: Catalog, table: tuple[str, ...], name: str) -> None:
    """Fail for ``orders.snapshots`` after ``USE lance.shop``: the table is taken for a namespace.

    Raises:
        TableNotFound: There are tables of that name in namespaces; says how they are named.
    """
    if len(table) > 1 or name.lower() not in METADATA_TABLES:
        return
    directory = Directory(catalog)
    namespaces = directory.namespaces(())
    if table in namespaces:
        return
    holders = [
        namespace
        for namespace in namespaces[:_MOST_SEARCHED]
        if table[0] in directory.tables(namespace)
    ]
    if holders:
        near = " or ".join(catalog.full_name((*holder, *table, name)) for holder in holders)
        raise TableNotFound(
            table=catalog.full_name((*table, name)),
            near=f"a metadata table is named with its table's namespace, did you mean {near}",
        )


def load_changes(request: LoadChanges) -> m.TableReply:
    """Answer ``load_changes``."""
    options = {name.lower(): value for name, value in request.options.items()}
    table, changes = find_changes(
        request.catalog,
        request.identifier,
        ChangeBounds(
            request.start_version,
            request.end_version,
            request.start_micros,
            request.end_micros,
            request.start_inclusive,
            request.end_inclusive,
        ),
        listed_columns(options.get("key", "")),
        is_paired=request.compute_updates,
        is_net=request.deduplication.lower() == _NET_CHANGES,
    )
    return _described(request.catalog, table, change_feed(changes), changes)


def refuse_change(request: m.NamedTableRequest, change: str, advice: str) -> None:
    """Raise where a name whose table is to be changed is a metadata table's.

    Args:
        request: Names the table.
        change: What is to be done with it.
        advice: What to do with its table instead.

    Raises:
        UnsupportedTableChange: It is what its table is.
    """
    try:
        metadata_table = find_metadata_table(
            m.LoadTable(request.catalog, request.identifier, version=None, timestamp_micros=None)
        )
    except TableNotFound:
        return
    if metadata_table is not None:
        table, _, kind = metadata_table.name.rpartition(".")
        raise UnsupportedTableChange(
            change=f"{change} {kind}",
            table=table,
            why="it is the metadata of the table",
            advice=advice,
        )


def _described(
    catalog: Catalog,
    table: Table,
    definition: MetadataTable,
    changes: ChangeRange | None = None,
) -> m.TableReply:
    snapshot, has_time = table.snapshot, catalog.has_time
    columns = definition.schema(snapshot)
    of_table = TableToken(
        table.name, snapshot.location, snapshot.version, snapshot.layout, table.identity
    )
    return m.TableReply(
        MetadataToken(definition.name, of_table, changes).to_json(),
        f"{table.name}.{definition.name}",
        shown_columns(columns, has_time=has_time),
        hidden_columns(columns, has_time=has_time),
        (),
        {},
        table.identity,
        str(snapshot.version),
        is_metadata=True,
        metadata_columns=shown_columns(pa.schema([]), has_time=has_time),
        row_id=(),
    )


def read_metadata(request: Mapping[str, object], frames: FrameSocket) -> None:
    """Answer ``read_metadata``: stream the requested columns of a metadata table."""
    message = decode(ReadMetadata, request)
    asked = decode(MetadataRows, _object(message.split))
    STORAGE_OPTION_VALUES.remember(asked.catalog.storage)
    token = MetadataToken.from_json(message.table)
    changes = token.changes
    definition = METADATA_TABLES[token.metadata] if changes is None else change_feed(changes)
    snapshot = snapshot_of(asked.catalog, token.of)
    selection = Selection(asked.columns, asked.predicates)
    stream = _stream(token.of.name, definition, snapshot, selection)
    frames.send_json(encode(ReadReply(arrow=True)))
    data_plane.send_rows(stream, frames)


def _stream(
    table: str, definition: MetadataTable, snapshot: Snapshot, selection: Selection
) -> BatchStream:
    full = arrow_schema(shown_columns(definition.schema(snapshot), has_time=True))
    schema = pa.schema([full.field(name) for name in selection.columns])

    def batches() -> Iterator[pa.RecordBatch]:
        for part in definition.rows(snapshot, selection):
            if not len(schema):
                # Rows that are only counted.
                rows = pa.array([{}] * len(part), pa.struct([]))
                yield pa.RecordBatch.from_struct_array(rows)
                continue
            yield from part.select(schema.names).cast(schema).to_batches()

    def named_batches() -> Iterator[pa.RecordBatch]:
        with by_name(table):
            yield from batches()

    return BatchStream(schema, named_batches())


def _object(text: str) -> dict[str, object]:
    try:
        read = json.loads(text)
    except json.JSONDecodeError as error:
        raise MalformedMessage(why="the text of a metadata table is not one of ours") from error
    if not isinstance(read, dict):
        raise MalformedMessage(why="the text of a metadata table is not one of ours")
    return read
