"""The derived key of a scan: a never-NULL 64-bit surrogate of its reduced partition values.

Equal tuples give equal surrogates on every side of a join; a collision only makes a group
coarser, for the real conjuncts stay in the join (derived-keys contract, 1.3). The JVM function
that computes the surrogate for the side without partitioning has the same definition: starting
with 0, ``surrogate = surrogate * 1000003 + h`` in wrapping 64 bits, where ``h`` is the murmur3
hash of the value, or 2**32 for NULL.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from pennon.transforms.evaluation.murmur3 import murmur3

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pennon.spec.functions.partition_layout import Layout, LayoutFunction

_FACTOR = np.int64(1_000_003)
_NULL_HASH = np.int64(2**32)


def surrogates(layout: Layout, functions: Sequence[LayoutFunction], leaves: pa.Table) -> pa.Array:
    """Compute the derived key of each chosen leaf.

    Args:
        layout: The layout of the scan.
        functions: The reduced functions of the key, in the order of the group.
        leaves: Rows of ``__manifest``, as the plan has them.

    Returns:
        int64 without NULLs, one value per leaf.

    Spec: "Storage Partitioned Join".
    """
    return surrogate_of(
        [layout.values(function, leaves) for function in functions], leaves.num_rows
    )


def surrogate_of(tuples: Sequence[pa.Array], num_rows: int) -> pa.Array:
    """Hash tuples of partition values, given column by column, into surrogates.

    Example:
        >>> surrogate_of([pa.array([None, None], pa.int32())], 2).to_pylist()
        [4294967296, 4294967296]
    """
    key = np.zeros(num_rows, dtype=np.int64)
    with np.errstate(over="ignore"):
        for values in tuples:
            hashes = murmur3(values)
            hashed = hashes.cast(pa.int64()).fill_null(int(_NULL_HASH)).to_numpy()
            key = key * _FACTOR + hashed
    return pa.array(key, pa.int64())
