"""The interface of a partition transform, and the rules that all of them keep.

NULL rules: unless a transform says otherwise, NULL in gives NULL out, and only NULL gives NULL.
A comparison (``=``, ``<``, ``IN``, …) is never true for NULL, so the partition whose value is
NULL is dropped by every projected condition except that of IS NULL.

Inclusiveness: ``project_inclusive`` may keep a partition without matching rows, but never drops
one with a matching row. ``project_strict`` may miss, but where it is true every row of the
partition satisfies the comparison. Each may decline with None: "keep all", "never known". The
second is the first turned around: where no row can satisfy the negation, all rows that are not
NULL satisfy the comparison. So a transform writes ``project_values`` only.
"""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar

import pyarrow as pa
from sqlglot import exp

from pennon.predicate.comparison import Comparison, Operator
from pennon.predicate.condition import is_not_null, is_null, negation, one_of
from pennon.transforms.evaluation.source_array import from_scalars, plain_type

if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_ENUMERATED = 1000
"""How many source values are turned into partition values one by one."""


class Transform(ABC):
    """A partition transform: source values in, partition value out.

    Subclasses are frozen dataclasses whose fields are the transform's parameters.

    Spec: "Partition Transform".
    """

    __slots__ = ()

    type: ClassVar[str]
    """The specification's name of the transform."""

    def to_json(self) -> dict[str, object]:
        """Give the specification's transform object."""
        return {"type": self.type}

    @abstractmethod
    def expression(self, source_types: Sequence[pa.DataType]) -> str:
        """Give the derived DataFusion expression over ``col0``, ``col1``, ….

        Spec: "Supported Transforms".
        """

    @abstractmethod
    def result_type(self, source_types: Sequence[pa.DataType]) -> pa.DataType:
        """Give the type of the partition value.

        Raises:
            TransformOnWrongType: The transform does not take sources of these types.
        """

    def recorded_type(self, source_types: Sequence[pa.DataType]) -> pa.DataType:
        """Give the type of the values that any writer may have recorded.

        It is ``result_type``, except where other writers take sources that Pennon refuses.
        """
        return self.result_type(source_types)

    @abstractmethod
    def apply(self, sources: Sequence[pa.Array | pa.ChunkedArray]) -> pa.Array:
        """Compute the partition values of rows, in exactly ``result_type``."""

    @abstractmethod
    def sql(self, columns: Sequence[str]) -> str:
        """Spell the transform as a user types it: ``bucket(16, customer_id)``."""

    @abstractmethod
    def spark_function(self, source_types: Sequence[pa.DataType]) -> str | None:
        """Give the name of Spark's one-column function; None when Spark cannot express it."""

    def project_values(
        self, comparison: Comparison, column: exp.Column, source_type: pa.DataType
    ) -> exp.Expression | None:
        """Give the condition on the values that non-NULL rows with a true comparison can have.

        The condition has to be NULL for NULL; IS [NOT] NULL is not asked here.
        """
        del comparison, column, source_type
        return None

    def project_inclusive(
        self, comparison: Comparison, column: exp.Column, source_type: pa.DataType
    ) -> exp.Expression | None:
        """Rewrite a comparison on the source column into a condition on the partition column.

        Args:
            comparison: Operator and literals, the literals of ``source_type``.
            column: The manifest column, for example ``partition_field_event_day``.
            source_type: Arrow type of the one source column.

        Returns:
            The condition, or None when every partition has to be kept.

        Spec: "Partition Pruning".
        """
        if comparison.operator is Operator.IS_NULL:
            return is_null(column)
        if comparison.operator is Operator.IS_NOT_NULL:
            return is_not_null(column)
        values = self.project_values(comparison, column, source_type)
        return is_not_null(column) if values is None else values

    def project_strict(
        self, comparison: Comparison, column: exp.Column, source_type: pa.DataType
    ) -> exp.Expression | None:
        """Give a condition that is true only where every row satisfies the comparison.

        Args:
            comparison: Operator and literals, the literals of ``source_type``.
            column: The manifest column.
            source_type: Arrow type of the one source column.

        Returns:
            The condition, or None when partition values never decide the comparison.
        """
        operator = comparison.operator
        if operator.is_unary:
            return self.project_inclusive(comparison, column, source_type)
        opposite = Comparison(operator.negated, comparison.literals)
        failing = self.project_values(opposite, column, source_type)
        match failing:
            case None:
                return None
            case exp.Boolean():
                return None if failing.this else is_not_null(column)
            case _:
                return negation(failing)

    def project_bound(
        self,
        values: Sequence[Sequence[pa.Scalar]],
        column: exp.Column,
        source_types: Sequence[pa.DataType],
    ) -> exp.Expression | None:
        """Give the inclusive condition for rows whose source columns each have one of some values.

        Args:
            values: Per source column the values of its ``=`` or IN; a NULL scalar for IS NULL.
            column: The manifest column.
            source_types: Arrow types of the source columns.

        Returns:
            The condition, or None when there are more than 1,000 combinations.
        """
        if math.prod(len(choices) for choices in values) > MAX_ENUMERATED:
            return None
        rows = list(itertools.product(*map(_with_both_zeros, values)))
        if not rows:
            return exp.Boolean(this=False)
        columns = list(zip(*rows, strict=True))
        sources = [
            from_scalars(c, data_type) for c, data_type in zip(columns, source_types, strict=True)
        ]
        return one_of_values(column, self.apply(sources))

    def reduction_to(self, other: Transform, source_type: pa.DataType) -> bool:
        """Whether the partition value of ``other`` follows from this transform's value alone."""
        del source_type
        return self == other

    def reduce(self, values: pa.Array, other: Transform, source_type: pa.DataType) -> pa.Array:
        """Compute the values of ``other`` from this transform's values."""
        del other, source_type
        return values

    def value_of(self, literal: pa.Scalar, source_type: pa.DataType) -> pa.Scalar:
        """Compute the partition value of one source value."""
        return self.apply([from_scalars([literal], plain_type(source_type))])[0]


class MultiColumnTransform(Transform):
    """A transform whose sources count together only, so that Spark has no function for it.

    One comparison alone tells nothing of its values: `project_bound` does, where all its sources
    are bound.
    """

    __slots__ = ()

    def project_inclusive(
        self, comparison: Comparison, column: exp.Column, source_type: pa.DataType
    ) -> exp.Expression | None:
        """Give None: every partition has to be kept."""
        del comparison, column, source_type
        return None

    def project_strict(
        self, comparison: Comparison, column: exp.Column, source_type: pa.DataType
    ) -> exp.Expression | None:
        """Give None: the partition value never decides the comparison."""
        del comparison, column, source_type
        return None

    def spark_function(self, source_types: Sequence[pa.DataType]) -> str | None:
        """Give None: Spark's keys have one column, and functions of its own."""
        del source_types
        return None


def one_of_values(column: exp.Column, values: pa.Array) -> exp.Expression:
    """Write membership of the partition column in computed values, NULL among them."""
    distinct = [value for value in values.unique() if value.is_valid]
    if values.null_count == 0:
        return one_of(column, distinct)
    if not distinct:
        return is_null(column)
    return exp.Paren(this=exp.Or(this=one_of(column, distinct), expression=is_null(column)))


def _with_both_zeros(choices: Sequence[pa.Scalar]) -> list[pa.Scalar]:
    """Add -0.0 to 0.0: they are equal to a comparison but not to every expression."""
    both = list(choices)
    for scalar in choices:
        if pa.types.is_floating(scalar.type) and scalar.is_valid and scalar.as_py() == 0:
            both += [pa.scalar(0.0, scalar.type), pa.scalar(-0.0, scalar.type)]
    return both
