"""Predicate and snapshot in, scan plan out: partitions, their versions and what is left."""

from pennon.planning.reports.explain import explain, shortened, shortened_within, summary
from pennon.planning.scan_plan import PlannedPartition, ScanPlan, plan_scan

__all__ = [
    "PlannedPartition",
    "ScanPlan",
    "explain",
    "plan_scan",
    "shortened",
    "shortened_within",
    "summary",
]
