"""Verdicts of ``explain_join``: why an operator shuffles or does not."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pennon.errors import PartitionExpressionFailed
from pennon.plan import Expand, Scan

if TYPE_CHECKING:
    from pennon.grouping.resolve.offered_partitioning import PartitionExpression, Partitioning
    from pennon.plan import PlanNode

_NOTHING = "no partitioning reaches this place"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What was found at a join, an aggregate or a window.

    Args:
        operator: ``join``, ``aggregate`` or ``window``.
        left: The partitioning of the input, of a join's left one.
        right: That of a join's right input, empty for other operators.
        common: The common reduction by which rows meet without a shuffle; empty when there is none.
        reason: Why there is none, in one sentence, or where the operator is computed instead.
        remedy: What would remove the shuffle, where something would.
    """

    operator: str
    left: str
    right: str
    common: str
    reason: str = ""
    remedy: str = ""

    def in_one_task(self) -> Verdict:
        """Judge an operator of a query that is one task: nothing is shuffled."""
        return replace(self, reason="the query is so small that it is one task", remedy="")

    def in_spark(self, expression: str) -> Verdict:
        """Judge an operator that the workers would compute, but for an expression.

        Example:
            >>> print(Verdict("join", "", "", "bucket(8, id)").in_spark("reverse").reason)
            Spark computes it, for the workers do not compute: reverse
        """
        why = f"Spark computes it, for the workers do not compute: {expression}"
        return replace(self, reason=f"{self.reason}; {why}" if self.reason else why)

    def in_worker(self) -> Verdict:
        """Judge an operator that the workers compute."""
        done = "joined" if self.operator == "join" else "aggregated"
        return replace(self, reason=f"{done} in the worker", remedy="")


def join_verdict(
    nodes: Sequence[PlanNode],
    left: Partitioning | None,
    right: Partitioning | None,
    common: Sequence[PartitionExpression],
    equated: Sequence[tuple[int, int]],
    *,
    is_one_sided: bool = False,
) -> Verdict:
    """Judge a join by what both sides offer and what they have in common.

    Args:
        nodes: The plan.
        left: What the left side offers.
        right: What the right side offers.
        common: The functions by which they meet.
        equated: The pairs of attributes that the join compares.
        is_one_sided: Whether they meet only because one side is shuffled onto the other.
    """
    left_text = _spelled(nodes, left.expressions if left else ())
    right_text = _spelled(nodes, right.expressions if right else ())
    if common and not is_one_sided:
        return Verdict("join", left_text, right_text, _spelled(nodes, common))
    reason, remedy = _why_not(nodes, left, right, equated)
    if is_one_sided:
        reason += ": one side is shuffled onto the other"
    return Verdict("join", left_text, right_text, _spelled(nodes, common, ""), reason, remedy)


def grouping_verdict(
    nodes: Sequence[PlanNode],
    operator: str,
    offered: Partitioning | None,
    satisfying: Sequence[PartitionExpression],
) -> Verdict:
    """Judge an aggregate or a window by the functions that its keys cover."""
    functions = offered.expressions if offered else ()
    spelled = _spelled(nodes, functions)
    if satisfying:
        return Verdict(operator, spelled, "", _spelled(nodes, satisfying))
    if not functions:
        return Verdict(
            operator, spelled, "", "", "its input is not partitioned, or was shuffled before"
        )
    columns = " or ".join(_columns(nodes, function) for function in functions)
    if offered is not None and any(
        isinstance(nodes[carrier], Expand) for carrier in offered.carriers
    ):
        reason = f"it does not group by {columns}, or not in all of its grouping sets"
        return Verdict(operator, spelled, "", "", reason, f"group by {columns} in all sets")
    reason = f"it does not group by {columns}"
    return Verdict(operator, spelled, "", "", reason, f"group by {columns} as well")


def not_comparable(
    nodes: Sequence[PlanNode], sides: Sequence[Partitioning | None], condition: str
) -> Verdict:
    """Judge a join whose condition equates no two columns as they are."""
    left, right = [_spelled(nodes, side.expressions if side else ()) for side in sides] or ("", "")
    return Verdict(
        "join",
        left,
        right,
        "",
        f"the condition {condition} equates no columns as they are",
        "compare the columns themselves, without casts and expressions, by = or <=>",
    )


def too_few_groups(num_groups: int, num_bytes: int, parallelism: int) -> tuple[str, str]:
    """Say why a key was declined although both sides have it, and what would remedy it.

    Example:
        >>> print(too_few_groups(2, 3 << 30, 8)[0])
        its 2 groups of 3.0 GiB would run as 2 tasks where 8 can run at once: a shuffle is faster
    """
    size = f"{num_bytes / (1 << 30):.1f} GiB"
    reason = (
        f"its {num_groups} groups of {size} would run as {num_groups} tasks where {parallelism} "
        "can run at once: a shuffle is faster"
    )
    return reason, "partition by more buckets or by a finer function"


def expression_fails(failure: PartitionExpressionFailed) -> tuple[str, str]:
    """Say that no key can be computed for a partition of one side, and what would remedy it.

    Args:
        failure: What the other side's expression came to for its values.

    Example:
        >>> of_text = PartitionExpressionFailed(expression="abs(col0)", types="string", reason="no")
        >>> print(expression_fails(of_text)[0])
        the expression abs(col0) fails for a partition of the other side: no
    """
    expression, why = failure.parameters["expression"], failure.parameters["reason"]
    reason = f"the expression {expression} fails for a partition of the other side: {why}"
    return reason, "leave out such values by a condition on the column"


def _why_not(
    nodes: Sequence[PlanNode],
    left: Partitioning | None,
    right: Partitioning | None,
    equated: Sequence[tuple[int, int]],
) -> tuple[str, str]:
    if left is None and right is None:
        return "neither side is partitioned, or both were shuffled before", ""
    if left is None or right is None:
        offered = right if left is None else left
        functions = offered.expressions if offered else ()
        at = 1 if left is None else 0
        if any(_is_compared(function, equated, at) for function in functions):
            return (
                "one side has no partitioning, and the key is not one that Spark can compute there",
                "partition the other side in the same way",
            )
        columns = " or ".join(_columns(nodes, function) for function in functions)
        return (
            f"the partitioned side's {columns} is not compared in the join condition",
            f"add {columns} to the join condition",
        )
    mine = [expression for expression in left.expressions if _is_compared(expression, equated, 0)]
    theirs = [
        expression for expression in right.expressions if _is_compared(expression, equated, 1)
    ]
    if mine and theirs:
        return _no_common_reduction(nodes, mine[0], theirs[0])
    missing = [*([] if mine else left.expressions), *([] if theirs else right.expressions)]
    columns = " or ".join(dict.fromkeys(_columns(nodes, expression) for expression in missing))
    return (
        f"the join condition does not compare {columns}",
        f"add {columns} to the join condition",
    )


def _no_common_reduction(
    nodes: Sequence[PlanNode], mine: PartitionExpression, theirs: PartitionExpression
) -> tuple[str, str]:
    pair = f"{_spelled(nodes, [mine])} and {_spelled(nodes, [theirs])}"
    left, right = mine.function.transform.buckets, theirs.function.transform.buckets
    if left is not None and right is not None and math.gcd(left, right) == 1:
        return (
            f"the bucket counts of {pair} have the greatest common divisor 1",
            "choose counts of which one divides the other",
        )
    return f"{pair} have no common reduction", "partition both sides by the same transform"


def _is_compared(
    expression: PartitionExpression, equated: Sequence[tuple[int, int]], side: int
) -> bool:
    compared = {pair[side] for pair in equated}
    return all(not compared.isdisjoint(attribute) for attribute in expression.attributes)


def _spelled(
    nodes: Sequence[PlanNode], functions: Sequence[PartitionExpression], nothing: str = _NOTHING
) -> str:
    if not functions:
        return nothing
    return ", ".join(
        function.function.transform.sql(_names(nodes, function.sources)) for function in functions
    )


def _columns(nodes: Sequence[PlanNode], expression: PartitionExpression) -> str:
    return " and ".join(_names(nodes, expression.sources))


def _names(nodes: Sequence[PlanNode], sources: Mapping[int, tuple[int, ...]]) -> list[str]:
    for member, source_ids in sources.items():
        node = nodes[member]
        if isinstance(node, Scan):
            return [f"{node.table}.{node.names.get(id_, id_)}" for id_ in source_ids]
    return ["?" for source in next(iter(sources.values()))]
