"""Divides the chosen partitions of an ungrouped scan into splits.

Small leaves are read by one task one after the other, and a large leaf by several tasks, fragment
by fragment: as many tasks as there are cores to keep busy, and not one for each of a thousand
small leaves. Where a partitioning is reported, Spark puts the pieces of a key together instead.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from pennon.planning.scan_plan import ScanPlan

# What opening a leaf costs, in bytes that could be read in the time.
OPEN_COST_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Piece:
    """Some of the fragments of one leaf.

    Args:
        leaf: Row of the leaf in the plan's table.
        fragments: First fragment and the one after the last, by position; None for all.
        num_bytes: Their share of the leaf's bytes, and what opening it costs.
    """

    leaf: int
    fragments: tuple[int, int] | None
    num_bytes: int


def pack(plan: ScanPlan, num_tasks: int, max_bytes: int) -> list[list[Piece]]:
    """Pack the leaves of a plan into pieces of work of about the same size, in their order.

    Args:
        plan: The chosen partitions; one without statistics counts as its opening only.
        num_tasks: How many tasks can run at once.
        max_bytes: The most that one task should read.
    """
    leaves = plan.table
    sizes = [size or 0 for size in leaves["num_bytes"].to_pylist()]
    total = sum(sizes) + OPEN_COST_BYTES * len(sizes)
    target_bytes = min(max_bytes, max(OPEN_COST_BYTES, -(-total // max(1, num_tasks))))
    packed: list[list[Piece]] = []
    filled = target_bytes
    for piece in _pieces(leaves, sizes, target_bytes):
        if filled + piece.num_bytes > target_bytes:
            packed.append([])
            filled = 0
        packed[-1].append(piece)
        filled += piece.num_bytes
    return packed


def _pieces(leaves: pa.Table, sizes: list[int], target_bytes: int) -> Iterator[Piece]:
    for leaf, (size, count) in enumerate(
        zip(sizes, leaves["num_fragments"].to_pylist(), strict=True)
    ):
        parts = min(count or 1, -(-size // target_bytes)) if size else 1
        if parts <= 1:
            yield Piece(leaf, None, size + OPEN_COST_BYTES)
            continue
        for part in range(parts):
            first, end = count * part // parts, count * (part + 1) // parts
            yield Piece(leaf, (first, end), size // parts + OPEN_COST_BYTES)
