"""The record of a commit, made from its changes: operation, partitions, rows added and removed."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from pennon.manifest.commits.stated_commit import schema_id
from pennon.manifest.format.commit_record import CommitIdentity, CommitRecord
from pennon.transaction.staging.staged import Append, ChangeRows, Drop, Replace, Rewrite

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pennon.manifest import Snapshot
    from pennon.transaction.staging.leaf_state import LeafState
    from pennon.transaction.staging.staged import Change

__all__ = ["described"]


def described(
    base: Snapshot,
    changes: Mapping[str, Change],
    states: Mapping[str, LeafState],
    identity: CommitIdentity,
    operation: str | None = None,
) -> CommitRecord:
    """Describe the commit of some changes.

    Args:
        base: The snapshot that the changes were made against.
        changes: One change per leaf, by object id.
        states: The touched leaves in it.
        identity: Which commit it is.
        operation: What the user calls it; None to name it after the changes.
    """
    added = sum(
        part.num_rows
        for change in changes.values()
        if isinstance(change, Append | Replace | ChangeRows)
        for part in change.staged
    )
    removed = [
        len(change.deleted.addresses)
        if isinstance(change, ChangeRows)
        else states[object_id].num_rows
        for object_id, change in changes.items()
        if object_id in states and not isinstance(change, Append | Rewrite)
    ]
    counts = [count for count in removed if count is not None]
    return CommitRecord(
        identity,
        operation or _named(changes),
        base_version=base.version,
        spec_version=base.current_spec.spec_version,
        schema_id=schema_id(base.metadata),
        partitions=len(changes),
        added_rows=added,
        removed_rows=sum(counts) if len(counts) == len(removed) else None,
        made_at=int(time.time()),
    )


def _named(changes: Mapping[str, Change]) -> str:
    kinds = {type(change) for change in changes.values()}
    if kinds == {Append}:
        return "append"
    return "delete" if kinds <= {Drop} else "overwrite"
