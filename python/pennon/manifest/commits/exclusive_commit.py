"""Exclusive commits: refused after any concurrent change of the dataset's rows.

Lance rebases an update over commits of other rows. That is right for a change that depends on the
rows it replaces, and wrong for one that was made of all rows it has read. An operation that states
every fragment conflicts with each commit that changes a fragment, appends among them, and each
update conflicts with it. Changes of the metadata alone are still rebased over.
"""

from __future__ import annotations

import json
import secrets
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import lance
import numpy as np
import pyarrow as pa
from lance.file import LanceFileSession
from lance.fragment import FragmentMetadata

from pennon.errors import InternalError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["exclusive"]


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
        session = LanceFileSession(
            f"{str(base.uri).rstrip('/')}/_deletions", storage_options=dict(storage_options) or None
        )
        session.upload_file(str(path), name)
    stated = fragment.to_json()
    stated["deletion_file"] = {
        "read_version": base.version,
        "id": file_id,
        "file_type": "array",
        "num_deleted_rows": fragment.physical_rows,
        "base_id": None,
    }
    return FragmentMetadata.from_json(json.dumps(stated))
