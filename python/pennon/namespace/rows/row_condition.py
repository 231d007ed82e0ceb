"""Refuses conditions on rows that Python does not compute, whether there are rows or not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pennon.errors import PredicateNotEvaluable
from pennon.planning.binding.bound_predicate import not_evaluable
from pennon.planning.scan_plan import bound_condition
from pennon.predicate.dialect import DataFusion
from pennon.predicate.parse import parse_predicate

if TYPE_CHECKING:
    from pennon.manifest import Snapshot
    from pennon.planning.binding.bound_predicate import BoundPredicate

__all__ = ["check_condition", "check_evaluable"]


def check_condition(snapshot: Snapshot, where: str) -> None:
    """Refuse a condition before anything is done by it; as ``check_evaluable``.

    Args:
        snapshot: The table.
        where: Spark SQL.

    Raises:
        PredicateNotEvaluable: As of ``check_evaluable``.
        PredicateSyntaxError: It is no expression.
        UnknownColumn: It names a column that the table does not have.
    """
    bound = bound_condition(snapshot, [parse_predicate(where)], time_zone="UTC")
    check_evaluable(bound, snapshot.location)


def check_evaluable(predicate: BoundPredicate, location: str) -> None:
    """Refuse a predicate that is not understood, whether there is a row to ask of or not.

    Args:
        predicate: What rows shall satisfy.
        location: The table, for the error.

    Raises:
        PredicateNotEvaluable: A part of it is no condition on a row, as an aggregate is none, or
            DataFusion may compute it otherwise than Spark.
    """
    unknown = not_evaluable(predicate)
    if unknown is not None:
        raise PredicateNotEvaluable(
            predicate=unknown.expression.sql(dialect=DataFusion),
            namespace=location,
            reason=f"it is not known that DataFusion computes it as Spark does ({unknown.why})",
        )
