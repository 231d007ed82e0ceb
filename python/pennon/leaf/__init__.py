"""One Lance dataset of a partitioned namespace: open at a version, scan, write fragments."""

from pennon.leaf.dataset import forget_leaves, leaf_uri, open_leaf
from pennon.leaf.leaf_view import LeafViews
from pennon.leaf.scan import DEFAULT_BATCH_SIZE, scan_leaf, scan_view
from pennon.leaf.staged import StagedPartition, WriteTarget
from pennon.leaf.write import write_partitions

__all__ = [
    "DEFAULT_BATCH_SIZE",
    "LeafViews",
    "StagedPartition",
    "WriteTarget",
    "forget_leaves",
    "leaf_uri",
    "open_leaf",
    "scan_leaf",
    "scan_view",
    "write_partitions",
]
