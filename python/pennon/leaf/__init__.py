"""One Lance dataset of a partitioned namespace: open at a version, scan, write fragments."""

from pennon.leaf.dataset import drop_dataset, leaf_uri, open_leaf
from pennon.leaf.read.kept_rows import KeptRows, forget_leaves, limit_kept_rows
from pennon.leaf.read.leaf_view import LeafViews
from pennon.leaf.read.scan import DEFAULT_BATCH_SIZE, scan_leaf, scan_view
from pennon.leaf.write.clustered_rows import clustered
from pennon.leaf.write.partition_writer import write_partitions
from pennon.leaf.write.staged_partition import StagedPartition, WriteTarget

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
    "limit_kept_rows",
    "open_leaf",
    "scan_leaf",
    "scan_view",
    "write_partitions",
]
