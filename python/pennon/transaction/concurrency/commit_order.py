"""Whether a statement can come before commits that were made since it began.

Rows that are merely appended come behind whatever has not read them, so a statement may be placed
before an append that was committed first. It then comes before all that was committed since, too:
another statement may have read, or have taken out, what was appended, and what this one replaces
beside it. Where each has to come before the other, no order explains both, and one is refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pennon.errors import SnapshotNotFound, StorageFailure
from pennon.manifest import Snapshot
from pennon.manifest.commits.commit_lookup import is_rewritten
from pennon.manifest.versions.history import history
from pennon.transaction.concurrency.outcome import Conflicted
from pennon.transaction.staging.leaf_state import leaf_states, partition_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from pennon.manifest.commits.commit_lookup import Rewrites

__all__ = ["are_only_appends", "conflict_behind", "has_same_rows"]

# Rows that are added whatever is there: an overwrite that came first took none of them.
_READ_NOTHING: Final = frozenset({"append", "compact", "maintenance", "alter"})


def are_only_appends(base: Snapshot, latest: Snapshot) -> bool:
    """Whether all that others committed since a version reads nothing.

    Args:
        base: The version.
        latest: The table after other commits.

    Spec: "Conflict Resolution".
    """
    return not any(_has_changed(base, version) for version in _made_by_others(base, latest))


def conflict_behind(
    base: Snapshot,
    latest: Snapshot,
    before: Mapping[str, tuple[str, int]],
    after: Mapping[str, tuple[str, int]],
    rewrites: Callable[[], Rewrites],
) -> Conflicted | None:
    """Find a leaf of rows that a statement neither takes out nor can come before.

    Leaves whose rows it takes out must not be changed by others, which is seen at the leaf. Of
    those that were made since, or had no rows, it takes none: it comes before all that was done to
    them and since then, which may be appends alone.

    Args:
        base: The version that it was started on.
        latest: The table after other commits.
        before: The places and versions in it of the leaves that it is about, by object id.
        after: Those that they have now.
        rewrites: Tells which leaf version has the rows of which other one.

    Spec: "Conflict Resolution".
    """
    changed = {
        object_id: before.get(object_id)
        for object_id, new in after.items()
        if new != before.get(object_id)
        and not has_same_rows(object_id, before.get(object_id), new, rewrites)
    }
    met = _changed_before_others(base, latest, changed) if changed else None
    if met is None:
        return None
    state = leaf_states(latest, [met]).get(met)
    reason = (
        "a statement that read what this one replaces made it meanwhile, or came behind rows that"
        " others appended to it"
    )
    return Conflicted(partition_text({} if state is None else state.values), reason)


def has_same_rows(
    object_id: str,
    old: tuple[str, int] | None,
    new: tuple[str, int] | None,
    rewrites: Callable[[], Rewrites],
) -> bool:
    """Whether a leaf was only put into other files, where it was.

    Args:
        object_id: The leaf.
        old: Its place and version; None where it was not there.
        new: Those that it has now; None where it is gone.
        rewrites: Tells which leaf version has the rows of which other one.
    """
    if old is None or new is None or old[0] != new[0]:
        return False
    return is_rewritten(object_id, old[1], new[1], rewrites())


def _changed_before_others(
    base: Snapshot, latest: Snapshot, leaves: Mapping[str, tuple[str, int] | None]
) -> str | None:
    """Find a leaf that a commit which is no append has changed, or came behind the change of."""
    for version in _made_by_others(base, latest):
        now = _leaves_at(base, version, leaves)
        changed = [name for name in sorted(leaves) if now is None or now.get(name) != leaves[name]]
        if changed and _has_changed(base, version):
            return changed[0]
    return None


def _made_by_others(base: Snapshot, latest: Snapshot) -> Iterator[int]:
    """Name the versions since the base that are no appends: of expired ones none knows."""
    entries = history(base.location, base.storage_options, after=base.version)
    operations = {entry.version: entry.operation for entry in entries}
    for version in range(base.version + 1, latest.version + 1):
        if operations.get(version) not in _READ_NOTHING:
            yield version


def _has_changed(base: Snapshot, version: int) -> bool:
    """Whether a commit changed any leaf; so it is said of one that has expired, too."""
    before, after = (_leaves_at(base, at, None) for at in (version - 1, version))
    return before is None or before != after


def _leaves_at(
    base: Snapshot, version: int, object_ids: Iterable[str] | None
) -> dict[str, tuple[str, int | None]] | None:
    """Tell the places and versions of leaves at a version of the table; None where it expired.

    Of all leaves where none is named.
    """
    try:
        snapshot = Snapshot.open(base.location, version, storage_options=base.storage_options)
        if object_ids is None:
            object_ids = snapshot.leaves().table["object_id"].to_pylist()
        states = leaf_states(snapshot, object_ids)
    except (SnapshotNotFound, StorageFailure):
        return None
    return {name: (state.location, state.read_version) for name, state in states.items()}
