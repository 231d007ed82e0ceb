"""Column statistics over all partitions of a scan, for cost-based optimizers.

These are estimates: bounds may be wider than the values, and how many values a column has is put
together from what each leaf has. Of a column that all partitions have a value of, these values
tell it exactly, whoever wrote the leaves.

NULL rules: bounds and values are those that are not NULL.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pennon.manifest.column_bounds import column_bounds
from pennon.manifest.format.column_statistics import is_counted_type
from pennon.manifest.partition_struct import spec_versions
from pennon.planning.binding.bound_predicate import Compared
from pennon.planning.reports.row_estimate import with_statistics
from pennon.predicate.condition import Operator

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from decimal import Decimal

    from numpy.typing import NDArray

    from pennon.manifest.column_bounds import ColumnBounds
    from pennon.manifest.snapshot import Snapshot
    from pennon.planning.scan_plan import ScanPlan

__all__ = [
    "ColumnSummary",
    "column_summaries",
    "identity_names",
    "identity_tuples",
    "most_values",
    "number_bounds",
    "scan_summary",
]

# The values of identity partition fields, over all specs.
#
# What is known of them decides conditions of any shape on these columns, wherever it is evaluated:
# each row of a partition has the values of its tuple.
#
# NULL rules: a NULL partition value is the rows' NULL. Floats are left out: zeros of both signs are
# one partition, and so are all NaNs.

_MOST_TUPLES: Final = 1_000


def identity_columns(snapshot: Snapshot, versions: Iterable[int]) -> dict[int, str]:
    """Find the columns of which every partition of some spec versions has one value.

    Args:
        snapshot: The namespace.
        versions: Spec versions of it.

    Returns:
        The manifest's column with the values, by the field id of the table's top-level column.

    Example:
        >>> identity_columns(snapshot, [1])  # doctest: +SKIP
        {2: 'partition_field_region'}

    Spec: "Partition Spec".
    """
    names_by_spec = [
        {
            (field.source_ids[0], field.column)
            for field in snapshot.specs[version].fields
            if field.derivation.is_identity and len(field.source_ids) == 1
        }
        for version in versions
    ]
    shared = sorted(set.intersection(*names_by_spec)) if names_by_spec else []
    types = {field.id: field.field.type for field in snapshot.schema.fields if len(field.path) == 1}
    return {
        source: column
        for source, column in shared
        if source in types and not pa.types.is_floating(types[source])
    }


def identity_names(snapshot: Snapshot) -> dict[str, str]:
    """Find the same for all spec versions, by the names of the table's columns.

    Args:
        snapshot: The namespace.
    """
    columns = identity_columns(snapshot, snapshot.specs)
    return {
        field.path[0]: columns[field.id] for field in snapshot.schema.fields if field.id in columns
    }


def identity_tuples(plan: ScanPlan, names: Sequence[str]) -> pa.Table:
    """List the values that the chosen partitions have of some columns, each tuple once.

    Args:
        plan: A plan of ``plan_scan``.
        names: Columns of ``identity_names``.

    Returns:
        A table with these columns in the table's types; without rows where there are too many.

    Example:
        >>> identity_tuples(plan, ["region"])["region"].to_pylist()  # doctest: +SKIP
        ['de', 'us', None]

    Spec: "Partition Pruning".
    """
    stored_names = identity_names(plan.snapshot)
    types = plan.snapshot.schema.arrow
    stored = [stored_names[name] for name in names]
    tuples = plan.table.select(stored).group_by(stored).aggregate([])
    if len(tuples) > _MOST_TUPLES:
        tuples = tuples.slice(0, 0)
    columns = [
        tuples[column].cast(types.field(name).type)
        for column, name in zip(stored, names, strict=True)
    ]
    return pa.table(columns, names=list(names)).combine_chunks()


# So many groups are estimated one by one in some milliseconds.
_MOST_GROUPS: Final = 1_000


@dataclass(frozen=True, slots=True)
class ColumnSummary:
    """What is known of one column of a scan, before any filter on its rows.

    Args:
        lower: A value that none is below; NULL where all are NULL or it is not known.
        upper: A value that none is above; NULL likewise.
        null_count: NULLs, or more than there are.
        distinct_count: About how many values there are; None where no leaf has counted them.
        is_exact: Whether bounds are values, and there are as many NULLs.
    """

    lower: pa.Scalar
    upper: pa.Scalar
    null_count: int
    distinct_count: int | None
    is_exact: bool = True


@dataclass(frozen=True, slots=True)
class ScanSummary:
    """What is known of the rows that a scan gives.

    Args:
        num_rows: About how many there are; None where a partition does not say.
        columns: What is known of columns, by name.
    """

    num_rows: int | None
    columns: dict[str, ColumnSummary]


def scan_summary(plan: ScanPlan, names: Sequence[str]) -> ScanSummary:
    """Estimate what is left of the chosen partitions behind the tests for NULL of a plan.

    Spark is spared these tests, so that it has no filter to estimate them by.

    Args:
        plan: A plan of ``plan_scan``.
        names: Columns of the table, as ``column_summaries``.

    Returns:
        Rows, and what is known of columns, as if the tests were independent of each other.

    Raises:
        StorageFailure: The storage refused.

    Example:
        >>> scan_summary(plan_scan(snapshot, "note IS NULL"), ["id"]).num_rows  # doctest: +SKIP
        12

    Spec: "Manifest Table Schema" (metadata).
    """
    tests = {
        column.path[0]: given.comparison.operator
        for given in plan.given
        if isinstance(given, Compared) and given.is_exact
        for column in (given.column,)
        if len(column.path) == 1 and not column.is_metadata
        if given.comparison.operator in (Operator.IS_NULL, Operator.IS_NOT_NULL)
    }
    summaries = column_summaries(plan, [*dict.fromkeys([*names, *tests])])
    if not plan.num_rows:
        return ScanSummary(
            plan.num_rows, {name: summaries[name] for name in names if name in summaries}
        )
    share = 1.0
    for name, operator in tests.items():
        if name not in summaries:
            continue
        of_nulls = min(summaries[name].null_count / plan.num_rows, 1.0)
        if operator is Operator.IS_NULL:
            share *= of_nulls
        elif summaries[name].is_exact:  # else there may be fewer NULLs, and any number of rows
            share *= 1.0 - of_nulls
    num_rows = math.ceil(plan.num_rows * share)
    left = {
        name: _left_of(summaries[name], tests.get(name), share, num_rows)
        for name in names
        if name in summaries
    }
    return ScanSummary(num_rows, left)


def _left_of(
    column: ColumnSummary, test: Operator | None, share: float, num_rows: int
) -> ColumnSummary:
    """Give what is known of a column in some of its rows."""
    if test is Operator.IS_NULL:
        none = pa.scalar(None, column.lower.type)
        return ColumnSummary(none, none, num_rows, 0)
    values = column.distinct_count
    return replace(
        column,
        null_count=0 if test is Operator.IS_NOT_NULL else round(column.null_count * share),
        distinct_count=None if values is None else min(values, num_rows),
    )


def column_summaries(plan: ScanPlan, names: Sequence[str]) -> dict[str, ColumnSummary]:
    """Put together what the manifest knows of columns in the partitions that a scan reads.

    Args:
        plan: A plan of ``plan_scan``.
        names: Columns of the table; others, and fields of structs, are passed over.

    Returns:
        Those columns of which each partition has a value, or statistics of the version that is
        read.

    Raises:
        StorageFailure: The storage refused.

    Example:
        >>> column_summaries(plan, ["price"])["price"].upper  # doctest: +SKIP
        <pyarrow.DoubleScalar: 99.5>

    Spec: "Manifest Table Schema" (metadata).
    """
    fields = {field.path[0]: field for field in plan.snapshot.schema.fields if len(field.path) == 1}
    asked = {
        fields[name].id: name
        for name in names
        if name in fields and is_counted_type(fields[name].field.type)
    }
    if not asked or not plan.table.num_rows:
        return {}
    of_partitions = _of_partitions(plan, {number: fields[asked[number]].field for number in asked})
    summaries = {asked.pop(number): summary for number, summary in of_partitions.items()}
    leaves = with_statistics(plan, plan.table) if asked else None
    if leaves is None:
        return summaries
    rows = leaves["num_rows"].combine_chunks()
    types = {number: fields[name].field.type for number, name in asked.items()}
    return summaries | {
        asked[number]: _summary(bounds, _groups(plan, number), rows)
        for number, bounds in column_bounds(plan.snapshot, leaves, types).items()
        if pc.all(bounds.is_known).as_py() and not bounds.null_count.null_count
    }


def most_values(plan: ScanPlan, name: str) -> int | None:
    """Bound how many values a column has in the partitions that a scan reads, NULL among them.

    Args:
        plan: A plan of ``plan_scan``.
        name: A column of the table.

    Returns:
        The values from the least one to the greatest one, and NULL; None for a column of which not
        both are known, and for types that have values between any two.

    Raises:
        StorageFailure: The storage refused.

    Example:
        >>> most_values(plan, "month")  # doctest: +SKIP
        13

    Spec: "Manifest Table Schema" (metadata).
    """
    summary = column_summaries(plan, [name]).get(name)
    width = None if summary is None else _width(summary.lower, summary.upper)
    return None if width is None else width + 1


def number_bounds(plan: ScanPlan, name: str) -> tuple[int | Decimal, int | Decimal] | None:
    """Bound the integers or decimals of a column in the partitions that a scan reads.

    Args:
        plan: A plan of ``plan_scan``.
        name: A column of the table.

    Returns:
        Numbers that no value is below, and above; None where not both are known, for columns that
        have no value, and for other types.

    Raises:
        StorageFailure: The storage refused.

    Example:
        >>> number_bounds(plan, "month")  # doctest: +SKIP
        (1, 12)

    Spec: "Manifest Table Schema" (metadata).
    """
    summary = column_summaries(plan, [name]).get(name)
    if summary is None or not (summary.lower.is_valid and summary.upper.is_valid):
        return None
    data_type = summary.lower.type
    if not (pa.types.is_integer(data_type) or pa.types.is_decimal(data_type)):
        return None
    return summary.lower.as_py(), summary.upper.as_py()


def _of_partitions(plan: ScanPlan, columns: Mapping[int, pa.Field]) -> dict[int, ColumnSummary]:
    """Tell of the columns of which each chosen partition has one value, which its tuple names."""
    rows = plan.table["num_rows"]
    versions = pc.unique(spec_versions(plan.table)).to_pylist()
    if rows.null_count or not plan.snapshot.specs.keys() >= {*versions}:
        return {}
    summaries: dict[int, ColumnSummary] = {}
    stored = identity_columns(plan.snapshot, versions)
    for number in columns.keys() & stored.keys():
        held = plan.table[stored[number]]
        # A partition without rows has no value.
        has_rows = pc.greater(rows, 0)
        values = held.cast(columns[number].type).filter(has_rows)
        nulls = pc.sum(pc.if_else(pc.is_null(held), rows, 0), min_count=0)
        bounds = pc.min_max(values)
        count = pc.count_distinct(values, mode="only_valid")
        summaries[number] = ColumnSummary(
            bounds["min"], bounds["max"], nulls.as_py(), count.as_py()
        )
    return summaries


def _summary(bounds: ColumnBounds, groups: NDArray[np.int64], rows: pa.Array) -> ColumnSummary:
    has_values = pc.is_valid(bounds.lower)
    # A leaf without an upper bound has one that is not known: its lower one stands for a long text.
    is_bounded = pc.all(pc.or_(pc.invert(has_values), pc.is_valid(bounds.upper))).as_py()
    none = pa.scalar(None, bounds.lower.type)
    # Of rows that are gone some were NULL, and there are no more NULLs than rows.
    null_count = pc.sum(pc.min_element_wise(bounds.null_count, rows)).as_py()
    has_nan = bounds.has_nan
    return ColumnSummary(
        none if has_nan else pc.min(bounds.lower),
        pc.max(bounds.upper) if is_bounded and not has_nan else none,
        int(null_count),
        _distinct(bounds, has_values, groups),
        bool(pc.all(bounds.is_exact).as_py()),
    )


def _groups(plan: ScanPlan, field_id: int) -> NDArray[np.int64]:
    """Number the partitions by their value of a partition field of the column alone.

    What a transform makes two values of comes of two values: no value is in two groups.
    """
    none = np.zeros(plan.table.num_rows, dtype=np.int64)
    names = {
        field.column
        for spec in plan.snapshot.specs.values()
        for field in spec.fields
        if field.source_ids == (field_id,)
    }
    # Where partitions of another spec version have no value of the field it divides nothing.
    for name in sorted(names.intersection(plan.table.column_names)):
        values = plan.table[name]
        if not values.null_count:
            encoded = values.combine_chunks().dictionary_encode()
            return np.asarray(encoded.indices.to_numpy(), dtype=np.int64)
    return none


def _distinct(bounds: ColumnBounds, has_values: pa.Array, groups: NDArray[np.int64]) -> int | None:
    """Estimate how many values there are in all leaves together."""
    is_one = pc.fill_null(pc.equal(bounds.lower, bounds.upper), fill_value=False)
    counts = pc.if_else(is_one, pa.scalar(1, pa.int64()), bounds.distinct_count)
    if pc.any(pc.and_(has_values, pc.is_null(counts)), min_count=0).as_py():
        return None
    is_present = has_values.to_numpy(zero_copy_only=False)
    leaves = pa.table(
        {
            "lower": bounds.lower.filter(has_values),
            "upper": bounds.upper.filter(has_values),
            "count": counts.filter(has_values),
            "group": pa.array(groups[is_present]),
        }
    )
    if pc.all(is_one.filter(has_values), min_count=0).as_py():
        return int(pc.count_distinct(leaves["lower"]).as_py())
    most = leaves.group_by("group").aggregate([("count", "max")])
    if len(most) > _MOST_GROUPS:
        return int(pc.sum(most["count_max"]).as_py())
    return sum(
        _of_group(leaves.filter(pc.equal(leaves["group"], group))) for group in most["group"]
    )


def _of_group(leaves: pa.Table) -> int:
    """Estimate the values of leaves whose values may overlap."""
    counts = leaves["count"].to_numpy()
    if len(counts) == 1:
        return int(counts[0])
    ordered = leaves.sort_by("lower")
    if not pc.any(pc.less_equal(ordered["lower"][1:], ordered["upper"][:-1])).as_py():
        return int(counts.sum())  # the leaves' ranges are apart
    width = _width(pc.min(leaves["lower"]), pc.max(leaves["upper"]))
    if width is None:
        return int(counts.max())
    # So many of the values there can be are met, if each leaf has drawn its own at random.
    missed = np.prod(1.0 - np.minimum(counts / width, 1.0))
    return max(int(counts.max()), round(width * (1.0 - float(missed))))


def _width(lower: pa.Scalar, upper: pa.Scalar) -> int | None:
    """Count the values from one to the other, of types that have a next value."""
    data_type = lower.type
    if pa.types.is_date32(data_type):
        lower, upper, data_type = lower.cast(pa.int32()), upper.cast(pa.int32()), pa.int32()
    if not pa.types.is_integer(data_type) or not upper.is_valid:
        return None
    return int(upper.as_py()) - int(lower.as_py()) + 1
