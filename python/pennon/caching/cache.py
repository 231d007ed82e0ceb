"""Thread-safe caches of values by key: least recently used, in one budget of bytes.

All caches of a process draw on one budget: the value of any of them that was used longest ago goes
first. The budget is a quarter of the memory pool of the process's queries and 1 GiB at most; before
the pool is known, a 16th of the machine's or the container's memory, which is the same without a
JVM.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import logging
import secrets
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from threading import Event, Lock
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, cast
from weakref import WeakSet, ref

from pennon.starting_jvm import limit_bytes

if TYPE_CHECKING:
    import lance
    from lance.dataset import Version

__all__ = [
    "LOOK",
    "Cache",
    "CarriedOver",
    "PerObject",
    "TableKey",
    "TextCache",
    "combined_identity",
    "limit_caches",
    "log_figures",
    "storage_identity",
    "version_identity",
    "version_time",
]

# What was worked out of an object that never changes, as long as the object lives.

K = TypeVar("K")
# What was read out of texts that come again and again, by the text.

# Values of one version of a table that stay valid in later versions, by name.

T = TypeVar("T")


class PerObject(Generic[K, T]):
    """Values by the identity of an object: to hash or compare a wide schema costs as much as it.

    Threads that ask at once may each make the value.

    Args:
        make: Makes the value, which must not refer to the object.

    Example:
        >>> import pyarrow as pa
        >>> names: PerObject[pa.Schema, list[str]] = PerObject(lambda schema: schema.names)
        >>> schema = pa.schema({"a": pa.int64()})
        >>> names.of(schema) is names.of(schema)
        True
    """

    def __init__(self, make: Callable[[K], T]) -> None:
        self._make = make
        self._entries: dict[int, tuple[ref[K], T]] = {}

    def of(self, key: K) -> T:
        """Give the value of an object, made by the first who asks.

        Args:
            key: The object; an equal one is another.
        """
        number = id(key)
        entry = self._entries.get(number)
        if entry is not None and entry[0]() is key:
            return entry[1]
        value = self._make(key)
        self._entries[number] = (ref(key, lambda gone: self._forget(number, gone)), value)
        return value

    def _forget(self, number: int, gone: ref[K]) -> None:
        entry = self._entries.get(number)
        if entry is not None and entry[0] is gone:
            del self._entries[number]


# The key of everything that is cached of a table's version.

# Drawn anew by every process, so that a digest in a log cannot be tried against guessed secrets.
DIGEST_KEY: Final = secrets.token_bytes(32)


def storage_identity(storage_options: Mapping[str, str] | None) -> str:
    """Give a digest of storage options: equal for equal options, within one process.

    Two sessions with different credentials, or one whose credentials were rotated, have different
    identities, and nothing that one opened is handed to the other.

    Args:
        storage_options: As given to Lance; None and no options are the same.

    Example:
        >>> storage_identity({"a": "1", "b": "2"}) == storage_identity({"b": "2", "a": "1"})
        True
        >>> storage_identity({"key": "old"}) == storage_identity({"key": "new"})
        False
    """
    if not storage_options:
        return ""
    text = json.dumps(sorted(storage_options.items()))
    return hashlib.blake2b(text.encode(), key=DIGEST_KEY, digest_size=16).hexdigest()


@dataclass(frozen=True, slots=True)
class TableKey:
    """A table's version as a key.

    Args:
        location: Path or URL of the table, or of one of its leaves.
        version: The version of ``__manifest`` or of the dataset.
        table: The table identity: another one for a table made anew at the same location
            (``version_identity``).
        storage: The storage identity, never the options themselves.
        detail: What of the version is kept, where there are several: a predicate, a spec version.

    Example:
        >>> TableKey("/lake/t", 3, "1f00") == TableKey("/lake/t", 3, "7a21")
        False
    """

    location: str
    version: int
    table: str
    storage: str = ""
    detail: Hashable = None


_LOG = logging.getLogger(__name__)


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
    used: int


_MOST_BUDGET: Final = 1 << 30
_SHARE_OF_POOL: Final = 4
_SHARE_OF_MEMORY: Final = 16


class _Budget:
    """The most that the values of all caches weigh together, in bytes; None until it is asked."""

    max_bytes: int | None = None


def _budget_bytes() -> int:
    if _Budget.max_bytes is None:
        _Budget.max_bytes = min(_MOST_BUDGET, limit_bytes() // _SHARE_OF_MEMORY)
    return _Budget.max_bytes


def limit_caches(pool_bytes: int) -> None:
    """Bound all caches together by the memory that queries may take, beside which they are.

    Args:
        pool_bytes: The size of the pool in bytes. The values beyond a smaller budget go.

    Example:
        >>> limit_caches(8 << 30)
    """
    with _LOCK:
        _Budget.max_bytes = min(_MOST_BUDGET, pool_bytes // _SHARE_OF_POOL)
        gone = [entry for entries in _ENTRIES for entry in entries.beyond_limit()]
        gone += _beyond_budget()
    del gone


@dataclass(slots=True, eq=False, weakref_slot=True)
class _Entries(Generic[T]):
    """The values of one cache, used last come last; every method needs the lock."""

    most_bytes: int
    share: float
    by_key: OrderedDict[TableKey, _Entry[T]] = field(default_factory=OrderedDict)
    num_bytes: int = 0
    evictions: int = 0

    @property
    def max_bytes(self) -> int:
        return min(self.most_bytes, int(self.share * _budget_bytes()))

    def use(self, key: TableKey) -> _Entry[T] | None:
        entry = self.by_key.get(key)
        if entry is not None:
            self.by_key.move_to_end(key)
            entry.used = next(_USES)
        return entry

    def add(self, key: TableKey, value: T, num_bytes: int) -> None:
        self.by_key[key] = _Entry(value, num_bytes, next(_USES))
        self.num_bytes += num_bytes

    def pop(self, key: TableKey) -> _Entry[T] | None:
        entry = self.by_key.pop(key, None)
        if entry is not None:
            self.num_bytes -= entry.num_bytes
        return entry

    def oldest(self) -> _Entry[T]:
        return next(iter(self.by_key.values()))

    def evict(self) -> _Entry[T]:
        _, entry = self.by_key.popitem(last=False)
        self.num_bytes -= entry.num_bytes
        self.evictions += 1
        return entry

    def beyond_limit(self) -> list[_Entry[T]]:
        gone: list[_Entry[T]] = []
        most = self.max_bytes
        while self.num_bytes > most:
            gone.append(self.evict())
        return gone


_LOCK: Final = Lock()
_ENTRIES: Final[WeakSet[_Entries[Any]]] = WeakSet()
_USES: Final = itertools.count()


def _beyond_budget() -> list[_Entry[Any]]:
    """Let the values go that were used longest ago in all caches; the lock is held.

    Returns:
        Those values: to free them takes time, and waits until the lock is not held any more.
    """
    caches = list(_ENTRIES)
    excess = sum(entries.num_bytes for entries in caches) - _budget_bytes()
    gone: list[_Entry[Any]] = []
    while excess > 0:
        filled = [entries for entries in caches if entries.by_key]
        gone.append(min(filled, key=lambda one: one.oldest().used).evict())
        excess -= gone[-1].num_bytes
    return gone


class Cache(Generic[T]):
    """Values by table version, for all threads of the process; the one used longest ago goes first.

    All caches share one lock and one budget.

    A value is made once: threads that ask for one that is being made wait for it. It is made
    outside of the lock, and a failure is raised to the one who made it; who waited tries himself.
    A value heavier than the whole cache is given and not kept.

    Args:
        name: What it keeps, for the log.
        max_bytes: The most that its values weigh together, in bytes, however large the budget is.
        weigh: Gives the bytes of a value, asked once when it is made.
        share: The most of the budget that they take.

    Example:
        >>> lengths: Cache[str] = Cache("texts", max_bytes=100, weigh=len)
        >>> lengths.find(TableKey("/lake/t", 1, "1f00"), lambda: "made")
        'made'
        >>> lengths.find(TableKey("/lake/t", 1, "1f00"), lambda: "made again")
        'made'
        >>> lengths.figures.hits, lengths.figures.misses
        (1, 1)
    """

    def __init__(
        self, name: str, *, max_bytes: int, weigh: Callable[[T], int], share: float = 1
    ) -> None:
        self.name = name
        self._weigh = weigh
        self._entries: _Entries[T] = _Entries(max_bytes, share)
        self._in_making: dict[TableKey, Event] = {}
        self._lock = _LOCK
        self._hits = self._misses = 0
        with self._lock:
            _ENTRIES.add(self._entries)
            _CACHES.add(self)

    def find(self, key: TableKey, make: Callable[[], T]) -> T:
        """Give the value of a key, made by the first who asks.

        Args:
            key: The table's version, and what of it.
            make: Makes the value; must not ask for the same key itself.
        """
        while True:
            with self._lock:
                entry = self._entries.use(key)
                if entry is not None:
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
            entry = self._entries.use(key)
        return None if entry is None else entry.value

    def keep(self, key: TableKey, value: T) -> None:
        """Put a value that was made elsewhere, in the place of one of the same key."""
        self._keep(key, value)

    def forget(self, is_gone: Callable[[TableKey], bool]) -> None:
        """Drop values early: their tables were dropped, and they would only hold memory.

        Args:
            is_gone: Whether the value of a key goes; must not ask any cache itself.
        """
        with self._lock:
            keys = [key for key in self._entries.by_key if is_gone(key)]
            gone = [self._entries.pop(key) for key in keys]
        del gone

    @property
    def figures(self) -> Figures:
        """What it did so far."""
        with self._lock:
            return Figures(
                len(self._entries.by_key),
                self._entries.num_bytes,
                self._entries.max_bytes,
                self._hits,
                self._misses,
                self._entries.evictions,
            )

    def _keep(self, key: TableKey, value: T) -> None:
        num_bytes = self._weigh(value)
        entries = self._entries
        with self._lock:
            gone = [entries.pop(key)]
            if num_bytes > entries.max_bytes:
                entries.evictions += 1
                return
            entries.add(key, value, num_bytes)
            gone += entries.beyond_limit()
            gone += _beyond_budget()
        del gone


_CACHES: WeakSet[Cache[Any]] = WeakSet()


def log_figures() -> None:
    """Write one line per cache that was used into the log, as the worker does when it ends."""
    with _LOCK:
        caches = list(_CACHES)
    for cache in sorted(caches, key=lambda one: one.name):
        figures = cache.figures
        if figures.hits or figures.misses:
            _LOG.info("cache of %s: %s", cache.name, figures)


# Objects of Python take about so many times the memory of the JSON that they were read from.
_OBJECTS_TO_TEXT: Final = 5


class TextCache(Generic[T]):
    """Values by the texts that they are read from: the tasks of a query all bring the same ones.

    No text is a key, for it may hold storage options: a digest of it is.

    Args:
        name: What it keeps, for the log.
        max_bytes: The most that its values weigh together, in bytes, estimated by their texts.
        read: Reads a text.

    Example:
        >>> numbers: TextCache[int] = TextCache("numbers", max_bytes=1_000, read=int)
        >>> numbers.find("12"), numbers.find("12")
        (12, 12)
    """

    def __init__(self, name: str, *, max_bytes: int, read: Callable[[str], T]) -> None:
        self._read = read
        self._cache: Cache[tuple[T, int]] = Cache(
            name, max_bytes=max_bytes, weigh=lambda value: _OBJECTS_TO_TEXT * value[1]
        )

    def find(self, text: str) -> T:
        """Give what a text says, read by the first who asks."""
        written = text.encode()
        digest = hashlib.blake2b(written, key=DIGEST_KEY, digest_size=16).hexdigest()
        key = TableKey("", 0, "", detail=digest)
        value, _ = self._cache.find(key, lambda: (self._read(text), len(written)))
        return value


# What distinguishes a dataset's version from the same version of another dataset at its place.

# In an identity: what comes behind says how the leaves looked, not which table it is.
LOOK: Final = "-"
_DIGEST_BYTES: Final = 8


def version_identity(dataset: lance.LanceDataset) -> str:
    """Give the identity of an opened version, without I/O.

    Lance numbers the versions of every dataset from 1. What differs is the time of the commit,
    kept in microseconds, and the names of its data files, which are drawn at random. Both are in
    the version's own manifest, so that a folder restored from a copy is distinguished as well.

    Args:
        dataset: A dataset at a version, detached or not.

    Example:
        >>> import lance, pyarrow as pa, tempfile
        >>> place = tempfile.mkdtemp()
        >>> first = lance.write_dataset(pa.table({"a": [1]}), place, mode="overwrite")
        >>> version_identity(first) == version_identity(lance.dataset(place, version=1))
        True
    """
    version = dataset.get_version()
    names = [
        file.path for fragment in dataset.get_fragments()[:1] for file in fragment.data_files()
    ]
    counts = sorted(version["metadata"].items())
    return combined_identity([str(version_time(version).timestamp()), *names, repr(counts)])


def version_time(version: Version) -> datetime:
    """Tell when a version was committed, in UTC; Lance gives its time as a naive local one.

    Example:
        >>> from datetime import timedelta
        >>> local = datetime(2026, 1, 1)
        >>> utc = version_time({"version": 1, "timestamp": local, "metadata": {}})
        >>> utc.timestamp() == local.timestamp(), utc.utcoffset() == timedelta(0)
        (True, True)
    """
    return cast("datetime", version["timestamp"]).astimezone(UTC)


def combined_identity(identities: Iterable[str]) -> str:
    """Make one identity of several.

    Example:
        >>> combined_identity(["a", "b"]) == combined_identity(["b", "a"])
        False
    """
    digest = hashlib.blake2b(digest_size=_DIGEST_BYTES)
    for identity in identities:
        digest.update(f"{len(identity)}:{identity}".encode())
    return digest.hexdigest()


_MOST_NAMES: Final = 128
_NAME_BYTES: Final = 100


class CarriedOver(Generic[T]):
    """Values by name, for each version of a table; a commit takes them along to the next version.

    Who commits knows what the version has that he made: what the one before had, and what he
    wrote. So a process that commits again and again reads what it needs of the first version only.
    The names used last are kept, so many of each version.

    Args:
        name: What it keeps, for the log.
        max_bytes: The most that its values weigh together, in bytes.
        weigh: Gives the bytes of a value.

    Example:
        >>> prices: CarriedOver[int] = CarriedOver("prices", max_bytes=1000, weigh=lambda _: 8)
        >>> first, second = TableKey("/lake/t", 1, "1f00"), TableKey("/lake/t", 2, "7a21")
        >>> prices.find(first, ["tea", "milk"], lambda names: {name: len(name) for name in names})
        {'tea': 3, 'milk': 4}
        >>> prices.carry(first, second, {"tea": 5})
        >>> prices.find(second, ["milk", "tea"], lambda names: {})
        {'milk': 4, 'tea': 5}
    """

    def __init__(self, name: str, *, max_bytes: int, weigh: Callable[[T], int]) -> None:
        self._cache: Cache[Mapping[str, T]] = Cache(
            name,
            max_bytes=max_bytes,
            weigh=lambda values: sum(_NAME_BYTES + weigh(value) for value in values.values()),
        )

    def find(
        self, key: TableKey, names: Sequence[str], read: Callable[[list[str]], Mapping[str, T]]
    ) -> dict[str, T]:
        """Give the values of some names at a version.

        Args:
            key: The version.
            names: What is asked for.
            read: Reads those that are not kept.

        Returns:
            The values by name, in the order of the names; names without one are left out.
        """
        parts = self._cache.peek(key) or {}
        missing = [name for name in names if name not in parts]
        if missing:
            parts = {**parts, **read(missing)}
            self._keep(key, parts, names)
        return {name: parts[name] for name in names if name in parts}

    def carry(
        self,
        before: TableKey,
        after: TableKey,
        changed: Mapping[str, T],
        forgotten: Iterable[str] = (),
    ) -> None:
        """Take what is known of a version along to the one that was made of it.

        Args:
            before: The version.
            after: The next one, which nobody else has changed anything in.
            changed: The values that are others there.
            forgotten: The names of which nothing is known there.
        """
        parts = {**(self._cache.peek(before) or {}), **changed}
        for key in forgotten:
            parts.pop(key, None)
        self._keep(after, parts, list(changed))

    def _keep(self, key: TableKey, values: Mapping[str, T], used: Sequence[str]) -> None:
        """Keep the names used last; those that are used now come behind all others."""
        now = set(used)
        order = [value for value in values if value not in now]
        order += [name for name in dict.fromkeys(used) if name in values]
        kept = itertools.islice(order, max(0, len(order) - _MOST_NAMES), None)
        self._cache.keep(key, {name: values[name] for name in kept})
