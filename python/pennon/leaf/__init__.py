"""One Lance dataset of a partitioned namespace: open at a version, scan, write fragments."""

from pennon.leaf.dataset import forget_leaves, leaf_uri, open_leaf
from pennon.leaf.scan import DEFAULT_BATCH_SIZE, scan_leaf
from pennon.leaf.staged import StagedPartition, WriteTarget
from pennon.leaf.write import write_partitions

__all__ = [
    "DEFAULT_BATCH_SIZE",
    "StagedPartition",
    "WriteTarget",
    "forget_leaves",
    "leaf_uri",
    "open_leaf",
    "scan_leaf",
    "write_partitions",
]
