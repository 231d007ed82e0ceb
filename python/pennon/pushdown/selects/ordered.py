"""The first rows by an order, and those after them.

Each task gives its own first rows, and Spark takes the first of these. So both orders must agree:
floats have one zero and one NaN, and an order by binary values is declined.

NULL rules: those of the order, which says where NULLs stand.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from sqlglot import exp

from pennon.plan import Limit, Offset, Project, children_of
from pennon.plan.operator_names import name_of
from pennon.predicate.expressions.floats.float_order import comparable
from pennon.predicate.expressions.typed_expression import typed_expression
from pennon.predicate.semantics import Declined
from pennon.predicate.typed import enclosed
from pennon.pushdown.selects.selected import (
    Selected,
    named,
    quoted_columns,
    random_column,
    selected_from,
    varying,
    whole_number,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pennon.plan import PlanNode, SortKey
    from pennon.predicate.semantics import Semantics

# The number of a row by the order.
_NUMBER: Final = "o"


def ordered_by(
    keys: Sequence[SortKey], columns: Mapping[str, pa.DataType], semantics: Semantics
) -> list[exp.Ordered]:
    """Write the keys of an order as Spark orders by them.

    Args:
        keys: The keys, the first of them first.
        columns: The types of the columns that they are over.
        semantics: The session's.

    Raises:
        Declined: One of them is not known to be computed, or ordered, as Spark does.
    """
    values = [typed_expression(key.value, columns, semantics) for key in keys]
    for value in values:
        if pa.types.is_binary(value.type) or pa.types.is_null(value.type):
            raise Declined(why=f"an order of {value.type}")
    return [
        exp.Ordered(
            this=enclosed(comparable(value)),
            desc=not key.is_ascending,
            nulls_first=key.is_nulls_first,
        )
        for key, value in zip(keys, values, strict=True)
    ]


def first_rows(
    position: int,
    keys: Sequence[exp.Ordered],
    count: int | None,
    skipped: int,
    below: Selected,
) -> Selected:
    """Cut rows off, by an order or any of them.

    Rows are left out by their number, for DataFusion 54 forgets an order below an OFFSET.

    Args:
        position: Makes the names in it unique.
        keys: The order; none where any rows will do.
        count: The most rows, those left out among them; None for all.
        skipped: How many of the first ones are left out.
        below: What is cut.
    """
    types = below.types
    columns = [*types]
    if keys:
        below = _with_columns_of(keys, below, f"k{position}")
    if skipped:
        columns += [key.this.name for key in keys]
    select = selected_from(below, f"t{position}", quoted_columns(columns))
    if count is not None:
        select = select.order_by(*keys, copy=False) if keys else select
        select = select.limit(count, copy=False)
    if not skipped:
        return Selected(select, types)
    order = exp.Order(expressions=[key.copy() for key in keys])
    number = named(exp.Window(this=exp.RowNumber(), order=order), _NUMBER)
    rows = Selected(select, {})
    numbered = selected_from(rows, f"t{position}n", [*quoted_columns(types), number])
    select = selected_from(Selected(numbered, {}), f"t{position}s", quoted_columns(types))
    is_later = exp.GT(this=exp.column(_NUMBER, quoted=True), expression=whole_number(skipped))
    return Selected(select.where(is_later, copy=False), types)


@dataclass(frozen=True, slots=True)
class Limits:
    """What the limits and offsets of a fragment say of the nodes below them.

    Args:
        below_whole: The nodes below a limit or an offset of all tasks together, which one task
            computes: it knows all rows, and so the first ones by an order.
        skipped: For the node that orders them, how many of the first rows are left out.
    """

    below_whole: frozenset[int]
    skipped: Mapping[int, int]

    @classmethod
    def of(cls, nodes: Sequence[PlanNode], root: int) -> Limits:
        """Find them at and below a node.

        Raises:
            Declined: There is no order below an offset: Spark leaves out any rows then.
        """
        below, skipped = set[int](), {}
        waiting = [(root, False)]
        while waiting:
            position, is_below = waiting.pop()
            node = nodes[position]
            if is_below:
                below.add(position)
            if isinstance(node, Offset):
                skipped[_order_below(nodes, node)] = node.count
            is_whole = isinstance(node, Offset) or (isinstance(node, Limit) and node.is_whole)
            waiting += [(child, is_below or is_whole) for child in children_of(node)]
        return cls(frozenset(below), skipped)


def _order_below(nodes: Sequence[PlanNode], offset: Offset) -> int:
    """Find the order that says which rows an offset leaves out; projections may stand between."""
    position = offset.child
    while isinstance(below := nodes[position], Project | Limit):
        if isinstance(below, Limit) and below.order:
            return position
        position = below.child
    raise Declined(why=name_of(offset))


def _with_columns_of(keys: Sequence[exp.Ordered], below: Selected, name: str) -> Selected:
    """Make a column of each key, which is ordered by then.

    DataFusion 54 refuses to merge what several threads have sorted by some conditions. Where a key
    is a constant of each input of a UNION, it compares the first rows of one by the other keys only
    with those of another.

    Args:
        keys: The keys, which become those columns.
        below: What is ordered.
        name: A name for it.
    """
    columns = quoted_columns(below.types)
    varied = Selected(selected_from(below, name, [*columns, random_column()]), {})
    computed = [named(varying(key.this), f"o{at}") for at, key in enumerate(keys)]
    for at, key in enumerate(keys):
        key.set("this", exp.column(f"o{at}", quoted=True))
    kept = [column.copy() for column in columns]
    return Selected(selected_from(varied, f"{name}y", [*kept, *computed]), below.types)
