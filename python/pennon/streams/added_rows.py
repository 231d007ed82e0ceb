"""The rows that a commit added: fragments of leaves that the version before does not have.

A commit that only adds leaves every other fragment as it was. One that puts rows into other files
adds none: a compaction says so in its record. Whatever else takes a fragment away, or deletes rows
of one, is a change, and of the rows that it writes nobody can say which were there before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from typing import TYPE_CHECKING, Final

from pennon.errors import StreamSourceChanged, StreamSourceRefused
from pennon.leaf import open_leaf
from pennon.manifest.commits.commit_lookup import Rewrites, is_rewritten, rewritten_leaves
from pennon.manifest.versions.history import history

if TYPE_CHECKING:
    import lance
    import pyarrow as pa

    from pennon.manifest import Snapshot

__all__ = ["AddedRows", "added_rows"]

_KEYS: Final = ["object_id", "location", "read_version"]
# Procedures that put all rows of some partitions into others.
_MOVES: Final = "rewrite_partitions"


@dataclass(frozen=True, slots=True)
class AddedRows:
    """Neighbouring fragments that a commit added to a leaf.

    Args:
        object_id: The leaf in the manifest.
        location: The leaf, relative to the namespace.
        version: The Lance version that has them.
        fragments: The first one and the one after the last, by position.
        num_rows: Their rows.
        num_leaf_rows: The rows of the whole leaf.
    """

    object_id: str
    location: str
    version: int
    fragments: tuple[int, int]
    num_rows: int
    num_leaf_rows: int


def added_rows(before: Snapshot, after: Snapshot, *, skips_changes: bool) -> list[AddedRows]:
    """Find the rows that one commit added.

    Args:
        before: A version of a table that names the versions of its leaves.
        after: The next one.
        skips_changes: Whether a commit that removes or changes rows adds nothing.

    Raises:
        StreamSourceChanged: It does, and is not to be passed over.
        LeafMissing: A leaf's files are gone.

    Spec: "Multi-Partition Transaction (Strong)".
    """

    @cache
    def rewrites() -> Rewrites:
        if not after.layout.records_commits:
            return {}
        return rewritten_leaves(after.location, after.storage_options)

    old, new = _leaves(before), _leaves(after)
    gone = old.join(new, ["object_id"], join_type="left anti")
    is_change = any(num_rows != 0 for num_rows in gone["num_rows"].to_pylist())
    changed = new.join(old, _KEYS, join_type="left anti").sort_by("object_id")
    old_versions = _versions_of(old, changed)
    added_by_version: list[AddedRows] = []
    for leaf in changed.to_pylist():
        added = _added_to_leaf(before, after, leaf, old_versions.get(leaf["object_id"]), rewrites)
        is_change |= added is None
        added_by_version += added or []
    if not is_change or _operation(after) == _MOVES:
        return [] if is_change else added_by_version
    if skips_changes:
        return []
    raise StreamSourceChanged(
        table=after.location, version=after.version, operation=_operation(after)
    )


def _leaves(snapshot: Snapshot) -> pa.Table:
    leaves = snapshot.leaves().table
    if leaves["read_version"].null_count:
        why = "a partition is read at a branch, a tag or its newest version, which moves on"
        raise StreamSourceRefused(table=snapshot.location, why=why)
    return leaves.select([*_KEYS, "num_rows"])


def _versions_of(old: pa.Table, changed: pa.Table) -> Mapping[str, tuple[str, int]]:
    existing = old.join(changed.select(["object_id"]), ["object_id"], join_type="left semi")
    return {
        row["object_id"]: (row["location"], row["read_version"]) for row in existing.to_pylist()
    }


def _added_to_leaf(
    before: Snapshot,
    after: Snapshot,
    leaf: Mapping[str, str | int],
    was: tuple[str, int] | None,
    rewrites: Callable[[], Rewrites],
) -> list[AddedRows] | None:
    """Find the rows that were added to a leaf; None where others went or changed."""
    object_id, location = str(leaf["object_id"]), str(leaf["location"])
    version = int(leaf["read_version"])
    now = open_leaf(after.location, location, version, after.storage_options, after.identity)
    if was is None:
        places = list(range(len(now.get_fragments())))
    else:
        then = open_leaf(before.location, was[0], was[1], before.storage_options, before.identity)
        own = _added_fragments(then, now)
        if own is None:
            is_moved = is_rewritten(object_id, was[1], version, rewrites())
            return [] if is_moved else None
        places = own
    counts = [fragment.metadata.num_rows for fragment in now.get_fragments()]
    return [
        AddedRows(
            object_id,
            location,
            version,
            (first, end),
            sum(counts[first:end]),
            sum(counts),
        )
        for first, end in _runs(places)
    ]


def _added_fragments(then: lance.LanceDataset, now: lance.LanceDataset) -> list[int] | None:
    """List the fragments of a leaf that it did not have; None where one is not as it was."""
    old, new = _fragments(then), _fragments(now)
    for number, (files, deletions) in old.items():
        newer = new.get(number)
        # A column that was added since has a file of its own beside those that stay.
        if newer is None or newer[1] != deletions or files.isdisjoint(newer[0]):
            return None
    return [place for place, number in enumerate(new) if number not in old]


def _fragments(leaf: lance.LanceDataset) -> dict[int, tuple[frozenset[str], str | None]]:
    """Give the files of each fragment, and the one that lists its deleted rows."""
    fragments = {}
    for fragment in leaf.get_fragments():
        metadata, deletions = fragment.metadata, fragment.metadata.deletion_file
        fragments[fragment.fragment_id] = (
            frozenset(file.path for file in metadata.files),
            None if deletions is None else deletions.path(fragment.fragment_id),
        )
    return fragments


def _runs(places: list[int]) -> Iterator[tuple[int, int]]:
    """Put neighbours together.

    Example:
        >>> list(_runs([1, 2, 5]))
        [(1, 3), (5, 6)]
    """
    for _, run in groupby(enumerate(places), lambda pair: pair[1] - pair[0]):
        numbers = [place for _, place in run]
        yield numbers[0], numbers[-1] + 1


def _operation(snapshot: Snapshot) -> str:
    """Name what made a version, as the history of the table does."""
    if not snapshot.layout.records_commits:
        return "commit"
    entries = history(snapshot.location, snapshot.storage_options, after=snapshot.version - 1)
    return next(
        (entry.operation for entry in entries if entry.version == snapshot.version), "commit"
    )
