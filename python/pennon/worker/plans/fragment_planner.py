"""Plans the tasks of a fragment: what each reads, and what Spark is told of them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING
from uuid import uuid4

import pyarrow as pa

from pennon.catalog.columns.projected_columns import with_field_ids
from pennon.catalog.configured_catalog import ExecutionOptions
from pennon.errors import FragmentFailed, MalformedMessage
from pennon.execution import Fragment, Relation
from pennon.execution.batches import row_bytes
from pennon.execution.engine_failures import VALUE_FAILURES
from pennon.execution.memory import executor_pool_bytes
from pennon.leaf.schema.reconciliation import stream_type
from pennon.plan import Filter, Group, Limit, Plan, PlanNode, Project, Scan
from pennon.planning import shortened_within, summary
from pennon.predicate.condition import Declined, is_utc_zone
from pennon.predicate.values.long_lists import with_short_lists
from pennon.pushdown import Candidate, FragmentMode, FragmentQuery, Semantics, choose, divide
from pennon.pushdown.candidates import sooner_in_one, whole_query
from pennon.pushdown.manifest_answer import manifest_answer
from pennon.pushdown.runtime_pruning import RuntimePruning, row_filters, runtime_prunings
from pennon.pushdown.tasks import FragmentTasks, tasks_of
from pennon.worker.messages.scan_messages import FragmentReply
from pennon.worker.plans.plan_cache import function_text, key_text
from pennon.worker.plans.plan_outline import planned_types
from pennon.worker.wire.tokens import (
    NO_RELATIONS,
    FragmentToken,
    PartToken,
    ScanToken,
    task_texts,
    whole_splits,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pennon.execution import RowFilter
    from pennon.grouping.resolve.group_tree import DerivedKeys
    from pennon.grouping.tasks import Assignment, TaskTarget
    from pennon.planning import ScanPlan
    from pennon.pushdown import Division
    from pennon.pushdown.partners import Restriction
    from pennon.worker.messages.scan_messages import DeriveKeys
    from pennon.worker.plans.plan_outline import DecodedPlan

__all__ = ["FragmentDetails"]


# The lines of EXPLAIN FORMATTED about a fragment.


@dataclass(frozen=True, slots=True)
class FragmentDetails:
    """What people are told of a fragment.

    Args:
        candidate: What is computed.
        plan: The query that it is a part of.
        plans: What each scan reads.
        num_threads: How many threads compute each task.
    """

    candidate: Candidate
    plan: Plan
    plans: Mapping[int, ScanPlan]
    num_threads: int

    def text(
        self,
        tasks: FragmentTasks,
        prunings: Sequence[RuntimePruning],
        filters: Sequence[RowFilter],
    ) -> str:
        """Tell what is computed, of what, and what is left out while it runs.

        Args:
            tasks: Its tasks.
            prunings: Which leaves they may leave out.
            filters: Which rows they may leave out.
        """
        query, count = self.candidate.query, len(tasks.keys)
        threads = f" of {self.num_threads} threads" if self.num_threads > 1 else ""
        reporting = "" if self.candidate.surroundings is None else ", with their key"
        lines = [
            f"fragment: {self.candidate.mode} in {count} tasks{threads}{reporting}",
            f"query: {query.select.sql}",
        ]
        for at, scan in enumerate(query.scans):
            lines += self._read(f"r{at}", scan)
            functions, note = tasks.groupings.get(scan, ((), ""))
            grouping = key_text(functions, self.plans[scan], note) if functions else "none"
            lines.append(f"r{at} grouping: {grouping}")
            chosen_by = [
                f"{function_text(one.function, self.plans[scan])} in p{one.pruning.part}"
                for one in prunings
                if one.pruning.relation == at
            ]
            # Specs have fields in common.
            lines += [
                f"r{at} at run time: partitions with {text}" for text in dict.fromkeys(chosen_by)
            ]
            lines += [
                f"r{at} at run time: rows with {filter_.name} in p{filter_.part}"
                for filter_ in filters
                if filter_.relation == at
            ]
        if self.candidate.restriction is not None:
            lines.append(f"only groups of {self._restriction(self.candidate.restriction)}")
        for at, part in enumerate(query.parts):
            lines.append(f"p{at} in every worker: {part.select.sql}")
            for number, scan in enumerate(part.scans):
                lines += self._read(f"p{at}.r{number}", scan)
        return with_short_lists("\n".join(lines))

    def _read(self, relation: str, scan: int) -> Iterator[str]:
        """Tell what a relation reads."""
        node = self.plan[scan]
        yield f"{relation}: {node.table if isinstance(node, Scan) else ''}"
        for line in summary(self.plans[scan]).splitlines():
            yield f"{relation} {line}"

    def _restriction(self, restriction: Restriction) -> str:
        """Tell which groups of an aggregate are computed."""
        roots = [part.root for part in self.candidate.query.parts]
        at = roots.index(restriction.part)
        return f"c{restriction.key} in p{at}.c{restriction.column}"


@dataclass(frozen=True, slots=True)
class ChosenFragment:
    """A part of a query that the workers compute.

    Args:
        candidate: What is computed.
        tasks: Its tasks.
        texts: What executors send for each of them.
        reply: The answer to Spark's rule.
    """

    candidate: Candidate
    tasks: FragmentTasks
    texts: pa.Array
    reply: FragmentReply

    def is_divided_as(self, assignment: Assignment) -> bool:
        """Whether the query around it has the keys that it reports, if it reports any."""
        if self.candidate.surroundings is None:
            return True
        tasks = FragmentTasks.of(assignment.of(self.candidate.query.scans))
        return self.tasks.keys.equals(tasks.keys) and self.tasks.rows == tasks.rows


@dataclass(frozen=True, slots=True)
class FragmentPlanner:
    """Plans the tasks of a query's fragments.

    Args:
        division: The query, divided.
        semantics: The session's.
        plans: The plans of its scans, by position.
        target: What tasks should look like.
        query_id: Tells the query from all others.
        pool_bytes: What an executor's worker may hold of rows.
        num_threads: How many threads compute one task.
    """

    division: Division
    semantics: Semantics
    plans: Mapping[int, ScanPlan]
    target: TaskTarget
    query_id: str
    pool_bytes: int
    num_threads: int = 1

    def planned(self, candidate: Candidate) -> ChosenFragment | None:
        """Plan the tasks of a candidate; None where it does not pay.

        Raises:
            Declined: DataFusion refuses it.
        """
        query, division = candidate.query, self.division
        answer = self.answer(candidate.root)
        if answer is not None:
            return self.answered(candidate, answer)
        if self.has_answer_below(candidate.root):
            return None
        read = {scan: self.plans[scan] for scan in query.scans}
        tasks = tasks_of(candidate, division, self.plans, self.target, pool_bytes=self.pool_bytes)
        if tasks is None:
            return None
        parts = tuple(map(self.part, query.parts))
        scans = [_scan_token(division.plan[scan], self.plans[scan]) for scan in query.scans]
        check_planned(query, scans)
        prunings = runtime_prunings(division.plan, query)
        filters = row_filters(division.plan, query, candidate.restriction)
        shared = Fragment(
            (),
            query.select,
            prunings=tuple(pruning.pruning for pruning in prunings),
            filters=filters,
            num_threads=self.num_threads,
        )
        leaves = {scan: plan.table for scan, plan in read.items()}
        pruned = [(query.scans[one.pruning.relation], one) for one in prunings]
        keys = [(scan, one.keys(leaves[scan])) for scan, one in pruned]
        texts = task_texts(tasks, query.scans, leaves, keys)
        explained = FragmentDetails(candidate, division.plan, self.plans, self.num_threads)
        details = explained.text(tasks, prunings, filters)
        token = FragmentToken(tuple(scans), shared, parts)
        reply = self.reply(candidate, token, details, len(texts))
        return ChosenFragment(candidate, tasks, texts, reply)

    def answer(self, root: int) -> FragmentQuery | None:
        """Answer an aggregate without reading a leaf, where the manifest has what it needs."""
        # Of partitions a span of time is known, in which a zone's clocks may change.
        semantics = replace(self.semantics, zone_offsets=(), in_fragments=False)
        return manifest_answer(self.division.plan, root, self.plans, semantics)

    def has_answer_below(self, root: int) -> bool:
        """Whether an operator's input is an aggregate that the manifest answers."""
        at = root
        while isinstance(node := self.division.plan[at], Filter | Project | Limit):
            at = node.child
        return at != root and self.answer(at) is not None

    def answered(self, candidate: Candidate, answer: FragmentQuery) -> ChosenFragment:
        """Make one task of an answer, which has its rows with it."""
        summaries = [summary(self.plans[scan]) for scan in candidate.query.scans]
        text = "\n".join([f"fragment: {candidate.mode}, answered by the manifest", *summaries])
        token = FragmentToken((), Fragment((), answer.select))
        reply = self.reply(candidate, token, text, 1)
        reply = replace(reply, columns=answer.columns, restricted=False, keyed=False)
        tasks = FragmentTasks(pa.array([0], pa.int64()), None)
        return ChosenFragment(candidate, tasks, pa.array([NO_RELATIONS]), reply)

    def reply(
        self, candidate: Candidate, token: FragmentToken, details: str, num_tasks: int
    ) -> FragmentReply:
        """Tell Spark's rule of a fragment.

        Args:
            candidate: What it computes.
            token: What its tasks have in common.
            details: What people are told.
            num_tasks: How many tasks it has.
        """
        queries = (candidate.query, *candidate.query.parts)
        plans = [self.plans[scan] for query in queries for scan in query.scans]
        rows, num_bytes = self.size(candidate, num_tasks)
        return FragmentReply(
            root=candidate.root,
            mode=str(candidate.mode),
            scan=token.to_json(),
            description="\n".join(map(shortened_within, details.splitlines())),
            details=details,
            columns=candidate.query.columns,
            rows=rows,
            bytes=num_bytes,
            restricted=candidate.restriction is not None,
            keyed=candidate.surroundings is not None,
            partitions_read=sum(plan.table.num_rows for plan in plans) if token.scans else 0,
            partitions_total=sum(plan.partitions_total for plan in plans),
        )

    def part(self, query: FragmentQuery) -> PartToken:
        """Plan what every worker evaluates for itself.

        Raises:
            Declined: DataFusion refuses it.
        """
        scans = [_scan_token(self.division.plan[scan], self.plans[scan]) for scan in query.scans]
        check_planned(query, scans)
        splits = tuple(whole_splits(self.plans[scan].table) for scan in query.scans)
        return PartToken(self.query_id, tuple(scans), splits, query.select)

    def size(self, candidate: Candidate, num_tasks: int) -> tuple[int | None, int | None]:
        """Estimate what Spark gets, so that it can broadcast what is small."""
        root = self.division.plan[candidate.root]
        rows = self.division.sizes[candidate.root].rows
        match root:
            case Group(keys=(), calls=calls) if not any(call.is_distinct for call in calls or ()):
                rows = min(self.division.sizes[root.child].rows, num_tasks)
            case Group():
                rows = self.division.sizes[root.child].rows
            case Limit(count=int(count)):
                rows = min(self.division.sizes[root.child].rows, count * num_tasks)
        if math.isinf(rows):
            return None, None
        width = row_bytes(candidate.query.select.schema.types)
        return int(rows), int(rows * width)


def check_planned(query: FragmentQuery, scans: Sequence[ScanToken]) -> None:
    """Check that DataFusion takes a query, and gives the types that Spark expects.

    Args:
        query: The query.
        scans: What it reads, in the order of its relations.

    Raises:
        Declined: It does not; says why.
    """
    parts, select = tuple(part.select.schema for part in query.parts), query.select
    try:
        relations = tuple(scan.relation.schema for scan in scans)
        planned = planned_types(relations, select.sql, parts, select.zone_offsets)
    except (FragmentFailed, *VALUE_FAILURES) as error:
        why = f"a query that DataFusion refuses: {error.parameters.get('why', error)}"
        raise Declined(why=why) from error
    for data_type, expected in zip(planned, select.schema, strict=True):
        planned_type = stream_type(data_type)
        if planned_type != expected.type:
            raise Declined(
                why=f"a column of type {expected.type} that DataFusion makes {planned_type}"
            )


def _scan_token(node: PlanNode, plan: ScanPlan) -> ScanToken:
    if not isinstance(node, Scan):
        raise MalformedMessage(why="a fragment reads what is no scan")
    full = plan.snapshot.schema.arrow
    schema_read = pa.schema([pa.field(column.name, column.type) for column in node.columns])
    relation = Relation(
        plan.snapshot.location,
        (),
        with_field_ids(schema_read, full),
        full,
        plan.snapshot.storage_options,
        identity=plan.identity,
    )
    return ScanToken(relation, plan.residuals)


# Chooses the parts of a query that the workers compute, for the reply to Spark's rule.
#
# A part reports its key only where an operator above needs it, as a scan whose leaves are joined
# already: each row has one column more for it.


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
