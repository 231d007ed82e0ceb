"""Parts of plans by the texts of their expressions, as Spark states them."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from pennon.plan import AggregateCall, Expanded, Filter, Output, SortKey
from pennon.predicate.typed import SparkExpression


def output_of(attribute: int, text: str | None, data_type: pa.DataType | None) -> Output:
    return Output(attribute, SparkExpression(text, data_type))


def condition_of(text: str | None) -> SparkExpression:
    return SparkExpression(text, pa.bool_())


def where(child: int, text: str | None) -> Filter:
    return Filter(child, condition_of(text))


def sort_key_of(text: str | None, *, is_ascending: bool, is_nulls_first: bool) -> SortKey:
    return SortKey(SparkExpression(text), is_ascending, is_nulls_first)


def expanded_of(attribute: int, texts: Sequence[str], data_type: pa.DataType) -> Expanded:
    return Expanded(attribute, tuple(SparkExpression(text, data_type) for text in texts))


def call_of(
    attribute: int,
    name: str,
    text: str,
    result: pa.DataType,
    argument_type: pa.DataType | None = None,
) -> AggregateCall:
    return AggregateCall(attribute, name, SparkExpression(text, argument_type), result)
