"""The message behind the rows of a task: its metrics."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StreamEnd:
    """What the rows of a task took, for Spark's page of the query.

    Args:
        cpu_millis: Its share of the processor time of the worker.
        compute_millis: How long DataFusion's operators took, all threads added up, waits for a
            processor among it; the other processor time goes into reading leaves and sending rows.
        peak_bytes: The most memory that the worker had while it worked.
        rows_scanned: Rows of the leaves that were looked at, before any filter.
        bytes_scanned: Bytes that were read of the leaves.
        spilled_bytes: Bytes that it wrote to temporary files for want of memory.
    """

    cpu_millis: int
    compute_millis: int
    peak_bytes: int
    rows_scanned: int
    bytes_scanned: int
    spilled_bytes: int
