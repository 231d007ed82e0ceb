"""Concurrent work on several leaves, by a small pool of threads shared by all tasks of the process.

Opening and reading a small leaf is waiting: for a disk, for an object store, for Lance's threads.
"""

from __future__ import annotations

from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

_THREADS: Final = 8
_Item = TypeVar("_Item")
_Done = TypeVar("_Done")


def at_once(work: Callable[[_Item], _Done], items: Sequence[_Item]) -> Generator[_Done]:
    """Do some work for each item, up to eight at a time.

    Args:
        work: Called by other threads; it must not call this function.
        items: What it is called with. Those that are far ahead of what was yielded wait.

    Yields:
        What the work returned, in the order of the items.

    Raises:
        Exception: What the work raised, at the item's turn; the items after it are given up.

    Example:
        >>> list(at_once(abs, [-2, 1, -3]))
        [2, 1, 3]
    """
    if len(items) < 2:  # noqa: PLR2004 - one item needs no thread
        yield from map(work, items)
        return
    left = iter(items)
    pending: deque[Future[_Done]] = deque()
    try:
        pending.extend(_threads().submit(work, item) for item in islice(left, _THREADS))
        while pending:
            done = pending.popleft().result()
            pending.extend(_threads().submit(work, item) for item in islice(left, 1))
            yield done
    finally:
        for future in pending:
            future.cancel()


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_THREADS, thread_name_prefix="leaf")
