"""Murmur3 (x86, 32 bit) over Arrow arrays, with the byte form of every type.

Eight bytes little-endian for integers of every width, booleans, dates (days), times and
timestamps (microseconds, UTC); UTF-8; raw bytes; decimals as the shortest big-endian two's
complement of the unscaled value. So ``int32(5)`` and ``int64(5)`` share a bucket after a
promotion. NULL rules: ``murmur3`` of NULL is NULL; ``murmur3_multi`` skips NULL columns (the
hash so far seeds the next) and is NULL only where all columns are NULL.

Spec: "Hash Functions".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from pennon.errors import TransformOnWrongType
from pennon.predicate.values.time_units import is_binary, is_text
from pennon.transforms.evaluation import day_numbers, micros_utc, plain_array

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

ALLOWED = "integers, decimals, strings, binary, booleans, dates, times and timestamps"

_C1 = np.uint32(0xCC9E2D51)
_C2 = np.uint32(0x1B873593)
_ADD = np.uint32(0xE6546B64)
_MIX1 = np.uint32(0x85EBCA6B)
_MIX2 = np.uint32(0xC2B2AE35)
_BLOCK = 4
_ROWS_AT_A_TIME = 16_384
_SIGN_BIT = np.uint8(0x80)


def murmur3(array: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Hash every value of one column.

    Returns:
        Signed 32-bit hashes, NULL where the value is NULL.

    Example:
        >>> murmur3(pa.array([34, None]))[0]
        <pyarrow.Int32Scalar: 2017239379>

    Spec: "Hash Functions".
    """
    return murmur3_multi([array])


def murmur3_multi(arrays: Sequence[pa.Array | pa.ChunkedArray]) -> pa.Array:
    """Hash the values of several columns together, row by row.

    Returns:
        Signed 32-bit hashes, NULL where all columns are NULL.

    Spec: "Hash Functions".
    """
    columns = [plain_array(array) for array in arrays]
    rows = len(columns[0])
    hashes = np.zeros(rows, dtype=np.uint32)
    is_hashed = np.zeros(rows, dtype=np.bool_)
    for column in columns:
        if column.null_count == 0:
            hashes = _hash_values(column, hashes)
            is_hashed[:] = True
        elif column.null_count < rows:
            valid = column.is_valid().to_numpy(zero_copy_only=False)
            hashes = np.where(valid, _hash_values(column, hashes), hashes)
            is_hashed |= valid
    return pa.array(hashes.view(np.int32), mask=~is_hashed)


def is_hashable(data_type: pa.DataType) -> bool:
    """Whether values of a type have a byte form.

    Example:
        >>> is_hashable(pa.date32()), is_hashable(pa.float64())
        (True, False)
    """
    types = pa.types
    if types.is_dictionary(data_type):
        return is_hashable(data_type.value_type)
    if types.is_duration(data_type) or types.is_interval(data_type):
        return False
    return (
        types.is_integer(data_type)
        or types.is_boolean(data_type)
        or types.is_decimal(data_type)
        or types.is_temporal(data_type)
        or is_text(data_type)
        or is_binary(data_type)
        or types.is_null(data_type)
    )


def check_hashable(data_type: pa.DataType, transform: object) -> None:
    """Refuse a source type that has no byte form.

    Raises:
        TransformOnWrongType: Names the transform, the type and those that are taken.
    """
    if not is_hashable(data_type):
        raise TransformOnWrongType(transform=transform, type=data_type, allowed=ALLOWED)


def _hash_values(column: pa.Array, seeds: NDArray[np.uint32]) -> NDArray[np.uint32]:
    data_type = column.type
    check_hashable(data_type, "murmur3")
    if is_text(data_type) or is_binary(data_type):
        return _hash_bytes(*_byte_ranges(column), seeds)
    if pa.types.is_decimal(data_type):
        return _hash_bytes(*_decimal_bytes(column), seeds)
    return _hash_longs(_longs(column), seeds)


def _longs(column: pa.Array) -> NDArray[np.uint64]:
    data_type = column.type
    if pa.types.is_date(data_type):
        return day_numbers(column).view(np.uint64)
    if pa.types.is_timestamp(data_type) or pa.types.is_time(data_type):
        return micros_utc(column).view(np.uint64)
    if pa.types.is_uint64(data_type):
        return np.asarray(column.fill_null(0).to_numpy(zero_copy_only=False), dtype=np.uint64)
    values = column.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
    return np.ascontiguousarray(values, dtype=np.int64).view(np.uint64)


def _byte_ranges(
    column: pa.Array,
) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64]]:
    """Give the bytes of all rows with the start and length of each row."""
    data_type = column.type
    if not (pa.types.is_large_string(data_type) or pa.types.is_large_binary(data_type)):
        is_string = pa.types.is_string(data_type) or pa.types.is_string_view(data_type)
        narrow = pa.string() if is_string else pa.binary()
        wide = pa.large_string() if is_string else pa.large_binary()
        column = (
            column.cast(narrow).cast(wide)
            if pa.types.is_fixed_size_binary(data_type)
            else column.cast(wide)
        )
    _, offset_buffer, byte_buffer = column.buffers()
    offsets = np.frombuffer(offset_buffer, dtype=np.int64)[
        column.offset : column.offset + len(column) + 1
    ]
    content = (
        np.zeros(0, dtype=np.uint8) if byte_buffer is None else np.frombuffer(byte_buffer, np.uint8)
    )
    return content, offsets[:-1], np.diff(offsets)


def _decimal_bytes(
    column: pa.Array,
) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64]]:
    """Give the unscaled values big-endian, with the range of each row's shortest form."""
    data_type = column.type
    if data_type.bit_width < pa.decimal128(1).bit_width:
        column = column.cast(pa.decimal128(data_type.precision, data_type.scale))
    width = column.type.bit_width // 8
    little = np.frombuffer(column.buffers()[1], dtype=np.uint8)
    first = column.offset * width
    big = little[first : first + len(column) * width].reshape(-1, width)[:, ::-1]
    sign = np.where(big[:, :1] & _SIGN_BIT, np.uint8(0xFF), np.uint8(0))
    # a leading byte is needless where it repeats the sign, and the next byte states the sign too
    needless = (big[:, :-1] == sign) & ((big[:, 1:] & _SIGN_BIT) == (sign & _SIGN_BIT))
    dropped = np.logical_and.accumulate(needless, axis=1).sum(axis=1).astype(np.int64)
    starts = np.arange(len(column), dtype=np.int64) * width + dropped
    return np.ascontiguousarray(big).reshape(-1), starts, width - dropped


def _hash_longs(values: NDArray[np.uint64], seeds: NDArray[np.uint32]) -> NDArray[np.uint32]:
    low = (values & np.uint64(0xFFFFFFFF)).astype(np.uint32)
    high = (values >> np.uint64(32)).astype(np.uint32)
    return _finish(_mix(_mix(seeds, low), high), np.uint32(8))


def _hash_bytes(
    content: NDArray[np.uint8],
    starts: NDArray[np.int64],
    lengths: NDArray[np.int64],
    seeds: NDArray[np.uint32],
) -> NDArray[np.uint32]:
    """Hash rows of different lengths, as many at a time as the processor's cache holds."""
    if len(content) == 0:
        return _finish(seeds, np.uint32(0))
    result = np.empty_like(seeds)
    for first in range(0, len(starts), _ROWS_AT_A_TIME):
        some = slice(first, first + _ROWS_AT_A_TIME)
        result[some] = _hash_some(content, starts[some], lengths[some], seeds[some])
    return result


def _hash_some(
    content: NDArray[np.uint8],
    starts: NDArray[np.int64],
    lengths: NDArray[np.int64],
    seeds: NDArray[np.uint32],
) -> NDArray[np.uint32]:
    """Hash the n-th block of all rows that have one at a time."""
    blocks = lengths // _BLOCK
    longest_first = np.argsort(-blocks, kind="stable")
    ordered_blocks, ordered_starts = blocks[longest_first], starts[longest_first]
    hashes = seeds[longest_first]
    remaining = np.searchsorted(
        -ordered_blocks, -np.arange(1, ordered_blocks[:1].sum() + 1), "right"
    )
    # the word that starts at each byte, wherever it lies: one look-up instead of four
    every = max(len(content) - _BLOCK + 1, 0)
    words_at = np.ndarray((every,), np.dtype("<u4"), content.data, strides=(1,))
    for block, rows in enumerate(remaining):
        words = words_at[ordered_starts[:rows] + block * _BLOCK]
        hashes[:rows] = _mix(hashes[:rows], words)
    result = np.empty_like(hashes)
    result[longest_first] = hashes
    tails = lengths % _BLOCK
    tail_starts = starts + blocks * _BLOCK
    for size in range(1, _BLOCK):
        rows_with_tail = np.flatnonzero(tails == size)
        words = _gather(content, tail_starts[rows_with_tail], size)
        result[rows_with_tail] ^= _scramble(words)
    return _finish(result, lengths.astype(np.uint32))


def _gather(content: NDArray[np.uint8], at: NDArray[np.int64], size: int) -> NDArray[np.uint32]:
    words = np.zeros(len(at), dtype=np.uint32)
    for position in range(size):
        words |= content[at + position].astype(np.uint32) << np.uint32(8 * position)
    return words


def _rotate(words: NDArray[np.uint32], bits: int) -> NDArray[np.uint32]:
    return (words << np.uint32(bits)) | (words >> np.uint32(32 - bits))


def _scramble(words: NDArray[np.uint32]) -> NDArray[np.uint32]:
    return _rotate(words * _C1, 15) * _C2


def _mix(hashes: NDArray[np.uint32], words: NDArray[np.uint32]) -> NDArray[np.uint32]:
    return _rotate(hashes ^ _scramble(words), 13) * np.uint32(5) + _ADD


def _finish(
    hashes: NDArray[np.uint32], lengths: NDArray[np.uint32] | np.uint32
) -> NDArray[np.uint32]:
    mixed = hashes ^ lengths
    mixed = (mixed ^ (mixed >> np.uint32(16))) * _MIX1
    mixed = (mixed ^ (mixed >> np.uint32(13))) * _MIX2
    return mixed ^ (mixed >> np.uint32(16))
