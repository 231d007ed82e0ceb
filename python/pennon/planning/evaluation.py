"""Decides who evaluates each predicate of a plan: partition values, leaf filters or Spark.

NULL rules: a row for which a predicate is NULL is dropped, as one for which it is FALSE.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from pennon.planning.binding.bound_predicate import (
    AllOf,
    AnyOf,
    BoundPredicate,
    Compared,
    conjuncts,
    is_exact,
)

if TYPE_CHECKING:
    from pennon.planning.scan_plan import ScanPlan

__all__ = ["Evaluation", "evaluations"]


class Evaluation(Enum):
    """What is known of the rows that a scan gives, for one of its predicates.

    ``BY_PARTITION_VALUES``: the values of the chosen partitions decide it, for all of their rows.
    ``BY_LEAVES``: it is a part of the filters on leaves, which evaluate it as Spark does.
    ``NONE``: there may be rows that do not satisfy it.
    """

    BY_PARTITION_VALUES = "partition values"
    BY_LEAVES = "leaves"
    NONE = "none"


def evaluations(plan: ScanPlan) -> tuple[Evaluation, ...]:
    """Tell of each predicate of a plan whether the rows of its scan satisfy it.

    A predicate of several conjuncts is evaluated where each of them is. Only comparisons count as
    evaluated in leaves: what is computed is evaluated by Spark again, wherever partition values do
    not decide it.

    Args:
        plan: A plan of ``plan_scan``.

    Returns:
        One for each of the ``given`` ones of the plan, in their order.

    Spec: "Partition Pruning", Appendix D.
    """
    parts = conjuncts(plan.bound)
    return tuple(_evaluation(plan, parts, conjuncts(condition)) for condition in plan.given)


def _evaluation(
    plan: ScanPlan, parts: tuple[BoundPredicate, ...], own: tuple[BoundPredicate, ...]
) -> Evaluation:
    # What was simplified away together with others is in neither list.
    if all(part in plan.decided for part in own):
        return Evaluation.BY_PARTITION_VALUES
    if all(
        part in plan.decided or (part in parts and is_exact(part) and _compares(part))
        for part in own
    ):
        return Evaluation.BY_LEAVES
    return Evaluation.NONE


def _compares(part: BoundPredicate) -> bool:
    match part:
        case AllOf(parts) | AnyOf(parts):
            return all(map(_compares, parts))
        case Compared():
            return True
    return False
