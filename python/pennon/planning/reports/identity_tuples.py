"""The values of identity partition fields, over all specs.

What is known of them decides conditions of any shape on these columns, wherever it is evaluated:
each row of a partition has the values of its tuple.

NULL rules: a NULL partition value is the rows' NULL. Floats are left out: zeros of both signs are
one partition, and so are all NaNs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pennon.manifest.snapshot import Snapshot
    from pennon.planning.scan_plan import ScanPlan

__all__ = ["identity_columns", "identity_names", "identity_tuples"]

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
