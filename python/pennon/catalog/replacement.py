"""The partitions that an overwrite or a delete replaces as a whole, or the refusal.

A condition decides a partition where its values alone imply that every row satisfies it, or that
none does. NULL rules: rows for which the condition is NULL are kept, as SQL has it.

Rows that another writer appends meanwhile to a new partition are no conflict: the overwrite came
first, unless somebody may have read them before it commits. Rows appended to a partition that goes
are one, and so are rows that come meanwhile to a partition which the overwrite makes: two
overwrites of one new partition never leave the rows of both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow.compute as pc

from pennon.errors import NotWholePartitions, OverlapsOlderPartition
from pennon.manifest import ObjectId
from pennon.planning import plan_scan
from pennon.predicate.predicate_text import shortened_predicate
from pennon.transaction.concurrency.overlapped_set import overlapping_leaves, shared_fields
from pennon.transaction.staging.leaf_state import leaf_states, partition_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import pyarrow as pa

    from pennon.leaf import StagedPartition
    from pennon.manifest import Snapshot
    from pennon.planning import ScanPlan
    from pennon.transaction import Transaction

__all__ = ["overlapped_partitions", "replace_rows", "whole_partitions"]


def whole_partitions(
    snapshot: Snapshot, table: str, predicates: Sequence[str], *, action: str
) -> tuple[str, ...]:
    """Give the partitions whose rows all satisfy a condition.

    Args:
        snapshot: The namespace, or the plain dataset.
        table: Its name, for the error.
        predicates: Spark SQL texts that all have to hold; none means every row.
        action: ``overwrite`` or ``delete``, for the error.

    Raises:
        NotWholePartitions: Another partition may have such rows too.
    """
    plan = plan_scan(snapshot, predicates, by_statistics=False)
    divided = plan.table.filter(
        pc.and_(
            pc.greater_equal(plan.table["row_filter"], 0),
            pc.fill_null(pc.not_equal(plan.table["num_rows"], 0), fill_value=True),
        )
    )
    if divided.num_rows:
        raise NotWholePartitions(
            action=action,
            table=table,
            predicate=shortened_predicate(" AND ".join(predicates)),
            partition=_spelled(snapshot, divided.slice(0, 1)),
            undecided=divided.num_rows,
            total=plan.partitions_total,
            keys=_keys(snapshot),
        )
    return _decided(plan)


def _decided(plan: ScanPlan) -> tuple[str, ...]:
    whole = plan.table.filter(pc.less(plan.table["row_filter"], 0))
    return tuple(whole["object_id"].to_pylist())


def overlapped_partitions(
    snapshot: Snapshot, table: str, staged: Iterable[StagedPartition]
) -> tuple[str, ...]:
    """Give the partitions of older spec versions whose rows all belong to the staged partitions.

    A dynamic overwrite replaces them with those of the current spec.

    Args:
        snapshot: The namespace.
        table: Its name, for the error.
        staged: What the tasks wrote, by the current spec.

    Raises:
        OverlapsOlderPartition: An older partition is coarser and may hold other rows too.
    """
    current = snapshot.current_spec
    older = overlapping_leaves(snapshot, staged)
    replaced: list[str] = []
    for at, (object_id, num_rows) in enumerate(
        zip(older["object_id"].to_pylist(), older["num_rows"].to_pylist(), strict=True)
    ):
        version = _spec_version(object_id)
        if num_rows == 0:
            continue
        if len(shared_fields(snapshot, current.spec_version, version)) < len(current.fields):
            raise OverlapsOlderPartition(
                table=table, partition=_spelled(snapshot, older.slice(at, 1)), spec_version=version
            )
        replaced.append(object_id)
    return tuple(replaced)


def replace_rows(
    transaction: Transaction, staged: Iterable[StagedPartition], object_ids: Iterable[str]
) -> None:
    """Put the staged rows in the place of whole partitions.

    Args:
        transaction: Gets the changes.
        staged: What the tasks wrote; rows of other partitions are appended where these are there,
            and else make them, alone. In weak mode, which has no conflicts to refuse them by, they
            are appended to whatever is there: the condition need not be about them.
        object_ids: The partitions that go.
    """
    removed = set(object_ids)
    parts = list(staged)
    if transaction.snapshot.is_strong:
        others = {part.object_id for part in parts} - removed
        removed |= others - leaf_states(transaction.snapshot, others).keys()
    transaction.replace(part for part in parts if part.object_id in removed)
    transaction.append(part for part in parts if part.object_id not in removed)
    transaction.drop(removed.difference(part.object_id for part in parts))


def _spec_version(object_id: str) -> int:
    parsed = ObjectId.parse(object_id)
    return 1 if parsed is None else parsed.spec_version


def _spelled(snapshot: Snapshot, leaf: pa.Table) -> str:
    """Spell the partition of one row of the manifest."""
    fields = snapshot.specs[_spec_version(leaf["object_id"][0].as_py())].fields
    values = {field.field_id: leaf[field.column][0] for field in fields}
    return partition_text(values) if values else "the only one"


def _keys(snapshot: Snapshot) -> str:
    """Name the columns that partitions are made by."""
    fields = snapshot.current_spec.fields
    named = [snapshot.schema.field_by_id(id_) for field in fields for id_ in field.source_ids]
    columns = dict.fromkeys(str(schema_field) for schema_field in named if schema_field is not None)
    return ", ".join(columns) or "TRUE: the table has one partition"
