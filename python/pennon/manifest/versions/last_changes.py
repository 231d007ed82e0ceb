"""The version of a namespace at which each of its leaves last changed.

The versions that are still there are gone through in their order; each is read as far as it has
fragments that none before had. A leaf changes where it is read at another version or place. What
was so in the first version that is left may have been so for longer: such a value has no known
change.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pennon.manifest.dataset.storage import version_numbers
from pennon.manifest.format.rows import TABLE
from pennon.manifest.versions.shared_fragments import open_present, unseen_rows

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pennon.manifest.snapshot import Snapshot

__all__ = ["last_changes"]

_FIRST = 1


def last_changes(snapshot: Snapshot) -> Mapping[str, int]:
    """Find the last change of each leaf.

    Args:
        snapshot: Of a partitioned namespace.

    Returns:
        Object id → version of ``__manifest``, that of a rollback for what it put back. Leaves are
        missing whose last change has expired, and all where the manifest leaves versions open.

    Raises:
        StorageFailure: The storage refused.

    Spec: "Multi-Partition Transaction (Strong)".
    """
    if not snapshot.names_leaf_versions:
        return {}
    states: dict[str, tuple[str, int]] = {}
    changed: dict[str, int] = {}
    seen: set[tuple[str, ...]] = set()
    listed = version_numbers(snapshot.manifest)
    for number in listed:
        if number > snapshot.version:
            break
        manifest = open_present(snapshot.location, number, snapshot.storage_options)
        if manifest is None:
            continue
        condition = f"object_type = '{TABLE}'"
        rows = unseen_rows(snapshot.location, manifest, seen, condition, with_deletions=False)
        if rows is None:
            continue
        columns = (rows[name].to_pylist() for name in ("object_id", "location", "read_version"))
        for leaf, *state in zip(*columns, strict=True):
            if states.get(leaf) != tuple(state):
                states[leaf] = (state[0], state[1])
                changed[leaf] = number
    table = snapshot.leaves().table
    columns = (table[name].to_pylist() for name in ("object_id", "location", "read_version"))
    is_complete = listed[:1] == [_FIRST]
    return {
        leaf: changed[leaf]
        for leaf, *state in zip(*columns, strict=True)
        if states.get(leaf) == tuple(state) and (is_complete or changed[leaf] > listed[0])
    }
