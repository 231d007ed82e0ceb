"""Handlers of requests about namespaces, tables and procedures: calls of the library."""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from pennon.caching import Cache, TableKey, storage_identity
from pennon.catalog.columns.spark_types import arrow_schema, hidden_columns, shown_columns
from pennon.catalog.configured_catalog import Catalog
from pennon.catalog.ddl import alter
from pennon.catalog.ddl import table_ddl as tables
from pennon.catalog.ddl.statements import rewritten
from pennon.catalog.directory import Directory
from pennon.catalog.layouts import stored_table
from pennon.catalog.table_name import by_name
from pennon.catalog.tables.loaded_table import (
    ChangeBounds,
    Table,
    find_changes,
    load,
    reopen_newest,
)
from pennon.catalog.upstream.namespace_requests import described_properties
from pennon.errors import (
    MalformedMessage,
    NamespaceNotFound,
    PennonError,
    PredicateNotEvaluable,
    TableNotFound,
    UnsupportedTableChange,
)
from pennon.execution import BatchStream
from pennon.leaf.dataset import leaves_at_once
from pennon.maintenance.procedures import PROCEDURES, find_procedure
from pennon.maintenance.procedures import call as call_procedure
from pennon.metadata_tables import METADATA_TABLES, MetadataTable, Selection, tables_of
from pennon.metadata_tables.changes_table import ChangeRange, change_feed
from pennon.metadata_tables.metadata_table import SearchCall
from pennon.search import (
    METRICS_OF_RANKINGS,
    NearestJoin,
    check_zone,
    plan_search,
    search_details,
    search_table,
)
from pennon.search.vectors import is_vector
from pennon.spec.column_names import listed_columns
from pennon.streams import StreamOptions, StreamPosition, batch_end, batch_start, planned_batch
from pennon.worker.messages import messages as m
from pennon.worker.messages.messages import LoadChanges, MetadataRows, ReadMetadata
from pennon.worker.messages.scan_messages import StreamReply
from pennon.worker.plans.plan_cache import snapshot_of
from pennon.worker.requests import data_plane
from pennon.worker.wire.framing import STORAGE_OPTION_VALUES
from pennon.worker.wire.json_fields import decode, encode
from pennon.worker.wire.tokens import MetadataToken, PlanToken, TableToken, packed_splits

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from pennon.manifest import Snapshot
    from pennon.worker.wire.framing import FrameSocket

__all__ = ["load_changes", "load_search", "read_metadata"]

# Handlers of requests about metadata tables.

_NET_CHANGES = "netchanges"
# Namespaces that are searched for the sake of a message.
_MOST_SEARCHED = 20
# Tables that are opened at once on a disk.
_OPENING_THREADS = 4
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


def rewrite_statements(request: m.RewriteStatements) -> m.RewriteStatementsReply:
    """Answer ``rewrite_statements``."""
    return m.RewriteStatementsReply(rewritten(request.tokens))


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


def load_search(request: m.LoadSearch) -> m.TableReply:
    """Answer ``load_search``."""
    table = load(request.catalog, request.identifier, request.version)
    definition = search_table(request.search, table.name, table.snapshot)
    return _described(request.catalog, table, definition, search=request.search)


def plan_nearest(request: m.PlanNearest) -> m.PlanNearestReply:
    """Answer ``plan_nearest``."""
    try:  # not in every place that a worker runs in
        from pyspark.serializers import CloudPickleSerializer  # noqa: PLC0415
        from pyspark.sql.pandas.types import to_arrow_schema  # noqa: PLC0415
        from pyspark.sql.types import StructType  # noqa: PLC0415
    except ImportError:
        return m.PlanNearestReply("", "", "")
    token = TableToken.from_json(request.table)
    snapshot = snapshot_of(request.catalog, token)
    schema = snapshot.schema.arrow
    vector = schema.field(request.column) if request.column in schema.names else None
    metric = METRICS_OF_RANKINGS.get((request.function, request.distance))
    if vector is None or metric is None or not is_vector(vector.type):
        return m.PlanNearestReply("", "", "")
    try:
        check_zone(snapshot, request.where, request.time_zone, token.name)
        plan = plan_search(
            snapshot,
            [0] * vector.type.list_size,
            column=request.column,
            k=request.k,
            where=request.where,
            metric=metric,
            exact=request.exact,
            columns=request.columns,
            table=token.name,
        )
    except PredicateNotEvaluable:
        return m.PlanNearestReply("", "", "")
    given = StructType.fromJson(request.schema)
    joined = to_arrow_schema(given, timezone=request.time_zone)
    join = NearestJoin(plan, token.name, request.keeps_unmatched, joined)
    pickled = CloudPickleSerializer().dumps((join, given))
    major, minor, *_ = sys.version_info
    details = "; ".join(search_details(snapshot, plan))
    return m.PlanNearestReply(
        base64.b64encode(pickled).decode(),
        f"{major}.{minor}",
        f"nearest {request.k:,} by {metric} of {token.name}; {details}",
    )


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
            m.LoadTable(
                request.catalog,
                request.identifier,
                version=None,
                timestamp_micros=None,
                named=False,
            )
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
    search: SearchCall | None = None,
) -> m.TableReply:
    snapshot, has_time = table.snapshot, catalog.has_time
    columns = definition.schema(snapshot)
    detail = definition.detail(snapshot) if definition.detail is not None else ""
    of_table = TableToken(
        table.name, snapshot.location, snapshot.version, snapshot.layout, table.identity
    )
    return m.TableReply(
        MetadataToken(definition.name, of_table, changes, search).to_json(),
        "; ".join(filter(None, [f"{table.name}.{definition.name}", detail])),
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
    STORAGE_OPTION_VALUES.remember(asked.catalog.namespace)
    token = MetadataToken.from_json(message.table)
    snapshot = snapshot_of(asked.catalog, token.of)
    if token.search is not None:
        definition = search_table(token.search, token.of.name, snapshot)
    elif token.changes is not None:
        definition = change_feed(token.changes)
    else:
        definition = METADATA_TABLES[token.metadata]
    selection = Selection(asked.columns, asked.predicates)
    stream = _stream(token.of.name, definition, snapshot, selection)
    frames.send_json(encode(StreamReply(arrow=True)))
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


# Handlers of the requests of a stream that reads a table.


def start_stream(request: m.StartStream) -> m.PositionReply:
    """Answer ``start_stream``."""
    with _named(request):
        return m.PositionReply(batch_start(_newest(request), _options(request)).to_json())


def find_batch_end(request: m.FindBatchEnd) -> m.PositionReply:
    """Answer ``find_batch_end``."""
    until = None if request.until is None else StreamPosition.from_json(request.until)
    start = StreamPosition.from_json(request.start)
    with _named(request):
        options = _options(request)
        if request.takes_all:
            options = replace(options, most_versions=None)
        end = batch_end(_newest(request), start, options, until)
    return m.PositionReply(end.to_json())


def plan_batch(request: m.PlanBatch) -> tuple[StreamReply, pa.Table]:
    """Answer ``plan_batch``."""
    start, end = StreamPosition.from_json(request.start), StreamPosition.from_json(request.end)
    with _named(request):
        leaves, rows = planned_batch(
            snapshot_of(request.catalog, request.table),
            start,
            end,
            _options(request),
            num_tasks=request.num_tasks,
            max_bytes=request.max_bytes,
            constants=PlanToken.from_json(request.plan).constants,
        )
    return StreamReply(arrow=True), packed_splits(leaves, rows)


def _named(request: m.StreamRequest) -> AbstractContextManager[None]:
    return by_name(TableToken.from_json(request.table).name)


def _newest(request: m.StreamRequest) -> Snapshot:
    table = TableToken.from_json(request.table)
    return reopen_newest(request.catalog, table.name, table.location, table.table_id)


def _options(request: m.StreamRequest) -> StreamOptions:
    name = TableToken.from_json(request.table).name
    return StreamOptions.of(request.options, name, request.time_zone)


def list_namespaces(request: m.ListNamespaces) -> m.ListNamespacesReply:
    """Answer ``list_namespaces``."""
    namespaces = Directory(request.catalog).namespaces(request.namespace)
    return m.ListNamespacesReply(tuple(namespaces))


def describe_namespace(request: m.DescribeNamespace) -> m.PropertiesReply:
    """Answer ``describe_namespace``."""
    if request.in_tables:
        return m.PropertiesReply(described_properties(request.catalog, request.namespace))
    return m.PropertiesReply(Directory(request.catalog).properties(request.namespace))


def create_namespace(request: m.CreateNamespace) -> m.EmptyReply:
    """Answer ``create_namespace``."""
    # Spark adds the user of the session; the format has no owner.
    properties = {name: text for name, text in request.properties.items() if name != "owner"}
    Directory(request.catalog).create_namespace(request.namespace, properties, if_not_exists=False)
    return m.EmptyReply()


def drop_namespace(request: m.DropNamespace) -> m.DroppedReply:
    """Answer ``drop_namespace``."""
    return m.DroppedReply(
        tables.drop_namespace(request.catalog, request.namespace, cascade=request.cascade)
    )


def alter_namespace(request: m.AlterNamespace) -> m.EmptyReply:
    """Answer ``alter_namespace``."""
    Directory(request.catalog).alter_namespace(
        request.namespace, request.set_properties, request.remove_properties
    )
    return m.EmptyReply()


def list_tables(request: m.ListTables) -> m.ListTablesReply:
    """Answer ``list_tables``."""
    return m.ListTablesReply(tuple(Directory(request.catalog).tables(request.namespace)))


def load_tables(request: m.LoadTables) -> m.LoadTablesReply:
    """Answer ``load_tables``."""

    def described(table: tuple[str, ...]) -> m.TableReply | None:
        try:
            return _described_table(request.catalog, load(request.catalog, table))
        except PennonError:
            return None

    most = leaves_at_once(request.catalog.root, on_disk=_OPENING_THREADS)
    with ThreadPoolExecutor(most) as pool:
        return m.LoadTablesReply(tuple(pool.map(described, request.tables)))


def load_table(request: m.LoadTable) -> m.TableReply:
    """Answer ``load_table``."""
    try:
        table = load(
            request.catalog,
            request.identifier,
            request.version,
            request.timestamp_micros,
            is_named=request.named,
        )
    except (TableNotFound, NamespaceNotFound):
        metadata_table = find_metadata_table(request)
        if metadata_table is None:
            raise
        return metadata_table
    return _described_table(request.catalog, table)


def create_table(request: m.CreateTable) -> m.TableReply:
    """Answer ``create_table``."""
    return _made(tables.create, request)


def stage_table(request: m.StageTable) -> m.TableReply:
    """Answer ``stage_table``."""
    return _made(tables.stage, request)


def _made(make: Callable[..., Table], request: m.CreateTable | m.StageTable) -> m.TableReply:
    return _described_table(
        request.catalog,
        make(
            request.catalog,
            request.identifier,
            schema=request.schema,
            transforms=request.partitioning,
            properties=request.properties,
            mode=request.mode,
        ),
    )


def publish_table(request: m.PublishTable) -> m.EmptyReply:
    """Answer ``publish_table``."""
    location = TableToken.from_json(request.table).location
    reads = [TableToken.from_json(text) for text in request.reads]
    versions = [(token.location, token.version) for token in reads]
    tables.publish(request.catalog, request.identifier, location, request.mode, versions)
    return m.EmptyReply()


def discard_table(request: m.DiscardTable) -> m.EmptyReply:
    """Answer ``discard_table``."""
    name = TableToken.from_json(request.table).name
    table = stored_table(name, snapshot_of(request.catalog, request.table))
    tables.discard(request.catalog, request.identifier, table)
    return m.EmptyReply()


def drop_table(request: m.DropTable) -> m.DroppedReply:
    """Answer ``drop_table``."""
    is_dropped = tables.drop(request.catalog, request.identifier)
    if not is_dropped:
        refuse_change(request, "drop", "Drop the table itself")
    return m.DroppedReply(is_dropped)


def rename_table(request: m.RenameTable) -> m.EmptyReply:
    """Answer ``rename_table``."""
    try:
        tables.rename(request.catalog, request.identifier, request.to)
    except TableNotFound:
        refuse_change(request, "rename", "Rename the table itself")
        raise
    return m.EmptyReply()


def alter_table(request: m.AlterTable) -> m.TableReply:
    """Answer ``alter_table``."""
    try:
        altered = alter.alter_table(request.catalog, request.identifier, request.changes)
    except TableNotFound:
        refuse_change(request, "alter", "Alter the table itself")
        raise
    return _described_table(request.catalog, altered)


def list_procedures(request: m.ListProcedures) -> m.ListProceduresReply:
    """Answer ``list_procedures``."""
    named = PROCEDURES.values() if request.name is None else [find_procedure(request.name)]
    return m.ListProceduresReply(
        tuple(
            m.ProcedureSignature(
                procedure.name,
                procedure.description,
                tuple(
                    m.ProcedureParameter(one.name, one.type, one.is_required)
                    for one in procedure.signature
                ),
            )
            for procedure in named
        )
    )


def call(request: m.Call) -> tuple[m.CallReply, pa.Table]:
    """Answer ``call``."""
    catalog, stated = request.catalog, request.namespace
    namespace = stated[1:] if stated[:1] == (catalog.name,) else ()
    answer = call_procedure(
        catalog, request.procedure, request.arguments, namespace, request.time_zone
    )
    columns = arrow_schema(answer.schema)
    values = [
        pa.array([row[at] for row in answer.rows], column.type) for at, column in enumerate(columns)
    ]
    reply = m.CallReply(answer.schema, answer.renewed, arrow=True)
    return reply, pa.Table.from_arrays(values, schema=columns)


# A table of a hundred columns.
_REPLY_BYTES: Final = 32 << 10
_replies: Final[Cache[m.TableReply]] = Cache(
    "descriptions of tables", max_bytes=8 << 20, weigh=lambda _: _REPLY_BYTES
)


def _described_table(catalog: Catalog, table: Table) -> m.TableReply:
    """Describe a table; Spark loads each one twice per query, which are seldom two versions."""
    snapshot = table.snapshot
    if not snapshot.layout.records_commits or not snapshot.names_leaf_versions:
        return _description(catalog, table)
    storage = storage_identity(snapshot.storage_options)
    detail = (table.name, table.is_managed, catalog.has_time)
    key = TableKey(snapshot.location, snapshot.version, table.identity, storage, detail)
    return _replies.find(key, lambda: _description(catalog, table))


def _description(catalog: Catalog, table: Table) -> m.TableReply:
    snapshot, has_time = table.snapshot, catalog.has_time
    token = TableToken(
        table.name,
        snapshot.location,
        snapshot.version,
        snapshot.layout,
        table.identity,
        table.table_id or "",
    )
    return m.TableReply(
        token.to_json(),
        table.name,
        shown_columns(snapshot.schema.arrow, has_time=has_time),
        hidden_columns(snapshot.schema.arrow, has_time=has_time),
        table.partitioning,
        table.properties,
        table.table_id,
        str(snapshot.version),
        is_metadata=False,
        metadata_columns=shown_columns(table.metadata_columns, has_time=has_time),
        row_id=table.row_id,
    )
