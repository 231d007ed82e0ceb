"""Merges the column statistics of a leaf with those of a change.

They are known where those of the version before are, or where none of its rows stays. Rows that go
leave bounds that hold and are no answers any more.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pennon.manifest.format.column_statistics import LeafStatistics, read_statistics
from pennon.transaction.staging.staged import Append, ChangeRows, Replace, Rewrite

if TYPE_CHECKING:
    from collections.abc import Sequence

    import lance

    from pennon.leaf import StagedPartition
    from pennon.spec.schema import NamespaceSchema
    from pennon.transaction.staging.leaf_state import LeafState
    from pennon.transaction.staging.staged import Change

__all__ = ["changed_statistics"]


def changed_statistics(
    state: LeafState | None, change: Change, before: lance.LanceDataset, schema: NamespaceSchema
) -> LeafStatistics | None:
    """Give the statistics of a leaf's columns once a change is made.

    Args:
        state: The leaf's row; None for a leaf to be made.
        change: What is done to it.
        before: The leaf at the version that the change is made on.
        schema: The namespace's schema.

    Returns:
        The statistics, exact where they were and no row goes; None where they are not known.

    Spec: "Manifest Table Schema" (metadata).
    """
    existing = None if state is None else state.columns
    match change:
        case Replace(staged=staged):
            return _of_new(staged, schema)
        case Append(staged=staged):
            if state is None or not before.get_fragments():
                return _of_new(staged, schema)
            return _with_new(existing, staged, schema)
        case Rewrite(staged=staged, fragments=fragments):
            if not {fragment.fragment_id for fragment in before.get_fragments()} <= set(fragments):
                return existing
            new = _of_new(staged, schema)
            is_same = sum(part.num_rows for part in staged) == before.count_rows()
            return new if new is None or is_same else replace(new, is_exact=False)
        case ChangeRows(staged=staged):
            loose = None if existing is None else replace(existing, is_exact=False)
            return _with_new(loose, staged, schema)
    return None


def _of_new(staged: Sequence[StagedPartition], schema: NamespaceSchema) -> LeafStatistics | None:
    counted = [read_statistics(part.statistics) for part in staged if part.num_rows]
    first, *others = counted or [None]
    return None if first is None else _with(first, others, schema)


def _with_new(
    existing: LeafStatistics | None, staged: Sequence[StagedPartition], schema: NamespaceSchema
) -> LeafStatistics | None:
    counted = [read_statistics(part.statistics) for part in staged if part.num_rows]
    return None if existing is None else _with(existing, counted, schema)


def _with(
    one: LeafStatistics, others: Sequence[LeafStatistics | None], schema: NamespaceSchema
) -> LeafStatistics | None:
    counted = [other for other in others if other is not None]
    if len(counted) < len(others):
        return None
    types = {field.id: field.field.type for field in schema.fields}
    return one.merged(counted, types)
