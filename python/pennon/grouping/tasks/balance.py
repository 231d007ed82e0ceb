"""Packs many small key groups into few tasks: a key has the same bin in all scans of the group.

A task for each of a thousand small groups costs more to start than to run. Keys of one bin are
one key to Spark, which is only coarser: the real conjuncts stay in the joins.
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from pennon.grouping.tasks.task_target import TaskTarget

    Numbers = npt.NDArray[np.int64]

# Twice as many tasks as can run at once keep all busy when their sizes differ.
_TASKS_PER_SLOT: Final = 2
# Beyond this much, a task's own cost counts no more and smaller ones balance better.
_SHARE_OF_MAX_BYTES: Final = 4
# What one task's text may grow to, and what is lost when a task is tried again.
_MOST_LEAVES: Final = 2_000
# So many of the largest keys are placed one by one; the rest fills up what they leave.
_PLACED_ONE_BY_ONE: Final = 2_000


def wanted_tasks(num_bytes: int, num_leaves: int, target: TaskTarget) -> int:
    """Say how many tasks so many bytes in so many leaves should be.

    Example:
        >>> from pennon.grouping.tasks.task_target import TaskTarget
        >>> wanted_tasks(10_000, 364, TaskTarget(parallelism=4, max_bytes=128 << 20))
        8
        >>> wanted_tasks(1 << 30, 364, TaskTarget(parallelism=4, max_bytes=128 << 20))
        32
    """
    return max(
        _TASKS_PER_SLOT * target.parallelism,
        -(-num_bytes * _SHARE_OF_MAX_BYTES // target.max_bytes),
        -(-num_leaves // _MOST_LEAVES),
    )


def pack_keys(weights: Numbers, num_bins: int) -> Numbers:
    """Pack keys into bins of about the same weight.

    Args:
        weights: One positive number per key.
        num_bins: The most bins; as many as there are keys suffice.

    Returns:
        The bin of each key; every bin has a key.

    Example:
        >>> pack_keys(np.array([5, 1, 1, 1, 1, 1]), 2).tolist()
        [0, 1, 1, 1, 1, 1]
    """
    num_bins = min(num_bins, len(weights))
    order = np.argsort(-weights, kind="stable")
    bins = np.zeros(len(weights), dtype=np.int64)
    loads = [(0, index) for index in range(num_bins)]
    for key in order[:_PLACED_ONE_BY_ONE].tolist():
        load, lightest = loads[0]
        bins[key] = lightest
        heapq.heapreplace(loads, (load + int(weights[key]), lightest))
    rest = order[_PLACED_ONE_BY_ONE:]
    if len(rest):
        bins[rest] = _filled_up(weights[rest], loads)
    return bins


def _filled_up(weights: Numbers, loads: list[tuple[int, int]]) -> Numbers:
    """Let each bin take of the light keys what brings it up to the others."""
    loads = sorted(loads)
    level = (int(weights.sum()) + sum(load for load, _ in loads)) / len(loads)
    room = np.maximum(0.0, level - np.array([load for load, _ in loads], dtype=np.float64))
    ends = np.cumsum(room) * (weights.sum() / room.sum())
    middles = np.cumsum(weights) - weights / 2
    places = np.minimum(np.searchsorted(ends, middles), len(loads) - 1)
    return np.array([number for _, number in loads], dtype=np.int64)[places]
