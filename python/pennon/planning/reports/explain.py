"""A scan plan as a few lines of text for EXPLAIN."""

from __future__ import annotations

import re
from contextlib import suppress
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from pennon.manifest.format.rows import PARTITION_PREFIX
from pennon.manifest.partition_struct import spec_versions
from pennon.planning.binding.bound_predicate import (
    AllOf,
    AnyOf,
    BoundPredicate,
    Compared,
    ComparedDatePart,
    ComputedCondition,
    columns,
    conjuncts,
    is_exact,
    not_evaluable,
)
from pennon.planning.manifest_query import NO_RESIDUAL, manifest_query, row_condition
from pennon.planning.reports.row_estimate import estimate_rows
from pennon.predicate.dialect import DataFusion
from pennon.predicate.expressions import Declined, Semantics, Typed
from pennon.predicate.expressions.time_functions import part as date_part
from pennon.predicate.values.long_lists import with_short_lists

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pennon.planning.scan_plan import ScanPlan

__all__ = ["readable_size", "scan_report"]

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
                computed = date_part(name.upper(), value, Semantics(is_utc=True)).tree
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


# What a scan reads and why, for people: ``CALL system.explain_scan``, ``pennon plan``.
#
# Each conjunct of the predicate is projected by itself, so that one can see what it prunes alone.

_MOST_RESIDUALS: Final = 5
_SIZES: Final = ("bytes", "KiB", "MiB", "GiB", "TiB")


def scan_report(plan: ScanPlan) -> list[tuple[str, str]]:
    """Tell what a plan reads, what each condition prunes, and what is left to filter.

    Args:
        plan: A plan of ``plan_scan``.

    Returns:
        Pairs of a line's title and its text: ``partitions``, ``spec v1``, ``predicate``, ``rows``….

    Spec: "Partition Pruning", "Compatibility with Partition Pruning".
    """
    return [
        ("partitions", f"{plan.table.num_rows} of {plan.partitions_total}"),
        *_of_versions(plan),
        *(("predicate", _pruning(plan, part)) for part in conjuncts(plan.bound)),
        *_by_statistics(plan),
        *_residuals(plan),
        ("rows", "unknown" if plan.num_rows is None else f"{plan.num_rows} before filters"),
        *_expected(plan),
        ("bytes", "unknown" if plan.num_bytes is None else readable_size(plan.num_bytes)),
    ]


def _expected(plan: ScanPlan) -> Iterator[tuple[str, str]]:
    """Tell how many rows filters are expected to leave; nothing where there are none."""
    if not plan.row_filters:
        return
    estimate = estimate_rows(plan)
    if estimate is None:
        yield "expected rows", "unknown"
    elif estimate.is_complete:
        yield "expected rows", f"about {estimate.num_rows}"
    else:
        yield (
            "expected rows",
            f"at most about {estimate.num_rows}: not every filter can be estimated",
        )


def _of_versions(plan: ScanPlan) -> Iterator[tuple[str, str]]:
    if len(plan.snapshot.specs) == 1:
        return
    chosen = _versions(plan.table)
    every = _versions(plan.snapshot.leaves().table)
    for version in sorted(plan.snapshot.specs):
        yield f"spec v{version}", f"{chosen.get(version, 0)} of {every.get(version, 0)}"


def _versions(leaves: pa.Table) -> dict[int, int]:
    counts = pc.value_counts(spec_versions(leaves)).to_pylist()
    return {count["values"]: count["counts"] for count in counts}


def _pruning(plan: ScanPlan, part: BoundPredicate) -> str:
    """Tell of one conjunct by what it prunes, or why it does not."""
    written = written_conditions(part)
    text = readable_filter(row_condition(part).sql(dialect=DataFusion), written)
    asked = manifest_query(plan.snapshot, [part])
    if asked.condition is None:
        return f"{text}: prunes nothing, {_why(part)}"
    alone = plan.snapshot.leaves(asked.condition).table.num_rows
    by = readable_condition(asked.condition.sql(dialect=DataFusion), written)
    return f"{text}: keeps {alone} of {plan.partitions_total} by {by}"


def _by_statistics(plan: ScanPlan) -> Iterator[tuple[str, str]]:
    if plan.num_pruned:
        yield "statistics", f"{plan.num_pruned} more partitions pruned by statistics of columns"


def _why(part: BoundPredicate) -> str:
    unknown = not_evaluable(part)
    if unknown is not None:
        return f"it is not known to be computed as Spark does ({unknown.why})"
    if isinstance(part, ComputedCondition) and part.implied is None:
        if part.can_fail:
            return "it is an error for some values"
        return "partitions do not have all of its columns as they stand"
    names = sorted({".".join(column.path) for column in columns(part)})
    return f"no partition field depends on {', '.join(names) or 'a column'}"


def _residuals(plan: ScanPlan) -> Iterator[tuple[str, str]]:
    counts = pc.value_counts(plan.table["row_filter"]).to_pylist()
    by_index = {count["values"]: count["counts"] for count in counts}
    decided = by_index.pop(NO_RESIDUAL, 0)
    written = written_conditions(plan.bound)
    if plan.row_filters and decided:
        yield "decided", f"by the values of {decided} partitions"
    for index in sorted(by_index)[:_MOST_RESIDUALS]:
        yield (
            "residual",
            f"{readable_filter(plan.row_filters[index], written)} in {by_index[index]} partitions",
        )
    if len(by_index) > _MOST_RESIDUALS:
        yield "residual", f"{len(by_index) - _MOST_RESIDUALS} more"
    if not by_index:
        yield "residual", "none"
    inexact = [part for part in conjuncts(plan.bound) if not is_exact(part)]
    for part in inexact if by_index else ():
        yield "left to Spark", readable_filter(row_condition(part).sql(dialect=DataFusion), written)


def readable_size(count: int) -> str:
    """Write a number of bytes as people read it.

    Example:
        >>> readable_size(1536)
        '1.5 KiB'
    """
    number = float(count)
    for unit in _SIZES:
        if number < 1024 or unit == _SIZES[-1]:  # noqa: PLR2004 - KiB and so on
            return f"{number:.0f} {unit}" if unit == _SIZES[0] else f"{number:.1f} {unit}"
        number /= 1024
    return str(count)
