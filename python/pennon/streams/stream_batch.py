"""The batches of a stream: from which position to which, and the splits of the rows between.

The first batch of a stream that begins at the table as it is has the rows of one version, those of
all later ones, version by version, what each commit added.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pennon.errors import StreamColumnsChanged, StreamSourceChanged, StreamSourceRefused
from pennon.leaf import open_leaf
from pennon.leaf.schema.reconciliation import is_promotable
from pennon.manifest.commits.commit_lookup import Rewrites, is_rewritten, rewritten_leaves
from pennon.manifest.versions.history import committed_at, history
from pennon.planning import plan_scan
from pennon.planning.leaf_constants import CONSTANTS, leaf_constants, with_constants
from pennon.planning.splits import assigned, pack
from pennon.spec.schema import children_of
from pennon.streams.stream_start import (
    BEGINNING,
    StreamPosition,
    check_position,
    opened,
    opened_at,
    position_at,
)

if TYPE_CHECKING:
    import lance

    from pennon.manifest import Snapshot
    from pennon.streams.stream_start import StreamOptions

__all__ = ["batch_end", "planned_batch"]

# The rows that a commit added: fragments of leaves that the version before does not have.
#
# A commit that only adds leaves every other fragment as it was. One that puts rows into other files
# adds none: a compaction says so in its record. Whatever else takes a fragment away, or deletes
# rows of one, is a change, and of the rows that it writes nobody can say which were there before.

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

    old, new = _added_leaves(before), _added_leaves(after)
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


def _added_leaves(snapshot: Snapshot) -> pa.Table:
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


_NO_COLUMNS: Final = pa.schema([])
_LEAVES: Final = pa.schema(
    [
        ("object_id", pa.utf8()),
        ("location", pa.utf8()),
        ("read_version", pa.uint64()),
        ("residual", pa.int32()),
        ("num_rows", pa.int64()),
    ]
)


def batch_end(
    newest: Snapshot,
    start: StreamPosition,
    options: StreamOptions,
    until: StreamPosition | None = None,
) -> StreamPosition:
    """Find how far the next batch goes.

    Args:
        newest: The table as it is.
        start: Where the batch begins.
        options: The stream's.
        until: Where a stream that takes what is there ends; None for one that goes on.

    Returns:
        The position; ``start`` where nothing was committed since.

    Raises:
        TableMadeAnew: The stream began with another table of this name.
        StreamPositionExpired: The version that tells it has expired.
    """
    check_position(newest, start)
    end = newest.version if until is None else min(newest.version, until.version)
    if options.most_versions is not None and start.version != BEGINNING:
        end = min(end, start.version + options.most_versions)
    return start if end <= start.version else position_at(newest, end, start.awaited)


def planned_batch(
    began: Snapshot,
    start: StreamPosition,
    end: StreamPosition,
    options: StreamOptions,
    *,
    num_tasks: int,
    max_bytes: int,
    constants: pa.Schema = _NO_COLUMNS,
) -> tuple[pa.Table, pa.Table]:
    """Plan the rows between two positions.

    Args:
        began: The table as the stream began, whose columns the rows are read in.
        start: Where the batch begins, its own version excluded.
        end: Where it ends, its own version included.
        options: The stream's.
        num_tasks: How many tasks can run at once.
        max_bytes: The most that one task should read of a whole table.
        constants: The requested metadata columns that splits bring along.

    Returns:
        The leaves (``object_id``, ``location``, ``read_version``, ``residual``, and the requested
        ``constants``), and what each task reads of them (``ASSIGNED``).

    Raises:
        StreamPositionExpired: A version between has expired.
        StreamSourceChanged: A commit removed or changed rows.
        StreamColumnsChanged: A column that is read was dropped or promoted.
        TableMadeAnew: Another table stands there by now.
    """
    if start.version == BEGINNING:
        whole = opened_at(began, end)
        _check_columns(began, whole)
        plan = with_constants(plan_scan(whole), constants)
        return plan.table, pack(plan, num_tasks, max_bytes)
    added: list[AddedRows] = []
    texts: list[str | None] = []
    before = opened_at(began, start)
    for version in range(start.version + 1, end.version + 1):
        after = opened(began, version)
        if start.awaited is None or committed_at(after) >= start.awaited:
            of_version = added_rows(before, after, skips_changes=options.skips_changes)
            added += of_version
            texts += _constants(after, of_version, constants)
        before = after
    _check_columns(began, before)
    leaves = _leaves(added)
    if any(texts):
        leaves = leaves.append_column(CONSTANTS, pa.array(texts, pa.utf8()))
    return leaves, _divided(added, num_tasks)


def _constants(
    after: Snapshot, added: Sequence[AddedRows], asked: pa.Schema
) -> Sequence[str | None]:
    """Give what the splits of added rows carry for metadata columns, as of their own version."""
    none: list[str | None] = [None] * len(added)
    if not len(asked) or not after.layout.records_commits:
        return none
    ids = pa.array([rows.object_id for rows in added], pa.utf8())
    leaves = after.leaves().table
    leaves = leaves.filter(pc.is_in(leaves["object_id"], value_set=ids))
    texts = leaf_constants(leaves, asked)
    if texts is None:
        return none
    by_leaf = dict(zip(leaves["object_id"].to_pylist(), texts.to_pylist(), strict=True))
    return [by_leaf[rows.object_id] for rows in added]


def _leaves(added: Sequence[AddedRows]) -> pa.Table:
    rows = [
        {
            "object_id": rows.object_id,
            "location": rows.location,
            "read_version": rows.version,
            "residual": -1,
            "num_rows": rows.num_leaf_rows,
        }
        for rows in added
    ]
    return pa.Table.from_pylist(rows, _LEAVES)


def _divided(added: Sequence[AddedRows], num_tasks: int) -> pa.Table:
    """Divide rows among as many tasks as can run at once, in their order."""
    most = -(-sum(rows.num_rows for rows in added) // max(1, num_tasks))
    tasks: list[int] = []
    task, filled = -1, most
    for rows in added:
        if filled >= most:
            task, filled = task + 1, 0
        tasks.append(task)
        filled += rows.num_rows
    first, end = (pa.array([rows.fragments[at] for rows in added], pa.int32()) for at in (0, 1))
    fragments = pa.table({"first_fragment": first, "end_fragment": end})
    return assigned(0, np.array(tasks, np.int64), np.arange(len(added)), fragments)


def _check_columns(began: Snapshot, now: Snapshot) -> None:
    """Refuse to read rows in columns that are other ones by now.

    A batch may end before the version that the stream began at: it lagged, or was left unfinished.
    What that version lacks was added since, for ids are never reused, and a type is read as the
    one that it was promoted to.

    Raises:
        StreamColumnsChanged: One is gone, or has another type.
    """
    is_older = now.version < began.version
    for field in began.schema.fields:
        present = now.schema.field_by_id(field.id)
        if is_older and (present is None or _promotes(present.field.type, field.field.type)):
            continue
        if present is None or present.field.type != field.field.type:
            what = "was dropped" if present is None else f"is {present.field.type} by now"
            raise StreamColumnsChanged(
                table=began.location, version=now.version, column=str(field), what=what
            )


def _promotes(stored: pa.DataType, expected: pa.DataType) -> bool:
    """Whether a type is read as another one; fields below it have ids and are compared by them."""
    if children_of(expected):
        return bool(stored.id == expected.id)
    return is_promotable(stored, expected)
