"""Compares rows as Spark's sort does, for checks of the write order and for merges.

Each column of an order becomes two key columns that Arrow compares exactly as Spark would: a flag
for NULL, and the value with something in the place of NULL. Floats become integers of the same
order, in which all NaN are one greatest value and -0.0 is 0.0; texts become their bytes. Integers
of a descending column have all their bits turned round, so that they ascend.

NULL rule: NULL equals NULL and stands where the order says, first or last.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt
    from numpy.typing import NDArray

    from pennon.spec.write_properties import OrderColumn

__all__ = ["KeyColumn", "SortedCheck", "addresses_in", "fragments_of", "key_columns", "offsets_of"]

# The addresses that Lance gives rows: the number of a fragment, and the offset of a row in it.

_OFFSET_BITS: Final = 32


def addresses_in(fragment: int, offsets: NDArray[np.int64]) -> NDArray[np.int64]:
    """Give the addresses of rows of one fragment.

    Example:
        >>> addresses_in(2, np.array([0, 5])).tolist()
        [8589934592, 8589934597]
    """
    return np.asarray(offsets + (fragment << _OFFSET_BITS))


def fragments_of(addresses: NDArray[np.int64]) -> NDArray[np.int64]:
    """Give the number of the fragment that each row is in.

    Example:
        >>> fragments_of(np.array([7, 8589934597])).tolist()
        [0, 2]
    """
    return np.asarray(addresses >> _OFFSET_BITS)


def offsets_of(addresses: NDArray[np.int64]) -> NDArray[np.int64]:
    """Give the offset of each row in its fragment.

    Example:
        >>> offsets_of(np.array([7, 8589934597])).tolist()
        [7, 5]
    """
    return np.asarray(addresses & ((1 << _OFFSET_BITS) - 1))


if TYPE_CHECKING:
    Numbers = npt.NDArray[np.int64 | np.int8]


@dataclass(frozen=True, slots=True)
class KeyColumn:
    """What rows are compared by, without NULLs: int8, int64, decimal or binary.

    Args:
        values: One per row.
        is_descending: Whether greater values come first; of decimals and binary only.
    """

    values: pa.Array
    is_descending: bool = False

    @property
    def numbers(self) -> Numbers | None:
        """The values where they are integers, without a copy."""
        if not pa.types.is_integer(self.values.type):
            return None
        numbers: Numbers = self.values.to_numpy()
        return numbers

    def rows(self, first: int, end: int) -> KeyColumn:
        """Take some of the rows."""
        return KeyColumn(self.values.slice(first, end - first), self.is_descending)


def key_columns(columns: Sequence[pa.Array], order: Sequence[OrderColumn]) -> tuple[KeyColumn, ...]:
    """Give the keys of rows, the most significant first; two for each column of the order.

    Args:
        columns: The columns of the order, in its order, of orderable types.
        order: Their directions.

    Example:
        >>> from pennon.spec.write_properties import OrderColumn
        >>> flag, value = key_columns([pa.array([None, -0.0, 0.0])], [OrderColumn("a")])
        >>> flag.values.to_pylist(), value.values.to_pylist()
        ([-1, 0, 0], [0, 0, 0])
    """
    keys: list[KeyColumn] = []
    for array, column in zip(columns, order, strict=True):
        flags = pc.is_null(array).cast(pa.int8())
        keys.append(KeyColumn(pc.negate(flags) if column.nulls_first else flags))
        values = _comparable(array)
        if column.is_descending and pa.types.is_integer(values.type):
            keys.append(KeyColumn(pc.bit_wise_not(values)))
        else:
            keys.append(KeyColumn(values, column.is_descending))
    return tuple(keys)


def _comparable(array: pa.Array) -> pa.Array:
    data_type = array.type
    is_bytes = (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary)
    if pa.types.is_floating(data_type):
        return _ordered_bits(array)
    if pa.types.is_decimal(data_type) or pa.types.is_large_binary(data_type):
        comparable = array
    elif any(test(data_type) for test in is_bytes):
        comparable = array.cast(pa.large_binary())
    elif pa.types.is_date32(data_type):
        comparable = array.cast(pa.int32()).cast(pa.int64())
    else:
        comparable = array.cast(pa.int64())
    if not comparable.null_count:
        return comparable
    stand_in: object = 0
    if pa.types.is_decimal(data_type):
        stand_in = Decimal(0)
    elif pa.types.is_large_binary(comparable.type):
        stand_in = b""
    return comparable.fill_null(pa.scalar(stand_in, comparable.type))


def _ordered_bits(array: pa.Array) -> pa.Array:
    """Give floats as integers: a negative one's bits are turned round below its sign."""
    floats = array.cast(pa.float64()).fill_null(0.0).to_numpy(zero_copy_only=False)
    floats = floats + 0.0  # -0.0 becomes 0.0
    floats[np.isnan(floats)] = np.nan
    bits = floats.view(np.int64)
    return pa.array(np.where(bits < 0, bits ^ np.int64(0x7FFF_FFFF_FFFF_FFFF), bits))


class SortedCheck:
    """Observes the rows of one run and reports whether they came in order.

    Args:
        order: The order.

    Example:
        >>> from pennon.spec.write_properties import OrderColumn
        >>> check = SortedCheck([OrderColumn("a")])
        >>> for batch in ([None, 1], [1, 2]):
        ...     check.observe([pa.array(batch)])
        >>> check.is_sorted
        True
        >>> check.observe([pa.array([1])])
        >>> check.is_sorted
        False
    """

    def __init__(self, order: Sequence[OrderColumn]) -> None:
        self._order = order
        self._last: tuple[KeyColumn, ...] = ()
        self.is_sorted = True

    def observe(self, columns: Sequence[pa.Array]) -> None:
        """Take the next rows.

        Args:
            columns: The columns of the order, in its order.
        """
        num_rows = len(columns[0])
        if not self.is_sorted or not num_rows:
            return
        keys = key_columns(columns, self._order)
        if self._last:
            seam = [
                KeyColumn(
                    pa.concat_arrays([before.values, key.values.slice(0, 1)]), key.is_descending
                )
                for before, key in zip(self._last, keys, strict=True)
            ]
            self.is_sorted = _is_sorted(seam)
        self.is_sorted = self.is_sorted and _is_sorted(keys)
        self._last = tuple(key.rows(num_rows - 1, num_rows) for key in keys)


def _is_sorted(keys: Sequence[KeyColumn]) -> bool:
    num_rows = len(keys[0].values)
    tied = np.ones(num_rows - 1, dtype=np.bool_)
    for key in keys:
        if not tied.any():
            return True
        before, after = key.values.slice(0, num_rows - 1), key.values.slice(1)
        if key.is_descending:
            before, after = after, before
        if (tied & _numpy(pc.greater(before, after))).any():
            return False
        tied &= _numpy(pc.equal(before, after))
    return True


def _numpy(flags: pa.Array) -> npt.NDArray[np.bool_]:
    given: npt.NDArray[np.bool_] = flags.to_numpy(zero_copy_only=False)
    return given
