"""Estimates the number of distinct values of a column in one pass and a few kilobytes.

The values' hashes are spread evenly, so the 1,024 smallest give an estimate of how many there are:
within about six in a hundred, and exactly where there are fewer. NaN is one value, and so are both
zeros.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["DistinctValues"]

_KEPT: Final = 1_024
_LARGEST: Final = 2.0**64
_FACTORS: Final = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))
_START: Final = np.uint64(0x9E3779B97F4A7C15)


class DistinctValues:
    """The values that were seen.

    Example:
        >>> seen = DistinctValues()
        >>> seen.observe(pa.array([3, 3, None, 1]))
        >>> seen.count
        2
    """

    def __init__(self) -> None:
        self._smallest = np.zeros(0, dtype=np.uint64)

    def observe(self, column: pa.Array) -> None:
        """Count values.

        Args:
            column: Of a type that has statistics; NULL is no value.
        """
        values = pc.unique(column.drop_null())
        hashes = _hashes(values)
        if len(self._smallest) == _KEPT:
            hashes = hashes[hashes < self._smallest[-1]]
        if len(hashes):
            self._smallest = np.union1d(self._smallest, hashes)[:_KEPT]

    @property
    def count(self) -> int:
        """About how many different values were seen."""
        if len(self._smallest) < _KEPT:
            return len(self._smallest)
        return round((_KEPT - 1) / (float(self._smallest[-1]) / _LARGEST))


def _hashes(values: pa.Array) -> np.ndarray:
    data_type = values.type
    if pa.types.is_floating(data_type):
        floats = values.to_numpy(zero_copy_only=False).astype(np.float64) + 0.0
        floats[np.isnan(floats)] = np.nan
        bits = floats.view(np.uint64)
    elif pa.types.is_date32(data_type):
        bits = values.cast(pa.int32()).to_numpy().astype(np.int64).view(np.uint64)
    elif pa.types.is_timestamp(data_type):
        bits = values.cast(pa.int64()).to_numpy().view(np.uint64)
    elif pa.types.is_signed_integer(data_type):
        bits = values.to_numpy().astype(np.int64).view(np.uint64)
    else:
        hashes = np.array([hash(value) for value in values.to_pylist()], dtype=np.int64)
        bits = hashes.view(np.uint64)
    return np.asarray(np.unique(_mixed(bits)))


def _mixed(bits: np.ndarray) -> np.ndarray:
    """Spread neighbouring numbers over all of 64 bits (the finaliser of SplitMix64)."""
    mixed = bits + _START
    mixed = (mixed ^ (mixed >> np.uint64(30))) * _FACTORS[0]
    mixed = (mixed ^ (mixed >> np.uint64(27))) * _FACTORS[1]
    return np.asarray(mixed ^ (mixed >> np.uint64(31)))
