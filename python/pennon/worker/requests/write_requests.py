"""Requests of the driver that change rows → calls of the library."""

from __future__ import annotations

from pennon.catalog import table_write
from pennon.catalog.columns.projected_columns import with_field_ids
from pennon.catalog.columns.spark_types import arrow_schema
from pennon.catalog.partitioning import clustering, sorting
from pennon.catalog.plain_dataset import PlainSnapshot
from pennon.catalog.table_write import WriteMode
from pennon.errors import MalformedMessage, NotWholePartitions
from pennon.leaf import WriteTarget
from pennon.leaf.read.metadata_columns import LEAF
from pennon.spec.write_order import WriteOrder
from pennon.worker.requests.kept_plans import snapshot_of
from pennon.worker.wire import write_messages as m
from pennon.worker.wire.messages import EmptyReply
from pennon.worker.wire.tokens import TableToken, WriteToken

# What one task writes, as Spark's shuffle has it: three to five times as much in memory.
_TASK_BYTES = 32 << 20


def plan_write(request: m.PlanWrite) -> m.PlanWriteReply:
    """Answer ``plan_write``."""
    table = TableToken.from_json(request.table)
    snapshot = snapshot_of(request.catalog, request.table)
    mode = table_write.check_write(snapshot, table.name, _mode(request.mode), request.predicates)
    spec, storage = snapshot.current_spec, request.catalog.storage
    target, order = "", None
    if isinstance(snapshot, PlainSnapshot):
        schema = snapshot.stored_schema
    else:
        schema = with_field_ids(arrow_schema(request.schema), snapshot.schema.arrow)
        order = WriteOrder.of(snapshot.properties, snapshot.schema)
        target = WriteTarget(
            snapshot.location, snapshot.version, spec.spec_version, storage
        ).to_json()
    clustered = clustering(spec, snapshot.schema)
    sorted_by = sorting(spec, snapshot.schema, order)
    if mode is WriteMode.DELETE:
        clustered = sorted_by = ()  # no row is written, and those that go may come in any order
    elif mode.is_row_level and clustered:
        # Rows that go have no values: without their leaf they would all come to one task.
        clustered = (*clustered, {"function": "identity", "arguments": [{"column": [LEAF.name]}]})
    token = WriteToken(table, target, schema, mode, storage, request.predicates)
    return m.PlanWriteReply(token.to_json(), clustered, sorted_by, _TASK_BYTES)


def _mode(mode: str) -> WriteMode:
    try:
        return WriteMode(mode)
    except ValueError as error:
        raise MalformedMessage(why=f"{mode!r} is no mode of a write") from error


def commit_write(request: m.CommitWrite) -> m.CommitWriteReply:
    """Answer ``commit_write``."""
    token = WriteToken.from_json(request.write)
    table, mode, identity = token.table, _mode(token.mode), request.commit
    if table.is_plain:
        snapshot = snapshot_of(request.catalog, table.to_json())
    else:
        snapshot = table_write.write_base(
            table.location,
            table.version,
            request.catalog.storage,
            table=table.name,
            mode=mode,
            identity=identity,
        )
    if mode.is_row_level:
        changed = request.deleted, request.staged
        version = table_write.commit_row_changes(
            snapshot, table.name, mode, changed, request.reads, identity=identity
        )
    else:
        version = table_write.commit_write(
            snapshot, table.name, mode, token.predicates, request.staged, identity=identity
        )
    return m.CommitWriteReply(version)


def abort_write(request: m.AbortWrite) -> EmptyReply:
    """Answer ``abort_write``."""
    token = WriteToken.from_json(request.write)
    if not token.table.is_plain:
        identity = request.commit if request.was_sent else None
        location, storage = token.table.location, request.catalog.storage
        table_write.abort_write(location, storage, request.staged, identity)
    return EmptyReply()


def check_delete(request: m.CheckDelete) -> m.CheckDeleteReply:
    """Answer ``check_delete``."""
    table = TableToken.from_json(request.table)
    snapshot = snapshot_of(request.catalog, request.table)
    try:
        table_write.deleted_partitions(snapshot, table.name, request.predicates)
    except NotWholePartitions:
        return m.CheckDeleteReply(possible=False)
    return m.CheckDeleteReply(possible=True)


def delete_rows(request: m.DeleteRows) -> m.CommitWriteReply:
    """Answer ``delete_rows``."""
    table = TableToken.from_json(request.table)
    snapshot = snapshot_of(request.catalog, request.table)
    return m.CommitWriteReply(
        table_write.delete_rows(snapshot, table.name, request.predicates, request.commit)
    )
