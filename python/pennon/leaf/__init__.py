"""One Lance dataset of a partitioned namespace: open at a version, scan, write fragments."""

from pennon.leaf.dataset import drop_dataset, leaf_uri, open_leaf
from pennon.leaf.read.leaf_view import LeafViews
from pennon.leaf.read.source import DEFAULT_BATCH_SIZE, KeptRows, LeafSource, forget_leaves
from pennon.leaf.write.destination import StagedPartition, WriteTarget
from pennon.leaf.write.partition_writer import clustered, write_partitions

__all__ = [
    "DEFAULT_BATCH_SIZE",
    "KeptRows",
    "LeafSource",
    "LeafViews",
    "StagedPartition",
    "WriteTarget",
    "clustered",
    "drop_dataset",
    "forget_leaves",
    "leaf_uri",
    "open_leaf",
    "write_partitions",
]
