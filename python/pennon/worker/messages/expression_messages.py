"""The expressions in the operators of a query, made of what the JVM says of them.

A text is Spark SQL over columns named ``c<attribute>``; one that is None could not be written.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import pyarrow as pa

from pennon.catalog.columns.spark_types import arrow_type
from pennon.errors import PennonError
from pennon.leaf.schema.promotion import stream_type
from pennon.plan import AggregateCall, Output, SortKey, WindowCall, WindowFrame
from pennon.predicate.spark_expression import SparkExpression

# By the names of Spark's classes: in SQL some of them have several.
_FUNCTIONS: Mapping[str, str] = MappingProxyType(
    {
        "Min": "min",
        "Max": "max",
        "MinBy": "min_by",
        "MaxBy": "max_by",
        "BitAndAgg": "bit_and",
        "BitOrAgg": "bit_or",
        "BitXorAgg": "bit_xor",
        "VarianceSamp": "var_samp",
        "VariancePop": "var_pop",
        "StddevSamp": "stddev_samp",
        "StddevPop": "stddev_pop",
        "Corr": "corr",
        "CovSample": "covar_samp",
        "CovPopulation": "covar_pop",
        "Percentile": "percentile",
        "PercentileReversed": "percentile_reversed",
    }
)


@dataclass(frozen=True, slots=True)
class SortKeyMessage:
    """What rows are ordered by, and how."""

    text: str | None
    ascending: bool
    nulls_first: bool


@dataclass(frozen=True, slots=True)
class AggregateCallMessage:
    """A function of an aggregate; ``others`` are its arguments behind the first one."""

    attribute: int
    name: str
    argument: str | None
    argument_type: object
    type: object
    others: tuple[str | None, ...]

    def call(self) -> AggregateCall:
        """Make the call."""
        name = _FUNCTIONS.get(self.name, self.name)
        value = SparkExpression(self.argument, type_of(self.argument_type))
        others = expressions_of(self.others)
        return AggregateCall(self.attribute, name, value, type_of(self.type), others)


@dataclass(frozen=True, slots=True)
class FrameMessage:
    """The rows that a function over a window sees, in Spark's words."""

    unit: str
    lower: str
    upper: str


@dataclass(frozen=True, slots=True)
class WindowCallMessage:
    """A function over the rows of a window; the name is None where it is not known."""

    attribute: int
    name: str | None
    ignores_nulls: bool
    arguments: tuple[str | None, ...]
    frame: FrameMessage | None
    type: object

    def call(self) -> WindowCall:
        """Make the call."""
        ends = self.frame
        frame = None if ends is None else WindowFrame(ends.unit, ends.lower, ends.upper)
        arguments = expressions_of(self.arguments)
        return WindowCall(
            self.attribute, self.name, arguments, frame, type_of(self.type), self.ignores_nulls
        )


def outputs_of(outputs: Sequence[Any]) -> tuple[Output, ...]:
    """Make columns, each of an attribute, a text and a type."""
    return tuple(
        Output(number, SparkExpression(text, type_of(data_type)))
        for number, text, data_type in outputs
    )


def condition_of(text: str | None) -> SparkExpression:
    """Make a condition."""
    return SparkExpression(text, pa.bool_())


def expressions_of(
    texts: Iterable[str | None], data_type: pa.DataType | None = None
) -> tuple[SparkExpression, ...]:
    """Make expressions of one type, or of types that the JVM does not state."""
    return tuple(SparkExpression(text, data_type) for text in texts)


def order_of(order: Iterable[SortKeyMessage]) -> tuple[SortKey, ...]:
    """Make an order."""
    return tuple(
        SortKey(SparkExpression(key.text), key.ascending, key.nulls_first) for key in order
    )


def type_of(data_type: object) -> pa.DataType | None:
    """Make the type of a column; None where the workers compute with none such."""
    try:
        made = stream_type(arrow_type(data_type, "a column"))
    except PennonError:
        return None
    return None if pa.types.is_time(made) else made
