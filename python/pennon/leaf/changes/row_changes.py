"""Deletes and adds single rows of a leaf in one commit.

By merge on read a row goes by its fragment's deletion vector; the fragment's files stay as they
are, and a fragment without a row left goes as a whole. By copy on write a fragment goes as soon as
one of its rows does, and another comes with the rest. New rows are new fragments. Only touched
fragments change, so a reader of the version before sees what it saw.
"""

from __future__ import annotations

import contextlib
import json
from typing import TYPE_CHECKING, Final

import lance
import numpy as np
import pyarrow as pa
from lance.file import LanceFileSession
from lance.fragment import write_fragments

from pennon.caching.lance_sessions import lance_options
from pennon.errors import InternalError
from pennon.leaf.changes.deleted_rows import DeletedRows
from pennon.leaf.read.source import LeafSource
from pennon.leaf.row_order import addresses_in, fragments_of
from pennon.leaf.schema.file_layout import file_batch
from pennon.leaf.write.leaf_commit import commit_operation, prepared_fragments

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from lance.fragment import FragmentMetadata
    from numpy.typing import NDArray

    from pennon.leaf.write.destination import StagedPartition

__all__ = [
    "change_rows",
    "deletions",
    "forget_places",
    "has_same_fragments",
    "moved",
    "record_places",
]

# Rewrites a fragment without its deleted rows: copy on write.

_FRAGMENT_BITS: Final = 32


def copied_without(
    dataset: lance.LanceDataset, deleted: DeletedRows
) -> tuple[list[FragmentMetadata], list[int]]:
    """Write the rows of fragments anew, without those that go; commits nothing.

    The rows keep their order and the leaf's own columns, among them those that the namespace does
    not have. Rows that went before, by deletion vectors, stay behind, too.

    Args:
        dataset: The leaf at the version of the rows' addresses.
        deleted: Rows that go.

    Returns:
        One new fragment for each that has rows left, and the numbers of those that it stands for.

    Raises:
        InternalError: A row is not there.
        OSError: The storage refused.
    """
    copies: list[FragmentMetadata] = []
    numbers: list[int] = []
    for number, offsets in deleted.by_fragment().items():
        fragment = dataset.get_fragment(number)
        if fragment is None:
            raise InternalError(what=f"rows of fragment {number} of {deleted.location} are to go")
        left = fragment.count_rows() - len(offsets)
        addresses = offsets + (number << _FRAGMENT_BITS)
        written = _written(dataset, fragment, addresses) if left else []
        copied = sum(fragment.num_rows for fragment in written)
        if copied != left:
            raise InternalError(
                what=f"{left} rows of {deleted.location} were to stay, and {copied} were copied"
            )
        copies += written
        numbers.append(number)
    return copies, numbers


def _written(
    dataset: lance.LanceDataset, fragment: lance.LanceFragment, gone: np.ndarray
) -> list[FragmentMetadata]:
    schema = dataset.schema
    rows = (file_batch(batch, schema) for batch in _rows(dataset, fragment, gone))
    reader = pa.RecordBatchReader.from_batches(schema, rows)
    written = write_fragments(
        reader,
        dataset,
        mode="append",
        max_rows_per_file=max(1, fragment.physical_rows),
        data_storage_version=dataset.data_storage_version,
    )
    return list(written)


def _rows(
    dataset: lance.LanceDataset, fragment: lance.LanceFragment, gone: np.ndarray
) -> Iterator[pa.RecordBatch]:
    for batch in LeafSource(dataset).stored_batches(fragments=[fragment], has_addresses=True):
        at = batch.num_columns - 1
        addresses = batch.column(at).to_numpy(zero_copy_only=False).astype(np.int64)
        stays = pa.array(np.isin(addresses, gone, invert=True))
        rows = batch.remove_column(at).filter(stays)
        if rows.num_rows:
            yield rows


# The row addresses before and after a rewrite.
#
# A rewrite takes fragments out of a leaf and adds others with the same rows, beside a file that
# records for each new row which of the old ones it is; it is empty where the rows kept their order.
# The file is no part of any version: only statements that ran while the rewrite was made ask for
# it, and vacuum takes it in its time. Without it nothing is known of where a row went.

_PLACE: Final = "place"


def record_places(
    uri: str,
    staged: Sequence[StagedPartition],
    places: pa.ChunkedArray,
    storage_options: Mapping[str, str],
) -> None:
    """Tell which row each row of a rewrite was.

    Args:
        uri: The leaf.
        staged: The rewritten rows.
        places: For each of them, its place among the rows as they were read; none where they are
            in the order in which they were read.
        storage_options: Given to Lance.
    """
    schema = pa.schema([pa.field(_PLACE, pa.int64())])
    session = LanceFileSession(uri, storage_options=lance_options(storage_options))
    with session.open_writer(_places_for(staged), schema=schema) as writer:
        for chunk in places.chunks:
            writer.write_batch(pa.record_batch([chunk], schema=schema))


def forget_places(
    uri: str, staged: Sequence[StagedPartition], storage_options: Mapping[str, str]
) -> None:
    """Remove the file of a rewrite that was not committed; one that is gone is no error.

    Args:
        uri: The leaf.
        staged: The rewritten rows.
        storage_options: Given to Lance.
    """
    session = LanceFileSession(uri, storage_options=lance_options(storage_options))
    with contextlib.suppress(OSError, RuntimeError):  # Lance's of a storage that is gone
        session.delete_file(_places_for(staged))


def moved(
    before: lance.LanceDataset,
    after: lance.LanceDataset,
    deleted: DeletedRows,
    storage_options: Mapping[str, str],
) -> DeletedRows | None:
    """Find the rows that are to go where a rewrite has put them.

    Args:
        before: The leaf before the rewrite.
        after: And after it.
        deleted: Rows by their addresses before.
        storage_options: Given to Lance.

    Returns:
        The same rows by their addresses after; None where that is not known.
    """
    old = {fragment.fragment_id: fragment for fragment in before.get_fragments()}
    new = {fragment.fragment_id: fragment for fragment in after.get_fragments()}
    gone = [rows for number, rows in old.items() if number not in new]
    come = [rows for number, rows in new.items() if number not in old]
    numbers = fragments_of(deleted.addresses)
    is_moved = np.isin(numbers, [row.fragment_id for row in gone])
    if not is_moved.any():
        return DeletedRows(deleted.location, after.version, deleted.addresses)
    sources = LeafSource(before).addresses(gone)
    targets = np.concatenate([_addresses(row) for row in come]) if come else sources[:0]
    places = _recorded_places(after, come, storage_options)
    if places is None or len(sources) != len(targets) or len(places) not in (0, len(targets)):
        return None
    if len(places):
        sources = sources[places]
    ascending = np.argsort(sources, kind="stable")
    moved_addresses = deleted.addresses[is_moved]
    at = np.searchsorted(sources, moved_addresses, sorter=ascending)
    if len(sources) == 0 or at.max() >= len(sources):
        return None
    at_source = ascending[at]
    if not np.array_equal(sources[at_source], moved_addresses):
        return None
    addresses = np.concatenate([deleted.addresses[~is_moved], targets[at_source]])
    return DeletedRows(deleted.location, after.version, np.unique(addresses))


def _addresses(fragment: lance.LanceFragment) -> NDArray[np.int64]:
    return addresses_in(fragment.fragment_id, np.arange(fragment.physical_rows, dtype=np.int64))


def _recorded_places(
    leaf: lance.LanceDataset,
    fragments: Sequence[lance.LanceFragment],
    storage_options: Mapping[str, str],
) -> NDArray[np.int64] | None:
    """Read the places of a rewrite's rows, none where they kept their order; None if unknown."""
    if not fragments:
        return None
    session = LanceFileSession(str(leaf.uri), storage_options=lance_options(storage_options))
    path = _places_of(fragments[0].metadata.files[0].path)
    if not session.contains(path):
        return None
    read: pa.Table = session.open_reader(path).read_all().to_table()
    places: NDArray[np.int64] = read[_PLACE].to_numpy()
    return places


def _places_for(staged: Sequence[StagedPartition]) -> str:
    return _places_of(json.loads(staged[0].fragments[0])["files"][0]["path"])


def _places_of(file: str) -> str:
    """Name the file of places after the first data file of the rewrite."""
    return f"data/{file.removesuffix('.lance')}.places"


def change_rows(
    dataset: lance.LanceDataset,
    deleted: DeletedRows | None,
    staged: Sequence[StagedPartition],
    schema: pa.Schema,
    *,
    detached: bool = True,
    copies: bool = False,
) -> lance.LanceDataset:
    """Take rows out of a leaf and add others.

    Args:
        dataset: The leaf at the version to build on: its fragments are those of the rows' ids.
        deleted: Rows that go; None for none.
        staged: What tasks wrote for this leaf.
        schema: The namespace schema, with its ids; columns that the leaf lacks are added to it.
        detached: Whether to commit beside the main branch.
        copies: Whether by copy on write.

    Raises:
        WriteConflict: The leaf stores a column in another type than the files, by now.

    Spec: "Multi-Partition Transaction (Strong)".
    """
    extended, new = prepared_fragments(dataset, staged, schema, detached=detached)
    updated: list[FragmentMetadata] = []
    if copies and deleted is not None:
        copied, removed = copied_without(extended, deleted)
        new = [*copied, *new]
    else:
        updated, removed = deletions(extended, deleted)
    if not updated and not removed and not new:
        return extended
    operation = lance.LanceOperation.Update(
        removed_fragment_ids=removed, updated_fragments=updated, new_fragments=new
    )
    return commit_operation(extended, operation, detached=detached)


def deletions(
    dataset: lance.LanceDataset, deleted: DeletedRows | None
) -> tuple[list[FragmentMetadata], list[int]]:
    """Write the deletion vectors of rows that go; commits nothing.

    Returns:
        The fragments that have fewer rows, and the numbers of those that have none left.

    Raises:
        InternalError: A row is not there.
    """
    updated: list[FragmentMetadata] = []
    removed: list[int] = []
    if deleted is None:
        return updated, removed
    for number, offsets in deleted.by_fragment().items():
        fragment = dataset.get_fragment(number)
        if fragment is None:
            raise InternalError(what=f"rows of fragment {number} of {deleted.location} are to go")
        # By offsets: a condition on a million addresses takes Lance seconds and a gigabyte.
        left = fragment.delete_rows(offsets)
        gone = fragment.count_rows() - (left.num_rows if left is not None else 0)
        if gone != len(offsets):
            raise InternalError(
                what=f"{len(offsets)} rows of {deleted.location} were to go, and {gone} went"
            )
        if left is None:
            removed.append(number)
        else:
            updated.append(left)
    return updated, removed


def has_same_fragments(
    before: lance.LanceDataset, after: lance.LanceDataset, fragments: Iterable[int]
) -> bool:
    """Whether fragments are what they were, though another version is built on.

    Args:
        before: The version that they were read at.
        after: The other one.
        fragments: Their numbers.
    """
    for number in fragments:
        old, new = before.get_fragment(number), after.get_fragment(number)
        if old is None or new is None or old.metadata.to_json() != new.metadata.to_json():
            return False
    return True
