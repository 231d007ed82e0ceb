"""A function of source columns that is constant over every partition, and what it reduces to.

"Reduces to" means: the coarser value follows from the finer value alone, so partitions can be
grouped by the coarser one without reading a row. The rules of reduction stand with the
transforms; the levels of one time column are one composed transform here: ``spec_functions``.

NULL rules: a reduction maps NULL to NULL; only NULL sources give NULL, except for expressions,
which are never reduced to anything but themselves.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from pennon.predicate.values.arrow_kinds import is_binary, is_number, is_text
from pennon.transforms.evaluation.source_array import plain_type

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pennon.transforms.transform import Transform


@dataclass(frozen=True, slots=True)
class GroupingFunction:
    """A function of source columns by which partitions can be grouped.

    Args:
        transform: A partition transform, or the composed transform of time levels.
        source_types: Arrow types of the source columns, in the transform's order.

    Spec: "Storage Partitioned Join".
    """

    transform: Transform
    source_types: tuple[pa.DataType, ...]

    def __str__(self) -> str:
        return self.transform.sql([f"col{at}" for at in range(len(self.source_types))])

    def common_reduction(self, other: GroupingFunction) -> GroupingFunction | None:
        """Find the finest function to which both reduce; None when there is none.

        Of a DATE and a timestamp, which are compared as midnights in UTC, days and coarser units
        are the same, and no hash is. An expression may tell types of equal values apart: the text
        of a timestamp has its zone, and the number of one counts its unit.

        Example:
            >>> from pennon.transforms.registry import sized
            >>> six, four = (
            ...     GroupingFunction(sized("bucket", count), (pa.int64(),)) for count in (6, 4)
            ... )
            >>> print(six.common_reduction(four))
            bucket(2, col0)
        """
        mine, theirs = self._plainest(), other._plainest()
        if _are_date_and_timestamp(self.source_types, other.source_types):
            my_days, their_days = mine.of_midnights(), theirs.of_midnights()
            if my_days is None or their_days is None:
                return None
            mine, theirs = my_days, their_days
        elif not _have_same_values(self.source_types, other.source_types) or (
            (mine.tells_types_apart or theirs.tells_types_apart)
            and not all(map(_are_computed_alike, self.source_types, other.source_types))
        ):
            return None
        common = mine.common_reduction(theirs, self.source_types[0])
        return None if common is None else GroupingFunction(common, self.source_types)

    def reduces_to(self, other: GroupingFunction) -> bool:
        """Whether the value of ``other`` follows from this function's value."""
        return self.common_reduction(other) == other

    def reduce(self, values: pa.Array, other: GroupingFunction) -> pa.Array:
        """Turn values of this function into values of a function to which it reduces."""
        return self._plainest().reduced(values, other._plainest(), self.source_types[0])

    def apply(self, sources: Sequence[pa.Array]) -> pa.Array:
        """Compute the function from source values."""
        return self.transform.apply(sources)

    @property
    def value_type(self) -> pa.DataType:
        """The Arrow type of the function's values."""
        return self.transform.result_type(self.source_types)

    @property
    def spark_name(self) -> str | None:
        """The name of Spark's function of one column; None when Spark cannot express it."""
        if len(self.source_types) != 1 or not self.is_constant_for_spark:
            return None
        if self._is_of_decimals and not self.is_identity:
            return None
        return self.transform.spark_function(self.source_types)

    @property
    def is_known_to_jvm(self) -> bool:
        """Whether Spark can compute the function for a side that has no partitioning."""
        return self.transform.expression_sql is None and not self._is_of_decimals

    @property
    def is_identity(self) -> bool:
        """Whether the value is the source's own."""
        return self.transform.is_identity

    @property
    def is_constant_for_spark(self) -> bool:
        """Whether source values that are equal for Spark always have equal values.

        Spark joins -0.0 with 0.0 but hashes their bits, so float sources cannot be keys.
        """
        return not any(pa.types.is_floating(source) for source in self.source_types)

    @property
    def _is_of_decimals(self) -> bool:
        """Whether Spark has a source in another type, of which it makes other values.

        UINT64 is DECIMAL there, of which the bytes are hashed and not the eight of the number.
        """
        return any(map(pa.types.is_uint64, self.source_types))

    def _plainest(self) -> Transform:
        """See a transform of many columns as what it is of its only one."""
        return self.transform.of_one_column() if len(self.source_types) == 1 else self.transform


def _have_same_values(mine: Sequence[pa.DataType], theirs: Sequence[pa.DataType]) -> bool:
    return len(mine) == len(theirs) and all(map(_hash_alike, mine, theirs))


def _are_computed_alike(left: pa.DataType, right: pa.DataType) -> bool:
    """Whether an expression cannot tell values of both types apart."""
    are_numbers = is_number(left) and is_number(right)
    return bool(are_numbers or left == right)


def _are_date_and_timestamp(mine: Sequence[pa.DataType], theirs: Sequence[pa.DataType]) -> bool:
    if len(mine) != 1 or len(theirs) != 1:
        return False
    kinds = (mine[0], theirs[0])
    return any(map(pa.types.is_date, kinds)) and any(map(pa.types.is_timestamp, kinds))


def _hash_alike(left: pa.DataType, right: pa.DataType) -> bool:
    """Whether equal values of both types are the same bytes to a hash.

    That is so of all Arrow types of one type of Spark's: days are hashed, microseconds (of what
    has finer ones no row can be read), and bytes. Zoned and unzoned timestamps are equated in UTC
    only.
    """
    left, right = plain_type(left), plain_type(right)
    kinds = (pa.types.is_timestamp, pa.types.is_date, is_text, is_binary)
    if any(kind(left) and kind(right) for kind in kinds):
        return True
    if pa.types.is_decimal(left) and pa.types.is_decimal(right):
        return bool(left.scale == right.scale)
    are_integers = pa.types.is_integer(left) and pa.types.is_integer(right)
    return bool(left == right or are_integers)
