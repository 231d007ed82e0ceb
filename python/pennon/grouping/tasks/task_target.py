"""The desired number and size of a query's tasks."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TaskTarget:
    """What the tasks of a query should look like.

    Args:
        parallelism: How many tasks can run at once.
        max_bytes: The most that one task should read; the thresholds are shares of it.
    """

    parallelism: int
    max_bytes: int
