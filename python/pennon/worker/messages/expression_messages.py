"""The expressions in the operators of a query, made of what the JVM says of them.

A text is Spark SQL over columns named ``c<attribute>``; one that is None could not be written.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
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
_IGNORES_NULLS = "_ignore_nulls"


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


def order_of(order: Sequence[Any]) -> tuple[SortKey, ...]:
    """Make an order; of each key a text, whether it ascends, whether NULLs are first."""
    return tuple(SortKey(SparkExpression(text), *directions) for text, *directions in order)


def aggregate_call(function: Any) -> AggregateCall:
    """Make a function of an aggregate: attribute, name, text, types, texts of other arguments."""
    number, name, argument, argument_type, data_type, *others = function
    function_name = _FUNCTIONS.get(name, name)
    value = SparkExpression(argument, type_of(argument_type))
    return AggregateCall(number, function_name, value, type_of(data_type), expressions_of(others))


def window_call(function: Any) -> WindowCall:
    """Make a function of a window: attribute, name, texts of arguments, frame, type.

    Behind the name stands whether it looks for values that are not NULL.
    """
    number, name, arguments, frame, data_type = function
    frame = WindowFrame(*frame) if frame else None
    plain = None if name is None else name.removesuffix(_IGNORES_NULLS)
    return WindowCall(
        number, plain, expressions_of(arguments), frame, type_of(data_type), plain != name
    )


def type_of(data_type: object) -> pa.DataType | None:
    """Make the type of a column; None where Pennon has none such."""
    try:
        return stream_type(arrow_type(data_type, "a column"))
    except PennonError:
        return None
