"""Which parts of a query the workers compute: the rule's request in, fragments out (design §5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from pennon.catalog.columns.projected_columns import with_field_ids
from pennon.errors import MalformedMessage
from pennon.execution import Query
from pennon.execution.engine import result_schema
from pennon.execution.memory import executor_pool_bytes
from pennon.leaf.schema.promotion import stream_type
from pennon.plan import Group, Limit, Opaque, Plan, PlanNode, Scan
from pennon.planning import explain
from pennon.predicate.expressions.semantics import is_utc_zone
from pennon.pushdown import Candidate, FragmentMode, Semantics, candidates
from pennon.pushdown.tasks import FragmentTasks, tasks_of
from pennon.worker.wire.fragment_tokens import FragmentToken, task_texts
from pennon.worker.wire.key_messages import FragmentReply
from pennon.worker.wire.key_text import key_text
from pennon.worker.wire.tokens import ScanToken

if TYPE_CHECKING:
    from pennon.grouping.resolve.key_group import DerivedKeys
    from pennon.grouping.tasks.task_target import TaskTarget
    from pennon.planning import ScanPlan
    from pennon.worker.wire.messages import DeriveKeys

_WORKER = "worker"


@dataclass(frozen=True, slots=True)
class ChosenFragment:
    """A part of a query that the workers compute.

    Args:
        candidate: What is computed.
        keys: The keys of its tasks.
        tasks: The texts of its tasks.
        reply: What the rule is told.
    """

    candidate: Candidate
    keys: pa.Array
    tasks: pa.Array
    reply: FragmentReply


def choose_fragments(
    request: DeriveKeys,
    plan: Plan,
    keys: DerivedKeys,
    plans: Mapping[int, ScanPlan],
    target: TaskTarget,
) -> list[ChosenFragment]:
    """Choose the fragments of a query; none where the session does not want any.

    Args:
        request: The rule's.
        plan: The query.
        keys: The keys that it allows.
        plans: What each scan reads.
        target: What tasks should look like.
    """
    if request.execution != _WORKER:
        return []
    semantics = Semantics(ansi=request.ansi, is_utc=is_utc_zone(request.time_zone))
    for spare in keys.spare:
        keys = keys.using(spare)
    chosen: list[ChosenFragment] = []
    for alternatives in candidates(plan, keys, semantics):
        for candidate in alternatives:
            read = {scan: plans[scan] for scan in candidate.query.scans}
            tasks = tasks_of(
                candidate, (keys, plan), read, target, pool_bytes=executor_pool_bytes()
            )
            found = None if tasks is None else _planned(candidate, plan, plans, tasks)
            if found is not None:
                chosen.append(found)
                break
    return chosen


def without_fragments(plan: Plan, chosen: Sequence[ChosenFragment]) -> Plan:
    """See a plan as it is when its fragments are computed elsewhere."""
    inside = {position for each in chosen for position in each.candidate.positions}
    return plan.replaced(dict.fromkeys(inside, Opaque()))


def _planned(
    candidate: Candidate,
    nodes: Sequence[PlanNode],
    plans: Mapping[int, ScanPlan],
    tasks: FragmentTasks,
) -> ChosenFragment | None:
    query = candidate.query
    scans = [_scan_token(nodes[scan], plans[scan]) for scan in query.scans]
    planned = result_schema([scan.schema for scan in scans], query.sql)
    if planned is None or [stream_type(each) for each in planned.types] != query.schema.types:
        return None
    token = FragmentToken(tuple(scans), Query(query.sql, query.schema)).to_json()
    texts = task_texts(tasks, query.scans, {scan: plans[scan].table for scan in query.scans})
    rows, size = _size(candidate, nodes, plans, len(texts))
    reply = FragmentReply(
        root=candidate.root,
        mode=str(candidate.mode),
        scan=token,
        description=_description(candidate, plans, tasks),
        columns=tuple(query.columns),
        rows=rows,
        bytes=size,
    )
    return ChosenFragment(candidate, tasks.keys, texts, reply)


def _size(
    candidate: Candidate,
    nodes: Sequence[PlanNode],
    plans: Mapping[int, ScanPlan],
    num_tasks: int,
) -> tuple[int | None, int | None]:
    root = nodes[candidate.root]
    if isinstance(root, Group) and not root.keys:
        return num_tasks, num_tasks * 8 * len(candidate.query.columns)
    sizes = [plans[scan].num_bytes for scan in candidate.query.scans]
    rows = [plans[scan].num_rows for scan in candidate.query.scans]
    known = [each for each in sizes if each is not None]
    counted = [each for each in rows if each is not None]
    is_joined = candidate.mode is FragmentMode.ROWS
    most = max(counted) if is_joined and len(counted) == len(rows) else None
    if isinstance(root, Limit):
        most = root.count * num_tasks if most is None else min(most, root.count * num_tasks)
    return most, sum(known) if len(known) == len(sizes) else None


def _description(candidate: Candidate, plans: Mapping[int, ScanPlan], tasks: FragmentTasks) -> str:
    count = len(tasks.keys)
    lines = [f"fragment: {candidate.mode} in {count} tasks", f"query: {candidate.query.sql}"]
    for at, scan in enumerate(candidate.query.scans):
        lines += [f"r{at} {line}" for line in explain(plans[scan]).splitlines()]
        functions, note = tasks.groupings.get(scan, ((), ""))
        grouping = key_text(functions, plans[scan], note) if functions else "none"
        lines.append(f"r{at} grouping: {grouping}")
    return "\n".join(lines)


def _scan_token(node: PlanNode, plan: ScanPlan) -> ScanToken:
    if not isinstance(node, Scan):
        raise MalformedMessage(why="a fragment reads what is no scan")
    full = plan.snapshot.schema.arrow
    wanted = pa.schema([pa.field(each.name, each.type) for each in node.columns])
    return ScanToken(
        plan.snapshot.location,
        with_field_ids(wanted, full),
        full,
        plan.residuals,
        plan.snapshot.storage_options,
        identity=plan.identity,
    )
