"""Arrow batches of a namespace → partition tuples → uncommitted fragments in each partition's leaf."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pyarrow as pa

    from pennon.leaf.staged import StagedPartition, WriteTarget

__all__ = ["write_partitions"]


def write_partitions(
    batches: Iterable[pa.RecordBatch], target: WriteTarget
) -> list[StagedPartition]:
    """Write the rows of a task as uncommitted fragments, one run of equal tuples at a time."""
    raise NotImplementedError
