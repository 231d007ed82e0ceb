"""A thread-safe cache of values by key: least recently used, bounded by bytes."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from threading import Event, Lock
from typing import Any, Generic, TypeVar
from weakref import WeakSet

from pennon.caching.table_key import TableKey

__all__ = ["Cache", "Figures", "log_figures"]

_LOG = logging.getLogger(__name__)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Figures:
    """What a cache did so far.

    Args:
        entries: Values that are kept.
        num_bytes: Their weight in bytes.
        max_bytes: The most that it keeps, in bytes.
        hits: Lookups that found their value.
        misses: Lookups that had it made.
        evictions: Values that went for others.
    """

    entries: int
    num_bytes: int
    max_bytes: int
    hits: int
    misses: int
    evictions: int

    def __str__(self) -> str:
        kept = f"{self.entries} of {self.num_bytes:,} bytes (at most {self.max_bytes:,})"
        return f"{kept}, {self.hits} hits, {self.misses} misses, {self.evictions} evictions"


@dataclass(slots=True)
class _Entry(Generic[T]):
    value: T
    num_bytes: int


class Cache(Generic[T]):
    """Values by table version, for all threads of the process; the one used longest ago goes first.

    A value is made once: threads that ask for one that is being made wait for it. It is made
    outside of the lock, and a failure is raised to the one who made it; who waited tries himself.
    A value heavier than the whole cache is given and not kept.

    Args:
        name: What it keeps, for the log.
        max_bytes: The most that its values weigh together, in bytes.
        weigh: Gives the bytes of a value, asked once when it is made.

    Example:
        >>> lengths: Cache[str] = Cache("texts", max_bytes=100, weigh=len)
        >>> lengths.find(TableKey("/lake/t", 1, "1f00"), lambda: "made")
        'made'
        >>> lengths.find(TableKey("/lake/t", 1, "1f00"), lambda: "made again")
        'made'
        >>> lengths.figures.hits, lengths.figures.misses
        (1, 1)
    """

    def __init__(self, name: str, *, max_bytes: int, weigh: Callable[[T], int]) -> None:
        self.name = name
        self._max_bytes = max_bytes
        self._weigh = weigh
        self._entries: OrderedDict[TableKey, _Entry[T]] = OrderedDict()
        self._in_making: dict[TableKey, Event] = {}
        self._lock = Lock()
        self._num_bytes = 0
        self._hits = self._misses = self._evictions = 0
        _CACHES.add(self)

    def find(self, key: TableKey, make: Callable[[], T]) -> T:
        """Give the value of a key, made by the first who asks.

        Args:
            key: The table's version, and what of it.
            make: Makes the value; must not ask for the same key itself.
        """
        while True:
            with self._lock:
                entry = self._entries.get(key)
                if entry is not None:
                    self._entries.move_to_end(key)
                    self._hits += 1
                    return entry.value
                made = self._in_making.get(key)
                if made is None:
                    self._in_making[key] = made = Event()
                    self._misses += 1
                    break
            made.wait()
        try:
            value = make()
            self._keep(key, value)
        finally:
            with self._lock:
                del self._in_making[key]
            made.set()
        return value

    def peek(self, key: TableKey) -> T | None:
        """Give the value of a key where it is kept, as one used now; no lookup of the figures."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is None:
                return None
            self._entries.move_to_end(key)
            return entry.value

    def keep(self, key: TableKey, value: T) -> None:
        """Put a value that was made elsewhere, in the place of one of the same key."""
        self._keep(key, value)

    def limit(self, max_bytes: int) -> None:
        """Set the most that the values weigh together; those beyond it go.

        Args:
            max_bytes: In bytes.
        """
        with self._lock:
            self._max_bytes = max_bytes
            self._evict()

    def forget(self, is_gone: Callable[[TableKey], bool]) -> None:
        """Drop values early: their tables were dropped, and they would only hold memory.

        Args:
            is_gone: Whether the value of a key goes.
        """
        with self._lock:
            for key in [key for key in self._entries if is_gone(key)]:
                self._num_bytes -= self._entries.pop(key).num_bytes

    @property
    def figures(self) -> Figures:
        """What it did so far."""
        with self._lock:
            return Figures(
                len(self._entries),
                self._num_bytes,
                self._max_bytes,
                self._hits,
                self._misses,
                self._evictions,
            )

    def _keep(self, key: TableKey, value: T) -> None:
        num_bytes = self._weigh(value)
        with self._lock:
            replaced = self._entries.pop(key, None)
            if replaced is not None:
                self._num_bytes -= replaced.num_bytes
            if num_bytes > self._max_bytes:
                self._evictions += 1
                return
            self._entries[key] = _Entry(value, num_bytes)
            self._num_bytes += num_bytes
            self._evict()

    def _evict(self) -> None:
        """Let the values go that were used longest ago; the lock is held."""
        while self._num_bytes > self._max_bytes:
            _, oldest = self._entries.popitem(last=False)
            self._num_bytes -= oldest.num_bytes
            self._evictions += 1


_CACHES: WeakSet[Cache[Any]] = WeakSet()


def log_figures() -> None:
    """Write one line per cache that was used into the log, as the worker does when it ends."""
    for cache in sorted(_CACHES, key=lambda one: one.name):
        figures = cache.figures
        if figures.hits or figures.misses:
            _LOG.info("cache of %s: %s", cache.name, figures)
