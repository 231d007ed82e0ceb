"""The library's door: tables as Python objects, without Spark and Java."""

from pennon.namespace.lake import Lake, connect, create_namespace, open_namespace
from pennon.namespace.partitioned_namespace import PartitionedNamespace
from pennon.namespace.rows.row_scan import Scan, read_plan

__all__ = [
    "Lake",
    "PartitionedNamespace",
    "Scan",
    "connect",
    "create_namespace",
    "open_namespace",
    "read_plan",
]
