"""What people know an operator by."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pennon.plan.nodes import Limit, Offset, Opaque, Pass

if TYPE_CHECKING:
    from pennon.plan.nodes import PlanNode


def name_of(node: PlanNode) -> str:
    """Name an operator that stays in Spark.

    Example:
        >>> name_of(Opaque((0,), "Range")), name_of(Pass(0, "explode"))
        ('the operator Range', 'the operator explode')
    """
    match node:
        case Opaque(children=(), name=name) if name:
            return f"rows of no table of Pennon ({name})"
        case Opaque(name=name) | Pass(name=name) if name:
            return f"the operator {name}"
        case Offset():
            return "OFFSET of rows without an order"
        case Limit():
            return "the first rows by an order, within a query of several tasks"
    return "an operator that stays in Spark"
