"""bucket and multi_bucket: rows spread over N buckets by their hash.

NULL rules: ``bucket`` is NULL for NULL only; ``multi_bucket`` skips NULL columns and is NULL only
where all of them are NULL. The absolute value is taken in 64 bits, so -2³¹ has a bucket.

Spec: "Supported Transforms", "Hash Functions".
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pyarrow as pa
from sqlglot import exp

from pennon.errors import InvalidTransform
from pennon.predicate.condition import Operator, is_not_null
from pennon.transforms.evaluation import from_scalars, plain_type, with_nulls_of
from pennon.transforms.murmur3 import check_hashable, murmur3_multi
from pennon.transforms.transform import (
    MultiColumnTransform,
    SizedTransform,
    Transform,
    one_of_values,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pennon.predicate.condition import Comparison

_MAX_BUCKETS = 2**31 - 1


class HashBuckets(SizedTransform):
    """What the two bucket transforms share."""

    __slots__ = ()

    survives_widening = True
    prunes_by_bound_values = True
    size_name = "num_buckets"
    num_buckets: int

    @property
    def size(self) -> int:
        """The number of buckets."""
        return self.num_buckets

    @property
    def buckets(self) -> int | None:
        """The number of buckets."""
        return self.num_buckets

    @property
    def name_suffix(self) -> str:
        """``_bucket`` for both."""
        return "_bucket"

    def check_buckets(self) -> None:
        """Refuse a number of buckets that cannot be."""
        if not 1 <= self.num_buckets <= _MAX_BUCKETS:
            raise InvalidTransform(
                transform=self.type,
                actual=f"{self.num_buckets} buckets",
                expected="a whole number from 1 to 2147483647",
                form=self.form(self.type),
            )

    def result_type(self, source_types: Sequence[pa.DataType]) -> pa.DataType:
        """Give int32."""
        for data_type in source_types:
            check_hashable(data_type, f"{self.type}({self.num_buckets}, …)")
        return pa.int32()

    def apply(self, sources: Sequence[pa.Array | pa.ChunkedArray]) -> pa.Array:
        """Compute the bucket of every row."""
        data_type = self.result_type([source.type for source in sources])
        hashes = murmur3_multi(sources)
        absolute = np.abs(hashes.fill_null(0).to_numpy().astype(np.int64))
        return with_nulls_of(absolute % self.num_buckets, hashes, data_type)

    def reduction_to(self, other: Transform, source_type: pa.DataType) -> bool:
        """Whether the other's number of buckets divides this one's."""
        del source_type
        return (
            isinstance(other, HashBuckets)
            and other.type == self.type
            and self.num_buckets % other.num_buckets == 0
        )

    def reduce(self, values: pa.Array, other: Transform, source_type: pa.DataType) -> pa.Array:
        """Compute ``bucket % m``, which is ``abs(hash) % m`` when m divides the buckets."""
        del source_type
        assert isinstance(other, HashBuckets)  # noqa: S101 (reduction_to was asked)
        buckets = values.fill_null(0).to_numpy(zero_copy_only=False)
        return with_nulls_of(buckets % other.num_buckets, values, pa.int32())

    def reduced_column(self, other: Transform, column: exp.Column) -> exp.Expression | None:
        """Compute ``bucket % m``."""
        if self == other or not isinstance(other, HashBuckets):
            return super().reduced_column(other, column)
        if not self.reduction_to(other, pa.null()):
            return None
        divisor = exp.Literal.number(other.num_buckets)
        return exp.Paren(this=exp.Mod(this=column.copy(), expression=divisor))

    def coarser_of_both(self, other: Transform, source_type: pa.DataType) -> Transform | None:
        """Give the greatest common divisor of buckets; one bucket would hold everything."""
        if not isinstance(other, HashBuckets) or other.type != self.type:
            return super().coarser_of_both(other, source_type)
        divisor = math.gcd(self.num_buckets, other.num_buckets)
        return self.of_size(divisor) if divisor > 1 else None


@dataclass(frozen=True, slots=True)
class Bucket(HashBuckets):
    """Partition by the hash of one column.

    Example:
        >>> Bucket(16).sql(["customer_id"])
        'bucket(16, customer_id)'

    Spec: "Supported Transforms".
    """

    type: ClassVar[str] = "bucket"
    num_buckets: int

    def __post_init__(self) -> None:
        self.check_buckets()

    @classmethod
    def form(cls, name: str) -> str:
        """Show the number and the column."""
        return f"{name}(16, column)"

    @classmethod
    def from_sql(cls, name: str, literals: Sequence[object], num_columns: int) -> Transform:
        """Take several columns as those of a multi_bucket."""
        size = cls.size_of(name, literals)
        return MultiBucket(size) if num_columns > 1 else Bucket(size)

    @property
    def spark_literals(self) -> tuple[int, ...]:
        """The number of buckets."""
        return (self.num_buckets,)

    def expression(self, source_types: Sequence[pa.DataType]) -> str:
        """Give the derived expression, its absolute value in 64 bits."""
        del source_types
        return f"abs(CAST(murmur3(col0) AS BIGINT)) % {self.num_buckets}"

    def project_values(
        self, comparison: Comparison, column: exp.Column, source_type: pa.DataType
    ) -> exp.Expression | None:
        """Project equality; order means nothing to a hash."""
        if comparison.operator not in (Operator.EQUAL, Operator.IN):
            return None
        literals = from_scalars(comparison.literals, plain_type(source_type))
        return one_of_values(column, self.apply([literals]))

    def spark_function(self, source_types: Sequence[pa.DataType]) -> str | None:
        """Give ``bucket``; Spark has times in another unit than the one that is hashed."""
        return None if pa.types.is_time(plain_type(source_types[0])) else "bucket"


@dataclass(frozen=True, slots=True)
class MultiBucket(MultiColumnTransform, HashBuckets):
    """Partition by the hash of several columns.

    Example:
        >>> MultiBucket(16).sql(["a", "b"])
        'multi_bucket(16, a, b)'

    Spec: "Supported Transforms".
    """

    type: ClassVar[str] = "multi_bucket"
    num_buckets: int

    def __post_init__(self) -> None:
        self.check_buckets()

    @classmethod
    def form(cls, name: str) -> str:
        """Show the number and two columns."""
        return f"{name}(16, column, column)"

    @property
    def sql_name(self) -> str:
        """``bucket``, which is Spark's name for any number of columns."""
        return "bucket"

    def sql(self, columns: Sequence[str]) -> str:
        """Spell the call by the specification's name."""
        return f"{self.type}({', '.join([str(self.num_buckets), *columns])})"

    def of_one_column(self) -> Transform:
        """Give the bucket that it is of a single column."""
        return Bucket(self.num_buckets)

    def project_inclusive(
        self, comparison: Comparison, column: exp.Column, source_type: pa.DataType
    ) -> exp.Expression | None:
        """Leave out the NULL bucket, whose columns are all NULL; IS NULL alone tells nothing."""
        del source_type
        return None if comparison.operator is Operator.IS_NULL else is_not_null(column)

    def expression(self, source_types: Sequence[pa.DataType]) -> str:
        """Give the derived expression, its absolute value in 64 bits."""
        columns = ", ".join(f"col{position}" for position in range(len(source_types)))
        return f"abs(CAST(murmur3_multi({columns}) AS BIGINT)) % {self.num_buckets}"

    def project_strict(
        self, comparison: Comparison, column: exp.Column, source_type: pa.DataType
    ) -> exp.Expression | None:
        """Give a condition for IS NULL alone: a NULL bucket has only NULLs."""
        del source_type
        if comparison.operator is Operator.IS_NULL:
            return exp.Is(this=column.copy(), expression=exp.Null())
        return None
