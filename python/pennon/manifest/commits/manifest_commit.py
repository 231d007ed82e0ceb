"""The one ``merge_insert`` that makes the changes of many leaves visible: all of them or none.

Lance compares the merge with every commit after the snapshot's version: it refuses a change of
the same row or of the same data file, and two inserts of one primary key. Changes of other rows
in other files, and of the metadata, are rebased over. A refusal is a value: the caller decides
whether its change still makes sense on the latest snapshot.

For two inserts of one key Lance writes a filter of the keys into the version and its transaction,
66 kB however few they are. Only a commit that makes leaves needs it. One that moves leaves which
are there changes their rows, and so does every other try of it: Lance sees the two by these. It
merges by two columns, of which the first is the key, and Lance writes no filter.
"""

from __future__ import annotations

import json
import logging
import random
import secrets
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Final

import lance
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from lance.fragment import FragmentMetadata
from sqlglot import exp

from pennon.caching import version_identity
from pennon.caching.lance_sessions import file_session, saw_newest
from pennon.errors import CommitGivenUp, InternalError
from pennon.manifest.dataset.select import (
    carry_sequence_numbers,
    last_sequence_numbers,
    version_row_ids,
)
from pennon.manifest.dataset.storage import is_conflict, manifest_uri, storage_failure
from pennon.manifest.format.column_statistics import (
    COLUMN_STATISTICS,
    COUNTED_VERSION,
    INDEXES,
    RECORDED_ORDER,
    LeafIndex,
    LeafStatistics,
    indexes_text,
    recorded_order,
    with_statistics,
)
from pennon.manifest.format.names import SEPARATOR, ObjectId
from pennon.manifest.format.rows import (
    NAMESPACE,
    READ_VERSION,
    TABLE,
    TABLE_VERSION,
    CommitRecord,
    ManifestRow,
    records_in,
    table_of_rows,
    version_row,
)
from pennon.manifest.leaves.leaf_rows import (
    MOST_NAMES,
    carry_rows,
    check_single,
    named_rows,
    namespaces_above,
)
from pennon.manifest.snapshot import Snapshot
from pennon.manifest.table_identity import open_commit_base
from pennon.predicate.dialect import DataFusion

if TYPE_CHECKING:
    from lance.dataset import MergeInsertBuilder

    from pennon.caching import TableKey

__all__ = [
    "ConcurrentChange",
    "LeafChange",
    "ManifestCommitted",
    "ManifestOutcome",
    "commit_leaves",
    "commit_statistics",
    "exclusive",
    "existing_rows",
    "keep_small",
    "wait_for_others",
    "with_changes",
]


# The outcomes of a commit to ``__manifest``, as types.


@dataclass(frozen=True, slots=True)
class ManifestCommitted:
    """The change is visible from this version of ``__manifest`` on.

    Args:
        version: The version that the commit made.
    """

    version: int


@dataclass(frozen=True, slots=True)
class ConcurrentChange:
    """Another writer committed a change of the same rows or keys; nothing of ours is visible."""


ManifestOutcome = ManifestCommitted | ConcurrentChange


# Randomised back-off after a lost race.

_FIRST_SECONDS: Final = 0.01
_LONGEST_SECONDS: Final = 0.5


def wait_for_others(attempt: int) -> None:
    """Wait a random while, longer after each failed attempt.

    Args:
        attempt: How many have failed before this one.
    """
    longest = min(_LONGEST_SECONDS, _FIRST_SECONDS * 2**attempt)
    time.sleep(random.uniform(0, longest))  # noqa: S311 - spreads writers, protects nothing


# Exclusive commits: refused after any concurrent change of the dataset's rows.
#
# Lance rebases an update over commits of other rows. That is right for a change that depends on the
# rows it replaces, and wrong for one that was made of all rows it has read. An operation that
# states every fragment conflicts with each commit that changes a fragment, appends among them, and
# each update conflicts with it. Changes of the metadata alone are still rebased over.


def exclusive(
    base: lance.LanceDataset,
    update: lance.LanceOperation.BaseOperation,
    storage_options: Mapping[str, str],
) -> lance.LanceOperation.BaseOperation:
    """Turn an update of rows into one that can only be the first change since its base version.

    Args:
        base: The version that the update was made for, and has to be committed to.
        update: What goes and what comes.
        storage_options: Given to Lance.

    Raises:
        OSError: The storage refused.
    """
    if not isinstance(update, lance.LanceOperation.Update):
        raise InternalError(what=f"Lance merges rows by {type(update).__name__}")
    fragments = {fragment.fragment_id: fragment.metadata for fragment in base.get_fragments()}
    following = max(fragments, default=-1) + 1
    for number in update.removed_fragment_ids:
        fragments[number] = _emptied(base, fragments[number], storage_options)
    fragments.update({fragment.id: fragment for fragment in update.updated_fragments})
    for at, fragment in enumerate(update.new_fragments, following):
        fragments[at] = _without_row_ids(fragment, at)
    return lance.LanceOperation.Merge(list(fragments.values()), base.lance_schema)


def _without_row_ids(fragment: FragmentMetadata, number: int) -> FragmentMetadata:
    """Number a fragment, and leave its stable row ids, where it has some, to the commit."""
    stated = fragment.to_json()
    stated.update(id=number, row_id_meta=None)
    return FragmentMetadata.from_json(json.dumps(stated))


def _emptied(
    base: lance.LanceDataset, fragment: FragmentMetadata, storage_options: Mapping[str, str]
) -> FragmentMetadata:
    """Delete all rows of a fragment: the operation may not leave one out, and then Lance does."""
    offsets = pa.array(np.arange(fragment.physical_rows, dtype=np.uint32))
    schema = pa.schema([pa.field("row_id", pa.uint32(), nullable=False)])
    file_id = secrets.randbits(63)
    name = f"{fragment.id}-{base.version}-{file_id}.arrow"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        with pa.ipc.new_file(str(path), schema) as writer:
            writer.write_batch(pa.record_batch([offsets], schema=schema))
        session = file_session(str(base.uri), storage_options)
        session.upload_file(str(path), f"_deletions/{name}")
    stated = fragment.to_json()
    stated["deletion_file"] = {
        "read_version": base.version,
        "id": file_id,
        "file_type": "array",
        "num_deleted_rows": fragment.physical_rows,
        "base_id": None,
    }
    return FragmentMetadata.from_json(json.dumps(stated))


_LOG = logging.getLogger(__name__)
# Keeps ``__manifest`` small: commits merge the small fragments that they leave.
#
# Every commit adds a fragment of a few rows, and whoever opens or changes the table pays for each
# of them: after 400 commits five times the price of the first. So a commit that finds many small
# ones merges them, behind its own commit point. A merge that meets another commit is left to a
# later one; a commit that meets a merge is made again on top, as beside every other commit.
#
# Fragments are merged by levels, so that a row is rewritten a few times in its life and not by
# every merge: what old versions read stays on the disk until they expire.

_MAX_FRAGMENTS: Final = 8
# So many fewer fragments are worth taking some large ones along.
_FAR_MORE: Final = 32
_LEVELS: Final = (64, 1024, 16_384, 262_144)


def keep_small(manifest: lance.LanceDataset) -> bool:
    """Merge the fragments of ``__manifest`` where they are many and small; never fails.

    Args:
        manifest: The table at its newest version; at that of the merge afterwards.

    Returns:
        Whether it was merged and has exactly the rows that it was given with: no other commit came
        between.
    """
    fragments = [fragment.metadata for fragment in manifest.get_fragments()]
    level = _level([int(fragment.physical_rows) for fragment in fragments])
    if level is None:
        return False
    columns = manifest.schema
    try:
        manifest.optimize.compact_files(target_rows_per_fragment=level, num_threads=1)
        return _is_made_of(manifest, fragments) and manifest.schema == columns
    except (OSError, RuntimeError, ValueError) as error:
        # What the commit has done stands whether its waste is cleared away or not.
        log = _LOG.debug if is_conflict(error) else _LOG.warning
        log("fragments of %s are not merged: %s", manifest.uri, error)
        return False


def _is_made_of(manifest: lance.LanceDataset, fragments: Sequence[FragmentMetadata]) -> bool:
    """Whether a version is the rewrite of one that has exactly these fragments."""
    made_by = manifest.read_transaction(manifest.version)
    if made_by is None or not isinstance(made_by.operation, lance.LanceOperation.Rewrite):
        return False
    before = manifest.checkout_version(manifest.version - 1).get_fragments()
    stated = [fragment.metadata.to_json() for fragment in before]
    return stated == [fragment.to_json() for fragment in fragments]


def _level(rows: Sequence[int]) -> int | None:
    """Choose the size below which fragments are merged; None where they are few.

    Fragments of one size are many, not those of all: else each of the small merges would take the
    large fragments along. Only neighbours are merged, so small ones between large ones count at
    the level of these.

    Example:
        >>> _level([5000, 3, 3]), _level([5000, *[3] * 7]), _level([5000, *[300] * 8])
        (None, None, 1024)
        >>> _level([300, 3] * 8)
        1024
    """
    for least, level in pairwise((0, *_LEVELS)):
        fewer = sum(one < level and other < level for one, other in pairwise(rows))
        of_its_size = sum(least <= row < level for row in rows)
        if fewer >= _MAX_FRAGMENTS - 1 and (of_its_size >= _MAX_FRAGMENTS or fewer >= _FAR_MORE):
            return level
    return None


_KEY: Final = "object_id"
# The same rows match as by the key alone: an object never changes its type.
_KEY_WITHOUT_FILTER: Final = (_KEY, "object_type")
# Beyond so many keys one pass over all rows is cheaper than a list of literals.
_MAX_KEYS: Final = 1000


@dataclass(frozen=True, slots=True)
class LeafChange:
    """What one commit does to one leaf: make it, or move it to another version.

    Args:
        object_id: The leaf's table row.
        location: Its directory, relative to the namespace's location; a row that is there
            already keeps its own.
        values: Its partition values by field id, all levels of its spec.
        read_version: The Lance version that readers shall read; None in weak mode.
        num_rows: Rows of that version; None where unknown.
        num_bytes: Bytes of its data files; None where unknown.
        num_fragments: Fragments of it; None where unknown.
        order: The write order in which the rows of each of its fragments are; None where unknown.
        columns: The statistics of its columns; None where unknown.
        indexes: What the version has of indexes.
    """

    object_id: str
    location: str
    values: Mapping[str, pa.Scalar]
    read_version: int | None
    num_rows: int | None = None
    num_bytes: int | None = None
    num_fragments: int | None = None
    order: str | None = None
    columns: LeafStatistics | None = None
    indexes: tuple[LeafIndex, ...] = ()

    @property
    def statistics(self) -> dict[str, int | str | None]:
        """What the row's metadata says about the version."""
        order, version = self.order, self.read_version
        return {
            "num_rows": self.num_rows,
            "num_bytes": self.num_bytes,
            "num_fragments": self.num_fragments,
            COUNTED_VERSION: None if self.num_rows is None else version,
            RECORDED_ORDER: None
            if order is None or version is None
            else recorded_order(version, order),
            COLUMN_STATISTICS: None
            if self.columns is None or self.num_rows is None or version is None
            else self.columns.to_json(version),
            INDEXES: None if version is None else indexes_text(version, self.indexes),
        }


def commit_leaves(
    snapshot: Snapshot,
    changes: Sequence[LeafChange],
    removed: Sequence[str] = (),
    records: Sequence[CommitRecord] = (),
    *,
    is_exclusive: bool = False,
) -> ManifestOutcome:
    """Commit the changes of all leaves at once, or none.

    New leaves get the rows of their namespaces as well; in strong mode every change adds a
    ``table_version`` row.

    Args:
        snapshot: The snapshot that the changes were made against (S0).
        changes: One per leaf.
        removed: Object ids of leaves that shall be gone; their ``table_version`` rows go too.
        records: What the commit does, written with it, one for each of the writes that it makes
            together. A commit whose record is there already is not made again, and none is made
            together with one that was.
        is_exclusive: Whether to refuse the commit after any change of the manifest's rows since
            the snapshot, and not only after one of the same rows.

    Returns:
        The version of ``__manifest`` that has all changes, or that another writer came first.

    Raises:
        CommitGivenUp: The record says that the commit shall never be made.
        TableMadeAnew: Another table stands there by now.
        StorageFailure: The storage refused; nothing is visible.

    Spec: "Commit Behavior".
    """
    base, began = open_commit_base(snapshot), time.monotonic()
    if not changes and not removed:
        return ManifestCommitted(snapshot.version)
    try:
        rows = _rows(snapshot, base, changes, records)
        if rows is None and len(records) > 1:
            return ConcurrentChange()
        if rows is None:
            return ManifestCommitted(snapshot.version)
        merge = _merge(base, rows, removed, snapshot.rows)
        if is_exclusive or rows.begins_spec:
            transaction, _ = merge.execute_uncommitted(rows.table)
            operation = exclusive(base, transaction.operation, snapshot.storage_options)
            base = lance.LanceDataset.commit(base, operation, base.version, max_retries=0)
        else:
            merge.conflict_retries(0).execute(rows.table)
    except (OSError, RuntimeError, ValueError) as error:
        if not is_conflict(error):
            raise storage_failure("commit to", snapshot.location, error) from error
        return ConcurrentChange()
    committed = ManifestCommitted(base.version)
    try:
        made = _keep_what_is_known(snapshot, base, rows.table, removed)
        if keep_small(base):
            _keep_beyond_merge(made, base)
        uri, options = manifest_uri(snapshot.location), snapshot.storage_options
        saw_newest(uri, options, base, began, is_own=True)
    except (OSError, RuntimeError, ValueError) as error:  # the commit stands; the next one reads
        _LOG.warning("what was written to %s is not kept: %s", base.uri, error)
    return committed


@dataclass(frozen=True, slots=True)
class _Rows:
    table: pa.Table
    makes_objects: bool  # leaves, namespaces or records that the base may not have
    # Whoever looked before at all partitions that its condition can have, by the specs that have
    # leaves, learns of another spec by its first commit, which stands alone.
    begins_spec: bool


def _merge(
    base: lance.LanceDataset, rows: _Rows, removed: Sequence[str], near: lance.LanceDataset
) -> MergeInsertBuilder:
    moves_only = not rows.makes_objects and not removed
    merge = base.merge_insert(list(_KEY_WITHOUT_FILTER) if moves_only else _KEY)
    merge = merge.when_matched_update_all().when_not_matched_insert_all()
    if removed:
        merge = merge.when_not_matched_by_source_delete(_condition_of_removal(near, removed))
    return merge


def _rows(
    snapshot: Snapshot,
    base: lance.LanceDataset,
    changes: Sequence[LeafChange],
    records: Sequence[CommitRecord],
) -> _Rows | None:
    """Make every row that the commit writes; None where a record of it is there."""
    by_id = {change.object_id: change for change in changes}
    if len(by_id) < len(changes):
        raise InternalError(what="one commit changes a leaf twice")
    above = {name: change for change in changes for name in namespaces_above(change.object_id)}
    keys = [record.object_id for record in records if not record.identity.is_new]
    if len(by_id) + len(above) <= MOST_NAMES:
        existing = named_rows(snapshot.rows, snapshot.key, [*by_id, *above])
        recorded = existing_rows(snapshot.rows, keys) if keys else existing.slice(0, 0)
    else:
        existing = recorded = existing_rows(snapshot.rows, [*by_id, *above, *keys])
        check_single(existing["object_id"], snapshot.location, snapshot.version)
    for made in records_in(recorded):
        if made.is_given_up and len(records) == 1:
            raise CommitGivenUp(location=snapshot.location, commit=made.identity.id)
        return None
    existing_ids = set(existing["object_id"].to_pylist())
    new = [
        ManifestRow(name, NAMESPACE, values=_inherited(snapshot, name, leaf_change.values))
        for name, leaf_change in above.items()
        if name not in existing_ids
    ]
    new += [
        ManifestRow(
            change.object_id,
            TABLE,
            change.location,
            with_statistics(None, change.statistics),
            change.read_version,
            change.values,
        )
        for change in changes
        if change.object_id not in existing_ids
    ]
    # A batch of a stream that is sent again may have rows of other leaves: its record, by which the
    # commit is known, is the one row that two of them have in common.
    makes_objects = bool(new) or any(record.identity.epoch is not None for record in records)
    new += [record.row() for record in records]
    if snapshot.has_read_version_column:
        new += _version_rows(snapshot, changes)
    updated = existing.filter(pc.is_in(existing["object_id"], value_set=pa.array(by_id, pa.utf8())))
    table = pa.concat_tables([with_changes(updated, by_id), table_of_rows(new, base.schema)])
    begins_spec = any(SEPARATOR not in name for name in above if name not in existing_ids)
    return _Rows(table, makes_objects, begins_spec)


def _inherited(
    snapshot: Snapshot, namespace: str, values: Mapping[str, pa.Scalar]
) -> dict[str, pa.Scalar]:
    """Take the values of a namespace's own level and of those above."""
    parsed = ObjectId.parse(namespace)
    if parsed is None or parsed.spec_version not in snapshot.specs:
        raise InternalError(what=f"{namespace} is below no spec version of {snapshot.location}")
    fields = snapshot.specs[parsed.spec_version].fields[: len(parsed.namespaces)]
    return {field.field_id: values[field.field_id] for field in fields}


def existing_rows(base: lance.LanceDataset, object_ids: Sequence[str]) -> pa.Table:
    """Read the whole rows of some objects, columns that Pennon does not know included."""
    names = list(base.schema.names)
    if len(object_ids) <= _MAX_KEYS:
        keys = [exp.Literal.string(id_) for id_ in object_ids]
        condition: exp.Expr = exp.column("object_id").isin(*keys) if keys else exp.false()
        return base.to_table(columns=names, filter=condition.sql(dialect=DataFusion))
    rows = base.to_table(columns=names)
    return rows.filter(pc.is_in(rows["object_id"], value_set=pa.array(object_ids, pa.utf8())))


def with_changes(rows: pa.Table, changes: Mapping[str, LeafChange]) -> pa.Table:
    """Move existing table rows to their new version and statistics."""
    mine = [changes[object_id] for object_id in rows["object_id"].to_pylist()]
    texts = [
        with_statistics(text, leaf_change.statistics)
        for text, leaf_change in zip(rows["metadata"].to_pylist(), mine, strict=True)
    ]
    replaced = {"metadata": pa.array(texts, pa.utf8())}
    if READ_VERSION.name in rows.column_names:
        versions = [leaf_change.read_version for leaf_change in mine]
        replaced[READ_VERSION.name] = pa.array(versions, READ_VERSION.type)
    columns = [replaced.get(name, rows[name]) for name in rows.column_names]
    return pa.table(columns, schema=rows.schema)


def _version_rows(snapshot: Snapshot, changes: Sequence[LeafChange]) -> list[ManifestRow]:
    changes = [change for change in changes if change.read_version is not None]
    names = [change.object_id for change in changes]
    last = last_sequence_numbers(snapshot.rows, snapshot.key, names)
    return [
        version_row(change.object_id, last[change.object_id] + 1, change.read_version)
        for change in changes
        if change.read_version is not None
    ]


def _keep_what_is_known(
    snapshot: Snapshot, base: lance.LanceDataset, written: pa.Table, removed: Sequence[str]
) -> TableKey:
    """Keep for the next commit what this one has written.

    Where another commit came between, the version has more than was read and written here.

    Returns:
        The version that was made.
    """
    made = replace(snapshot.key, version=int(base.version), table=version_identity(base))
    if made.version == snapshot.version + 1 and len(written) <= MOST_NAMES:
        carry_rows(snapshot.key, made, written, removed)
        is_version = pc.equal(written["object_type"], TABLE_VERSION)
        versions = written["object_id"].filter(is_version).to_pylist()
        carry_sequence_numbers(snapshot.key, made, versions, removed)
    return made


def _keep_beyond_merge(made: TableKey, merged: lance.LanceDataset) -> None:
    """Keep it for the version, too, in which the same rows are in fewer fragments."""
    after = replace(made, version=int(merged.version), table=version_identity(merged))
    carry_rows(made, after, merged.schema.empty_table(), ())
    carry_sequence_numbers(made, after, (), ())


def _condition_of_removal(base: lance.LanceDataset, removed: Sequence[str]) -> str:
    """Choose the rows of leaves and of their versions, all by their ids.

    Who adds a version meanwhile changes the leaf's row as well, and one of the two commits is
    refused. To compare each row with the beginning of each leaf's ids would cost their product.
    """
    names = [*removed, *version_row_ids(base, removed)]
    keys = [exp.Literal.string(name) for name in names]
    return exp.column("object_id").isin(*keys).sql(dialect=DataFusion)


# Commits statistics of leaves whose versions stay the same.
#
# Rows that another commit has moved on meanwhile are left as they are: what was counted is not
# theirs. Lance refuses the merge where one of the rows changes at the same moment.


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
