"""What every partition transform can do, and the rules that all of them keep.

NULL rules: unless a transform says otherwise, NULL in gives NULL out, and only NULL gives NULL.
A comparison (``=``, ``<``, ``IN``, …) is never true for NULL, so the partition whose value is
NULL is dropped by every projected condition except that of IS NULL.

Inclusiveness: ``project_inclusive`` may keep a partition without matching rows, but never drops
one with a matching row. ``project_strict`` may miss, but where it is true every row of the
partition satisfies the comparison. Each may decline with None: "keep all", "never known".
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa
    from sqlglot import exp

    from pennon.predicate.comparison import Comparison


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

    @abstractmethod
    def apply(self, sources: Sequence[pa.Array | pa.ChunkedArray]) -> pa.Array:
        """Compute the partition values of rows, in exactly ``result_type``."""

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
        """
        del comparison, column, source_type

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
        del comparison, column, source_type

    @abstractmethod
    def sql(self, columns: Sequence[str]) -> str:
        """Spell the transform as a user types it: ``bucket(16, customer_id)``."""

    @abstractmethod
    def spark_function(self, source_types: Sequence[pa.DataType]) -> str | None:
        """Give the name of Spark's one-column function; None when Spark cannot express it."""

    def reduction_to(self, other: Transform, source_type: pa.DataType) -> bool:
        """Whether the partition value of ``other`` follows from this transform's value alone."""
        del source_type
        return self == other

    def reduce(self, values: pa.Array, other: Transform, source_type: pa.DataType) -> pa.Array:
        """Compute the values of ``other`` from this transform's values."""
        del other, source_type
        return values
