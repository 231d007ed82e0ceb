"""Computes groups part by part: rows go into files by their keys, then each file is grouped.

DataFusion's own way sorts what does not fit, writes it, and merges the sorted files. It reads them
in a thread for each, whose allocators give nothing back until the threads end, so that all that was
spilled stood in memory once more, whatever the pool was. Here one thread writes and reads.
"""

from __future__ import annotations

import logging
import tempfile
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from pennon.execution.by_parts.divided_rows import DividedRows, can_divide
from pennon.execution.by_parts.grouping_division import GROUPS, ROWS, GroupingDivision

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

    from datafusion import SessionContext

    from pennon.execution.batches.stream_work import StreamWork

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
