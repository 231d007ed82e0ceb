"""The row addresses before and after a rewrite.

A rewrite takes fragments out of a leaf and adds others with the same rows, beside a file that
records for each new row which of the old ones it is; it is empty where the rows kept their order.
The file is no part of any version: only statements that ran while the rewrite was made ask for it,
and vacuum takes it in its time. Without it nothing is known of where a row went.
"""

from __future__ import annotations

import contextlib
import json
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
from lance.file import LanceFileSession

from pennon.leaf.changes.deleted_rows import DeletedRows
from pennon.leaf.read.metadata_columns import ROW_ADDRESS
from pennon.leaf.row_addresses import addresses_in, fragments_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import lance
    from numpy.typing import NDArray

    from pennon.leaf.write.staged_partition import StagedPartition

__all__ = ["forget_places", "moved", "record_places"]

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
    session = LanceFileSession(uri, storage_options=dict(storage_options) or None)
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
    session = LanceFileSession(uri, storage_options=dict(storage_options) or None)
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
    read = before.scanner(columns=[ROW_ADDRESS.name], fragments=gone).to_table()
    sources = read[ROW_ADDRESS.name].to_numpy().astype(np.int64)
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
    session = LanceFileSession(str(leaf.uri), storage_options=dict(storage_options) or None)
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
