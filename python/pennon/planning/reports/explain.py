"""A scan plan as a few lines of text for EXPLAIN."""

from __future__ import annotations

import re
from contextlib import suppress
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from pennon.manifest.format.columns import PARTITION_PREFIX
from pennon.planning.binding.bound_predicate import (
    AllOf,
    AnyOf,
    BoundPredicate,
    Compared,
    ComparedDatePart,
    ComputedCondition,
    is_exact,
)
from pennon.planning.residual import row_condition
from pennon.predicate.dialect import DataFusion
from pennon.predicate.expressions import Declined, Semantics, Typed
from pennon.predicate.expressions.time_functions import part
from pennon.predicate.values.long_lists import with_short_lists

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pennon.planning.scan_plan import ScanPlan

_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})
_MOST_FILTERS = 5
_LONGEST = 120
_ALL_TABLES = "`object_type` = 'table'"
_AND = " AND "
_OF_VERSION = re.compile(r"object_id LIKE '(v\d+)\$%'")
_NOT_NULL = re.compile(r"\bNOT ((?:`[^`]+`|\w+)(?:\.(?:`[^`]+`|\w+))*) IS NULL")
_TIME = re.compile(r"arrow_cast\('(?P<value>[^']*)', '(?P<kind>Date|Timestamp)[^']*'\)")


def summary(plan: ScanPlan) -> str:
    """Describe a plan in a few short lines, for EXPLAIN of a tree of operators.

    Args:
        plan: A plan of ``plan_scan``.

    Returns:
        Lines without a final line break: the partitions, the condition on them, the residual.
    """
    lines = [partitions_kept(plan)]
    condition = plan.manifest_sql.partition(_ALL_TABLES)[2].removeprefix(_AND)
    written = written_conditions(plan.bound)
    if condition:
        lines.append(f"manifest: {readable_condition(condition, written)}")
    if plan.row_filters:
        more = f" and {len(plan.row_filters) - 1} more" if len(plan.row_filters) > 1 else ""
        lines.append(f"rows where: {readable_filter(plan.row_filters[0], written)}{more}")
    return "\n".join(lines)


def partitions_kept(plan: ScanPlan) -> str:
    """Tell how many partitions a plan keeps, and how many statistics have dropped of them.

    Args:
        plan: A plan of ``plan_scan``.
    """
    line = f"partitions: {plan.table.num_rows} of {plan.partitions_total}"
    return f"{line}, {plan.num_pruned} pruned by statistics" if plan.num_pruned else line


def written_conditions(predicate: BoundPredicate) -> Mapping[str, str]:
    """List the texts of what is computed for a predicate, and how people write the same.

    What stands for an expression of Spark may be many times as long as it.
    """
    match predicate:
        case AllOf(parts) | AnyOf(parts):
            return {
                text: readable
                for inner in parts
                for text, readable in written_conditions(inner).items()
            }
        case ComputedCondition(written=written) if written:
            text = row_condition(predicate).sql(dialect=DataFusion)
            below = {} if predicate.implied is None else written_conditions(predicate.implied)
            return {text: written, **below}
        case Compared(column=column, comparison=comparison):
            # Other values may be beyond what Python has: the day before year 1.
            if pa.types.is_floating(column.type) and comparison.literals:
                values = ", ".join(map(str, comparison.values))
                text = row_condition(predicate).sql(dialect=DataFusion)
                name = column.expression().sql(dialect=DataFusion)
                listed = f"({values})" if comparison.operator.is_list else values
                return {text: f"{name} {comparison.operator} {listed}"}
        case ComparedDatePart(part=name, column=column):
            with suppress(Declined):
                value = Typed(column.expression(), column.type)
                computed = part(name.upper(), value, Semantics(is_utc=True)).tree
                readable = f"{name}({column.expression().sql(dialect=DataFusion)})"
                return {computed.sql(dialect=DataFusion): readable}
    return {}


def readable_condition(sql: str, written: Mapping[str, str] = _NOTHING) -> str:
    """Write a condition on the manifest as people read it, and short.

    Args:
        sql: The condition.
        written: Of ``written_conditions``.

    Example:
        >>> readable_condition("`object_id` LIKE 'v1$%' AND `partition_field_k` = 3")
        'v1 AND k = 3'
    """
    plain = sql.replace("`", "").replace(PARTITION_PREFIX, "")
    bare = {text.replace("`", ""): readable.replace("`", "") for text, readable in written.items()}
    return readable_filter(_OF_VERSION.sub(r"\1", plain), bare)


def readable_filter(sql: str, written: Mapping[str, str] = _NOTHING) -> str:
    """Write a filter on rows as people write one, and short.

    Args:
        sql: The filter.
        written: Of ``written_conditions``.

    Example:
        >>> readable_filter("NOT `a` IS NULL AND `d` > arrow_cast('2024-01-01', 'Date32')")
        "`a` IS NOT NULL AND `d` > DATE '2024-01-01'"
    """
    for text, readable in written.items():
        sql = sql.replace(text, readable)
    plain = _NOT_NULL.sub(r"\1 IS NOT NULL", sql)
    return shortened(_TIME.sub(_written_time, plain))


def _written_time(literal: re.Match[str]) -> str:
    kind = "DATE" if literal["kind"].startswith("Date") else "TIMESTAMP"
    return f"{kind} '{literal['value'].replace('.000000', '')}'"


def shortened(text: str) -> str:
    """Cut a text to what fits a line of a plan.

    Example:
        >>> len(shortened("x" * 1000)), shortened("k = 3")
        (120, 'k = 3')
    """
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def shortened_within(text: str) -> str:
    """Cut the middle out of a long query: what it gives stands first, its order and limit last.

    Example:
        >>> short = shortened_within("SELECT a FROM (" + "x" * 1000 + ") ORDER BY a LIMIT 3")
        >>> len(short), short[:15], short[-20:]
        (120, 'SELECT a FROM (', ') ORDER BY a LIMIT 3')
    """
    half = _LONGEST // 2
    return text if len(text) <= _LONGEST else f"{text[: half - 2]} … {text[-half + 1 :]}"


def explain(plan: ScanPlan) -> str:
    """Describe a plan: partitions chosen of how many, manifest SQL, residual filters.

    Args:
        plan: A plan of ``plan_scan``.

    Returns:
        Lines without a final line break; a residual is shown with the partitions that have it.
    """
    chosen = plan.table.num_rows
    lines = [partitions_kept(plan), f"manifest: {plan.manifest_sql}"]
    predicate = plan.predicate
    if predicate:
        lines.append(f"predicate: {predicate}")
        pushed = predicate if is_exact(plan.bound) else plan.pushed
        lines.append(f"pushed: {pushed or 'none'}")
    counts = pc.value_counts(plan.table.column("residual")).to_pylist() if chosen else []
    by_index = {count["values"]: count["counts"] for count in counts}
    for index, text in list(enumerate(plan.residuals))[:_MOST_FILTERS]:
        lines.append(f"residual: {text} ({by_index.get(index, 0)} partitions)")
    if len(plan.residuals) > _MOST_FILTERS:
        lines.append(f"residual: {len(plan.residuals) - _MOST_FILTERS} more")
    if not plan.residuals:
        lines.append("residual: none")
    return with_short_lists("\n".join(lines))
