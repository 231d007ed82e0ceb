"""Computes groups part by part: rows go into files by their keys, then each file is grouped.

DataFusion's own way sorts what does not fit, writes it, and merges the sorted files. It reads them
in a thread for each, whose allocators give nothing back until the threads end, so that all that was
spilled stood in memory once more, whatever the pool was. Here one thread writes and reads.
"""

from __future__ import annotations

import logging
import tempfile
from contextlib import ExitStack, closing
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

import numpy as np
import pyarrow as pa
import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from pennon.errors import TransformOnWrongType
from pennon.predicate.dialect import DataFusion
from pennon.transforms.murmur3 import check_hashable, murmur3_multi

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Sequence

    from datafusion import SessionContext
    from numpy.typing import NDArray

    from pennon.execution.batches import StreamWork

# Rows in files, divided by the hash of their keys: one for each part, written side by side.
#
# What is held in memory is one load of rows and its copy in the order of the parts. The hash is
# mixed once more: rows of one bucket of a table have its last bits in common.

_MIX: Final = np.uint64(0x9E3779B1)
_LOW: Final = np.uint64(0xFFFFFFFF)
_BITS: Final = np.uint64(32)


def can_divide(schema: pa.Schema, keys: Sequence[str]) -> bool:
    """Whether equal keys have equal hashes: not floats, whose zeros and NaNs are several.

    Args:
        schema: The rows.
        keys: What they are grouped by.
    """
    try:
        for key in keys:
            check_hashable(schema.field(key).type, "a division into parts")
    except (KeyError, TransformOnWrongType):
        return False
    return not any(pa.types.is_dictionary(kind) for kind in schema.types)


class DividedRows:
    """Files of rows, removed when the block ends.

    Args:
        schema: The rows.
        keys: Rows with equal keys come into the same part.
        num_parts: How many parts there are.
        load_bytes: How much is divided at a time.
    """

    def __init__(
        self, schema: pa.Schema, keys: Sequence[str], *, num_parts: int, load_bytes: int
    ) -> None:
        self._schema = schema
        self._keys = tuple(keys)
        self._num_parts = num_parts
        self._load_bytes = load_bytes
        self._held: list[pa.RecordBatch] = []
        self._held_bytes = 0
        self._open = ExitStack()
        self._sinks = ExitStack()
        self._writers: dict[int, pa.ipc.RecordBatchFileWriter] = {}
        self._files: list[Path] = []
        self.num_bytes = 0

    def __enter__(self) -> Self:
        folder = Path(self._open.enter_context(tempfile.TemporaryDirectory(prefix="pennon-rows-")))
        self._files = [folder / f"{part}.arrow" for part in range(self._num_parts)]
        return self

    def __exit__(self, *_: object) -> None:
        self._sinks.close()
        self._open.close()

    def add(self, batch: pa.RecordBatch) -> None:
        """Divide rows, or hold them until there are enough."""
        self._held.append(batch)
        self._held_bytes += batch.nbytes
        if self._held_bytes >= self._load_bytes:
            self._divide()

    def parts(self) -> Iterator[Path]:
        """Give the files that have rows; each is removed when the next one is read."""
        self._divide()
        self._sinks.close()
        for file in self._files:
            if file.exists():
                yield file
                file.unlink()

    def _divide(self) -> None:
        if not self._held:
            return
        rows = pa.concat_batches(self._held)
        self._held, self._held_bytes = [], 0
        part_of_row = self._part_of_each(rows)
        order = np.argsort(part_of_row, kind="stable")
        bounds = np.searchsorted(part_of_row[order], np.arange(self._num_parts + 1))
        rows = rows.take(pa.array(order))
        for part in range(self._num_parts):
            first, end = int(bounds[part]), int(bounds[part + 1])
            if first < end:
                self._write(part, rows.slice(first, end - first))

    def _write(self, part: int, rows: pa.RecordBatch) -> None:
        writer = self._writers.get(part)
        if writer is None:
            sink = self._sinks.enter_context(pa.OSFile(str(self._files[part]), "wb"))
            writer = self._sinks.enter_context(pa.ipc.new_file(sink, self._schema))
            self._writers[part] = writer
        writer.write_batch(rows)
        self.num_bytes += rows.nbytes

    def _part_of_each(self, rows: pa.RecordBatch) -> NDArray[np.uint16]:
        hashes = murmur3_multi([rows.column(key) for key in self._keys]).fill_null(0)
        wide = np.asarray(hashes).view(np.uint32).astype(np.uint64)
        mixed = (wide * _MIX) & _LOW
        return ((mixed * np.uint64(self._num_parts)) >> _BITS).astype(np.uint16)


# Takes a query apart around its one grouping: the rows, their groups, and what is made of those.
#
# Rows with the same keys come into the same part, so the groups of all parts are the groups of all
# rows, and what stands above the grouping sees no difference.
#
# A query comes to a task as text, and only the task knows how many bytes it reads: it is read as a
# tree again where they may be too many, and nowhere else.

ROWS: Final = "divided_rows"
"""What the rows of a part are called in the query of its groups."""
GROUPS: Final = "divided_groups"
"""What all groups are called in the query of what is made of them."""
_GROUPING: Final = "GROUP BY"
_PLAIN: Final = {"expressions", "from_", "group"}


@dataclass(frozen=True, slots=True)
class GroupingDivision:
    """A query with one grouping, in up to three steps.

    Args:
        rows: Gives the rows that are grouped.
        keys: Their columns that make a group.
        groups: Gives the groups of some of the rows, which are called ``divided_rows``.
        rest: What is made of all groups, which are called ``divided_groups``; None for nothing.
    """

    rows: str
    keys: tuple[str, ...]
    groups: str
    rest: str | None


@lru_cache(maxsize=64)
def division_of(sql: str) -> GroupingDivision | None:
    """Take a query apart; None for one of another form.

    Args:
        sql: In DataFusion's dialect.

    Example:
        >>> division = division_of(
        ...     "SELECT max(`n`) AS `m` FROM (SELECT `k`, count(*) AS `n` FROM"
        ...     " (SELECT `k` FROM `r0`) AS `t` GROUP BY `k`) AS `g`"
        ... )
        >>> division.rows, division.keys
        ('SELECT `k` FROM `r0`', ('k',))
        >>> division.groups
        'SELECT `k`, count(*) AS `n` FROM `divided_rows` AS `t` GROUP BY `k`'
        >>> division.rest
        'SELECT max(`n`) AS `m` FROM `divided_groups` AS `g`'
        >>> division_of("SELECT `k` FROM `r0`") is None
        True
    """
    if sql.count(_GROUPING) != 1:
        return None
    try:
        return _divided(sqlglot.parse_one(sql, dialect=DataFusion))
    except (RecursionError, SqlglotError):  # it runs as it stands
        return None


def _divided(whole: exp.Expr) -> GroupingDivision | None:
    grouped = _grouped(whole)
    if grouped is None:
        return None
    rows = _source(grouped)
    if rows is None:
        return None
    keys = tuple(key.name for key in grouped.args["group"].expressions)
    rows_sql = rows.this.sql(dialect=DataFusion)
    rows.replace(_table(ROWS, rows))
    # A window looks at groups of all parts, and a subquery at tables that no part has.
    if grouped.find(exp.Window) is not None or not _reads_only(grouped, ROWS):
        return None
    groups_sql = grouped.sql(dialect=DataFusion)
    if grouped is whole:
        return GroupingDivision(rows_sql, keys, groups_sql, None)
    around = grouped.parent
    if not isinstance(around, exp.Subquery):
        return None
    around.replace(_table(GROUPS, around))
    if not _reads_only(whole, GROUPS):
        return None
    return GroupingDivision(rows_sql, keys, groups_sql, whole.sql(dialect=DataFusion))


def _grouped(whole: exp.Expr) -> exp.Select | None:
    """Find the grouping below SELECTs of one source each; none of them gives a row too early."""
    select = whole
    while isinstance(select, exp.Select) and select.args.get("group") is None:
        source = _source(select)
        if source is None:
            return None
        select = source.this
    if not isinstance(select, exp.Select) or _has_more(select):
        return None
    return select


def _has_more(grouped: exp.Select) -> bool:
    """Whether it is more than columns that are grouped: conditions, orders, grouping sets."""
    group = grouped.args["group"]
    others = {name for name, value in grouped.args.items() if value} - _PLAIN
    is_plain = all(isinstance(key, exp.Column) for key in group.expressions)
    more = [name for name, value in group.args.items() if value and name != "expressions"]
    return bool(others or more) or not is_plain or not group.expressions


def _source(select: exp.Select) -> exp.Subquery | None:
    """Give the SELECT that it reads, where it reads nothing else."""
    source = select.args.get("from_")
    if source is None or select.args.get("joins") or select.args.get("laterals"):
        return None
    this = source.this
    is_select = isinstance(this, exp.Subquery) and isinstance(this.this, exp.Query)
    return this if is_select and not this.args.get("joins") else None


def _reads_only(select: exp.Expr, name: str) -> bool:
    return all(table.name == name for table in select.find_all(exp.Table))


def _table(name: str, source: exp.Subquery) -> exp.Table:
    alias = source.args.get("alias")
    this = exp.to_identifier(name, quoted=True)
    return exp.Table(this=this, alias=None if alias is None else alias.copy())


_LOG: Final = logging.getLogger(__name__)
# A group's place in the hash and its numbers, beside what its row has.
_GROUP_BYTES: Final = 64
# A part's groups may take this share of the pool: parts differ, tables double when they grow, and
# what the allocator keeps of one part is seldom of use for the next.
_SHARE_OF_PART: Final = 16
_MOST_PARTS: Final = 256
_SHARE_OF_LOAD: Final = 16
_LEAST_LOAD: Final = 1 << 20
_MOST_LOAD: Final = 32 << 20


@dataclass(frozen=True, slots=True)
class GroupedParts:
    """What a division is computed with.

    Args:
        division: The query.
        new_context: Gives a context on the process's pool, without tables.
        num_rows: How many rows there are at most, as far as that is known.
        pool_bytes: The size of the pool.
        work: Counts what is read and written.
    """

    division: GroupingDivision
    new_context: Callable[[], SessionContext]
    num_rows: int
    pool_bytes: int
    work: StreamWork

    def batches(self, source: SessionContext) -> Generator[pa.RecordBatch] | None:
        """Start to compute the query.

        Args:
            source: Knows the tables that are read.

        Returns:
            Its rows; None where the keys have values that are equal and do not look it.
        """
        schema = source.sql(self.division.rows).schema()
        if not can_divide(schema, self.division.keys):
            return None
        groups = self._groups(source, schema)
        if self.division.rest is None:
            return groups
        planned = self.new_context()
        planned.register_record_batches(ROWS, [[pa.RecordBatch.from_pylist([], schema)]])
        return self._rest(self.division.rest, groups, planned.sql(self.division.groups).schema())

    def _groups(self, source: SessionContext, schema: pa.Schema) -> Generator[pa.RecordBatch]:
        planned = source.sql(self.division.rows)
        rows = (part.to_pyarrow() for part in planned.execute_stream())
        first = next(rows, None)
        if first is None:
            return
        num_parts = self._num_parts(first)
        load = min(max(self.pool_bytes // _SHARE_OF_LOAD, _LEAST_LOAD), _MOST_LOAD)
        keys = self.division.keys
        with DividedRows(schema, keys, num_parts=num_parts, load_bytes=load) as divided:
            divided.add(first)
            del first
            for batch in rows:
                divided.add(batch)
            self.work.add_plan(planned.execution_plan())
            del planned, rows, source
            _LOG.info(
                "groups beyond the memory: %d MB of rows in %d parts",
                divided.num_bytes >> 20,
                num_parts,
            )
            for file in divided.parts():
                yield from self._of_file(ROWS, file, self.division.groups)
        self.work.spilled_bytes += divided.num_bytes

    def _rest(
        self, sql: str, groups: Generator[pa.RecordBatch], schema: pa.Schema
    ) -> Generator[pa.RecordBatch]:
        """Compute what is made of the groups, which go into a file first.

        They cannot be streamed into it: a thread of DataFusion must not wait for another query.
        """
        with tempfile.TemporaryDirectory(prefix="pennon-groups-") as folder, closing(groups):
            file = Path(folder) / "groups.arrow"
            with pa.OSFile(str(file), "wb") as sink, pa.ipc.new_file(sink, schema) as writer:
                for batch in groups:
                    writer.write_batch(batch)
                    self.work.spilled_bytes += batch.nbytes
            yield from self._of_file(GROUPS, file, sql)

    def _of_file(self, name: str, file: Path, sql: str) -> Iterator[pa.RecordBatch]:
        context = self.new_context()
        context.register_arrow(name, file)
        planned = context.sql(sql)
        for part in planned.execute_stream():
            batch = part.to_pyarrow()
            if batch.num_rows:
                yield batch
        self.work.add_plan(planned.execution_plan())

    def _num_parts(self, some: pa.RecordBatch) -> int:
        row_bytes = some.nbytes // max(1, some.num_rows) + _GROUP_BYTES
        parts: int = -(-self.num_rows * row_bytes * _SHARE_OF_PART // self.pool_bytes)
        return min(max(parts, 2), _MOST_PARTS)
