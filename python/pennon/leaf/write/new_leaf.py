"""Creates the dataset of a new leaf: an empty version that states the namespace's field ids.

A plain Lance reader of the main branch sees an empty table, never half a transaction. Several
writers may make the same leaf at once: the first makes it, the others find it.

Columns always state their id; one commit makes the dataset and states them, so that nobody has to
guess. Nested fields state theirs only where Lance's own number is another: pylance 14 fails to
filter by a nested column whose fields have metadata ("column types must match schema types"), and
a leaf is a table for plain Lance readers too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import lance

from pennon.errors import InternalError, LeafFolderTaken, LeafTypeMismatch
from pennon.leaf.dataset import leaf_uri, open_leaf
from pennon.leaf.schema.adopted_dataset import columns_by_name
from pennon.leaf.schema.field_ids import state_field_ids
from pennon.leaf.schema.reconciliation import leaf_fields
from pennon.leaf.schema.schema_widening import stating_ids

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

__all__ = ["create_leaf"]

_ATTEMPTS = 5


def create_leaf(
    root: str, location: str, schema: pa.Schema, storage_options: Mapping[str, str] | None = None
) -> lance.LanceDataset:
    """Make a leaf's empty dataset, or open the newest version of the one that is there.

    The manifest names no such leaf. A dataset with other columns, which a foreign tool has written
    over a partition that was deleted, gets a new, empty version: the name is derived from the
    partition's values, and there is no other. A dataset with rows that never was a leaf is left
    as it is: another writer may need it.

    Args:
        root: Path or URL of the namespace.
        location: The leaf's directory.
        schema: The namespace schema, with its ids.
        storage_options: Passed to Lance, never printed.

    Returns:
        The dataset at its newest version of main, whose fields state the namespace's ids.

    Raises:
        LeafFolderTaken: Another writer's rows are there, which never were the table's.

    Spec: "Schema", "Physical Layout and Naming".
    """
    uri = leaf_uri(root, location)
    options = dict(storage_options) if storage_options else None
    _write_empty(uri, schema, 0, options)
    for _ in range(_ATTEMPTS):
        dataset = open_leaf(root, location, None, storage_options)
        if any(field.stated_id is not None for field in leaf_fields(dataset)):
            return dataset
        _check_not_foreign(dataset, root, location)
        missing = _missing_ids(dataset, schema, location)
        if not missing:
            _write_empty(uri, schema, dataset.version, options)
            continue
        try:
            state_field_ids(dataset, missing, detached=False)
        except OSError as error:
            if not _says_made(error):
                raise
    raise InternalError(what=f"the field ids of leaf {location} could not be stated")


def _check_not_foreign(dataset: lance.LanceDataset, root: str, location: str) -> None:
    """Refuse rows of a dataset of which no version was a leaf."""
    num_rows = dataset.count_rows()
    if not num_rows:
        return
    oldest = dataset.checkout_version(min(version["version"] for version in dataset.versions()))
    if any(field.stated_id is not None for field in leaf_fields(oldest)):
        return
    raise LeafFolderTaken(
        leaf=location, table=root, num_rows=num_rows, columns=", ".join(dataset.schema.names)
    )


def _missing_ids(dataset: lance.LanceDataset, schema: pa.Schema, leaf: str) -> dict[int, int]:
    """Give the ids to state by Lance's numbers; none where the columns are not the namespace's."""
    try:
        named = columns_by_name(dataset, schema, leaf)
    except LeafTypeMismatch:
        return {}
    return {} if named.unknown else named.ids


def _write_empty(
    uri: str, schema: pa.Schema, version: int, storage_options: dict[str, str] | None
) -> None:
    """Make an empty version behind a version; where another writer was first its version stays."""
    try:
        # write_dataset's create mode retries as an overwrite when two writers race; on a version,
        # without retries, Lance lets one pass.
        lance.LanceDataset.commit(
            uri,
            lance.LanceOperation.Overwrite(stating_ids(list(schema)), []),
            read_version=version,
            max_retries=0,
            storage_options=storage_options,
        )
    except OSError as error:
        if not _says_made(error):
            raise


def _says_made(error: OSError) -> bool:
    text = str(error).lower()
    words = ("already exists", "0.manifest was not found", "conflict", "concurrent", "retryable")
    return any(word in text for word in words)
