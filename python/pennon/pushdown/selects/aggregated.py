"""Writes the calls of an aggregate, each under a name that DataFusion tells from the others.

DataFusion names a call by its text without casts, and refuses two of one name: a sum of integers
beside their average, which adds them up as DOUBLEs. Arguments that differ in casts only are
columns of their own.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa
from sqlglot import exp

from pennon.predicate.dialect import DataFusion
from pennon.predicate.expressions.aggregates import (
    BITS,
    bits,
    extreme,
    extreme_pair,
    total,
)
from pennon.predicate.expressions.distributions import (
    CO_MOMENTS,
    MOMENTS,
    PERCENTILES,
    co_moment,
    moment,
    percentile,
)
from pennon.predicate.expressions.floats.float_order import comparable
from pennon.predicate.expressions.typed_expression import typed_expression
from pennon.predicate.semantics import Declined
from pennon.predicate.spark_expression import SparkExpression
from pennon.predicate.typed import Typed, stated_integer
from pennon.pushdown.selects.counted_together import counted_together, values_together
from pennon.pushdown.selects.selected import Selected, named, quoted_columns, selected_from

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pennon.plan import AggregateCall
    from pennon.predicate.semantics import Semantics


def aggregated(
    call: AggregateCall, columns: Mapping[str, pa.DataType], semantics: Semantics
) -> Typed:
    """Write one call of an aggregate function.

    Args:
        call: The function and its argument.
        columns: The types of the columns below.
        semantics: The session's.

    Raises:
        Declined: The function is not known to give Spark's result.
    """
    if call.counts_rows:
        return Typed(exp.Count(this=exp.Star()), pa.int64())
    if call.name in ("count", "count_distinct"):
        return _count(call, columns, semantics)
    if call.name in ("min_by", "max_by"):
        return _extreme_pair(call, columns, semantics)
    value = typed_expression(call.argument, columns, semantics)
    match call.name:
        case "min":
            return extreme(exp.Min, value)
        case "max":
            return extreme(exp.Max, value)
        case "sum":
            return total(value, semantics)
        case "sum_distinct":
            return total(value, semantics, is_distinct=True)
        case name if name in BITS:
            return bits(name, value)
        case name if name in MOMENTS:
            return moment(name, value)
        case name if name in CO_MOMENTS | PERCENTILES:
            return _of_two(call, value, columns, semantics)
    raise Declined(why=f"the aggregate function {call.name}")


def _count(call: AggregateCall, columns: Mapping[str, pa.DataType], semantics: Semantics) -> Typed:
    value = counted_together(call.argument, columns, semantics)
    if value is None:
        value = typed_expression(call.argument, columns, semantics)
    counted = value.tree
    if call.is_distinct:
        counted = exp.Distinct(expressions=[comparable(value)])
    return Typed(exp.Count(this=counted), pa.int64())


def _of_two(
    call: AggregateCall,
    value: Typed,
    columns: Mapping[str, pa.DataType],
    semantics: Semantics,
) -> Typed:
    other, *more = (typed_expression(argument, columns, semantics) for argument in call.others)
    if call.name in CO_MOMENTS:
        return co_moment(call.name, (value, other), semantics)
    if any(stated_integer(frequency) != 1 for frequency in more):
        raise Declined(why="a percentile of values that count several times")
    is_reversed = call.name == "percentile_reversed"
    return percentile(value, other, semantics, is_reversed=is_reversed)


def _extreme_pair(
    call: AggregateCall, columns: Mapping[str, pa.DataType], semantics: Semantics
) -> Typed:
    # A pair that a user compares may have no first value, and is the least one then.
    together = values_together(call.argument, columns, semantics)
    if together is None:
        raise Declined(why=f"a {call.name} of one value")
    is_counted, values = together
    return extreme_pair(exp.Max if call.name == "max_by" else exp.Min, is_counted, values)


def with_argument_columns(
    name: str,
    below: Selected,
    calls: Sequence[AggregateCall],
    semantics: Semantics,
    write: Callable[[AggregateCall, Mapping[str, pa.DataType]], Typed],
) -> tuple[Selected, list[AggregateCall]]:
    """Make columns of the arguments by which DataFusion would not tell calls from each other.

    Args:
        name: What the rows below are called.
        below: The rows.
        calls: The functions over them.
        semantics: The session's.
        write: Writes a function over columns.

    Returns:
        The rows with those columns, and the same functions over them.

    Raises:
        Declined: A function is not known to give Spark's result.
    """
    read = {call.output: call.argument.columns for call in calls if not call.counts_rows}
    users = Counter(read.values())
    texts: dict[str, str] = {}
    own: dict[str, Typed] = {}
    rewritten: list[AggregateCall] = []
    for call in calls:
        if call.output not in read or users[read[call.output]] == 1:
            rewritten.append(call)
            continue
        tree = write(call, below.types).tree
        text = _text(tree)
        if texts.setdefault(_text(_without_casts(tree)), text) == text:
            rewritten.append(call)
            continue
        column = f"v{call.output}"
        own[column] = typed_expression(call.argument, below.types, semantics)
        argument = SparkExpression.of_column(column, call.argument.type)
        rewritten.append(replace(call, argument=argument))
    if not own:
        return below, rewritten
    kept = quoted_columns(below.types)
    kept += [named(value.tree, column) for column, value in own.items()]
    types = {**below.types, **{column: value.type for column, value in own.items()}}
    return Selected(selected_from(below, name, kept), types), rewritten


def _without_casts(tree: exp.Expr) -> exp.Expr:
    holder = exp.Paren(this=tree.copy())
    for node in reversed(list(holder.find_all(exp.Cast, exp.Paren))):
        if node is not holder:
            node.replace(node.this)
    bare: exp.Expr = holder.this
    return bare


def _text(tree: exp.Expr) -> str:
    return tree.sql(dialect=DataFusion)
