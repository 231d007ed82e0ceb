"""A fragment's result: a schema and a stream of batches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import pyarrow as pa

from pennon.execution.batches.stream_work import StreamWork


@dataclass(frozen=True, slots=True)
class BatchStream:
    """The schema of a stream and its batches; closing the batches stops the scan.

    Args:
        schema: Names and types of the columns.
        batches: The rows.
        work: What was read for them, whole once they have all been taken.
    """

    schema: pa.Schema
    batches: Iterator[pa.RecordBatch]
    work: StreamWork = field(default_factory=StreamWork)

    def to_arrow(self) -> pa.Table:
        """Read all batches into a table."""
        return pa.Table.from_batches(self.batches, self.schema)
