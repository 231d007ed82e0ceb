"""The result of resolving one operator: an immutable value that its parent uses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import TYPE_CHECKING

from pennon.grouping.resolve.meeting_functions import shared_functions
from pennon.grouping.resolve.offered_partitioning import PartitionExpression, Partitioning
from pennon.grouping.resolve.settled_groups import SettledGroup, settled
from pennon.grouping.resolve.verdict import Verdict, grouping_verdict
from pennon.plan import Plan, Scan

if TYPE_CHECKING:
    Columns = Sequence[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class ResolvedNode:
    """What is known at a node, of all at and below it.

    Args:
        offered: The partitioning of its rows; None for none.
        settled: Groups that end at or below it.
        verdicts: What was found at each join, aggregate and window.
        stays_left: For each join of which one side is shuffled onto the other, whether the left
            one stays.
        num_shuffled_bytes: Bytes read below what is shuffled.
    """

    offered: Partitioning | None = None
    settled: tuple[SettledGroup, ...] = ()
    verdicts: Mapping[int, Verdict] = field(default_factory=dict)
    stays_left: Mapping[int, bool] = field(default_factory=dict)
    num_shuffled_bytes: int = 0

    def judged(self, position: int, verdict: Verdict) -> ResolvedNode:
        """Add what was found at a node."""
        return replace(self, verdicts={**self.verdicts, position: verdict})

    def shuffling(self, num_bytes: int) -> ResolvedNode:
        """Add bytes that are shuffled."""
        return replace(self, num_shuffled_bytes=self.num_shuffled_bytes + num_bytes)


def united(children: Sequence[ResolvedNode]) -> ResolvedNode:
    """Put together what is known of several inputs; it offers nothing yet."""
    return ResolvedNode(
        None,
        tuple(group for child in children for group in child.settled),
        {at: verdict for child in children for at, verdict in child.verdicts.items()},
        {at: stays for child in children for at, stays in child.stays_left.items()},
        sum(child.num_shuffled_bytes for child in children),
    )


def ended(
    plan: Plan, children: Sequence[ResolvedNode], keeping: ResolvedNode | None = None
) -> ResolvedNode:
    """End what the inputs offer, but what one of them does, which goes on."""
    ending = [child.offered for child in children if child is not keeping and child.offered]
    groups = tuple(group for partitioning in ending for group in settled(plan, partitioning))
    both = united(children)
    offered = None if keeping is None else keeping.offered
    return replace(both, offered=offered, settled=(*both.settled, *groups))


def scanned(position: int, scan: Scan) -> ResolvedNode:
    """Resolve a scan: it offers what is constant within each of its partitions."""
    expressions = tuple(
        PartitionExpression(
            function.grouping,
            tuple(scan.attributes.get(source, frozenset()) for source in function.source_ids),
            {position: function.source_ids},
        )
        for function in (scan.layout.functions if scan.layout else ())
        if function.grouping.is_constant_for_spark
    )
    return ResolvedNode(Partitioning(expressions) if expressions else None)


def grouped(
    plan: Plan, position: int, child: ResolvedNode, keys: frozenset[int], columns: Columns | None
) -> ResolvedNode:
    """Resolve an aggregate or, without ``columns``, a window.

    It requires that rows with equal keys are in one partition: every expression of the keys alone
    satisfies that.
    """
    operator = "window" if columns is None else "aggregate"
    offered = child.offered
    satisfying = offered.satisfied_grouping(keys) if offered else ()
    verdict = grouping_verdict(plan, operator, offered, satisfying)
    if offered is None or not satisfying:
        (below,) = plan.children(position)
        return ended(plan, [child]).shuffling(plan.num_read(below)[0]).judged(position, verdict)
    groupings = (*offered.groupings, position)
    narrowed = replace(offered, expressions=satisfying, groupings=groupings, parts=())
    above = narrowed if columns is None else narrowed.above_projection(columns)
    return replace(child, offered=above).judged(position, verdict)


def carried(
    plan: Plan, position: int, children: Sequence[ResolvedNode], columns: Sequence[Columns]
) -> ResolvedNode:
    """Resolve a union or an expansion: it offers what all its inputs are partitioned by."""
    above = [
        child.offered.above_projection(own).expressions if child.offered else ()
        for child, own in zip(children, columns, strict=True)
    ]
    expressions = computable(plan, reduce(shared_functions, above))
    if not expressions:
        return ended(plan, children)
    parts = tuple(child.offered for child in children if child.offered is not None)
    offered = Partitioning(
        expressions,
        tuple(join for part in parts for join in part.joins),
        tuple(grouping for part in parts for grouping in part.groupings),
        (*(carrier for part in parts for carrier in part.carriers), position),
        parts,
    )
    return replace(united(children), offered=offered)


def computable(
    plan: Plan, expressions: Sequence[PartitionExpression]
) -> tuple[PartitionExpression, ...]:
    """Leave out what Spark would have to compute for a member and cannot."""
    return tuple(
        expression
        for expression in expressions
        if expression.function.is_known_to_jvm
        or all(isinstance(plan[member], Scan) for member in expression.sources)
    )
