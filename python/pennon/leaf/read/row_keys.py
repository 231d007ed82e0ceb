"""Leaves out the rows of a scan that the query has found to match nothing.

Spark looks up the rows of a table in the other side of a join. Where it knows the keys of that side
before, what has none of them need not be sent to it. Rows without a key may be left in: Spark looks
all of them up, and NULL is equal to no key.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pennon.predicate.values.time_units import is_text

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["RowKeys"]

# Values are hashed anew for each lookup: so many times as many rows are looked up at once.
_ROWS_PER_VALUE: Final = 4
_HELD_BYTES: Final = 16 << 20
_TRIED_ROWS: Final = 1 << 20
_PLACES_PER_KEY: Final = 16
_UNSIGNED: Final = pa.decimal128(20, 0)
# Odd, of bits without a pattern: 2 to the 64th by the golden ratio.
_FACTOR: Final = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True)
class RowKeys:
    """The values of a column that rows are requested with, as Spark has them inside.

    Args:
        column: Its name.
        numbers: Integers, days of dates and microseconds of timestamps since 1970.
        texts: Those of all other types.
        has_null: Whether rows of NULL may be requested.

    Example:
        >>> RowKeys("a", (1,), (), has_null=False).values(pa.date32()).to_pylist()
        [datetime.date(1970, 1, 2)]
    """

    column: str
    numbers: tuple[int, ...]
    texts: tuple[str, ...]
    has_null: bool

    def values(self, data_type: pa.DataType) -> pa.Array | None:
        """Give the values in a type; None for one that they are not compared in.

        Args:
            data_type: That of the column.
        """
        if self._are_of_another(data_type):
            return None
        if pa.types.is_uint64(data_type):
            return _fitting(self._text_array.cast(_UNSIGNED), data_type)
        if pa.types.is_integer(data_type):
            return _fitting(self._number_array, data_type)
        if pa.types.is_date32(data_type):
            return self._number_array.cast(pa.int32()).cast(data_type)
        if pa.types.is_timestamp(data_type) and data_type.unit == "us":
            return self._number_array.cast(data_type)
        if is_text(data_type) or pa.types.is_decimal(data_type) or pa.types.is_boolean(data_type):
            return self._text_array.cast(data_type)
        return None

    def matching(
        self, batches: Iterator[pa.RecordBatch], column: str | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Give the rows that have one of the keys, and others where looking does not pay.

        Args:
            batches: All of one schema that has the column.
            column: How the column is called there; None for its own name.
        """
        name = column or self.column
        first = next(batches, None)
        if first is not None:
            rows, data_type = chain([first], batches), first.schema.field(name).type
            yield from self._looked_up(rows, name, data_type)

    def _looked_up(
        self, rows: Iterator[pa.RecordBatch], name: str, data_type: pa.DataType
    ) -> Iterator[pa.RecordBatch]:
        is_short = pa.types.is_date32(data_type) or _is_integer(data_type)
        if is_short and not self._are_of_another(data_type):
            return _while_it_pays(rows, partial(self._with_numbers, name=name))
        values = self.values(data_type)
        if values is None:
            return rows
        together = _put_together(rows, _ROWS_PER_VALUE * len(values))
        return _while_it_pays(together, partial(_among, name, values))

    def _are_of_another(self, data_type: pa.DataType) -> bool:
        """Whether Spark has the column in another type than these keys are of."""
        is_number = _is_integer(data_type) or pa.types.is_temporal(data_type)
        return bool(self.texts if is_number else self.numbers)

    def _with_numbers(self, batch: pa.RecordBatch, name: str) -> pa.RecordBatch:
        column = batch.column(name)
        if pa.types.is_date32(column.type):
            column = column.view(pa.int32())
        positions = self._sieve.positions(pc.fill_null(column, 0).cast(pa.int64()).to_numpy())
        rows = batch.take(pa.array(positions))
        return rows.filter(rows.column(name).is_valid()) if column.null_count else rows

    @cached_property
    def _number_array(self) -> pa.Array:
        return pa.array(self.numbers, pa.int64())

    @cached_property
    def _text_array(self) -> pa.Array:
        return pa.array(self.texts, pa.utf8())

    @cached_property
    def _sieve(self) -> _Sieve:
        return _Sieve.of(np.unique(self._number_array.to_numpy()))


def _fitting(keys: pa.Array, data_type: pa.DataType) -> pa.Array:
    """Give the keys that an integer type has; an unsigned column is of a wider one for Spark."""
    limits = np.iinfo(data_type.to_pandas_dtype())
    least, most = pa.scalar(int(limits.min), keys.type), pa.scalar(int(limits.max), keys.type)
    is_between = pc.and_(pc.greater_equal(keys, least), pc.less_equal(keys, most))
    return keys.filter(is_between).cast(data_type)


def _is_integer(data_type: pa.DataType) -> bool:
    """Whether it is an integer for Spark, too, where UINT64 is DECIMAL."""
    return bool(pa.types.is_integer(data_type) and not pa.types.is_uint64(data_type))


def _among(name: str, values: pa.Array, rows: pa.RecordBatch) -> pa.RecordBatch:
    return rows.filter(pc.is_in(rows.column(name), value_set=values))


def _put_together(batches: Iterable[pa.RecordBatch], least_rows: int) -> Iterator[pa.RecordBatch]:
    """Give batches of at least so many rows, or of as many bytes as are held."""
    held: list[pa.RecordBatch] = []
    num_rows = num_bytes = 0
    for batch in batches:
        held.append(batch)
        num_rows += batch.num_rows
        num_bytes += batch.nbytes
        if num_rows >= least_rows or num_bytes >= _HELD_BYTES:
            yield pa.concat_batches(held)
            held, num_rows, num_bytes = [], 0, 0
    if held:
        yield pa.concat_batches(held)


def _while_it_pays(
    batches: Iterator[pa.RecordBatch], keep: Callable[[pa.RecordBatch], pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Keep the rows with a key; where most have one, all of the rest."""
    num_rows = num_kept = 0
    for batch in batches:
        rows = keep(batch)
        num_rows += batch.num_rows
        num_kept += rows.num_rows
        yield rows
        if num_rows >= _TRIED_ROWS and 2 * num_kept > num_rows:
            yield from batches


@dataclass(frozen=True, slots=True)
class _Sieve:
    """Finds keys among numbers: few others pass a Bloom filter of one hash, and are looked up.

    Args:
        keys: In order.
        shift: How many bits of a hash are dropped.
        places: Whether a key has this hash.
    """

    keys: npt.NDArray[np.int64]
    shift: np.uint64
    places: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, keys: npt.NDArray[np.int64]) -> _Sieve:
        num_bits = max(len(keys) * _PLACES_PER_KEY, 2).bit_length()
        sieve = cls(keys, np.uint64(64 - num_bits), np.zeros(1 << num_bits, np.bool_))
        sieve.places[sieve._hashes(keys)] = True
        return sieve

    def positions(self, numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Give the positions of what is a key, in order."""
        possible: npt.NDArray[np.int64] = np.flatnonzero(self.places[self._hashes(numbers)])
        if len(possible):
            chosen = numbers[possible]
            at = np.minimum(np.searchsorted(self.keys, chosen), len(self.keys) - 1)
            possible = possible[self.keys[at] == chosen]
        return possible

    def _hashes(self, numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        hashes = numbers.view(np.uint64) * _FACTOR
        hashes >>= self.shift
        return hashes.view(np.int64)
