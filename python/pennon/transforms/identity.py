"""identity: the source value itself.

NULL rules: NULL stays NULL. -0.0 is stored as 0.0 and every NaN as the one NaN, since they are
equal as partition values; conditions find both zeros, as other writers may have stored -0.0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pennon.errors import TransformOnWrongType
from pennon.predicate.condition import Operator, condition
from pennon.predicate.values.time_units import is_text
from pennon.transforms.epoch import Epoch, EpochUnit
from pennon.transforms.evaluation import plain_array, plain_type
from pennon.transforms.transform import Transform

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlglot import exp

    from pennon.predicate.condition import Comparison


@dataclass(frozen=True, slots=True)
class Identity(Transform):
    """Partition by the value of a column.

    Example:
        >>> Identity().sql(["country"])
        'country'

    Spec: "Supported Transforms".
    """

    type: ClassVar[str] = "identity"
    is_identity: ClassVar[bool] = True
    keeps_type: ClassVar[bool] = True
    survives_widening: ClassVar[bool] = True
    has_monotone_values: ClassVar[bool] = True

    @property
    def name_suffix(self) -> str:
        """Nothing: the field is called as its column."""
        return ""

    def expression(self, source_types: Sequence[pa.DataType]) -> str:
        """Give the derived DataFusion expression."""
        del source_types
        return "col0"

    def result_type(self, source_types: Sequence[pa.DataType]) -> pa.DataType:
        """Give the type of the source."""
        (data_type,) = source_types
        if pa.types.is_nested(data_type):
            raise TransformOnWrongType(
                transform="identity",
                type=data_type,
                allowed="every type that has no fields or items",
            )
        return plain_type(data_type)

    def apply(self, sources: Sequence[pa.Array | pa.ChunkedArray]) -> pa.Array:
        """Give the values, equal floats made identical."""
        (source,) = sources
        self.result_type([source.type])
        values = plain_array(source)
        if not pa.types.is_floating(values.type):
            return values
        zero, nan = pa.scalar(0, values.type), pa.scalar(np.nan, values.type)
        values = pc.if_else(pc.equal(values, zero), zero, values)
        return pc.if_else(pc.is_nan(values), nan, values)

    def project_values(
        self, comparison: Comparison, column: exp.Column, source_type: pa.DataType
    ) -> exp.Expression | None:
        """Ask the partition value itself."""
        prefixes = (Operator.STARTS_WITH, Operator.NOT_STARTS_WITH)
        if comparison.operator in prefixes and not is_text(plain_type(source_type)):
            return None  # DataFusion's starts_with takes strings only
        return condition(comparison, column)

    def project_strict(
        self, comparison: Comparison, column: exp.Column, source_type: pa.DataType
    ) -> exp.Expression | None:
        """Ask the same: all rows of a partition have the same value."""
        if comparison.operator.is_unary:
            return condition(comparison, column)
        return self.project_values(comparison, column, source_type)

    def sql(self, columns: Sequence[str]) -> str:
        """Spell the column."""
        (column,) = columns
        return column

    def spark_function(self, source_types: Sequence[pa.DataType]) -> str | None:
        """Give the name under which the column itself is reported."""
        del source_types
        return "identity"

    def reduction_to(self, other: Transform, source_type: pa.DataType) -> bool:
        """Whether the other transform takes the column: the value is known."""
        try:
            other.result_type([source_type])
        except TransformOnWrongType:
            return False
        return True

    def reduce(self, values: pa.Array, other: Transform, source_type: pa.DataType) -> pa.Array:
        """Apply the other transform to the values."""
        return other.apply([values.cast(plain_type(source_type))])

    def of_midnights(self) -> Transform | None:
        """Give the days: the values themselves are of two types."""
        return Epoch(EpochUnit.DAYS)
