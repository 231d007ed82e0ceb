"""Divides the chosen partitions of an ungrouped scan into splits.

Small leaves are read by one task one after the other, and a large leaf by several tasks, fragment
by fragment: as many tasks as there are cores to keep busy, and not one for each of a thousand
small leaves. Where a partitioning is reported, Spark puts the pieces of a key together instead.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

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
    # As many as run at once, or a multiple of it: the last of one more would run alone.
    at_once = max(1, num_tasks)
    num_tasks = at_once * max(1, -(-total // (at_once * max_bytes)))
    target_bytes = min(max_bytes, max(OPEN_COST_BYTES, -(-total // num_tasks)))
    pieces = list(_pieces(leaves, sizes, target_bytes))
    even = _evenly(pieces, min(num_tasks, -(-total // OPEN_COST_BYTES)))
    if all(sum(piece.num_bytes for piece in task) <= max_bytes for task in even):
        return even
    return _filled(pieces, target_bytes)


def _evenly(pieces: Sequence[Piece], num_tasks: int) -> list[list[Piece]]:
    """Divide pieces among a number of tasks, by what is read before the middle of each."""
    share = sum(piece.num_bytes for piece in pieces) / max(1, num_tasks)
    packed: dict[int, list[Piece]] = {}
    read = 0
    for piece in pieces:
        task = int((read + piece.num_bytes / 2) / share)
        packed.setdefault(task, []).append(piece)
        read += piece.num_bytes
    return list(packed.values())


def _filled(pieces: Sequence[Piece], target_bytes: int) -> list[list[Piece]]:
    """Fill one task after the other."""
    packed: list[list[Piece]] = []
    filled = target_bytes
    for piece in pieces:
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
