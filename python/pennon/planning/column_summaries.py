"""What is known of columns over all partitions of a scan: what a cost-based optimizer estimates by.

These are estimates: bounds may be wider than the values, and how many values a column has is put
together from what each leaf has.

NULL rules: bounds and values are those that are not NULL.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pennon.manifest.column_bounds import column_bounds
from pennon.manifest.format.column_statistics import is_counted_type
from pennon.planning.leaf_statistics import with_statistics

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from pennon.manifest.statistics_texts import ColumnBounds
    from pennon.planning.scan_plan import ScanPlan

__all__ = ["ColumnSummary", "column_summaries"]

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
    """

    lower: pa.Scalar
    upper: pa.Scalar
    null_count: int
    distinct_count: int | None


def column_summaries(plan: ScanPlan, names: Sequence[str]) -> dict[str, ColumnSummary]:
    """Put together what the manifest knows of columns in the partitions that a scan reads.

    Args:
        plan: A plan of ``plan_scan``.
        names: Columns of the table; others, and fields of structs, are passed over.

    Returns:
        Those columns of which each partition has statistics of the version that is read.

    Raises:
        StorageFailure: The storage refused.

    Example:
        >>> column_summaries(plan, ["price"])["price"].upper  # doctest: +SKIP
        <pyarrow.DoubleScalar: 99.5>

    Spec: "Manifest Table Schema" (metadata).
    """
    fields = {each.path[0]: each for each in plan.snapshot.schema.fields if len(each.path) == 1}
    wanted = {
        fields[name].id: name
        for name in names
        if name in fields and is_counted_type(fields[name].field.type)
    }
    if not wanted or not plan.table.num_rows:
        return {}
    leaves = with_statistics(plan, plan.table)
    if leaves is None:
        return {}
    rows = leaves["num_rows"].combine_chunks()
    types = {number: fields[name].field.type for number, name in wanted.items()}
    return {
        wanted[number]: _summary(bounds, _groups(plan, number), rows)
        for number, bounds in column_bounds(plan.snapshot, leaves, types).items()
        if pc.all(bounds.is_known).as_py() and not bounds.null_count.null_count
    }


def _summary(bounds: ColumnBounds, groups: NDArray[np.int64], rows: pa.Array) -> ColumnSummary:
    has_values = pc.is_valid(bounds.lower)
    # A leaf without an upper bound has one that is not known: its lower one stands for a long text.
    is_bounded = pc.all(pc.or_(pc.invert(has_values), pc.is_valid(bounds.upper))).as_py()
    none = pa.scalar(None, bounds.lower.type)
    # Of rows that are gone some were NULL, and there are no more NULLs than rows.
    null_count = pc.sum(pc.min_element_wise(bounds.null_count, rows)).as_py()
    has_nan = _has_nan(bounds)
    return ColumnSummary(
        none if has_nan else pc.min(bounds.lower),
        pc.max(bounds.upper) if is_bounded and not has_nan else none,
        int(null_count),
        _distinct(bounds, has_values, groups),
    )


def _has_nan(bounds: ColumnBounds) -> bool:
    """Whether NaN is among the values: what is the greatest number beside it is not known."""
    if not pa.types.is_floating(bounds.upper.type):
        return False
    return bool(pc.any(pc.is_nan(bounds.upper), min_count=0).as_py())


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
    there = has_values.to_numpy(zero_copy_only=False)
    leaves = pa.table(
        {
            "lower": bounds.lower.filter(has_values),
            "upper": bounds.upper.filter(has_values),
            "count": counts.filter(has_values),
            "group": pa.array(groups[there]),
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
    kind = lower.type
    if pa.types.is_date32(kind):
        lower, upper, kind = lower.cast(pa.int32()), upper.cast(pa.int32()), pa.int32()
    if not pa.types.is_integer(kind) or not upper.is_valid:
        return None
    return int(upper.as_py()) - int(lower.as_py()) + 1
