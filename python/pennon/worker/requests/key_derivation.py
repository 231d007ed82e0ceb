"""Handles ``derive_keys``: the plan's outline in, keys and fragments out."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from pennon.errors import InternalError
from pennon.execution import BatchStream
from pennon.grouping.resolve.group_tree import DerivedKeys, ungrouped_scans
from pennon.grouping.resolve.resolved_join import derive_keys
from pennon.grouping.tasks import Assignment, TaskTarget, assign
from pennon.plan import Join, Opaque
from pennon.planning.scan_plan import mergeable_scans
from pennon.pushdown import FragmentMode
from pennon.pushdown.division import derived_for
from pennon.spec.write_properties import WRITE_ORDER
from pennon.worker.messages.scan_messages import (
    ColumnPath,
    ComputedKey,
    DeriveKeys,
    DeriveKeysReply,
)
from pennon.worker.plans.fragment_planner import choose_fragments
from pennon.worker.plans.plan_cache import key_text
from pennon.worker.plans.plan_outline import decoded_plan
from pennon.worker.requests.data_plane import send_reply
from pennon.worker.wire.json_fields import decode, encode
from pennon.worker.wire.tokens import split_column

if TYPE_CHECKING:
    from pennon.grouping.resolve.verdict import Verdict
    from pennon.plan import Plan, PlanNode
    from pennon.planning import ScanPlan
    from pennon.spec.functions import LayoutFunction
    from pennon.worker.plans.fragment_planner import ChosenFragment, ChosenFragments
    from pennon.worker.plans.plan_outline import ColumnNumbers, DecodedPlan
    from pennon.worker.wire.framing import FrameSocket

_KEYS = pa.schema({"scan": pa.int32(), "key": pa.int64(), "leaf": pa.int32(), "split": pa.utf8()})
_NO_LEAF = -1


def derive(request: Mapping[str, object], frames: FrameSocket) -> None:
    """Answer ``derive_keys``: which operators are served, and each served scan's keys."""
    message = decode(DeriveKeys, request)
    decoded = decoded_plan(message.nodes)
    outline, plans = decoded.plan, decoded.scans
    leaves = {position: plan.table for position, plan in plans.items()}
    target = TaskTarget(message.parallelism, message.max_bytes)
    whole = derive_keys(outline)
    chosen, assignment = _divided(message, decoded, whole, target)
    fragments, answer = chosen.fragments, assignment.keys
    inside = {position for fragment in fragments for position in fragment.candidate.positions}
    verdicts = {**answer.verdicts, **_verdicts_inside(whole.verdicts, fragments)}
    for position in verdicts.keys() & chosen.declined.keys():
        verdicts[position] = verdicts[position].in_spark(chosen.declined[position])
    reply = DeriveKeysReply(
        served=tuple(sorted(answer.served - inside)),
        scans={
            str(position): key_text(functions, plans[position], assignment.notes[position])
            for position, functions in answer.scans.items()
            if position not in inside
        },
        ordered=tuple(mergeable_scans(assignment.rows, _ordered(plans))),
        packed=tuple(sorted(_packed(chosen, decoded, assignment, inside))),
        verdicts=tuple(asdict(verdicts[verdict]) for verdict in sorted(verdicts)),
        computed={
            str(_side(outline[join], functions)): tuple(
                _computed(function, decoded.columns) for function in functions
            )
            for join, functions in answer.computed.items()
        },
        fragments=tuple(fragment.reply for fragment in fragments),
        one_task=chosen.is_one_task,
        arrow=True,
    )
    frames.send_json(encode(reply))
    rows = assignment.of(answer.scans.keys() - inside)
    batches = [*_assigned(rows, leaves), *map(_tasks, fragments)]
    send_reply(BatchStream(_KEYS, iter(batches)), frames)


def _packed(
    chosen: ChosenFragments, decoded: DecodedPlan, assignment: Assignment, inside: Collection[int]
) -> frozenset[int]:
    """Find the scans of which any leaves may be read together."""
    if chosen.is_one_task:
        return frozenset()
    idle = ungrouped_scans(decoded.plan, assignment.keys, decoded.shuffling, inside)
    return assignment.declined | idle


def _divided(
    message: DeriveKeys, decoded: DecodedPlan, whole: DerivedKeys, target: TaskTarget
) -> tuple[ChosenFragments, Assignment]:
    """Choose the fragments of a query, and assign the leaves of what is around them to keys."""
    chosen = choose_fragments(message, decoded, whole, target)
    if chosen.is_one_task:
        # All rows are in one place: no operator needs a key.
        own = _keys_around(_without_values(decoded.plan, chosen.fragments), decoded, whole, ())
        verdicts = {at: verdict.in_one_task() for at, verdict in own.verdicts.items()}
        return chosen, Assignment(DerivedKeys({}, frozenset(), {}, verdicts))
    assignment = _assigned_around(chosen, decoded, whole, target)
    if not all(fragment.is_divided_as(assignment) for fragment in chosen.fragments):
        # One fragment took the key from what is around another.
        chosen = choose_fragments(message, decoded, whole, target, may_report=False)
        assignment = _assigned_around(chosen, decoded, whole, target)
    return chosen, assignment


def _assigned_around(
    chosen: ChosenFragments, decoded: DecodedPlan, whole: DerivedKeys, target: TaskTarget
) -> Assignment:
    """Assign the leaves of what is around the fragments of a query, and of those with a key."""
    leaves = {position: plan.table for position, plan in decoded.scans.items()}
    remaining = _around(_without_values(decoded.plan, chosen.fragments), chosen.fragments)
    left = _keys_around(remaining, decoded, whole, chosen.fragments)
    return assign(left, remaining, leaves, target)


def _around(plan: Plan, fragments: Sequence[ChosenFragment]) -> Plan:
    """See a plan as Spark sees it when its fragments are computed elsewhere."""
    nodes: dict[int, PlanNode] = {}
    for candidate in (fragment.candidate for fragment in fragments):
        around = candidate.surroundings
        nodes |= around.nodes if around else dict.fromkeys(candidate.positions, Opaque())
    return plan.replaced(nodes) if nodes else plan


def _keys_around(
    plan: Plan, decoded: DecodedPlan, whole: DerivedKeys, fragments: Sequence[ChosenFragment]
) -> DerivedKeys:
    """Derive the keys of what is left of a query, of which all keys are known."""
    surroundings = [fragment.candidate.surroundings for fragment in fragments]
    reporting = {scan for around in surroundings if around for scan in around.scans}
    return whole if plan is decoded.plan and not reporting else derived_for(plan, reporting)


def _without_values(plan: Plan, fragments: Sequence[ChosenFragment]) -> Plan:
    """Leave out the subqueries of one value that no fragment evaluates: Spark asks for each."""
    inside = {position for fragment in fragments for position in fragment.candidate.positions}
    return plan.without_values(at for at in plan.scalars if at not in inside)


def _ordered(plans: Mapping[int, ScanPlan]) -> dict[int, pa.Table]:
    return {
        position: plan.table
        for position, plan in plans.items()
        if WRITE_ORDER in plan.snapshot.properties
    }


def _verdicts_inside(
    verdicts: Mapping[int, Verdict], fragments: Sequence[ChosenFragment]
) -> dict[int, Verdict]:
    """Tell what serves the operators that workers compute; Spark merges a partial aggregate."""
    inside: dict[int, Verdict] = {}
    for candidate in (fragment.candidate for fragment in fragments):
        for position in verdicts.keys() & set(candidate.positions):
            is_merged = position == candidate.root and candidate.mode is FragmentMode.PARTIAL
            verdict = verdicts[position]
            inside[position] = verdict if is_merged else verdict.in_worker()
    return inside


def _tasks(fragment: ChosenFragment) -> pa.RecordBatch:
    """Write the tasks of a fragment in the place of leaves."""
    count = len(fragment.texts)
    return pa.RecordBatch.from_arrays(
        [
            pa.repeat(pa.scalar(fragment.candidate.root, pa.int32()), count),
            fragment.tasks.keys,
            pa.repeat(pa.scalar(_NO_LEAF, pa.int32()), count),
            fragment.texts,
        ],
        schema=_KEYS,
    )


def _assigned(rows: pa.Table, leaves: Mapping[int, pa.Table]) -> list[pa.RecordBatch]:
    """Write what is read under each key, with the texts of parts of leaves."""
    batches: list[pa.RecordBatch] = []
    for scan in pc.unique(rows["scan"]).to_pylist():
        own = rows.filter(pc.equal(rows["scan"], pa.scalar(scan, pa.int32())))
        is_part = pc.is_valid(own["first_fragment"])
        has_part = pc.any(is_part, min_count=0).as_py()
        texts = split_column(leaves[scan], own) if has_part else pa.nulls(len(own), pa.utf8())
        columns = [own["scan"], own["key"], own["leaf"].fill_null(_NO_LEAF)]
        columns.append(pc.if_else(is_part, texts, None))
        batches += pa.table(columns, schema=_KEYS).to_batches()
    return batches


def _side(node: PlanNode, functions: Sequence[LayoutFunction]) -> int:
    """Find the side of a join whose columns the functions of its key take."""
    match node:
        case Join(left=left, right=right, equated=equated):
            is_left = functions[0].source_ids[0] in {ours for ours, _ in equated}
            return left if is_left else right
        case _:
            raise InternalError(what=f"A key is computed for {type(node).__name__}")


def _computed(function: LayoutFunction, columns: ColumnNumbers) -> ComputedKey:
    transform = function.grouping.transform
    return ComputedKey(
        function=function.grouping.spark_name or transform.type,
        num_buckets=transform.buckets or 0,
        columns=tuple(ColumnPath(*columns.path(number)) for number in function.source_ids),
    )
