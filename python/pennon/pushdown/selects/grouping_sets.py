"""Computes grouping sets (ROLLUP, CUBE) of the groups of all their columns together.

Spark repeats each row for each set and groups them all. A group of any set consists of whole groups
of all columns, so the rows are grouped once, and only those groups are repeated and put together.

NULL rules: a column that a set leaves out is NULL there, and the number of the set, a key as well,
tells it from a NULL of the rows. Parts of a sum, an extreme or a count are NULL for nothing, and
are left out where they are put together; no group is without a count.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from sqlglot import exp

from pennon.plan import Expand, Expanded, Output
from pennon.predicate.expressions.aggregates import SUM_DIGITS, extreme, is_cut, total_of_parts
from pennon.predicate.spark_expression import SparkExpression
from pennon.predicate.typed import INTEGER_DIGITS, Typed, cast
from pennon.pushdown.selects.grouped import Aggregate

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from collections.abc import Set as AbstractSet

    from pennon.plan import AggregateCall

_IN_PARTS: Final = frozenset({"count", "sum", "min", "max"})
_BIGINT_DIGITS: Final = INTEGER_DIGITS[64]


@dataclass(frozen=True, slots=True)
class GroupingSets:
    """How grouping sets are computed in two steps.

    Args:
        finest: The groups of all columns that occur in a set.
        expand: Repeats each of these groups for each set.
        whole: Puts them together.
    """

    finest: Aggregate
    expand: Expand
    whole: Aggregate


def grouping_sets(
    node: Aggregate, expand: Expand, columns: Mapping[str, pa.DataType], *, ansi: bool
) -> GroupingSets | None:
    """Divide the aggregate over an expansion into two.

    Args:
        node: The aggregate.
        expand: The expansion below it.
        columns: The columns below the expansion, and their types.
        ansi: Whether the session is in ANSI mode, in which sums do not wrap.

    Returns:
        The two steps; None where a group cannot be put together of others.
    """
    outputs = {f"c{output.id}": output for output in expand.outputs or ()}
    used = [outputs.get(key.value.column or "") for key in node.keys]
    keys = [output for output in used if output is not None]
    sources = _sources(keys, columns)
    if len(keys) < len(node.keys) or not sources:
        return None
    kept = {
        name
        for name, output in outputs.items()
        if {value.column for value in output.values} == {name}
    }
    parts = [
        part
        for call in node.calls
        if (part := _part(call, kept & columns.keys(), ansi=ansi)) is not None
    ]
    if len(parts) < len(node.calls):
        return None
    finest = [Output.of_attribute(int(name[1:]), columns[name]) for name in sources]
    count = len(keys[0].values)
    carried = [
        Expanded(part.output, (SparkExpression.of_column(f"c{part.output}", part.type),) * count)
        for part in parts
    ]
    different = {output.id: output for output in keys}
    return GroupingSets(
        replace(node, keys=finest, calls=parts),
        Expand(expand.child, (), (*different.values(), *carried)),
        replace(node, write_call=_put_together, is_over_groups=True),
    )


def _sources(keys: Iterable[Expanded], columns: Mapping[str, pa.DataType]) -> tuple[str, ...]:
    """Name the columns that sets consist of; none where a set has another expression of one."""
    names: dict[str, None] = {}
    for value in (value for key in keys for value in key.values):
        name = value.column
        if name is not None and name in columns:
            names[name] = None
        elif value.columns != frozenset():
            return ()
    return tuple(names)


def _part(call: AggregateCall, columns: AbstractSet[str], *, ansi: bool) -> AggregateCall | None:
    """Compute a function of a part of a group; None where parts do not give the whole."""
    names = call.argument.columns
    if call.name not in _IN_PARTS or names is None or not names <= columns:
        return None
    kind = call.argument.type
    if call.name != "sum":
        return call
    if kind is None:
        return None
    if is_cut(kind):
        return None
    if kind == pa.int64() and ansi:
        # The sum of a part may be too large for a BIGINT where that of the whole is not.
        exact = pa.decimal128(_BIGINT_DIGITS, 0)
        return replace(
            call,
            argument=SparkExpression(cast(call.argument.stated_tree.copy(), exact), exact),
            type=pa.decimal128(_BIGINT_DIGITS + SUM_DIGITS, 0),
        )
    return call


def _put_together(call: AggregateCall, columns: Mapping[str, pa.DataType]) -> Typed:
    """Compute a function of the results for the parts of a group."""
    name = f"c{call.output}"
    part = Typed(exp.column(name, quoted=True), columns[name])
    if call.name in ("min", "max"):
        return extreme(exp.Min if call.name == "min" else exp.Max, part)
    return total_of_parts(part, call.type or part.type)
