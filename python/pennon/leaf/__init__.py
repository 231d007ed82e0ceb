"""One Lance dataset of a partitioned namespace: open at a version, scan, write fragments."""

from pennon.leaf.dataset import drop_dataset, leaf_uri, open_leaf
from pennon.leaf.read.leaf_view import LeafViews
from pennon.leaf.read.scan import (
    DEFAULT_BATCH_SIZE,
    KeptRows,
    forget_leaves,
    scan_leaf,
    scan_view,
)
from pennon.leaf.write.destination import StagedPartition, WriteTarget
from pennon.leaf.write.partition_writer import clustered, write_partitions

__all__ = [
    "DEFAULT_BATCH_SIZE",
    "KeptRows",
    "LeafViews",
    "StagedPartition",
    "WriteTarget",
    "clustered",
    "drop_dataset",
    "forget_leaves",
    "leaf_uri",
    "open_leaf",
    "scan_leaf",
    "scan_view",
    "write_partitions",
]
