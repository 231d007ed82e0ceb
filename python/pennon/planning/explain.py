"""A scan plan as a few lines of text for EXPLAIN."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pennon.planning.scan_plan import ScanPlan


def explain(plan: ScanPlan) -> str:
    """Describe a plan: partitions chosen of how many, manifest SQL, residual filters."""
    raise NotImplementedError
