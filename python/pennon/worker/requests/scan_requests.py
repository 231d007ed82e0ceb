"""Handlers of the driver's requests about scans."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from pennon.catalog.columns.projected_columns import column_paths, with_field_ids
from pennon.catalog.columns.spark_types import (
    arrow_schema,
    catalog_text,
    given_type,
    is_estimated_type,
)
from pennon.catalog.configured_catalog import check_read_options
from pennon.catalog.partitioning import sort_key
from pennon.execution import Relation
from pennon.grouping.key_grouping import report
from pennon.leaf.read.metadata_columns import constant_columns
from pennon.planning import explain, summary
from pennon.planning.leaf_constants import Evaluation
from pennon.planning.reports.column_summaries import identity_names, identity_tuples, scan_summary
from pennon.planning.reports.explain import scan_report
from pennon.planning.scan_plan import known_order
from pennon.planning.splits import filter_columns, pack
from pennon.streams import StreamOptions
from pennon.worker.messages import scan_messages as m
from pennon.worker.plans.plan_cache import (
    filtered_plan,
    find_plan,
    keep_reply,
    plan_of,
    snapshot_of,
)
from pennon.worker.wire.tokens import (
    ScanToken,
    TableToken,
    in_nanoseconds,
    packed_splits,
    split_column,
)

if TYPE_CHECKING:
    from pennon.planning import ScanPlan
    from pennon.worker.plans.plan_cache import CachedPlan


# Of more leaves many plans never need the packed splits: joins and aggregates read in other ways.
_MOST_PACKED: Final = 64


def plan_scan(request: m.PlanScan) -> m.PlanScanReply:
    """Answer ``plan_scan``."""
    table = TableToken.from_json(request.table)
    check_read_options(table.name, request.options)
    # Whatever is cached: the table may have been made anew.
    full = snapshot_of(request.catalog, table).schema.arrow
    columns = with_field_ids(arrow_schema(request.schema), full)
    constants = constant_columns(columns)
    predicates, pushed = request.predicates, request.fully_pushed
    token, cached = plan_of(
        request.catalog, request.table, predicates, request.time_zone, constants
    )
    asked = (
        request.table,
        json.dumps(request.schema),
        pushed,
        request.row_change,
        request.num_tasks,
        request.max_bytes,
    )
    reply = cached.replies.get(asked)
    if reply is None:
        cached.check_fully_pushed([predicates[position] for position in pushed])
        reply = _reply(request, token, cached, columns, full)
        keep_reply(request.catalog, reply, cached, asked)
    option = StreamOptions.stated_in(request.options)
    return reply if option is None else replace(reply, stream_option=option)


def _reply(
    request: m.PlanScan, token: str, cached: CachedPlan, columns: pa.Schema, full: pa.Schema
) -> m.PlanScanReply:
    plan = cached.plan
    snapshot = plan.snapshot
    grouping = report(snapshot, plan, frozenset(column_paths(columns)))
    # A statement that changes rows may read more of them than satisfy its condition.
    guaranteed, evaluated = (
        () if request.row_change else cached.evaluated(request.predicates, evaluation)
        for evaluation in (Evaluation.BY_PARTITION_VALUES, Evaluation.BY_LEAVES)
    )
    order = known_order(plan, columns.names)
    relation = Relation(
        snapshot.location, (), columns, full, snapshot.storage_options, order, plan.identity
    )
    scan = ScanToken(relation, plan.residuals)
    return m.PlanScanReply(
        scan=scan.to_json(),
        plan=token,
        splits=plan.table.num_rows,
        keys=() if grouping is None else grouping.keys,
        partitions_total=plan.partitions_total,
        rows=plan.num_rows,
        bytes=plan.num_bytes,
        description=summary(plan),
        details=explain(plan),
        ordering=tuple(map(sort_key, order)),
        filter_columns=filter_columns(plan, columns.names, is_row_change=request.row_change),
        partition_columns=tuple(identity_names(snapshot)),
        guaranteed_by_partitions=guaranteed,
        evaluated_in_scan=evaluated,
        packed=_packed(plan, request),
        stream_option=None,
    )


def _packed(plan: ScanPlan, request: m.PlanScan) -> tuple[m.PackedSplit, ...] | None:
    """Pack the leaves of a plan; None where their splits are many."""
    if plan.table.num_rows > _MOST_PACKED:
        return None
    packed = packed_splits(plan.table, pack(plan, request.num_tasks, request.max_bytes))
    if packed.num_rows > _MOST_PACKED:
        return None
    return tuple(m.PackedSplit(*split.values()) for split in packed.to_pylist())


def list_splits(request: m.ListSplits) -> tuple[m.StreamReply, pa.Table]:
    """Answer ``list_splits``: one split per leaf, with the values of the reported keys."""
    plan = find_plan(request.catalog, request.plan).plan
    snapshot, leaves = plan.snapshot, plan.table
    schema = with_field_ids(arrow_schema(request.schema), snapshot.schema.arrow)
    grouping = report(snapshot, plan, frozenset(column_paths(schema)))
    columns = {"object_id": leaves["object_id"], "split": split_column(leaves)}
    if grouping is not None:
        values = _as_given(grouping.values)
        columns.update(zip(values.column_names, values.columns, strict=True))
    return m.StreamReply(arrow=True), pa.table(columns)


def pack_splits(request: m.PackSplits) -> tuple[m.StreamReply, pa.Table]:
    """Answer ``pack_splits``; a split of several leaves lists their object ids."""
    plan = filtered_plan(request)
    rows = pack(plan, request.num_tasks, request.max_bytes)
    return m.StreamReply(arrow=True), packed_splits(plan.table, rows)


def prune_splits(request: m.PruneSplits) -> m.PruneSplitsReply:
    """Answer ``prune_splits``."""
    plan = filtered_plan(request)
    return m.PruneSplitsReply(tuple(plan.table["object_id"].to_pylist()))


def explain_scan(request: m.ExplainScan) -> m.ExplainScanReply:
    """Answer ``explain_scan``."""
    return m.ExplainScanReply(tuple(scan_report(find_plan(request.catalog, request.plan).plan)))


def summarize_columns(request: m.SummarizeColumns) -> m.SummarizeColumnsReply:
    """Answer ``summarize_columns``."""
    summary = scan_summary(find_plan(request.catalog, request.plan).plan, request.columns)
    return m.SummarizeColumnsReply(
        summary.num_rows,
        tuple(
            m.ColumnSummaryText(
                name,
                catalog_text(column.lower),
                catalog_text(column.upper),
                column.null_count,
                column.distinct_count,
            )
            for name, column in summary.columns.items()
            if is_estimated_type(column.lower.type)
        ),
    )


def partition_tuples(request: m.PartitionTuples) -> tuple[m.StreamReply, pa.Table]:
    """Answer ``partition_tuples``."""
    plan = find_plan(request.catalog, request.plan).plan
    tuples = identity_tuples(plan, request.columns)
    return m.StreamReply(arrow=True), _as_given(tuples)


def _as_given(values: pa.Table) -> pa.Table:
    """Give partition values in the types that Spark has for their columns."""
    types = [in_nanoseconds(given_type(column.type)) for column in values.schema]
    return values.cast(pa.schema(list(zip(values.column_names, types, strict=True))))
