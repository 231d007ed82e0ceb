"""Rows in files, divided by the hash of their keys: one for each part, written side by side.

What is held in memory is one load of rows and its copy in the order of the parts. The hash is mixed
once more: rows of one bucket of a table have its last bits in common.
"""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

import numpy as np
import pyarrow as pa

from pennon.errors import TransformOnWrongType
from pennon.transforms.evaluation.murmur3 import check_hashable, murmur3_multi

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

_MIX: Final = np.uint64(0x9E3779B1)
_LOW: Final = np.uint64(0xFFFFFFFF)
_BITS: Final = np.uint64(32)


def can_divide(schema: pa.Schema, keys: Sequence[str]) -> bool:
    """Whether equal keys have equal hashes: not floats, whose zeros and NaNs are several.

    Args:
        schema: The rows.
        keys: What they are grouped by.
    """
    try:
        for key in keys:
            check_hashable(schema.field(key).type, "a division into parts")
    except (KeyError, TransformOnWrongType):
        return False
    return not any(pa.types.is_dictionary(kind) for kind in schema.types)


class DividedRows:
    """Files of rows, removed when the block ends.

    Args:
        schema: The rows.
        keys: Rows with equal keys come into the same part.
        num_parts: How many parts there are.
        load_bytes: How much is divided at a time.
    """

    def __init__(
        self, schema: pa.Schema, keys: Sequence[str], *, num_parts: int, load_bytes: int
    ) -> None:
        self._schema = schema
        self._keys = tuple(keys)
        self._num_parts = num_parts
        self._load_bytes = load_bytes
        self._held: list[pa.RecordBatch] = []
        self._held_bytes = 0
        self._open = ExitStack()
        self._sinks = ExitStack()
        self._writers: dict[int, pa.ipc.RecordBatchFileWriter] = {}
        self._files: list[Path] = []
        self.num_bytes = 0

    def __enter__(self) -> Self:
        folder = Path(self._open.enter_context(tempfile.TemporaryDirectory(prefix="pennon-rows-")))
        self._files = [folder / f"{part}.arrow" for part in range(self._num_parts)]
        return self

    def __exit__(self, *_: object) -> None:
        self._sinks.close()
        self._open.close()

    def add(self, batch: pa.RecordBatch) -> None:
        """Divide rows, or hold them until there are enough."""
        self._held.append(batch)
        self._held_bytes += batch.nbytes
        if self._held_bytes >= self._load_bytes:
            self._divide()

    def parts(self) -> Iterator[Path]:
        """Give the files that have rows; each is removed when the next one is read."""
        self._divide()
        self._sinks.close()
        for file in self._files:
            if file.exists():
                yield file
                file.unlink()

    def _divide(self) -> None:
        if not self._held:
            return
        rows = pa.concat_batches(self._held)
        self._held, self._held_bytes = [], 0
        part_of_row = self._part_of_each(rows)
        order = np.argsort(part_of_row, kind="stable")
        bounds = np.searchsorted(part_of_row[order], np.arange(self._num_parts + 1))
        rows = rows.take(pa.array(order))
        for part in range(self._num_parts):
            first, end = int(bounds[part]), int(bounds[part + 1])
            if first < end:
                self._write(part, rows.slice(first, end - first))

    def _write(self, part: int, rows: pa.RecordBatch) -> None:
        writer = self._writers.get(part)
        if writer is None:
            sink = self._sinks.enter_context(pa.OSFile(str(self._files[part]), "wb"))
            writer = self._sinks.enter_context(pa.ipc.new_file(sink, self._schema))
            self._writers[part] = writer
        writer.write_batch(rows)
        self.num_bytes += rows.nbytes

    def _part_of_each(self, rows: pa.RecordBatch) -> NDArray[np.uint16]:
        hashes = murmur3_multi([rows.column(key) for key in self._keys]).fill_null(0)
        wide = np.asarray(hashes).view(np.uint32).astype(np.uint64)
        mixed = (wide * _MIX) & _LOW
        return ((mixed * np.uint64(self._num_parts)) >> _BITS).astype(np.uint16)
