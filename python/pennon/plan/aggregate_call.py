"""The functions over the rows of a group."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import exp

if TYPE_CHECKING:
    import pyarrow as pa

    from pennon.predicate.spark_expression import SparkExpression


@dataclass(frozen=True, slots=True)
class AggregateCall:
    """``sum``, ``count``, ``min``, ``max``, ``bit_and``, a variance, ``corr``, and the like.

    Args:
        output: Attribute of the result.
        name: The function; ``count_distinct`` and ``sum_distinct`` are of different values.
        argument: Its argument.
        type: Type of the result; None if unknown.
        others: Its other arguments.
    """

    output: int
    name: str
    argument: SparkExpression
    type: pa.DataType | None
    others: tuple[SparkExpression, ...] = ()

    @property
    def counts_rows(self) -> bool:
        """Whether it is ``count(*)``, which Spark writes as a count of ones."""
        counted = self.argument.tree
        return self.name == "count" and isinstance(counted, exp.Literal) and counted.this == "1"

    @property
    def is_distinct(self) -> bool:
        """Whether the parts of a group give the whole's result by their values only."""
        return self.name in ("count_distinct", "sum_distinct")
