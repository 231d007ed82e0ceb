"""Columns of random values: the boundaries of a type, values near them, and any others."""

from __future__ import annotations

import datetime as dt
import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from numpy.typing import NDArray

_FIRST_DAY = dt.date(1, 1, 1).toordinal() - dt.date(1970, 1, 1).toordinal()
_LAST_DAY = dt.date(9999, 12, 31).toordinal() - dt.date(1970, 1, 1).toordinal()
_MICROS_PER_DAY = 86_400_000_000
_ONE_NULL_IN = 50
_DECIMALS = {"DECIMAL(9,2)": (9, 2), "DECIMAL(18,4)": (18, 4), "DECIMAL(38,10)": (38, 10)}
_INTEGERS: dict[str, type[np.signedinteger]] = {
    "TINYINT": np.int8,
    "SMALLINT": np.int16,
    "INT": np.int32,
    "BIGINT": np.int64,
}
# One, two, three and four bytes in UTF-8, combining marks, and what SQL and paths set apart.
_LETTERS = [
    *"abcxyzABC019 %_'$/=\\\"\t\n\x00",
    *"éßñ",
    "\u0301",
    *"日本語￿",
    "😀",
    "\U0001d4b3",
    "\U0010ffff",
]


@dataclass(frozen=True, slots=True)
class RandomColumns:
    """A source of columns; the same seed gives the same values."""

    rng: np.random.Generator
    rows: int

    def column(self, kind: str) -> pa.Array:
        """Make a column of a type of Spark, now and then NULL."""
        values = self._values(kind)
        is_null = self.rng.integers(0, _ONE_NULL_IN, self.rows) == 0
        return pa.compute.if_else(pa.array(~is_null), values, pa.scalar(None, values.type))

    def _values(self, kind: str) -> pa.Array:
        if kind in _INTEGERS:
            return pa.array(self._integers(_INTEGERS[kind]))
        if kind in _DECIMALS:
            return self._decimals(*_DECIMALS[kind])
        if kind == "BOOLEAN":
            return pa.array(self.rng.integers(0, 2, self.rows) == 0)
        if kind == "DATE":
            return pa.array(self._days().astype(np.int32)).cast(pa.date32())
        if kind in ("TIMESTAMP", "TIMESTAMP_NTZ"):
            zone = "UTC" if kind == "TIMESTAMP" else None
            return pa.array(self._micros()).cast(pa.timestamp("us", zone))
        return self._texts() if kind == "STRING" else self._bytes()

    def _integers(self, kind: type[np.signedinteger]) -> NDArray[np.signedinteger]:
        ends = np.iinfo(kind)
        anything = self.rng.integers(ends.min, ends.max, self.rows, kind, endpoint=True)
        small = self.rng.integers(-100, 100, self.rows, kind)
        edges = np.array([ends.min, ends.min + 1, -1, 0, 1, ends.max - 1, ends.max], kind)
        return self._mixed(anything, small, self.rng.choice(edges, self.rows))

    def _decimals(self, precision: int, scale: int) -> pa.Array:
        """Unscaled values of every length, both signs, up to the greatest of the precision."""
        high = self.rng.integers(0, 2**62, self.rows).astype(object) << 66
        low = self.rng.integers(0, 2**62, self.rows).astype(object)
        digits = self.rng.integers(0, precision + 1, self.rows)
        signs = self.rng.choice([-1, 1], self.rows)
        greatest = 10**precision - 1
        unscaled = [
            sign * (greatest if few == 0 else number % 10 ** int(few))
            for sign, few, number in zip(signs.tolist(), digits, (high + low), strict=True)
        ]
        wide = b"".join(int(value).to_bytes(16, "little", signed=True) for value in unscaled)
        kind = pa.decimal128(precision, scale)
        return pa.Array.from_buffers(kind, self.rows, [None, pa.py_buffer(wide)])

    def _days(self) -> NDArray[np.int64]:
        anything = self.rng.integers(_FIRST_DAY, _LAST_DAY, self.rows, endpoint=True)
        near = self.rng.integers(-800, 800, self.rows)
        year_starts = self.rng.integers(-1969, 8029, self.rows).astype("datetime64[Y]")
        around = year_starts.astype("datetime64[D]").astype(np.int64)
        edge = np.clip(around + self.rng.integers(-1, 2, self.rows), _FIRST_DAY, _LAST_DAY)
        return self._mixed(anything, near, edge)

    def _micros(self) -> NDArray[np.int64]:
        within = self.rng.integers(0, _MICROS_PER_DAY, self.rows)
        hours = self.rng.integers(0, 24, self.rows) * 3_600_000_000
        edge = np.clip(hours + self.rng.integers(-1, 2, self.rows), 0, _MICROS_PER_DAY - 1)
        return self._days() * _MICROS_PER_DAY + self._mixed(within, edge, edge)

    def _texts(self) -> pa.Array:
        lengths = self.rng.geometric(0.12, self.rows) - 1
        letters = self.rng.choice(np.array(_LETTERS, dtype=object), int(lengths.sum()))
        ends = np.concatenate([[0], np.cumsum(lengths)])
        return pa.array(["".join(letters[start:end]) for start, end in itertools.pairwise(ends)])

    def _bytes(self) -> pa.Array:
        lengths = self.rng.geometric(0.12, self.rows) - 1
        content = self.rng.bytes(int(lengths.sum()))
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(content)]
        return pa.Array.from_buffers(pa.binary(), self.rows, buffers)

    def _mixed(self, *choices: NDArray[np.generic]) -> NDArray[Any]:
        """Take every value from one of the arrays."""
        return np.choose(self.rng.integers(0, len(choices), self.rows), choices)
