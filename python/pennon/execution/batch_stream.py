"""What a fragment gives: a schema and a stream of batches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa


@dataclass(frozen=True, slots=True)
class BatchStream:
    """The schema of a stream and its batches; closing the batches stops the scan."""

    schema: pa.Schema
    batches: Iterator[pa.RecordBatch]

    def to_arrow(self) -> pa.Table:
        """Read all batches into a table."""
        return pa.Table.from_batches(self.batches, self.schema)
