"""The ranges of attributes, by the statistics of the columns that they come from.

NULL rules: a range is that of the values that are not NULL; an outer join adds none to them.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from pennon.plan import (
    Expand,
    Filter,
    Group,
    Join,
    Limit,
    Offset,
    Pass,
    Project,
    Scan,
    Union,
    Window,
    children_of,
)
from pennon.predicate.expressions.value_ranges import ValueRange

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pennon.plan import PlanNode


def range_below(nodes: Sequence[PlanNode], position: int, column: str) -> ValueRange | None:
    """Find the range of a column of an operator's input, or of one of its inputs.

    Args:
        nodes: The plan.
        position: The operator's.
        column: The column's name in a query: ``c<attribute>``.
    """
    ranges = (known_range(nodes, side, int(column[1:])) for side in children_of(nodes[position]))
    return next(filter(None, ranges), None)


def known_range(nodes: Sequence[PlanNode], position: int, attribute: int) -> ValueRange | None:
    """Find the range of an attribute at an operator.

    Args:
        nodes: The plan.
        position: The operator's.
        attribute: It comes out of the operator.

    Returns:
        The range of the column that it is, in the partitions that are read; None where it is
        computed, or nothing is known.
    """
    source: int | None = attribute
    match nodes[position]:
        case Scan(columns=columns, bounds=bounds):
            names = [column.name for column in columns if column.id == attribute]
            stated = bounds(names[0]) if names else None
            return None if stated is None else ValueRange(*map(Fraction, stated))
        case Project(child=child, renamed=pairs) | Expand(child=child, columns=pairs):
            source = dict(pairs).get(attribute)
        case Group(child=child, columns=pairs):
            source = dict(pairs).get(attribute)
        case Window(child=child, outputs=outputs):
            source = None if any(output.id == attribute for output in outputs) else attribute
        case Filter(child=child) | Pass(child=child) | Limit(child=child) | Offset(child=child):
            pass
        case Join(left=left, right=right, join_type=join_type):
            given = (left, right) if join_type.gives_right else (left,)
            sides = [known_range(nodes, side, attribute) for side in given]
            return next(filter(None, sides), None)
        case Union(children=children, columns=outputs):
            sources = dict(outputs).get(attribute, ())
            ranges = [known_range(nodes, *below) for below in zip(children, sources, strict=False)]
            known = [one for one in ranges if one is not None]
            if not known or len(known) < len(children):
                return None
            return ValueRange(min(one.low for one in known), max(one.high for one in known))
        case _:
            return None
    return None if source is None else known_range(nodes, child, source)
