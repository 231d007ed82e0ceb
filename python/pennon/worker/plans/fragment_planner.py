"""Plans the tasks of a fragment: what each reads, and what Spark is told of them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from pennon.catalog.columns.projected_columns import with_field_ids
from pennon.errors import FragmentFailed, MalformedMessage
from pennon.execution import Query
from pennon.execution.batches.row_bytes import row_bytes
from pennon.execution.engine_failures import VALUE_FAILURES
from pennon.leaf.schema.promotion import stream_type
from pennon.plan import Filter, Group, Limit, PlanNode, Project, Scan
from pennon.planning import shortened_within, summary
from pennon.predicate.semantics import Declined
from pennon.pushdown import Candidate, FragmentQuery, Semantics
from pennon.pushdown.manifest_answer import manifest_answer
from pennon.pushdown.runtime_pruning import (
    KeyFilter,
    RuntimePruning,
    key_filters,
    runtime_prunings,
)
from pennon.pushdown.tasks import FragmentTasks, tasks_of
from pennon.worker.messages.key_messages import FragmentReply
from pennon.worker.plans.fragment_details import FragmentDetails
from pennon.worker.plans.planned_types import planned_types
from pennon.worker.wire.fragment_tokens import (
    NO_RELATIONS,
    FragmentToken,
    PartToken,
    PruningToken,
    RowFilterToken,
    task_texts,
    whole_splits,
)
from pennon.worker.wire.tokens import ScanToken

if TYPE_CHECKING:
    from pennon.grouping.tasks.assignment import Assignment
    from pennon.grouping.tasks.task_target import TaskTarget
    from pennon.planning import ScanPlan
    from pennon.pushdown import Division


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
        filters = key_filters(division.plan, query, candidate.restriction)
        token = FragmentToken(
            tuple(scans),
            _over_relations(query),
            parts,
            tuple(_pruning_token(pruning, query) for pruning in prunings),
            tuple(_filter_token(filter_, query) for filter_ in filters),
            self.num_threads,
        ).to_json()
        leaves = {scan: plan.table for scan, plan in read.items()}
        keys = [(pruning.scan, pruning.keys(leaves[pruning.scan])) for pruning in prunings]
        texts = task_texts(tasks, query.scans, leaves, keys)
        rows, num_bytes = self.size(candidate, len(texts))
        explained = FragmentDetails(candidate, division.plan, self.plans, self.num_threads)
        details = explained.text(tasks, prunings, filters)
        reply = FragmentReply(
            root=candidate.root,
            mode=str(candidate.mode),
            scan=token,
            description="\n".join(map(shortened_within, details.splitlines())),
            details=details,
            columns=tuple(query.columns),
            rows=rows,
            bytes=num_bytes,
            restricted=candidate.restriction is not None,
            keyed=candidate.surroundings is not None,
            partitions_read=sum(plan.table.num_rows for plan in self.read_by(candidate)),
            partitions_total=sum(plan.partitions_total for plan in self.read_by(candidate)),
        )
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
        token = FragmentToken((), _over_relations(answer)).to_json()
        summaries = [summary(self.plans[scan]) for scan in candidate.query.scans]
        text = "\n".join([f"fragment: {candidate.mode}, answered by the manifest", *summaries])
        rows, num_bytes = self.size(candidate, 1)
        reply = FragmentReply(
            root=candidate.root,
            mode=str(candidate.mode),
            scan=token,
            description=text,
            details=text,
            columns=tuple(answer.columns),
            rows=rows,
            bytes=num_bytes,
            restricted=False,
            keyed=False,
            partitions_read=0,
            partitions_total=sum(plan.partitions_total for plan in self.read_by(candidate)),
        )
        tasks = FragmentTasks(pa.array([0], pa.int64()), None)
        return ChosenFragment(candidate, tasks, pa.array([NO_RELATIONS]), reply)

    def read_by(self, candidate: Candidate) -> list[ScanPlan]:
        """Give the plans of all scans of a candidate, also of the parts that every task reads."""
        queries = (candidate.query, *candidate.query.parts)
        return [self.plans[scan] for query in queries for scan in query.scans]

    def part(self, query: FragmentQuery) -> PartToken:
        """Plan what every worker evaluates for itself.

        Raises:
            Declined: DataFusion refuses it.
        """
        scans = [_scan_token(self.division.plan[scan], self.plans[scan]) for scan in query.scans]
        check_planned(query, scans)
        splits = tuple(whole_splits(self.plans[scan].table) for scan in query.scans)
        return PartToken(self.query_id, tuple(scans), splits, _over_relations(query))

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
        width = row_bytes(candidate.query.schema.types)
        return int(rows), int(rows * width)


def check_planned(query: FragmentQuery, scans: Sequence[ScanToken]) -> None:
    """Check that DataFusion takes a query, and gives the types that Spark expects.

    Args:
        query: The query.
        scans: What it reads, in the order of its relations.

    Raises:
        Declined: It does not; says why.
    """
    parts = tuple(part.schema for part in query.parts)
    try:
        relations = tuple(scan.schema for scan in scans)
        planned = planned_types(relations, query.sql, parts, query.zone_offsets)
    except (FragmentFailed, *VALUE_FAILURES) as error:
        why = f"a query that DataFusion refuses: {error.parameters.get('why', error)}"
        raise Declined(why=why) from error
    for data_type, expected in zip(planned, query.schema, strict=True):
        planned_type = stream_type(data_type)
        if planned_type != expected.type:
            raise Declined(
                why=f"a column of type {expected.type} that DataFusion makes {planned_type}"
            )


def _over_relations(query: FragmentQuery) -> Query:
    return Query(query.sql, query.schema, query.zone_offsets)


def _pruning_token(pruning: RuntimePruning, query: FragmentQuery) -> PruningToken:
    return PruningToken.of(
        query.scans.index(pruning.scan),
        pruning.part,
        pruning.columns,
        pruning.function.grouping.transform,
    )


def _filter_token(key_filter: KeyFilter, query: FragmentQuery) -> RowFilterToken:
    relation = query.scans.index(key_filter.scan)
    return RowFilterToken(
        relation, key_filter.name, key_filter.part, key_filter.column, key_filter.chosen_from
    )


def _scan_token(node: PlanNode, plan: ScanPlan) -> ScanToken:
    if not isinstance(node, Scan):
        raise MalformedMessage(why="a fragment reads what is no scan")
    full = plan.snapshot.schema.arrow
    schema_read = pa.schema([pa.field(column.name, column.type) for column in node.columns])
    return ScanToken(
        plan.snapshot.location,
        with_field_ids(schema_read, full),
        full,
        plan.residuals,
        plan.snapshot.storage_options,
        identity=plan.identity,
    )
