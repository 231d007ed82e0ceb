"""Commits statistics of leaves whose versions stay the same.

Rows that another commit has moved on meanwhile are left as they are: what was counted is not
theirs. Lance refuses the merge where one of the rows changes at the same moment.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from pennon.manifest.commits.fragment_merge import keep_small
from pennon.manifest.commits.manifest_commit import existing_rows, with_changes
from pennon.manifest.commits.manifest_outcome import (
    ConcurrentChange,
    ManifestCommitted,
    ManifestOutcome,
)
from pennon.manifest.dataset.commit_conflict import is_conflict
from pennon.manifest.dataset.storage import storage_failure
from pennon.manifest.format.columns import READ_VERSION
from pennon.manifest.format.rows import table_of_rows
from pennon.manifest.table_identity import open_commit_base

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pennon.manifest.commits.manifest_commit import LeafChange
    from pennon.manifest.format.commit_record import CommitRecord
    from pennon.manifest.snapshot import Snapshot

__all__ = ["commit_statistics"]


def commit_statistics(
    snapshot: Snapshot, counted: Sequence[LeafChange], record: CommitRecord
) -> ManifestOutcome:
    """Write what was counted of leaves into their rows; none of them moves.

    Args:
        snapshot: The newest snapshot, in which the leaves are still at the counted versions.
        counted: The statistics, with the version of each leaf that they are of. A leaf whose row
            names no version, or another one, is left out.
        record: What the commit does.

    Returns:
        The version of ``__manifest`` with the statistics, the snapshot's where there is nothing to
        write; or that another writer came first, and nothing was written.

    Raises:
        StorageFailure: The storage refused; nothing is visible.
        TableMadeAnew: Another table stands there by now.

    Spec: "Manifest Table Schema" (metadata).
    """
    base = open_commit_base(snapshot)
    try:
        rows = existing_rows(base, [leaf_change.object_id for leaf_change in counted])
        changes = {leaf_change.object_id: leaf_change for leaf_change in counted}
        versions = [changes[object_id].read_version for object_id in rows["object_id"].to_pylist()]
        stands = pc.equal(rows[READ_VERSION.name], pa.array(versions, READ_VERSION.type))
        rows = rows.filter(pc.fill_null(stands, fill_value=False))
        if not rows.num_rows:
            return ManifestCommitted(snapshot.version)
        record_rows = table_of_rows([record.row()], base.schema)
        merge = base.merge_insert("object_id").when_matched_update_all()
        merge = merge.when_not_matched_insert_all().conflict_retries(0)
        merge.execute(pa.concat_tables([with_changes(rows, changes), record_rows]))
    except (OSError, RuntimeError, ValueError) as error:
        if not is_conflict(error):
            raise storage_failure("commit to", snapshot.location, error) from error
        return ConcurrentChange()
    committed = ManifestCommitted(base.version)
    keep_small(base)
    return committed
