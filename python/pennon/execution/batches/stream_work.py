"""Metrics of a query: rows and bytes scanned, time of its operators, bytes spilled."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from datafusion.plan import ExecutionPlan

# What Lance's own table providers put into a plan.
_OF_LANCE: Final = "FFI_ExecutionPlan"


@dataclass(slots=True)
class StreamWork:
    """Counts of one query; they are whole once its stream has ended.

    Args:
        rows_scanned: Rows of the leaves that were looked at, before any filter.
        bytes_scanned: What was read of them: bytes of files, or of the rows of small leaves.
        compute_nanos: How long DataFusion's own operators took, in nanoseconds, the threads added
            up, waits for a processor among it.
        spilled_bytes: What was written to temporary files for want of memory.
    """

    rows_scanned: int = 0
    bytes_scanned: int = 0
    compute_nanos: int = 0
    spilled_bytes: int = 0

    def add_scan(self, num_rows: int, num_bytes: int) -> None:
        """Add what one leaf's scan has counted."""
        self.rows_scanned += num_rows
        self.bytes_scanned += num_bytes

    def add_plan(self, plan: ExecutionPlan) -> None:
        """Add what the operators of a plan that has run have counted."""
        self.rows_scanned += self._added(plan)

    def _added(self, plan: ExecutionPlan) -> int:
        """Add the bytes of a plan; give the rows that it scanned."""
        scanned = 0
        metrics = plan.metrics()
        if metrics is not None:
            scanned = metrics.sum_by_name("rows_scanned") or 0
            self.bytes_scanned += metrics.sum_by_name("bytes_read") or 0
            self.spilled_bytes += metrics.spilled_bytes or 0
            if not plan.display().startswith(_OF_LANCE):
                self.compute_nanos += metrics.elapsed_compute or 0
        # A read over another one fetches more columns of the rows that the first one has left.
        return sum(map(self._added, plan.children())) or scanned
