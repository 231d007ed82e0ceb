"""Rows of replicated parts: evaluated once per process and query, dropped after their last use.

What does not fit its share of the memory lies in a file of Arrow's, which is mapped: it may be as
large as the disk has room, and costs no memory of the process. A part that its estimate took for
small costs seconds then, and never the process.
"""

from __future__ import annotations

import os
import tempfile
import threading
import time
from collections import OrderedDict
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from pennon.execution.memory import pool_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pennon.execution.batches.batch_stream import BatchStream
    from pennon.execution.fragment import ReplicatedPart

_IDLE_SECONDS: Final = 60.0
# All parts of all queries may hold this share of the pool in memory.
_SHARE_OF_POOL: Final = 4


@dataclass(frozen=True, slots=True)
class ReplicatedRows:
    """Rows of a part: their schema, and the batches in memory or in a mapped file."""

    schema: pa.Schema
    batches: tuple[pa.RecordBatch, ...]
    held_bytes: int


@dataclass(slots=True)
class _Entry:
    evaluating: threading.Lock = field(default_factory=threading.Lock)
    rows: ReplicatedRows | None = None
    last_used: float = 0.0


class ReplicatedParts:
    """The parts that this process has evaluated.

    Args:
        most_bytes: What they may hold in memory together; None for a share of the pool.
        idle_seconds: After how long one that no task asks for is dropped.
    """

    def __init__(self, most_bytes: int | None = None, idle_seconds: float = _IDLE_SECONDS) -> None:
        self._most_bytes = most_bytes
        self._idle_seconds = idle_seconds
        self._entries: OrderedDict[str, _Entry] = OrderedDict()
        self._lock = threading.Lock()
        self._timer: threading.Timer | None = None

    def rows_of(
        self, part: ReplicatedPart, evaluate: Callable[[ReplicatedPart], BatchStream]
    ) -> ReplicatedRows:
        """Give the rows of a part; the first task that wants them evaluates it, others wait.

        Args:
            part: What is evaluated.
            evaluate: Computes it.

        Raises:
            PennonError: What evaluating it raised; the next task tries again.
        """
        with self._lock:
            entry = self._entries.setdefault(part.key, _Entry())
            self._entries.move_to_end(part.key)
            entry.last_used = time.monotonic()
        with entry.evaluating:
            if entry.rows is None:
                entry.rows = _collected(evaluate(part), self._room())
        with self._lock:
            entry.last_used = time.monotonic()
            self._schedule()
        return entry.rows

    def held_bytes(self) -> int:
        """Add up what is held in memory."""
        with self._lock:
            return self._held_bytes()

    def drop_idle(self) -> None:
        """Drop what no task has asked for lately."""
        with self._lock:
            self._timer = None
            oldest = time.monotonic() - self._idle_seconds
            for key, entry in list(self._entries.items()):
                if entry.last_used <= oldest and not entry.evaluating.locked():
                    del self._entries[key]
            if self._entries:
                self._schedule()

    def _room(self) -> int:
        """Make room by dropping the parts that were used the longest ago; give what there is."""
        limit = pool_bytes() // _SHARE_OF_POOL if self._most_bytes is None else self._most_bytes
        with self._lock:
            for key, entry in list(self._entries.items()):
                if self._held_bytes() <= limit // 2:
                    break
                if entry.rows is not None:
                    del self._entries[key]
            return max(0, limit - self._held_bytes())

    def _held_bytes(self) -> int:
        return sum(
            entry.rows.held_bytes for entry in self._entries.values() if entry.rows is not None
        )

    def _schedule(self) -> None:
        if self._timer is None:
            self._timer = threading.Timer(self._idle_seconds, self.drop_idle)
            self._timer.daemon = True
            self._timer.start()


def _collected(stream: BatchStream, room: int) -> ReplicatedRows:
    """Take all batches of a stream: into memory, or into a file where they need more than that."""
    held: list[pa.RecordBatch] = []
    num_bytes = 0
    batches = stream.batches
    for batch in batches:
        held.append(batch)
        num_bytes += batch.nbytes
        if num_bytes > room:
            return _mapped(stream.schema, held, batches)
    return ReplicatedRows(stream.schema, tuple(held), num_bytes)


def _mapped(
    schema: pa.Schema, held: list[pa.RecordBatch], batches: Iterator[pa.RecordBatch]
) -> ReplicatedRows:
    descriptor, path = tempfile.mkstemp(prefix="pennon-part-", suffix=".arrow")
    os.close(descriptor)
    try:
        with pa.OSFile(path, "wb") as sink, pa.ipc.new_file(sink, schema) as writer:
            for batch in held:
                writer.write_batch(batch)
            held.clear()
            for batch in batches:
                writer.write_batch(batch)
        reader = pa.ipc.open_file(pa.memory_map(path))
        written = tuple(reader.get_batch(at) for at in range(reader.num_record_batches))
    finally:
        # The mapping keeps the bytes until the last batch is gone.
        Path(path).unlink()
    return ReplicatedRows(schema, written, 0)


REPLICATED: Final = ReplicatedParts()
"""The parts of this process."""
