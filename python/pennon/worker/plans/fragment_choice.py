"""Chooses the parts of a query that the workers compute, for the reply to Spark's rule.

A part reports its key only where an operator above needs it, as a scan whose leaves are joined
already: each row has one column more for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING
from uuid import uuid4

from pennon.catalog.execution_options import ExecutionOptions
from pennon.execution.memory import executor_pool_bytes
from pennon.plan import Filter, Limit, Plan, Project
from pennon.predicate.semantics import Declined, is_utc_zone
from pennon.pushdown import FragmentMode, Semantics, choose, divide
from pennon.pushdown.whole_query import sooner_in_one, whole_query
from pennon.worker.plans.fragment_planner import ChosenFragment, FragmentPlanner

if TYPE_CHECKING:
    from pennon.grouping.resolve.key_group import DerivedKeys
    from pennon.grouping.tasks.task_target import TaskTarget
    from pennon.pushdown import Division
    from pennon.worker.messages.key_messages import DeriveKeys
    from pennon.worker.plans.plan_outline import DecodedPlan


@dataclass(frozen=True, slots=True)
class ChosenFragments:
    """The parts of a query that the workers compute.

    Args:
        fragments: They do not overlap.
        is_one_task: Whether the query is so small that all of it is one task.
        declined: For operators that an expression leaves to Spark, which expression.
    """

    fragments: tuple[ChosenFragment, ...] = ()
    is_one_task: bool = False
    declined: Mapping[int, str] = field(default_factory=dict)


def choose_fragments(
    request: DeriveKeys,
    decoded: DecodedPlan,
    keys: DerivedKeys,
    target: TaskTarget,
    *,
    may_report: bool = True,
) -> ChosenFragments:
    """Choose the fragments of a query; none where the session does not want any.

    Args:
        request: The rule's.
        decoded: The query.
        keys: The keys that it allows.
        target: What tasks should look like.
        may_report: Whether a fragment may report its key to what is around it.

    Raises:
        ExecutionUnknown: The session names neither the workers nor Spark.
        BytesUnknown: A limit that it states is no number of bytes.
    """
    options = ExecutionOptions.of_catalogs(decoded.catalogs, request.settings)
    if not (request.rewrites and options.in_workers):
        return ChosenFragments()
    if request.is_write:
        # What is written is distributed as the write wants it.
        options = replace(options, one_task_bytes=0, one_executor_bytes=0)
    query = _Query(request, decoded, keys, target, options)
    whole = query.as_a_whole()
    # Where one executor has all cores of the session, nothing is won by dividing a query.
    if whole is not None and request.parallelism <= request.slots:
        return ChosenFragments((whole,), is_one_task=True)
    divided = query.divided(may_report=may_report)
    if whole is not None and not _leaves_no_exchange(decoded.plan, divided.fragments):
        return ChosenFragments((whole,), is_one_task=True)
    return divided


def _leaves_no_exchange(plan: Plan, fragments: Sequence[ChosenFragment]) -> bool:
    """Whether a divided query leaves nothing to exchange: a sort, too, would compute it twice."""
    everything = set(plan.scans(len(plan) - 1))
    return any(
        candidate.query.all_scans == everything
        and candidate.mode is not FragmentMode.PARTIAL
        and all(isinstance(node, Filter | Project | Limit) for node in plan[candidate.root + 1 :])
        for candidate in (fragment.candidate for fragment in fragments)
    )


@dataclass(frozen=True, slots=True)
class _Query:
    """A query of the session, and what its fragments are chosen by."""

    request: DeriveKeys
    decoded: DecodedPlan
    keys: DerivedKeys
    target: TaskTarget
    options: ExecutionOptions
    query_id: str = field(default_factory=lambda: uuid4().hex)
    pool_bytes: int = field(default_factory=executor_pool_bytes)

    @property
    def semantics(self) -> Semantics:
        """Those of the session."""
        return Semantics(
            ansi=self.request.ansi,
            is_utc=is_utc_zone(self.request.time_zone),
            zone_offsets=self.request.zone_offsets,
            in_fragments=True,
        )

    @property
    def replicated_bytes(self) -> int:
        """The most that every task may read of a side of a join."""
        return min(self.options.replicated_bytes, self.pool_bytes)

    def as_a_whole(self) -> ChosenFragment | None:
        """Plan the query as one task of one executor; None where several are done sooner."""
        request, least_bytes = self.request, self.options.one_task_bytes
        sooner_bytes = sooner_in_one(least_bytes, request.slots, request.parallelism)
        most_bytes = int(min(self.options.one_executor_bytes, sooner_bytes))
        if least_bytes <= 0 or most_bytes <= least_bytes:
            return None
        as_one = whole_query(
            self.decoded.plan,
            self.keys,
            self.semantics,
            least_bytes=least_bytes,
            most_bytes=most_bytes,
            pool_bytes=self.pool_bytes,
            replicated_bytes=self.replicated_bytes,
        )
        if as_one is None:
            return None
        division, candidate = as_one
        with suppress(Declined):  # its parts are tried one by one
            return self.planner(division, request.slots).planned(candidate)
        return None

    def divided(self, *, may_report: bool) -> ChosenFragments:
        """Plan the parts of the query that tasks compute beside each other."""
        division = divide(
            self.decoded.plan,
            self.keys,
            self.semantics,
            one_task_bytes=self.options.one_task_bytes,
            replicated_bytes=self.replicated_bytes,
        )
        planned = self.planner(division).planned
        fragments, declined = choose(division, self.semantics, planned, may_report=may_report)
        inside = {position for fragment in fragments for position in fragment.candidate.positions}
        left = {at: why for at, why in declined.items() if at not in inside}
        return ChosenFragments(tuple(fragments), division.is_one_task, left)

    def planner(self, division: Division, num_threads: int = 1) -> FragmentPlanner:
        """Give the planner of a division's tasks."""
        return FragmentPlanner(
            division,
            self.semantics,
            self.decoded.scans,
            self.target,
            self.query_id,
            self.pool_bytes,
            num_threads,
        )
