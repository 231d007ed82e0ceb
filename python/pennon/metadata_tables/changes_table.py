"""``table.changes``: the rows that each commit deleted and inserted.

``WHERE _commit_version > 5 AND _commit_version <= 9`` reads the changes of versions 6 to 9 alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from pennon.errors import ChangesNotKept, ChangesNotPaired, UnsupportedTableChange
from pennon.leaf import LeafSource, LeafViews, open_leaf
from pennon.leaf.read.metadata_columns import ROW_ADDRESS
from pennon.leaf.row_order import offsets_of
from pennon.leaf.schema.reconciliation import stream_schema
from pennon.manifest.format.rows import READ_BRANCH
from pennon.manifest.versions.history import versions_until
from pennon.metadata_tables.metadata_table import MetadataTable, Selection
from pennon.predicate.condition import operands
from pennon.predicate.parse import readable_predicates
from pennon.spec.column_names import python_values

if TYPE_CHECKING:
    import lance
    from numpy.typing import NDArray

    from pennon.manifest import Snapshot

__all__ = ["CHANGES", "ChangeRange", "change_feed", "change_schema", "changes_between"]

# The rows that differ between two versions of a leaf.
#
# Leaves and fragments that both versions have in the same state are not read. Of a fragment that
# both have, the rows are read that are deleted in one of them alone. A row that is deleted in one
# file and added in another with equal values has only moved: the pair is left out, so that a
# compaction, a partition written anew and an update to the same value show nothing.

# Where a fragment stands among those of its leaf, and which file names its deleted rows.
_Place = tuple[int, str | None]


@dataclass(frozen=True, slots=True)
class RowDifference:
    """What one commit did to the rows.

    Args:
        deleted: Rows that are there no more, as they were.
        inserted: Rows that were not there before.
    """

    deleted: pa.Table
    inserted: pa.Table


def row_difference(before: Snapshot, after: Snapshot, schema: pa.Schema) -> RowDifference:
    """Compare the rows of two versions of a table.

    Args:
        before: The older version.
        after: The newer version.
        schema: The columns, of any version of the table, in which all rows are read.

    Raises:
        ChangesNotKept: One of them does not say at which versions its leaves are read.
        LeafMissing: A leaf's files are gone.

    Spec: "Multi-Partition Transaction (Strong)".
    """
    for snapshot in (before, after):
        # Before its first row a table may have kept writers away, to add a column that is NOT NULL.
        if not snapshot.names_leaf_versions and snapshot.leaves().table.num_rows:
            why = "it leaves open at which versions partitions are read, so that none are kept"
            raise ChangesNotKept(location=snapshot.location, version=snapshot.version, why=why)
    old, new = _leaves(before), _leaves(after)
    views = LeafViews(pa.schema([*schema, ROW_ADDRESS]), schema)
    deleted: list[pa.RecordBatch] = []
    inserted: list[pa.RecordBatch] = []
    for key in sorted(old.keys() | new.keys()):
        if old.get(key) != new.get(key):
            was = _Leaf.opened(before, old.get(key), views)
            now = _Leaf.opened(after, new.get(key), views)
            deleted += was.rows_not_in(now)
            inserted += now.rows_not_in(was)
    plain = pa.schema([field.remove_metadata() for field in stream_schema(schema)])
    return _without_moved(_table(deleted, plain), _table(inserted, plain))


def _leaves(snapshot: Snapshot) -> dict[str, tuple[str, int]]:
    table = snapshot.leaves().table
    if READ_BRANCH in table.column_names or table["read_version"].null_count:
        why = "a partition is read at a branch, a tag or its newest version, which moves on"
        raise ChangesNotKept(location=snapshot.location, version=snapshot.version, why=why)
    columns = (table[name].to_pylist() for name in ("object_id", "location", "read_version"))
    return {key: (place, version) for key, place, version in zip(*columns, strict=True)}


def _table(batches: list[pa.RecordBatch], schema: pa.Schema) -> pa.Table:
    return pa.Table.from_batches(
        [pa.RecordBatch.from_arrays(batch.columns, schema=schema) for batch in batches], schema
    )


@dataclass(frozen=True, slots=True)
class _Leaf:
    """One leaf at a version; without a dataset it is not there."""

    dataset: lance.LanceDataset | None
    location: str
    views: LeafViews

    @classmethod
    def opened(cls, snapshot: Snapshot, leaf: tuple[str, int] | None, views: LeafViews) -> _Leaf:
        if leaf is None:
            return cls(None, "", views)
        location, version = leaf
        dataset = open_leaf(snapshot.location, location, version, snapshot.storage_options)
        return cls(dataset, location, views)

    def fragments(self) -> Mapping[tuple[str, ...], _Place]:
        """Give the fragments by their files."""
        if self.dataset is None:
            return {}
        by_files: dict[tuple[str, ...], _Place] = {}
        for at, fragment in enumerate(self.dataset.get_fragments()):
            metadata, deletions = fragment.metadata, fragment.metadata.deletion_file
            path = None if deletions is None else deletions.path(fragment.fragment_id)
            by_files[tuple(file.path for file in metadata.files)] = (at, path)
        return by_files

    def rows_not_in(self, other: _Leaf) -> Iterator[pa.RecordBatch]:
        """Read the rows of fragments that the other has not, or has with more deletions."""
        theirs = other.fragments()
        for files, (at, deletions) in self.fragments().items():
            counterpart = theirs.get(files)
            if counterpart is not None and counterpart[1] == deletions:
                continue
            kept = None if counterpart is None else other.offsets(counterpart[0])
            for batch in self.rows(at):
                rows = batch
                if kept is not None:
                    mask = np.isin(_offsets(batch), kept, invert=True)
                    rows = batch.filter(pa.array(mask))
                if rows.num_rows:
                    yield rows.select(rows.schema.names[:-1])

    def rows(self, at: int) -> Iterator[pa.RecordBatch]:
        if self.dataset is None:
            return iter(())
        source = LeafSource(self.dataset, self.location)
        return source.batches(self.views, fragments=(at, at + 1))

    def offsets(self, at: int) -> NDArray[np.int64]:
        """Give the offsets of the rows of a fragment that are there, in order."""
        if self.dataset is None:
            return np.empty(0, np.int64)
        fragment = self.dataset.get_fragments()[at]
        return offsets_of(LeafSource(self.dataset).addresses([fragment]))


def _offsets(batch: pa.RecordBatch) -> NDArray[np.int64]:
    addresses = batch.column(batch.num_columns - 1).to_numpy(zero_copy_only=False)
    return offsets_of(addresses.astype(np.int64))


def _without_moved(deleted: pa.Table, inserted: pa.Table) -> RowDifference:
    """Leave out pairs of equal rows, as many of each value as both sides have."""
    if not len(deleted) or not len(inserted):
        return RowDifference(deleted, inserted)
    both = pa.concat_tables([deleted, inserted])
    values = _numbered(both)
    left, right = values[: len(deleted)], values[len(deleted) :]
    size = int(values.max()) + 1
    moved = np.minimum(np.bincount(left, minlength=size), np.bincount(right, minlength=size))
    return RowDifference(
        deleted.filter(pa.array(_occurrence(left) >= moved[left])),
        inserted.filter(pa.array(_occurrence(right) >= moved[right])),
    )


def paired(
    difference: RowDifference, key: Sequence[str]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]] | None:
    """Tell which rows are one row that got other values: those with equal keys.

    Args:
        difference: What a commit did.
        key: Columns whose values identify a row; NULL is a value here.

    Returns:
        For each deleted and for each inserted row whether the other side has its like; None where
        several rows of one side are alike, and the other side has them too.
    """
    left, right = len(difference.deleted), len(difference.inserted)
    if not left or not right:
        return np.zeros(left, np.bool_), np.zeros(right, np.bool_)
    names = list(key)
    values = _numbered(
        pa.concat_tables([difference.deleted.select(names), difference.inserted.select(names)])
    )
    size = int(values.max()) + 1
    before = np.bincount(values[:left], minlength=size)
    after = np.bincount(values[left:], minlength=size)
    is_both = (before > 0) & (after > 0)
    if ((before > 1) | (after > 1))[is_both].any():
        return None
    return is_both[values[:left]], is_both[values[left:]]


def _numbered(rows: pa.Table) -> NDArray[np.int64]:
    """Number the distinct rows."""
    codes = np.column_stack([_codes(column) for column in rows.columns])
    _, values = np.unique(codes, axis=0, return_inverse=True)
    return np.asarray(values.reshape(-1), np.int64)


def _codes(column: pa.ChunkedArray) -> NDArray[np.int64]:
    """Number the distinct values of a column; NULL is one of them, and so is NaN."""
    whole = column.combine_chunks()
    if pa.types.is_nested(whole.type) or pa.types.is_floating(whole.type):
        # Arrow has no order or hash of nested values; by their texts, NaN and -0.0 are values too.
        whole = pa.array([None if row is None else repr(row) for row in python_values(whole)])
    indices = pc.dictionary_encode(whole).indices
    return np.asarray(pc.fill_null(indices, -1).to_numpy(zero_copy_only=False), np.int64)


def _occurrence(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """Tell for each value how many equal ones stand before it."""
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    starts = np.flatnonzero(np.diff(ordered, prepend=ordered[0] - 1 if len(ordered) else 0))
    counts = np.arange(len(values)) - np.repeat(
        starts, np.diff(starts, append=len(values)) if len(starts) else 0
    )
    occurrence = np.empty(len(values), np.int64)
    occurrence[order] = counts
    return occurrence


CHANGE_TYPE: Final = "_change_type"
COMMIT_VERSION: Final = "_commit_version"
_COMMIT_TIMESTAMP: Final = "_commit_timestamp"
INSERT: Final = "insert"
DELETE: Final = "delete"
UPDATE_PREIMAGE: Final = "update_preimage"
UPDATE_POSTIMAGE: Final = "update_postimage"
_OF_COMMITS: Final = (
    pa.field(CHANGE_TYPE, pa.utf8()),
    pa.field(COMMIT_VERSION, pa.int64()),
    pa.field(_COMMIT_TIMESTAMP, pa.timestamp("us", "UTC")),
)


def changes_between(
    snapshot: Snapshot, first: int, last: int, key: Sequence[str] = (), *, is_net: bool = False
) -> Iterator[pa.Table]:
    """Tell what the commits from one version to another did to the rows.

    Args:
        snapshot: The table; its columns are those of all changes.
        first: The version whose rows are the beginning; its own commit is not included.
        last: The version whose commit is the last one included.
        key: Columns whose values identify a row; with none, a row that got other values is deleted
            as it was and inserted as it is.
        is_net: Whether all commits count as the last one: a row that comes and goes between is not
            told of.

    Yields:
        Tables of the rows that commits changed, in the commits' order: the columns,
        ``_change_type``, ``_commit_version`` and ``_commit_timestamp``. The types are ``delete``
        and ``insert``, and with a key ``update_preimage`` and ``update_postimage``.

    Raises:
        SnapshotNotFound: The first version has expired.
        ChangesNotKept: A version does not hold its rows.
        ChangesNotPaired: Several rows of one commit have the same key.

    Spec: "Multi-Partition Transaction (Strong)".
    """
    versions = versions_until(snapshot)
    times = dict(
        zip(versions["version"].to_pylist(), versions["committed_at"].to_pylist(), strict=True)
    )
    numbers = [time for time in times if first <= time <= last]
    if first not in times:
        snapshot.at_version(first)  # says which versions there are
    if is_net and len(numbers) > 1:
        numbers = [numbers[0], numbers[-1]]
    schema = snapshot.schema.arrow
    before: Snapshot | None = None
    for old, new in pairwise(numbers):
        was = before if before is not None else snapshot.at_version(old)
        before = now = snapshot.at_version(new)
        difference = row_difference(was, now, schema)
        pairs = paired(difference, key) if key else _unpaired(difference)
        if pairs is None:
            raise ChangesNotPaired(table=snapshot.location, version=new, key=", ".join(key))
        gone = _change_rows(
            difference.deleted, pairs[0], (DELETE, UPDATE_PREIMAGE), new, times[new]
        )
        come = _change_rows(
            difference.inserted, pairs[1], (INSERT, UPDATE_POSTIMAGE), new, times[new]
        )
        yield from (rows for rows in (gone, come) if len(rows))


def _unpaired(difference: RowDifference) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    return np.zeros(len(difference.deleted), np.bool_), np.zeros(len(difference.inserted), np.bool_)


def _change_rows(
    rows: pa.Table,
    is_update: NDArray[np.bool_],
    kinds: tuple[str, str],
    version: int,
    moment: object,
) -> pa.Table:
    types = np.where(is_update, kinds[1], kinds[0]).tolist()
    columns = (
        pa.array(types, pa.utf8()),
        pa.repeat(pa.scalar(version, pa.int64()), len(rows)),
        pa.repeat(pa.scalar(moment, _OF_COMMITS[2].type), len(rows)),
    )
    for field, column in zip(_OF_COMMITS, columns, strict=True):
        rows = rows.append_column(field, column)
    return rows


def change_schema(snapshot: Snapshot) -> pa.Schema:
    """Give the columns of changes: the table's, and those about the commit.

    Raises:
        UnsupportedTableChange: The table has a column of one of these names.
    """
    columns = stream_schema(snapshot.schema.arrow)
    taken = sorted({commit.name for commit in _OF_COMMITS}.intersection(columns.names))
    if taken:
        raise UnsupportedTableChange(
            change="read the changes",
            table=snapshot.location,
            why=f"it has a column {taken[0]} of its own",
            advice="Rename the column",
        )
    return pa.schema([*(field.remove_metadata() for field in columns), *_OF_COMMITS])


def _rows(snapshot: Snapshot, selection: Selection) -> Iterator[pa.Table]:
    versions = versions_until(snapshot)["version"].to_pylist()
    first, last = stated_bounds(selection.predicates)
    if 1 < first <= snapshot.version and first - 1 not in versions:
        # What the commits until then did cannot be separated from what is asked for.
        snapshot.at_version(first - 1)  # says which versions there are
    earlier = [row for row in versions if row < first] or versions[:1]
    yield from changes_between(snapshot, earlier[-1], min(last, snapshot.version))


def stated_bounds(predicates: Sequence[str]) -> tuple[int, int]:
    """Give the first and the last version whose changes are asked for.

    Args:
        predicates: Spark SQL texts; those on ``_commit_version`` bound the versions.

    Example:
        >>> stated_bounds(["_commit_version > 5 AND _commit_version <= 9"])
        (6, 9)
    """
    first, last = 1, (1 << 63) - 1
    for whole in readable_predicates(predicates):
        for part in operands(whole, exp.And):
            low, high = _bound(part)
            first, last = max(first, low), min(last, high)
    return first, last


def _bound(part: exp.Expr) -> tuple[int, int]:
    first, last = 1, (1 << 63) - 1
    if not isinstance(part, exp.EQ | exp.GT | exp.GTE | exp.LT | exp.LTE):
        return first, last
    column, literal = part.this, part.expression
    if isinstance(literal, exp.Cast):
        literal = literal.this
    is_of_version = isinstance(column, exp.Column) and column.name == COMMIT_VERSION
    is_number = isinstance(literal, exp.Literal) and literal.name.isdecimal()
    if not is_of_version or not is_number:
        return first, last
    number = int(literal.name)
    match part:
        case exp.EQ():
            return number, number
        case exp.GT():
            return number + 1, last
        case exp.GTE():
            return number, last
        case exp.LT():
            return first, number - 1
        case _:
            return first, number


CHANGES = MetadataTable("changes", change_schema, _rows)


# The changes that a range of commits made: ``FROM t CHANGES FROM VERSION 3 TO VERSION 9``.


@dataclass(frozen=True, slots=True)
class ChangeRange:
    """The range and the form of a change feed.

    Args:
        base: The version whose rows are the beginning.
        last: The version whose commit is the last one; below the base, there is none.
        key: Columns that identify a row, by which a deletion and an insertion become an update.
        is_net: Whether the commits count as one, the last, that leads from the base to it.
    """

    base: int
    last: int
    key: tuple[str, ...] = ()
    is_net: bool = False


def change_feed(changes: ChangeRange) -> MetadataTable:
    """Give the table of these changes, to be read of the snapshot at the last version.

    Args:
        changes: Which.

    Spec: "Multi-Partition Transaction (Strong)".
    """
    return MetadataTable("changes", change_schema, partial(_changed_rows, changes))


def _changed_rows(
    changes: ChangeRange, snapshot: Snapshot, selection: Selection
) -> Iterator[pa.Table]:
    base, last = changes.base, changes.last
    if not changes.is_net:
        last = min(last, stated_bounds(selection.predicates)[1])
    if base < last:
        yield from changes_between(snapshot, base, last, changes.key, is_net=changes.is_net)
