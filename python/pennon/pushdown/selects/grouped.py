"""Writes an aggregate as one SELECT: its keys, then its functions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from sqlglot import exp

from pennon.plan import Group, Output, children_of
from pennon.predicate.expressions.aggregates import is_cut
from pennon.predicate.expressions.distributions import OF_WHOLE_GROUPS
from pennon.predicate.expressions.floats.float_order import comparable
from pennon.predicate.semantics import Declined
from pennon.predicate.typed import binary, integer, is_carried, opaque
from pennon.pushdown.selects.aggregated import with_argument_columns
from pennon.pushdown.selects.counted_together import counted_together
from pennon.pushdown.selects.selected import Selected, named, selected_from

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pennon.plan import AggregateCall, PlanNode
    from pennon.predicate.semantics import Semantics
    from pennon.predicate.typed import Typed

_ROWS: Final = "rows"


@dataclass(frozen=True, slots=True)
class Aggregate:
    """An aggregate, and how what stands in it is written.

    Args:
        keys: The grouping expressions and the attributes that they get.
        calls: The functions.
        write_call: Writes a function over columns of these types; raises ``Declined``.
        write_key: Writes a column that is computed of those; raises ``Declined``.
        is_over_groups: Whether there is another aggregate below.
    """

    keys: Sequence[Output]
    calls: Sequence[AggregateCall]
    write_call: Callable[[AggregateCall, Mapping[str, pa.DataType]], Typed]
    write_key: Callable[[Output, Mapping[str, pa.DataType]], Typed]
    is_over_groups: bool


def is_over_groups(nodes: Sequence[PlanNode], position: int) -> bool:
    """Whether there is an aggregate below a node."""
    return any(
        isinstance(nodes[child], Group) or is_over_groups(nodes, child)
        for child in children_of(nodes[position])
    )


def grouped(
    name: str, below: Selected, node: Aggregate, semantics: Semantics, *, is_merged: bool = False
) -> Selected:
    """Write the groups of rows.

    Args:
        name: What the rows are called.
        below: The rows.
        node: The aggregate.
        semantics: The session's.
        is_merged: Whether Spark merges the groups with those of other tasks.

    Raises:
        Declined: A part of it is not known to be computed as Spark does.
    """
    below, calls = with_argument_columns(f"{name}v", below, node.calls, semantics, node.write_call)
    types: dict[str, pa.DataType] = {}
    keys: list[exp.Expr] = []
    columns: list[exp.Expr] = []

    def add(output: int, tree: exp.Expr, data_type: pa.DataType) -> None:
        types[f"c{output}"] = data_type
        columns.append(named(tree, f"c{output}"))

    def add_key(output: int, value: Typed) -> None:
        # Of groups that a join has repeated DataFusion believes that their keys determine all
        # columns still, and groups by other columns than it is asked to.
        key = opaque(comparable(value)) if node.is_over_groups else comparable(value)
        keys.append(key.copy())
        add(output, key, value.type)

    for key in node.keys:
        value = node.write_key(key, below.types)
        if is_carried(value.type):
            raise Declined(why=f"groups by {value.type}")
        add_key(key.id, value)
    for call in calls:
        if call.is_distinct and is_merged:
            # Spark counts or sums the different values; a task reports each of its own once.
            together = counted_together(call.argument, below.types, semantics)
            key = Output(call.output, call.argument)
            add_key(call.output, together or node.write_key(key, below.types))
            continue
        if is_merged and call.name in OF_WHOLE_GROUPS:
            raise Declined(why=f"the {call.name} of a group that several tasks have")
        result = node.write_call(call, below.types)
        summed = (call.argument.type or result.type) if call.name == "sum" else None
        if is_merged and is_cut(summed) and not semantics.ansi:
            # Spark leaves out a part that is NULL, where the whole has to be NULL.
            raise Declined(why="sums of decimals of which a part would be NULL")
        add(call.output, result.tree, result.type)
    if not columns:
        # Spark leaves out the functions that nobody reads; their one row remains.
        columns.append(named(exp.Count(this=exp.Star()), _ROWS))
    select = selected_from(below, name, columns)
    if keys:
        select.group_by(*keys, copy=False)
    if keys and not any(isinstance(key, exp.Column) for key in keys):
        # DataFusion leaves out keys that are constants, and has one group of no rows then.
        rows = exp.Count(this=exp.Star())
        select.having(binary(exp.GT, rows, integer(0, pa.int64())), copy=False)
    return Selected(select, types)
