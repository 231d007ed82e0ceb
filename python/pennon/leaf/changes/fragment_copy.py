"""Rewrites a fragment without its deleted rows: copy on write."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
from lance.fragment import write_fragments

from pennon.errors import InternalError
from pennon.leaf.read.metadata_columns import ROW_ADDRESS

if TYPE_CHECKING:
    from collections.abc import Iterator

    import lance
    from lance.fragment import FragmentMetadata

    from pennon.leaf.changes.deleted_rows import DeletedRows

__all__ = ["copied_without", "is_copyable"]

_FRAGMENT_BITS: Final = 32


def is_copyable(dataset: lance.LanceDataset) -> bool:
    """Whether the rows of a leaf are read in the schema in which they are written.

    Blobs are not: a scan gives the places where they are.
    """
    return bool(dataset.scanner().projected_schema.equals(dataset.schema))


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
    reader = pa.RecordBatchReader.from_batches(dataset.schema, _rows(dataset, fragment, gone))
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
    scanner = dataset.scanner(fragments=[fragment], with_row_address=True, scan_in_order=True)
    for batch in scanner.to_batches():
        at = batch.schema.get_field_index(ROW_ADDRESS.name)
        addresses = batch.column(at).to_numpy(zero_copy_only=False).astype(np.int64)
        stays = pa.array(np.isin(addresses, gone, invert=True))
        rows = batch.remove_column(at).filter(stays)
        if rows.num_rows:
            yield rows
