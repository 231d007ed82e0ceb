"""The functions over the rows of a window, and which rows each one sees."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

    from pennon.predicate.spark_expression import SparkExpression


@dataclass(frozen=True, slots=True)
class WindowFrame:
    """Which rows around one a function sees.

    Args:
        unit: ``ROWS``, or ``RANGE``: peers by the order come in together.
        lower: Where it begins, as Spark writes it: ``UNBOUNDED PRECEDING``, ``CURRENT ROW``, or a
            number of rows, a negative one before the row.
        upper: Where it ends.
    """

    unit: str
    lower: str
    upper: str

    @property
    def is_whole(self) -> bool:
        """Whether it is the whole partition."""
        return (self.lower, self.upper) == ("UNBOUNDED PRECEDING", "UNBOUNDED FOLLOWING")


@dataclass(frozen=True, slots=True)
class WindowCall:
    """A function over the rows of a window.

    Args:
        output: Attribute of the result.
        name: The function; None where it is not known.
        arguments: Its arguments.
        frame: The rows that it sees; None where it has a frame of its own.
        type: Type of the result; None if unknown.
        ignores_nulls: Whether it looks for values that are not NULL.
    """

    output: int
    name: str | None
    arguments: tuple[SparkExpression, ...]
    frame: WindowFrame | None
    type: pa.DataType | None
    ignores_nulls: bool = False

    @property
    def depends_on_ties(self) -> bool:
        """Whether rows that the order holds equal may get each other's results."""
        if self.name in ("rank", "dense_rank", "percent_rank", "cume_dist"):
            return False
        return self.frame is None or not (self.frame.is_whole or self.frame.unit == "RANGE")
