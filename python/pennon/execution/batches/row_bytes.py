"""What a row takes in memory, estimated from the types of its columns alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["row_bytes"]

_BYTES_OF_A_TEXT: Final = 24
_BYTES_OF_A_NESTED_VALUE: Final = 100


def row_bytes(types: Iterable[pa.DataType | None]) -> int:
    """Estimate the bytes of a row in memory; a type that is not known counts as a nested one.

    Example:
        >>> row_bytes([pa.int64(), pa.int32(), pa.utf8()])
        36
    """
    return max(1, sum(map(_value_bytes, types)))


def _value_bytes(data_type: pa.DataType | None) -> int:
    if data_type is None or pa.types.is_nested(data_type):
        return _BYTES_OF_A_NESTED_VALUE
    try:
        return max(1, int(data_type.bit_width) // 8)
    except ValueError:
        return _BYTES_OF_A_TEXT
