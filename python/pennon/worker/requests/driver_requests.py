"""Handlers of requests about namespaces, tables and procedures: calls of the library."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pyarrow as pa

from pennon.caching import Cache, TableKey, storage_identity
from pennon.catalog.columns.spark_types import arrow_schema, hidden_columns, shown_columns
from pennon.catalog.configured_catalog import Catalog
from pennon.catalog.ddl import alter
from pennon.catalog.ddl import table_ddl as tables
from pennon.catalog.directory import Directory
from pennon.catalog.layouts import stored_table
from pennon.catalog.tables.loaded_table import Table, load
from pennon.catalog.upstream.partition_namespaces import described_properties
from pennon.errors import NamespaceNotFound, TableNotFound
from pennon.maintenance.procedures import PROCEDURES, find_procedure
from pennon.maintenance.procedures import call as call_procedure
from pennon.worker.messages import messages as m
from pennon.worker.plans.kept_plans import snapshot_of
from pennon.worker.requests.metadata_requests import find_metadata_table, refuse_change
from pennon.worker.wire.tokens import TableToken


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


def load_table(request: m.LoadTable) -> m.TableReply:
    """Answer ``load_table``."""
    try:
        table = load(request.catalog, request.identifier, request.version, request.timestamp_micros)
    except (TableNotFound, NamespaceNotFound):
        metadata_table = find_metadata_table(request)
        if metadata_table is None:
            raise
        return metadata_table
    return _described(request.catalog, table)


def create_table(request: m.CreateTable) -> m.TableReply:
    """Answer ``create_table``."""
    return _made(tables.create, request)


def stage_table(request: m.StageTable) -> m.TableReply:
    """Answer ``stage_table``."""
    return _made(tables.stage, request)


def _made(make: Callable[..., Table], request: m.CreateTable | m.StageTable) -> m.TableReply:
    return _described(
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
    return _described(request.catalog, altered)


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


def _described(catalog: Catalog, table: Table) -> m.TableReply:
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
