"""The reductions between transforms of one column, and the finest that two have in common.

The rules stand with the transforms; this is the door to them. NULL rules: a reduction keeps NULL.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pyarrow as pa

from pennon.errors import InternalError
from pennon.predicate.values.arrow_kinds import is_text
from pennon.transforms.bucket import Bucket, MultiBucket
from pennon.transforms.epoch import Epoch
from pennon.transforms.evaluation.source_array import plain_type
from pennon.transforms.truncate import MAX_WIDTH, Truncate

if TYPE_CHECKING:
    from pennon.transforms.transform import Transform


def common_reduction(
    a: Transform, b: Transform, source_type: pa.DataType | None = None
) -> Transform | None:
    """Find the finest transform that follows from both.

    Args:
        a: A transform of a column.
        b: A transform of the same column, or of one that is compared with it.
        source_type: Type of the column; without it, truncates of different widths and an
            identity with another transform have no common reduction.

    Returns:
        The transform, or None when there is none.

    Example:
        >>> common_reduction(Bucket(8), Bucket(12))
        Bucket(num_buckets=4)
    """
    if a == b:
        return a
    match a, b:
        case Bucket(m), Bucket(n):
            return Bucket(math.gcd(m, n)) if math.gcd(m, n) > 1 else None
        case MultiBucket(m), MultiBucket(n):
            return MultiBucket(math.gcd(m, n)) if math.gcd(m, n) > 1 else None
        case Epoch(), Epoch():
            return Epoch(a.unit.coarser(b.unit))
        case Truncate(), Truncate() if source_type is not None:
            return _common_truncate(a, b, source_type)
        case _ if source_type is None and not isinstance(a, Epoch) and not isinstance(b, Epoch):
            return None
    data_type = pa.null() if source_type is None else source_type
    if a.reduction_to(b, data_type):
        return b
    return a if b.reduction_to(a, data_type) else None


def _common_truncate(a: Truncate, b: Truncate, source_type: pa.DataType) -> Truncate | None:
    if is_text(plain_type(source_type)):
        return Truncate(min(a.width, b.width))
    width = math.lcm(a.width, b.width)
    return Truncate(width) if width <= MAX_WIDTH else None


def reduce_values(
    values: pa.Array, transform: Transform, other: Transform, source_type: pa.DataType
) -> pa.Array:
    """Compute the values of ``other`` from partition values of ``transform``.

    Args:
        values: Partition values of ``transform``.
        transform: What they were made with.
        other: The coarser transform; ``transform`` must reduce to it.
        source_type: Type of the source column.

    Example:
        >>> reduce_values(pa.array([9, None]), Bucket(16), Bucket(8), pa.int64()).to_pylist()
        [1, None]
    """
    if transform == other:
        return values
    if not transform.reduction_to(other, source_type):
        raise InternalError(what=f"{transform} was to be reduced to {other}")
    return transform.reduce(values, other, source_type)
