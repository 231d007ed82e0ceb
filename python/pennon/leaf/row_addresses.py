"""The addresses that Lance gives rows: the number of a fragment, and the offset of a row in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["addresses_in", "fragments_of", "offsets_of"]

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
