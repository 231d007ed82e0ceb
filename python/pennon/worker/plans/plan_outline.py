"""Decodes the JVM's outline of a query into the plan tree; nothing else does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache, partial
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from pennon.catalog.columns.spark_types import arrow_schema, spark_schema
from pennon.errors import MalformedMessage, PennonError
from pennon.execution.engine import result_schema
from pennon.grouping.key_grouping import reported_functions
from pennon.leaf.schema.reconciliation import stream_schema
from pennon.plan import Column, Filter, Join, JoinType, Plan, PlanNode, Scan
from pennon.planning.reports.column_summaries import most_values, number_bounds
from pennon.predicate.typed import UNWRITTEN
from pennon.worker.messages.plan_messages import (
    OPERATORS,
    ColumnNumbers,
    FilterMessage,
    GroupLimitMessage,
    GroupMessage,
    JoinMessage,
    OpaqueMessage,
    PruningMessage,
    ScanMessage,
    WindowMessage,
)
from pennon.worker.plans.kept_plans import find_plan
from pennon.worker.wire.json_fields import decode

if TYPE_CHECKING:
    from pennon.grouping.resolve.group_tree import ComparedColumns
    from pennon.planning import ScanPlan
    from pennon.worker.plans.kept_plans import KeptPlan

__all__ = ["planned_types"]

# The types of a query's columns, planned once for queries that are asked again.
#
# Planning a query takes DataFusion a fifth of what the whole query is planned in.

_KEPT_QUERIES: Final = 256
_LONGEST_KEPT: Final = 50_000


def planned_types(
    relations: tuple[pa.Schema, ...],
    sql: str,
    parts: tuple[pa.Schema, ...] = (),
    zone_offsets: tuple[int, ...] = (),
) -> tuple[pa.DataType, ...]:
    """Give the types of a query's columns, in their order.

    Args:
        relations: The columns of ``r0``, ``r1`` and so on.
        sql: The query.
        parts: The columns of ``p0``, ``p1`` and so on.
        zone_offsets: As a ``Query`` has them.

    Raises:
        FragmentFailed: As ``result_schema``, and so are all others.
        FragmentOverflow: A value does not fit its type.
        FragmentDivision: There is a division by zero.
        FragmentText: A text is no value of the type that it is cast to.

    Example:
        >>> import pyarrow as pa
        >>> columns = (pa.schema({"id": pa.int64()}),)
        >>> planned_types(columns, "SELECT `id` AS `c7` FROM `r0`")
        (DataType(int64),)
    """
    plan = result_schema if len(sql) > _LONGEST_KEPT else _kept_schema
    return tuple(plan(relations, sql, parts, zone_offsets).types)


_kept_schema = lru_cache(maxsize=_KEPT_QUERIES)(result_schema)


# Filters by the values of a join's other side, which Spark puts below the join.
#
# Where the workers compute the join together with them, they leave out nothing that it would not.


def with_implied_prunings(plan: Plan, prunings: Mapping[int, Sequence[PruningMessage]]) -> Plan:
    """See each filter with the prunings that a join implies, and that join with them.

    A filter with another one has an unwritten condition: Spark evaluates it.

    Args:
        plan: The query; its filters' conditions are without prunings.
        prunings: The position of a filter → its prunings.
    """
    nodes: dict[int, PlanNode] = {}
    for position, of_filter in prunings.items():
        condition = plan[position]
        if not isinstance(condition, Filter):
            continue
        for pruning in of_filter:
            implying = _implying_join(plan, position, pruning)
            if implying is None:
                condition = replace(condition, condition=UNWRITTEN)
                continue
            join = nodes.get(implying, plan[implying])
            # Spark itself drops those that are for broadcasts only where the join is none.
            if isinstance(join, Join) and (join.broadcast or not pruning.in_broadcast):
                nodes[implying] = replace(join, implied=join.implied | {pruning.id})
                condition = replace(condition, prunings=condition.prunings | {pruning.id})
        nodes[position] = condition
    return plan.replaced(nodes) if nodes else plan


def _implying_join(plan: Plan, position: int, pruning: PruningMessage) -> int | None:
    """Find the next join above whose other side has the pruning's values."""
    below = position
    while (above := plan.parents.get(below)) is not None:
        join = plan[above]
        if isinstance(join, Join) and join.join_type is not JoinType.SCALAR:
            partner = join.right if below == join.left else join.left
            if not _scanned(plan, partner).isdisjoint(pruning.columns):
                return above
        below = above
    return None


def _scanned(plan: Plan, position: int) -> frozenset[int]:
    """List what the scans at or below a node give: attributes are unique in a query."""
    scans = (plan[at] for at in plan.scans(position))
    return frozenset(
        column.id for scan in scans if isinstance(scan, Scan) for column in scan.columns
    )


# What values of another form than a message's docstring says raise, as the JSON of a type does.
_MALFORMED: Final = (TypeError, ValueError, LookupError, AttributeError)


@dataclass(frozen=True, slots=True)
class DecodedPlan:
    """A query as it was told.

    Args:
        plan: The plan.
        scans: What each of its scans reads.
        catalogs: Their catalogs.
        columns: The numbers of its columns.
        shuffling: The operators that want rows of equal keys in one task, by their positions, and
            the attributes that a join compares, where they are known.
    """

    plan: Plan
    scans: Mapping[int, ScanPlan]
    catalogs: frozenset[str]
    columns: ColumnNumbers
    shuffling: Mapping[int, ComparedColumns]


def decoded_plan(messages: Sequence[Mapping[str, object]]) -> DecodedPlan:
    """Decode the nodes of ``derive_keys``.

    Args:
        messages: The nodes in post-order.

    Raises:
        MalformedMessage: A node is of no known kind, or a key is missing.
    """
    plans: dict[int, ScanPlan] = {}
    catalogs: set[str] = set()
    numbers = ColumnNumbers()
    prunings: dict[int, Sequence[PruningMessage]] = {}
    shuffling: dict[int, ComparedColumns] = {}
    nodes: list[PlanNode] = []
    for position, tagged in enumerate(messages):
        kind, fields = tagged.get("node"), {k: v for k, v in tagged.items() if k != "node"}
        operator = OPERATORS.get(str(kind))
        if operator is None:
            raise MalformedMessage(why=f"a plan node has the unknown kind {kind}")
        message = decode(operator, fields)
        if isinstance(message, FilterMessage):
            prunings[position] = message.prunings
        kept = None
        if isinstance(message, ScanMessage):
            kept = find_plan(message.catalog, message.plan)
            plans[position] = kept.plan
            catalogs.add(message.catalog.name)
        try:
            if _wants_groups(message):
                is_join = isinstance(message, JoinMessage)
                shuffling[position] = message.columns(numbers) if is_join else None
            nodes.append(message.node(numbers) if kept is None else _scan(message, kept, numbers))
        except _MALFORMED as error:
            raise MalformedMessage(why=f"a plan node of kind {kind}: {error!r}") from error
    plan = with_implied_prunings(Plan(tuple(nodes)), prunings)
    return DecodedPlan(plan, plans, frozenset(catalogs), numbers, shuffling)


def _wants_groups(message: object) -> bool:
    """Whether an operator wants rows of equal keys in one task, for which Spark would shuffle."""
    match message:
        case JoinMessage(broadcast=None, compared=keys):
            # Spark shuffles the side that compares an expression onto the other one.
            return bool(keys)
        case GroupMessage(keys=keys):
            return bool(keys)
        case WindowMessage(partition=keys) | GroupLimitMessage(partition=keys):
            return bool(keys)
        case OpaqueMessage(of_groups=True):
            return True
    return False


def _scan(message: ScanMessage, kept: KeptPlan, numbers: ColumnNumbers) -> Scan:
    plan, layout = kept.plan, kept.layout
    schema = plan.snapshot.schema
    attributes: dict[int, frozenset[int]] = {}
    for column in message.columns:
        below = numbers.fields(column.attribute, column.type)
        for number, path in [(column.attribute, ()), *below]:
            field = schema.field_by_path((column.name, *path))
            if field is not None:
                attributes[field.id] = attributes.get(field.id, frozenset()) | {number}
    names = {column.name for column in message.columns}
    types = {**_column_types(plan, names), **message.nested_types()}
    return Scan(
        tuple(Column(it.attribute, it.name, types.get(it.name)) for it in message.columns),
        layout,
        attributes,
        reported_functions(layout, schema, frozenset((name,) for name in names)),
        message.table,
        {field.id: str(field) for field in schema.fields},
        plan.num_bytes or 0,
        plan.num_rows,
        plan.is_filtered,
        cache(partial(most_values, plan)),
        cache(partial(number_bounds, plan)),
    )


def _column_types(plan: ScanPlan, names: set[str]) -> dict[str, pa.DataType]:
    """The types of plain columns that Spark sees; those that it does not have are left out."""
    types: dict[str, pa.DataType] = {}
    for field in plan.snapshot.schema.arrow:
        is_plain = not (pa.types.is_nested(field.type) or pa.types.is_time(field.type))
        if field.name not in names or not is_plain:
            continue
        try:
            seen = arrow_schema(spark_schema(pa.schema([field])))
        except PennonError:
            continue
        types[field.name] = stream_schema(seen).field(0).type
    return types
