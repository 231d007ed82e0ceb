"""What stands in the frame behind the rows of a task."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StreamEnd:
    """What the rows of a task took, for Spark's page of the query.

    Args:
        cpu_millis: Its share of the processor time of the worker.
        peak_bytes: The most memory that the worker had while it worked.
        rows_scanned: Rows of the leaves that a query looked at; 0 for a scan.
        bytes_scanned: Bytes that a query read of the leaves; 0 for a scan.
        spilled_bytes: Bytes that it wrote to temporary files for want of memory.
    """

    cpu_millis: int
    peak_bytes: int
    rows_scanned: int
    bytes_scanned: int
    spilled_bytes: int
