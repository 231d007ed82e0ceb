"""Requests of the driver that change rows → staged changes of one transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pennon.catalog.columns.projected_columns import with_field_ids
from pennon.catalog.columns.spark_types import arrow_schema
from pennon.catalog.partitioning import clustering, sorting
from pennon.catalog.plain_dataset import PlainSnapshot, append_plain, replace_plain
from pennon.catalog.replacement import overlapped_partitions, replace_rows, whole_partitions
from pennon.errors import MalformedMessage, WriteConflict
from pennon.leaf import StagedPartition, WriteTarget
from pennon.leaf.write.partition_tuples import check_sources
from pennon.spec.write_order import WriteOrder
from pennon.transaction import Committed, Conflicted, Retryable, Transaction
from pennon.worker.requests.kept_plans import snapshot_of
from pennon.worker.wire import write_messages as m
from pennon.worker.wire.messages import EmptyReply
from pennon.worker.wire.tokens import TableToken, WriteToken

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pennon.catalog.configured_catalog import Catalog
    from pennon.manifest import Snapshot

_COMMIT_ATTEMPTS = 5
_APPEND, _OVERWRITE, _OVERWRITE_PARTITIONS = "append", "overwrite", "overwrite_partitions"


def plan_write(request: m.PlanWrite) -> m.PlanWriteReply:
    """Answer ``plan_write``."""
    table = TableToken.from_json(request.table)
    snapshot = snapshot_of(request.catalog, request.table)
    snapshot.check_writable("write to")
    mode = _mode(request.mode, snapshot)
    if mode == _OVERWRITE:
        # refused before any row is computed, and decided again by the commit
        whole_partitions(snapshot, table.name, request.predicates, action=_OVERWRITE)
    if isinstance(snapshot, PlainSnapshot):
        schema = snapshot.stored_schema
    else:
        schema = with_field_ids(arrow_schema(request.schema), snapshot.schema.arrow)
    storage = request.catalog.storage
    spec = snapshot.current_spec
    target, order = "", None
    if not isinstance(snapshot, PlainSnapshot):
        order = WriteOrder.of(snapshot.properties, snapshot.schema)
        check_sources(spec, snapshot)
        target = WriteTarget(
            snapshot.location, snapshot.version, spec.spec_version, storage
        ).to_json()
    clustered = clustering(spec, snapshot.schema)
    sorted_by = sorting(spec, snapshot.schema, order)
    token = WriteToken(table, target, schema, mode, storage, request.predicates)
    return m.PlanWriteReply(token.to_json(), clustered, sorted_by)


def _mode(mode: str, snapshot: Snapshot) -> str:
    if mode not in (_APPEND, _OVERWRITE, _OVERWRITE_PARTITIONS):
        raise MalformedMessage(why=f"{mode!r} is no mode of a write")
    # The only partition of a table without any is the whole table, rows or no rows.
    is_whole = mode == _OVERWRITE_PARTITIONS and not snapshot.current_spec.fields
    return _OVERWRITE if is_whole else mode


def commit_write(request: m.CommitWrite) -> m.CommitWriteReply:
    """Answer ``commit_write``."""
    token = WriteToken.from_json(request.write)
    table = token.table
    snapshot = snapshot_of(request.catalog, table.to_json())
    if isinstance(snapshot, PlainSnapshot):
        commit = append_plain if token.mode == _APPEND else replace_plain
        if token.predicates and not _replaced(token, snapshot, []):
            commit = append_plain
        return m.CommitWriteReply(commit(snapshot, request.staged))
    staged = [StagedPartition.from_json(text) for text in request.staged]
    transaction = Transaction(snapshot)
    if token.mode == _APPEND:
        transaction.append(staged)
    else:
        replace_rows(transaction, staged, _replaced(token, snapshot, staged))
    return m.CommitWriteReply(_committed(transaction, table.name))


def _replaced(
    token: WriteToken, snapshot: Snapshot, staged: Sequence[StagedPartition]
) -> Sequence[str]:
    """Give the partitions whose rows go."""
    name = token.table.name
    if token.mode == _OVERWRITE_PARTITIONS:
        older = overlapped_partitions(snapshot, name, staged)
        return [*(part.object_id for part in staged), *older]
    return whole_partitions(snapshot, name, token.predicates, action=_OVERWRITE)


def abort_write(request: m.AbortWrite) -> EmptyReply:
    """Answer ``abort_write``."""
    token = WriteToken.from_json(request.write)
    snapshot = snapshot_of(request.catalog, token.table.to_json())
    if not isinstance(snapshot, PlainSnapshot):
        Transaction(snapshot).abort([StagedPartition.from_json(text) for text in request.staged])
    return EmptyReply()


def check_delete(request: m.CheckDelete) -> EmptyReply:
    """Answer ``check_delete``."""
    _deleted(request.catalog, request.table, request.predicates)
    return EmptyReply()


def delete_rows(request: m.DeleteRows) -> m.CommitWriteReply:
    """Answer ``delete_rows``."""
    snapshot, whole = _deleted(request.catalog, request.table, request.predicates)
    if not whole:
        return m.CommitWriteReply(snapshot.version)
    if isinstance(snapshot, PlainSnapshot):
        return m.CommitWriteReply(replace_plain(snapshot, ()))
    transaction = Transaction(snapshot)
    transaction.drop(whole)
    return m.CommitWriteReply(_committed(transaction, TableToken.from_json(request.table).name))


def _deleted(
    catalog: Catalog, table: str, predicates: Sequence[str]
) -> tuple[Snapshot, Sequence[str]]:
    snapshot = snapshot_of(catalog, table)
    snapshot.check_writable("delete from")
    name = TableToken.from_json(table).name
    return snapshot, whole_partitions(snapshot, name, predicates, action="delete")


def _committed(transaction: Transaction, table: str) -> int:
    for _ in range(_COMMIT_ATTEMPTS):
        match transaction.commit():
            case Committed(committed):
                return committed.version
            case Conflicted(partition, reason):
                raise WriteConflict(table=table, why=f"partition {partition}: {reason}")
            case Retryable():
                continue
    raise WriteConflict(table=table, why="other commits came first each time")
