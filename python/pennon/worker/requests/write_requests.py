"""Handlers of the driver's requests that change rows."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pennon.catalog.columns.projected_columns import check_stream_columns, with_field_ids
from pennon.catalog.columns.spark_types import CURRENT_DEFAULT, arrow_schema, hidden_names
from pennon.catalog.configured_catalog import WriteMode, check_options
from pennon.catalog.ddl.table_ddl import evolves_by
from pennon.catalog.layouts import STORED_TABLES, stored_table
from pennon.catalog.partitioning import clustering, of_columns, sorting
from pennon.catalog.table_name import storage_of
from pennon.catalog.tables.loaded_table import reopen_newest
from pennon.errors import (
    HiddenColumnLost,
    MalformedMessage,
    NotWholePartitions,
    StreamNotRepeatable,
)
from pennon.leaf.read.metadata_columns import LEAF
from pennon.leaf.write.partition_writer import count_files
from pennon.maintenance.background import keep_behind, written_leaves
from pennon.worker.messages import messages as m
from pennon.worker.messages.messages import EmptyReply
from pennon.worker.plans.plan_cache import snapshot_of
from pennon.worker.wire.tokens import TableToken, WriteToken

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pennon.catalog.configured_catalog import Catalog
    from pennon.catalog.layouts import StoredTable

# What one task writes, as Spark's shuffle has it: three to five times as much in memory.
_TASK_BYTES = 32 << 20


def plan_write(request: m.PlanWrite) -> m.PlanWriteReply:
    """Answer ``plan_write``."""
    token = TableToken.from_json(request.table)
    check_options(token.name, request.options)
    if request.is_stream:  # the version that it was started on may have expired
        table, token = _newest(request.catalog, token)
        check_stream_columns(token.name, arrow_schema(request.schema), table.snapshot.schema.arrow)
    else:
        table = _table(request.catalog, request.table)
    mode = table.check_write(_mode(request.mode), request.predicates)
    spec, columns = table.snapshot.current_spec, table.snapshot.schema
    given = arrow_schema(request.schema)
    # A stream leaves columns out, and was checked for it.
    if not request.is_stream and mode is not WriteMode.DELETE:
        is_rewritten = mode in (WriteMode.UPDATE, WriteMode.MERGE)
        _check_hidden(table, given.names, is_rewritten=is_rewritten)
    # A stream that is started with a path or a name knows no catalog.
    has_functions = not (request.is_stream and "path" in request.options)
    clustered = clustering(spec, columns, has_functions=has_functions)
    sorted_by = sorting(spec, columns, table.write_order, has_functions=has_functions)
    clustered, sorted_by = of_columns(clustered, given.names), of_columns(sorted_by, given.names)
    if mode is WriteMode.DELETE:
        clustered = sorted_by = ()  # no row is written, and those that go may come in any order
    elif mode.is_row_level and clustered:
        # Rows that go have no values: without their leaf they would all come to one task.
        clustered = (*clustered, {"function": "identity", "arguments": [{"column": [LEAF.name]}]})
    schema = table.staged_schema(with_field_ids(given, columns.arrow))
    write = WriteToken(token, table.target, schema, mode, request.predicates)
    described = mode.described(token.name, request.predicates)
    return m.PlanWriteReply(write.to_json(), clustered, sorted_by, described, _TASK_BYTES)


def _check_hidden(table: StoredTable, given: Sequence[str], *, is_rewritten: bool) -> None:
    """Refuse rows without a column that Spark has not shown, where a value would be lost.

    Raises:
        HiddenColumnLost: The column cannot be NULL in new rows, or rows are written anew.
    """
    columns = table.snapshot.schema.arrow
    hidden = hidden_names(columns).difference(given)
    for column in (column for column in columns if column.name in hidden):
        if is_rewritten:
            why = "would be lost from the rows that are written anew"
        elif not column.nullable:
            why = "are missing in the new rows, and it is NOT NULL"
        elif CURRENT_DEFAULT.encode() in (column.metadata or {}):
            why = "are missing in the new rows, and its DEFAULT is not computed"
        else:
            continue
        raise HiddenColumnLost(
            action=f"write rows to {table.name}", column=column.name, type=column.type, why=why
        )


def _mode(mode: str) -> WriteMode:
    try:
        return WriteMode(mode)
    except ValueError as error:
        raise MalformedMessage(why=f"{mode!r} is no mode of a write") from error


def commit_write(request: m.CommitWrite) -> m.CommitWriteReply:
    """Answer ``commit_write``."""
    token = WriteToken.from_json(request.write)
    pinned, mode, identity = token.table, token.mode, request.commit
    # Credentials may have changed since the write was planned.
    target = replace(token.target, storage_options=storage_of(request.catalog, pinned.name))
    table = STORED_TABLES[pinned.layout].open_base(
        pinned.name, target, pinned.identity, mode, identity, is_blind=not request.reads
    )
    if request.reads and mode in (WriteMode.OVERWRITE, WriteMode.OVERWRITE_PARTITIONS):
        _check_hidden(table, token.schema.names, is_rewritten=True)
    if mode.is_row_level:
        version = table.change_rows(mode, request.deleted, request.staged, request.reads, identity)
    else:
        version = table.commit(mode, token.predicates, request.staged, identity, request.reads)
    keep_behind(target.location, written_leaves(request.staged), target.storage_options)
    written = count_files(request.staged)
    return m.CommitWriteReply(version, written.partitions, written.files, written.num_bytes)


def abort_write(request: m.AbortWrite) -> EmptyReply:
    """Answer ``abort_write``."""
    token = WriteToken.from_json(request.write)
    STORED_TABLES[token.table.layout].abort(
        token.table.location,
        storage_of(request.catalog, token.table.name),
        request.staged,
        request.commit if request.was_sent else None,
    )
    return EmptyReply()


def check_delete(request: m.CheckDelete) -> m.CheckDeleteReply:
    """Answer ``check_delete``."""
    try:
        _table(request.catalog, request.table).deleted_partitions(request.predicates)
    except NotWholePartitions:
        return m.CheckDeleteReply(possible=False)
    return m.CheckDeleteReply(possible=True)


def check_change(request: m.CheckChange) -> m.CheckChangeReply:
    """Answer ``check_change``."""
    name = TableToken.from_json(request.table).name
    snapshot = snapshot_of(request.catalog, request.table)
    return m.CheckChangeReply(evolves_by(name, snapshot, request.change))


def delete_rows(request: m.DeleteRows) -> m.CommitWriteReply:
    """Answer ``delete_rows``."""
    table = _table(request.catalog, request.table)
    version = table.delete_rows(request.predicates, request.commit)
    return m.CommitWriteReply(version, partitions=0, files=0, bytes=0)


def _newest(catalog: Catalog, token: TableToken) -> tuple[StoredTable, TableToken]:
    """Open the newest version of a table for a batch of a stream.

    Raises:
        StreamNotRepeatable: The table does not know its commits again.
    """
    snapshot = reopen_newest(catalog, token.name, token.location, token.table_id)
    table = stored_table(token.name, snapshot)
    if not table.knows_commits:
        raise StreamNotRepeatable(table=token.name)
    return table, replace(token, version=snapshot.version, identity=snapshot.identity)


def _table(catalog: Catalog, token: str) -> StoredTable:
    return stored_table(TableToken.from_json(token).name, snapshot_of(catalog, token))
