"""Writes columns of a leaf's existing rows into additional data files.

A fragment may have several data files, each with some of the columns. So a column of older rows
is stored without touching any other: its initial default, or its values in a wider type.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pyarrow as pa
from lance.fragment import FragmentMetadata, write_fragments

from pennon.errors import InternalError
from pennon.leaf.schema.array_conversion import convert_batch
from pennon.leaf.schema.plain_field import plain_field
from pennon.leaf.schema.promotion import stream_schema
from pennon.spec.initial_default import INITIAL_DEFAULT

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    import lance

    from pennon.leaf.schema.reconciliation import FieldMatch

__all__ = ["filled", "has_initial_defaults", "without"]

# Lance's number for a column of a file that the dataset has elsewhere.
_GONE = -2
_BATCH_ROWS = 65_536
_ALL_IN_ONE_FILE = 1 << 62


def filled(
    dataset: lance.LanceDataset,
    fragment: FragmentMetadata,
    matches: Sequence[FieldMatch],
    numbers: Sequence[int],
    leaf: str,
) -> FragmentMetadata:
    """Store columns of a fragment's rows.

    Args:
        dataset: The leaf at a version that has the fragment, if any column is there already.
        fragment: The fragment, of the leaf or to be appended to it.
        matches: The columns; one that is not there is filled with its initial default.
        numbers: Lance's numbers of the columns and the fields below them, parents first.
        leaf: The leaf's name for errors.

    Returns:
        The fragment with one more data file; nothing is committed.
    """
    if not matches:
        return fragment
    schema = pa.schema([plain_field(match.expected) for match in matches])
    reader = pa.RecordBatchReader.from_batches(
        schema, _batches(dataset, fragment, matches, schema, leaf)
    )
    written = write_fragments(
        reader,
        dataset,
        schema=schema,
        mode="overwrite",
        max_rows_per_file=max(1, fragment.physical_rows),  # Lance takes it modulo 2³²
        max_bytes_per_file=_ALL_IN_ONE_FILE,
        data_storage_version=dataset.data_storage_version,
    )
    described = fragment.to_json()
    files = [file for part in written for file in part.to_json()["files"]]
    if len(files) != 1 or written[0].physical_rows != fragment.physical_rows:
        raise InternalError(what=f"columns of a fragment of {leaf} were not written as one file")
    files[0]["fields"] = [numbers[number] for number in files[0]["fields"]]
    described["files"] += files
    return FragmentMetadata.from_json(json.dumps(described))


def without(
    fragment: FragmentMetadata, numbers: Collection[int], before: FragmentMetadata
) -> FragmentMetadata:
    """Take columns out of the files that a fragment had before: another file has them now."""
    if not numbers:
        return fragment
    described = fragment.to_json()
    for file in described["files"][: len(before.files)]:
        file["fields"] = [_GONE if number in numbers else number for number in file["fields"]]
    return FragmentMetadata.from_json(json.dumps(described))


def has_initial_defaults(schema: pa.Schema) -> bool:
    """Whether a write may add files of columns that the rows' own files have not."""
    return any(INITIAL_DEFAULT in (column.metadata or {}) for column in schema)


def _batches(
    dataset: lance.LanceDataset,
    fragment: FragmentMetadata,
    matches: Sequence[FieldMatch],
    schema: pa.Schema,
    leaf: str,
) -> Iterator[pa.RecordBatch]:
    """Every physical row: a data file has those that are deleted, too."""
    plain = stream_schema(schema)
    names = [match.stored.name for match in matches if match.stored is not None]
    if not names:
        for start in range(0, fragment.physical_rows, _BATCH_ROWS):
            num_rows = min(_BATCH_ROWS, fragment.physical_rows - start)
            batch = convert_batch([None] * len(matches), matches, plain, num_rows, leaf)
            yield batch.cast(schema)
        return
    scanner = dataset.scanner(
        columns=names,
        fragments=list(filter(None, [dataset.get_fragment(fragment.id)])),
        include_deleted_rows=True,
        with_row_id=True,
        batch_size=_BATCH_ROWS,
    )
    for batch in scanner.to_batches():
        arrays = [
            None if match_.stored is None else batch.column(match_.stored.name)
            for match_ in matches
        ]
        if batch.num_rows:
            yield convert_batch(arrays, matches, plain, batch.num_rows, leaf).cast(schema)
