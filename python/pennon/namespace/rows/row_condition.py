"""Refuses a condition on rows before anything is done by it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pennon.planning.binding.bound_predicate import check_evaluable
from pennon.planning.scan_plan import bound_condition
from pennon.predicate.parse import parse_predicate

if TYPE_CHECKING:
    from pennon.manifest import Snapshot

__all__ = ["check_condition"]


def check_condition(snapshot: Snapshot, where: str, table: str) -> None:
    """Refuse a condition that Python does not compute, whether there are rows or not.

    Args:
        snapshot: The table.
        where: Spark SQL.
        table: What errors call it.

    Raises:
        PredicateNotEvaluable: As of ``check_evaluable``.
        PredicateSyntaxError: It is no expression.
        UnknownColumn: It names a column that the table does not have.
    """
    bound = bound_condition(snapshot, [parse_predicate(where)], time_zone="UTC")
    check_evaluable(bound, table)
