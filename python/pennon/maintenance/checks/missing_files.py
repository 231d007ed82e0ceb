"""Finds partitions whose files are missing: a foreign clean-up removes detached versions."""

from __future__ import annotations

from collections.abc import Iterator

from pennon.errors import LeafMissing
from pennon.leaf import forget_leaves
from pennon.maintenance.leaves.leaf_files import LeafFiles, files_of_version
from pennon.maintenance.leaves.progress import Progress, no_progress
from pennon.manifest import Snapshot
from pennon.transaction.staging.leaf_state import LeafState, leaf_states, partition_text

__all__ = ["missing_files"]


def missing_files(snapshot: Snapshot, progress: Progress = no_progress) -> Iterator[str]:
    """Tell which partitions lack files that their version reads; no file's content is looked at.

    Leaves that are read on a branch or at a tag are left out.

    Args:
        snapshot: The table.
        progress: Called with how far it is.

    Returns:
        A sentence for each such partition: what is gone, and the ways out.

    Raises:
        StorageFailure: The storage refused.

    Example:
        >>> list(missing_files(Snapshot.open("/data/lake/orders")))  # doctest: +SKIP
        ['partition region=eu lacks 1 of 2 files of leaf 1c07cb90_v1$…: …']

    Spec: "Multi-Partition Transaction (Strong)".
    """
    forget_leaves()
    states = leaf_states(snapshot, snapshot.leaves().table["object_id"].to_pylist())
    for at, state in enumerate(states.values(), 1):
        if not state.is_elsewhere:
            lacking = _lacking(snapshot, state)
            if lacking is not None:
                yield (
                    f"partition {partition_text(state.values)} lacks {lacking}: restore them from a"
                    " copy, roll back to a version that does not need them, or delete the partition"
                )
        progress("leaves looked through", at, len(states))


def _lacking(snapshot: Snapshot, state: LeafState) -> str | None:
    location, options = snapshot.location, snapshot.storage_options
    try:
        dataset = state.opened(snapshot)
        present = LeafFiles.open(location, state.location, options).sizes
    except LeafMissing:
        return f"version {state.read_version} of leaf {state.location}"
    needed = set(files_of_version(dataset))
    gone = needed - present.keys()
    return f"{len(gone)} of {len(needed)} files of leaf {state.location}" if gone else None
