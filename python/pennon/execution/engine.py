"""Runs a query over relations in DataFusion, as a stream of batches of the declared types.

One memory pool serves all queries of the process. A hash join does not spill: when the pool is
exhausted before the first batch, the query runs again with sort-merge joins, which do. After the
first batch there is no way back, and the task fails.

A query with one grouping, of rows that may make more groups than the pool holds, is tried without
spilling, and runs again part by part (``by_parts/``).
Where there are several, DataFusion sorts, spills and merges the groups that the pool does not hold.
What the merging holds beside the pool grows with every batch of 16,384 rows that it gives, and
slower with batches of 1,024. Without spilling, small batches cost up to half of the time more: they
are for groups that may spill.
"""

from __future__ import annotations

import logging
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final
from weakref import WeakSet

import pyarrow as pa
from datafusion import RuntimeEnvBuilder, SessionConfig, SessionContext

from pennon.errors import FragmentFailed, FragmentMemory
from pennon.execution.batches import BatchStream, StreamWork
from pennon.execution.engine_failures import engine_failures
from pennon.execution.functions import register_functions
from pennon.execution.grouped_parts import GroupedParts, GroupingDivision, division_of
from pennon.execution.leaf_table import (
    REPLICATED,
    filtered,
    pruned,
    register_empty,
    register_relation,
    register_rows,
)
from pennon.execution.memory import pool_bytes
from pennon.execution.small_leaves import (
    MANY_ROWS,
    count_rows,
    is_grouped,
    may_exceed,
    rows_at_once,
)
from pennon.leaf.schema.reconciliation import stream_type

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Mapping, Sequence

    from datafusion import DataFrame, RecordBatch

    from pennon.execution.fragment import (
        LeafPruning,
        Query,
        Relation,
        ReplicatedPart,
        RowFilter,
    )
    from pennon.execution.leaf_table import ReplicatedRows

_LOG: Final = logging.getLogger(__name__)
_PARTITIONS: Final = "datafusion.execution.target_partitions"
_BATCH_SIZE: Final = "datafusion.execution.batch_size"
_LARGE_GROUP_BYTES: Final = 512  # of keys of long texts
_OPTIONS: Final[Mapping[str, str]] = {
    _PARTITIONS: "1",
    _BATCH_SIZE: str(MANY_ROWS),
    "datafusion.sql_parser.map_string_types_to_utf8view": "false",
    # some 70 queries within each other; a thread's stack holds at least 200, then the process dies
    "datafusion.sql_parser.recursion_limit": "150",
    # of a file that was spilled it would read all batches of a range of bytes before the first one
    "datafusion.optimizer.repartition_file_scans": "false",
    # it takes every column of a join for a key; who writes a query knows which side is smaller
    "datafusion.optimizer.join_reordering": "false",
    # the first groups by an extreme: it forgets those whose extreme is NULL
    "datafusion.optimizer.enable_topk_aggregation": "false",
    # it swaps the columns of a UNION below which it reads a field of a struct
    "datafusion.optimizer.enable_leaf_expression_pushdown": "false",
    # Lance's scans lose the fields' metadata when they filter; types and names are still checked
    "datafusion.execution.skip_physical_aggregate_schema_check": "true",
}
_SPILLING: Final[Mapping[str, str]] = {
    **_OPTIONS,
    _PARTITIONS: "2",
    "datafusion.optimizer.prefer_hash_join": "false",
    "datafusion.execution.sort_spill_reservation_bytes": "1048576",
}


def run_query(
    relations: Sequence[Relation],
    query: Query,
    runtime: RuntimeEnvBuilder | None = None,
    *,
    parts: Sequence[ReplicatedPart] = (),
    prunings: Sequence[LeafPruning] = (),
    filters: Sequence[RowFilter] = (),
    num_threads: int = 1,
) -> BatchStream:
    """Start a query.

    The first batch is computed here, so that what fails before it fails at once.

    Args:
        relations: Called ``r0``, ``r1`` and so on in the query.
        query: The query.
        runtime: The memory that it may use; None for the pool of the process.
        parts: Called ``p0``, ``p1`` and so on in the query; evaluated once for all tasks.
        prunings: Which leaves are not opened once the parts are known.
        filters: Which rows of the others are not read then.
        num_threads: How many threads compute it.

    Raises:
        LeafMissing: A leaf's files are gone.
        FragmentOverflow: A value does not fit the type that it has in SQL.
        FragmentDivision: A number is divided by zero.
        FragmentText: A text that is cast is no value of its type.
        FragmentRows: A subquery for one value has several.
        FragmentMemory: Even sort-merge joins need more memory than there is.
    """
    num_threads = min(num_threads, os.cpu_count() or 1)
    evaluate = partial(_evaluated, num_threads=num_threads)
    rows = [REPLICATED.rows_of(part, evaluate) for part in parts]
    relations = filtered(pruned(relations, prunings, rows), filters, rows)
    query_run = _QueryRun(relations, query, rows, runtime, StreamWork())
    options: Mapping[str, str] = {**_OPTIONS, _PARTITIONS: str(num_threads)}
    division = _division(relations, query)
    batches, exhausted, planned = query_run.tried(options, spills=division is None)
    # Outside of the handler: its exception would keep the first try's batches and memory alive.
    if exhausted is not None and division is not None:
        batches, exhausted, planned = query_run.tried(planned, division=division)
    if exhausted is not None:
        # DataFusion has sort-merge joins for several partitions only.
        as_planned = {} if num_threads == 1 else {_PARTITIONS: planned[_PARTITIONS]}
        try:
            batches = query_run.started({**_SPILLING, **as_planned})
        except FragmentFailed as failure:
            # DataFusion 54's sort-merge join panics on some conditions beside the keys
            raise exhausted from failure
    return BatchStream(query.schema, batches, query_run.work)


def _evaluated(part: ReplicatedPart, *, num_threads: int) -> BatchStream:
    return run_query(part.relations, part.query, num_threads=num_threads)


def result_schema(
    relations: Sequence[pa.Schema],
    sql: str,
    parts: Sequence[pa.Schema] = (),
    zone_offsets: tuple[int, ...] = (),
) -> pa.Schema:
    """Plan a query over empty relations.

    Args:
        relations: The columns of ``r0``, ``r1`` and so on.
        sql: The query.
        parts: The columns of ``p0``, ``p1`` and so on.
        zone_offsets: As a ``Query`` has them.

    Returns:
        Names and types of the result.

    Raises:
        FragmentFailed: DataFusion refuses the query.
        FragmentOverflow: A value that it computes already does not fit its type.
        FragmentDivision: There it divides by zero.
        FragmentText: There it casts a text that is no value of its type.
    """
    context = SessionContext(SessionConfig(dict(_OPTIONS)))
    register_functions(context, zone_offsets)
    for position, schema in enumerate(relations):
        register_empty(context, f"r{position}", schema)
    for position, schema in enumerate(parts):
        register_empty(context, f"p{position}", schema)
    with engine_failures():
        planned = context.sql(sql)
        planned.execution_plan()
        return planned.schema()


def rows_over(
    sql: str, tables: Mapping[str, pa.Table], zone_offsets: tuple[int, ...] = ()
) -> pa.Table:
    """Compute a query over rows that are in memory.

    Args:
        sql: In DataFusion's dialect.
        tables: Rows by the names that they have in the query.
        zone_offsets: As a ``Query`` has them.

    Raises:
        FragmentOverflow: A value does not fit the type that it has in SQL.
        FragmentFailed: DataFusion refuses the query.
    """
    context = SessionContext(SessionConfig(dict(_OPTIONS)))
    register_functions(context, zone_offsets)
    for name, table in tables.items():
        empty = pa.RecordBatch.from_pylist([], table.schema)
        context.register_record_batches(name, [table.to_batches() or [empty]])
    with engine_failures():
        return context.sql(sql).to_arrow_table()


class ProcessPool:
    """The memory that all queries of the process share.

    Its size changes only between queries: two pools at once would count the memory twice.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._size = 0
        self._runtime = RuntimeEnvBuilder()
        self._running: WeakSet[SessionContext] = WeakSet()

    def context(self, config: SessionConfig, *, spills: bool = True) -> SessionContext:
        """Give the context of one query, which is kept as long as the query runs.

        Args:
            config: The query's options.
            spills: Whether it may write what does not fit.

        Raises:
            MemorySettingInvalid: A setting is no amount of memory.
        """
        size = pool_bytes()
        with self._lock:
            if size != self._size and not self._running:
                self._size = size
                self._runtime = RuntimeEnvBuilder().with_fair_spill_pool(size)
            context = SessionContext(config, _with_disk(self._runtime, spills=spills))
            self._running.add(context)
            return context

    @property
    def size_bytes(self) -> int:
        """How large it is at present."""
        return self._size


_POOL: Final = ProcessPool()


@dataclass(frozen=True, slots=True)
class _QueryRun:
    """A query, which may be started more than once.

    Args:
        relations: What it reads.
        query: The query.
        parts: The rows of its parts.
        runtime: Its memory; None for the pool of the process.
        work: Counts what is read.
    """

    relations: Sequence[Relation]
    query: Query
    parts: Sequence[ReplicatedRows]
    runtime: RuntimeEnvBuilder | None
    work: StreamWork

    def tried(
        self,
        options: Mapping[str, str],
        *,
        spills: bool = True,
        division: GroupingDivision | None = None,
    ) -> tuple[Iterator[pa.RecordBatch], FragmentMemory | None, Mapping[str, str]]:
        """Start it with hash joins; return the error where it needs too much memory.

        What DataFusion cannot plan for several threads it may plan for one: with the options that
        are returned it could.
        """
        try:
            return self.started(options, spills=spills, division=division), None, options
        except FragmentMemory as error:
            # Its frames hold what the try has made.
            error.__cause__ = error.__context__ = None
            return iter(()), error.with_traceback(None), options
        except FragmentFailed as failure:
            if options[_PARTITIONS] == "1":
                raise
            _LOG.warning("a query is computed by one thread: %s", failure)
        return self.tried({**options, _PARTITIONS: "1"}, spills=spills, division=division)

    def started(
        self,
        options: Mapping[str, str],
        *,
        spills: bool = True,
        division: GroupingDivision | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """Start it and compute its first batch.

        Args:
            options: DataFusion's.
            spills: Whether it may write what does not fit.
            division: Its steps, where it is computed part by part.
        """
        batch_size = MANY_ROWS
        if spills and division is None:
            batch_size = rows_at_once(self.relations, self.query, pool_bytes())
        conf = {**options, _BATCH_SIZE: str(batch_size)}
        new_context = partial(_context, conf, self.runtime, self.query.zone_offsets, spills=spills)
        context = new_context()
        # A function of a text with the character 0 (casts trim it) panics on its way to Lance.
        pushes = "\0" not in self.query.sql
        for at, relation in enumerate(self.relations):
            register_relation(context, f"r{at}", relation, self.work, pushes_filters=pushes)
        for position, part in enumerate(self.parts):
            register_rows(context, f"p{position}", part.schema, list(part.batches))
        if division is None:
            batches = _converted(context, self.query, self.work, spills=spills)
        else:
            num_rows = count_rows(self.relations)
            grouped = GroupedParts(division, new_context, num_rows, pool_bytes(), self.work)
            with engine_failures():
                computed = grouped.batches(context)
            if computed is None:
                return self.started(options)
            batches = _of_parts(computed, self.query)
        first = next(batches, None)
        return iter(()) if first is None else _preceded(first, batches)


def _context(
    options: Mapping[str, str],
    runtime: RuntimeEnvBuilder | None,
    zone_offsets: tuple[int, ...],
    *,
    spills: bool,
) -> SessionContext:
    config = SessionConfig(dict(options))
    if runtime is None:
        context = _POOL.context(config, spills=spills)
    else:
        context = SessionContext(config, _with_disk(runtime, spills=spills))
    register_functions(context, zone_offsets)
    return context


def _with_disk(runtime: RuntimeEnvBuilder, *, spills: bool) -> RuntimeEnvBuilder:
    """Set it for each context: the builder is one object, and keeps what was set last."""
    return runtime.with_disk_manager_os() if spills else runtime.with_disk_manager_disabled()


def _preceded(first: pa.RecordBatch, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Give what was computed first, then the rest: a generator, which its reader may close."""
    yield first
    yield from batches


def _division(relations: Sequence[Relation], query: Query) -> GroupingDivision | None:
    """Take a query apart where its groups may be too many: to read it takes some milliseconds."""
    if not is_grouped(query) or not may_exceed(relations, _LARGE_GROUP_BYTES, pool_bytes()):
        return None
    return division_of(query.sql)


def _converted(
    context: SessionContext, query: Query, work: StreamWork, *, spills: bool
) -> Iterator[pa.RecordBatch]:
    with engine_failures():
        planned = context.sql(query.sql)
        for part in planned.execute_stream() if spills else _begun(planned):
            batch = part.to_pyarrow()
            if batch.num_rows:
                yield _of_schema(batch, query.schema)
        work.add_plan(planned.execution_plan())


def _begun(planned: DataFrame) -> Iterator[RecordBatch]:
    """Wait for the first batch of every thread: none of them runs out of memory behind it."""
    streams = planned.execute_stream_partitioned()
    if len(streams) == 1:
        yield from streams[0]
        return
    with ThreadPoolExecutor(len(streams)) as threads:
        firsts = list(threads.map(lambda stream: next(stream, None), streams))
    for first, stream in zip(firsts, streams, strict=True):
        if first is not None:
            yield first
            yield from stream


def _of_parts(batches: Generator[pa.RecordBatch], query: Query) -> Iterator[pa.RecordBatch]:
    with engine_failures(), closing(batches):
        for batch in batches:
            yield _of_schema(batch, query.schema)


def _of_schema(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    columns = [
        column if column.type == field.type else column.cast(stream_type(field.type))
        for column, field in zip(batch.columns, schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
