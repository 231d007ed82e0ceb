"""Divides a key group that is too large for one task, where its joins allow it.

One scan's leaves of the key are divided among several tasks, whole or by ranges of fragments; the
other scans' leaves of the key are read by each of them. Where nothing can be divided and the query
would run on a part of the machine only, a shuffle is faster and the key is declined.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from pennon.grouping.tasks.balance import pack_keys
from pennon.planning.splits import Piece

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    import numpy.typing as npt

    from pennon.grouping.tasks.member_leaves import MemberLeaves
    from pennon.grouping.tasks.task_target import TaskTarget

    Numbers = npt.NDArray[np.int64]

# A group larger than its fair share by this factor is worth dividing.
_UNFAIR: Final = 1.5
# A shuffle writes and reads everything once more, but keeps all of the machine busy.
_SHUFFLE_COST: Final = 2


@dataclass(frozen=True, slots=True)
class DividedKey:
    """A key whose leaves in one scan are divided.

    Args:
        scan: The position of that scan.
        tasks: The pieces of each task.
    """

    scan: int
    tasks: tuple[tuple[Piece, ...], ...]


def large_keys(num_bytes: Numbers, target: TaskTarget) -> list[int]:
    """List the keys that are too large for one task.

    Args:
        num_bytes: Bytes of each key, over all scans.
        target: A key of less than half of ``max_bytes`` is never too large.
    """
    fair = _UNFAIR * float(num_bytes.sum()) / target.parallelism
    limit = max(_small(target), fair)
    return [int(key) for key in np.flatnonzero(num_bytes > limit)]


def divide(
    members: Mapping[int, MemberLeaves],
    splittable: Collection[int],
    total: int,
    target: TaskTarget,
) -> DividedKey | None:
    """Divide a key; None where no scan can be, or where it would not pay.

    Args:
        members: The key's leaves in each scan.
        splittable: The scans that may be divided.
        total: Bytes of all keys.
        target: What tasks should look like.
    """
    sizes = {scan: int(leaves.num_bytes.sum()) for scan, leaves in members.items()}
    candidates = [scan for scan in sizes if scan in splittable]
    if not candidates:
        return None
    scan = max(candidates, key=lambda candidate: (sizes[candidate], -candidate))
    repeated = sum(sizes.values()) - sizes[scan]
    # What every task repeats should not outweigh what it has for itself by much.
    piece_bytes = max(_small(target), total // (2 * target.parallelism), repeated // 2)
    pieces = _pieces(members[scan], piece_bytes)
    parts = min(-(-sizes[scan] // piece_bytes), len(pieces))
    if parts <= 1:
        return None
    bins = pack_keys(np.array([piece.num_bytes for piece in pieces], dtype=np.int64), parts)
    tasks: list[list[Piece]] = [[] for _ in range(parts)]
    for piece, number in zip(pieces, bins.tolist(), strict=True):
        tasks[number].append(piece)
    return DividedKey(scan, tuple(tuple(task) for task in tasks))


def is_slower_than_a_shuffle(
    num_keys: int, task_bytes: Sequence[int], total: int, target: TaskTarget
) -> bool:
    """Whether too few tasks would leave the machine idle for longer than a shuffle takes.

    Args:
        num_keys: How many groups there are.
        task_bytes: Bytes of each task, repeated ones included.
        total: Bytes of all leaves; small data never shuffles.
        target: What tasks should look like.
    """
    if num_keys >= target.parallelism or total <= target.parallelism * _small(target):
        return False
    longest = max(*task_bytes, sum(task_bytes) / target.parallelism)
    return longest > _SHUFFLE_COST * total / target.parallelism


def _small(target: TaskTarget) -> int:
    return target.max_bytes // 2


def _pieces(leaves: MemberLeaves, piece_bytes: int) -> list[Piece]:
    pieces: list[Piece] = []
    for leaf, size, count in zip(
        leaves.leaves.tolist(),
        leaves.num_bytes.tolist(),
        leaves.num_fragments.tolist(),
        strict=True,
    ):
        parts = min(count, -(-size // piece_bytes))
        if parts <= 1:
            pieces.append(Piece(leaf, None, max(1, size)))
            continue
        for part in range(parts):
            fragments = (count * part // parts, count * (part + 1) // parts)
            pieces.append(Piece(leaf, fragments, max(1, size // parts)))
    return pieces
