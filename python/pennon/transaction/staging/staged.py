"""The kinds of change that a transaction can make to one leaf.

``Append`` commutes with other appends. The others depend on what was there: they conflict with
every other change of the same leaf, but for ``Rewrite`` and ``Reindex``, which change no row, and a
``ChangeRows`` under snapshot isolation, which commutes with what leaves its rows as they are.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from pennon.errors import InternalError
from pennon.leaf import StagedPartition
from pennon.leaf.changes.deleted_rows import DeletedRows
from pennon.leaf.dataset import check_is_main, open_leaf
from pennon.manifest import ObjectId
from pennon.manifest.commits.root_change import schema_id
from pennon.manifest.format.column_statistics import (
    IS_COUNTED,
    LeafIndex,
    LeafStatistics,
    indexes_in,
    statistics_in,
)
from pennon.manifest.format.rows import CommitIdentity, CommitRecord
from pennon.spec.column_names import text_of_value

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import lance
    from lance.dataset import Index

    from pennon.leaf.write.leaf_commit import FragmentFiles
    from pennon.manifest import Snapshot

__all__ = [
    "Append",
    "Change",
    "ChangeRows",
    "Drop",
    "LeafState",
    "Reindex",
    "Replace",
    "Rewrite",
    "by_leaf",
    "check_writable",
    "described",
    "leaf_states",
    "partition_text",
]


@dataclass(frozen=True, slots=True)
class Append:
    """Add rows to a leaf, which is made where it is not there."""

    staged: tuple[StagedPartition, ...]


@dataclass(frozen=True, slots=True)
class Replace:
    """Make a leaf's rows exactly these."""

    staged: tuple[StagedPartition, ...]


@dataclass(frozen=True, slots=True)
class Rewrite:
    """Put rows of a leaf into other files: other writers go on as if nothing had changed.

    Args:
        staged: Exactly the rows of some fragments, in their order or with a file of their places.
        fragments: The numbers of these fragments, which go.
        version: The Lance version of the leaf that they were read at.
    """

    staged: tuple[StagedPartition, ...]
    fragments: tuple[int, ...]
    version: int


@dataclass(frozen=True, slots=True)
class Reindex:
    """Give rows of a leaf indexes, or take these from them: no row changes.

    Args:
        built: Segments of indexes, whose files are there; those of which no fragment is as it was
            when they were built are left out.
        removed: The ids of segments that go.
        files: The leaf's files, by fragment, that they were built of.
    """

    built: tuple[Index, ...]
    removed: frozenset[str]
    files: Mapping[int, FragmentFiles] = field(hash=False)


@dataclass(frozen=True, slots=True)
class ChangeRows:
    """Take single rows out of a leaf, and add others.

    Args:
        deleted: Rows that go, by their addresses at the version that the statement read.
        staged: New rows.
        copies: Whether the fragments of rows that go are written anew without them.
    """

    deleted: DeletedRows
    staged: tuple[StagedPartition, ...] = ()
    copies: bool = False


@dataclass(frozen=True, slots=True)
class Drop:
    """Take a leaf out of the manifest; its files stay for older snapshots."""


Change = Append | Replace | Rewrite | Reindex | ChangeRows | Drop


def by_leaf(staged: Iterable[StagedPartition]) -> dict[str, tuple[StagedPartition, ...]]:
    """Bring together what several tasks wrote for the same leaf.

    Raises:
        InternalError: Two tasks disagree on the leaf's directory.
    """
    grouped: dict[str, tuple[StagedPartition, ...]] = {}
    for part in staged:
        parts = grouped.get(part.object_id, ())
        if parts and parts[0].location != part.location:
            raise InternalError(what=f"two tasks wrote {part.object_id} to different directories")
        grouped[part.object_id] = (*parts, part)
    return grouped


# The record of a commit, made from its changes: operation, partitions, rows added and removed.


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
        if object_id in states and not isinstance(change, Append | Rewrite | Reindex)
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


# The state, in a snapshot, of the leaves that a transaction touches.

# Beyond so many ids one pass over all rows is cheaper than a list of literals.
_MAX_KEYS = 500


@dataclass(frozen=True, slots=True)
class LeafState:
    """A leaf's row in the manifest."""

    object_id: str
    location: str
    read_version: int | None
    values: Mapping[str, pa.Scalar]
    num_rows: int | None
    num_bytes: int | None
    num_fragments: int | None
    read_branch: str | None = None
    read_tag: str | None = None
    write_order: str | None = None
    columns: LeafStatistics | None = None
    """The statistics of its columns at ``read_version``; None where they are not known."""
    indexes: tuple[LeafIndex, ...] | None = ()
    """What it has of indexes at ``read_version``; None where that is not known."""

    @property
    def is_elsewhere(self) -> bool:
        """Whether the leaf is read at a branch or a tag."""
        return self.read_branch is not None or self.read_tag is not None

    def opened(self, snapshot: Snapshot) -> lance.LanceDataset:
        """Open the leaf at the version that the manifest names.

        Args:
            snapshot: The one that the state is of.

        Raises:
            LeafMissing: Its files are gone.
        """
        root, options = snapshot.location, snapshot.storage_options
        return open_leaf(root, self.location, self.read_version, options)


def leaf_states(snapshot: Snapshot, object_ids: Iterable[str]) -> dict[str, LeafState]:
    """Read the rows of some leaves; those that are not in the snapshot are left out."""
    ids = list(object_ids)
    if not ids:
        return {}
    condition = None
    if len(ids) <= _MAX_KEYS:
        condition = exp.column("object_id").isin(*[exp.Literal.string(id_) for id_ in ids])
    rows = snapshot.leaves(condition, beside=("metadata",)).table
    rows = rows.filter(pc.is_in(rows["object_id"], value_set=pa.array(ids, pa.utf8())))
    made = ("values", "columns", "indexes")
    names = [field.name for field in fields(LeafState) if field.name not in made]
    plain = rows.select([name for name in names if name in rows.column_names]).to_pylist()
    return {
        row["object_id"]: LeafState(
            values=_values(snapshot, rows, at, row["object_id"]),
            columns=_columns(rows, at),
            indexes=_indexes(rows, at, row["read_version"]),
            **row,
        )
        for at, row in enumerate(plain)
    }


def _columns(rows: pa.Table, at: int) -> LeafStatistics | None:
    """Read the statistics of a leaf's columns where they are of the version that is read."""
    if "metadata" not in rows.column_names or not rows[IS_COUNTED][at].as_py():
        return None
    return statistics_in(rows["metadata"][at].as_py())


def _indexes(rows: pa.Table, at: int, version: int | None) -> tuple[LeafIndex, ...] | None:
    text = rows["metadata"][at].as_py() if "metadata" in rows.column_names else None
    return indexes_in(text, version)


def _values(snapshot: Snapshot, rows: pa.Table, at: int, object_id: str) -> dict[str, pa.Scalar]:
    parsed = ObjectId.parse(object_id)
    levels = () if parsed is None else snapshot.specs[parsed.spec_version].fields
    return {level.field_id: rows[level.column][at] for level in levels}


def check_writable(
    location: str, changes: Mapping[str, Change], states: Mapping[str, LeafState]
) -> None:
    """Refuse a write to a leaf that readers look for on a branch or at a tag; dropping is fine.

    Raises:
        LeafReadAtReference: The manifest names a branch or a tag of it.
    """
    for object_id, state in states.items():
        if isinstance(changes[object_id], Drop):
            continue
        check_is_main(location, state.location, state.read_branch, state.read_tag)


def partition_text(values: Mapping[str, pa.Scalar]) -> str:
    """Spell a partition's values as commands take them.

    Example:
        >>> partition_text({"region": pa.scalar("eu"), "day": pa.scalar(None, pa.int32())})
        'region=eu, day=NULL'
        >>> partition_text({"at": pa.scalar(0, pa.timestamp("us", "UTC")), "new": pa.scalar(True)})
        'at=1970-01-01T00:00:00.000000Z, new=true'
    """
    texts = [
        f"{name}={text_of_value(value) if value.is_valid else 'NULL'}"
        for name, value in values.items()
    ]
    return ", ".join(texts) or "the only partition"
