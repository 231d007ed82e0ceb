"""Creates a partitioned namespace."""

from __future__ import annotations

from collections.abc import Mapping

import lance
import pyarrow as pa

from pennon.errors import NamespaceExists, NamespaceHasNoManifest
from pennon.manifest.dataset.commit_conflict import is_conflict
from pennon.manifest.dataset.storage import (
    StorageOptions,
    manifest_uri,
    open_manifest,
    storage_failure,
)
from pennon.manifest.format.columns import manifest_schema
from pennon.manifest.format.names import ObjectId
from pennon.manifest.format.properties import root_metadata
from pennon.manifest.format.rows import NAMESPACE, ManifestRow, table_of_rows
from pennon.manifest.snapshot import Snapshot
from pennon.spec.partition_spec import PartitionSpec
from pennon.spec.schema import NamespaceSchema

__all__ = ["create"]


def create(
    location: str,
    schema: NamespaceSchema,
    spec: PartitionSpec,
    properties: Mapping[str, str] | None = None,
    *,
    strong: bool = True,
    comment: str | None = None,
    storage_options: StorageOptions | None = None,
) -> Snapshot:
    """Create the ``__manifest`` of a new partitioned namespace.

    Two commits: the table with the row of ``v<N>``, then the metadata that makes it a partitioned
    namespace. What a crash between them leaves is an empty directory namespace, which the next
    ``create`` at the location completes.

    Args:
        location: Path or URL; it is made where it does not exist.
        schema: The namespace schema.
        spec: Its first partition spec.
        properties: The user's table properties.
        strong: Whether a write that touches many leaves is one transaction.
        comment: The table's comment.
        storage_options: Given to Lance; never part of an error.

    Returns:
        The first snapshot.

    Raises:
        NamespaceExists: The location has a ``__manifest`` with something in it.
        InvalidPartitionSpec: The spec does not fit the schema.
        ReservedProperty: A property has a name of Pennon's own.
        StorageFailure: The location cannot be written.

    Spec: "Metadata Definition", "Manifest Table Schema".
    """
    spec.check(schema)
    specs = {spec.spec_version: spec}
    metadata = root_metadata(schema, specs, properties or {}, strong=strong, comment=comment)
    arrow = manifest_schema(specs, strong=strong)
    rows = table_of_rows([ManifestRow(str(ObjectId(spec.spec_version)), NAMESPACE)], arrow)
    manifest = _unfinished(location, storage_options)
    if manifest is None:
        manifest = _first_version(location, rows, storage_options)
    elif manifest.schema != arrow or manifest.count_rows() != len(rows):
        raise NamespaceExists(location=location)
    try:
        manifest.update_metadata(dict(metadata))
    except OSError as error:
        if is_conflict(error):
            raise NamespaceExists(location=location) from error
        raise storage_failure("create", location, error) from error
    return Snapshot.open(location, manifest.version, storage_options=storage_options)


def _first_version(
    location: str, rows: pa.Table, storage_options: StorageOptions | None
) -> lance.LanceDataset:
    """Write version 1 of the manifest, and nothing but version 1.

    ``write_dataset(mode="create")`` looks once and then retries as an overwrite: of two racing
    creators the second would replace what the first has made. Based on version 0, without
    retries, Lance lets one pass.
    """
    uri, options = manifest_uri(location), dict(storage_options or {})
    try:
        fragments = lance.fragment.write_fragments(
            rows, uri, schema=rows.schema, mode="create", storage_options=options
        )
        return lance.LanceDataset.commit(
            uri,
            lance.LanceOperation.Overwrite(rows.schema, fragments),
            read_version=0,
            max_retries=0,
            storage_options=options,
        )
    except OSError as error:
        message = str(error).lower()
        if "already exists" in message or "0.manifest was not found" in message:
            raise NamespaceExists(location=location) from error
        raise storage_failure("create", location, error) from error


def _unfinished(location: str, storage_options: StorageOptions | None) -> lance.LanceDataset | None:
    """Open what an interrupted creation left."""
    try:
        manifest = open_manifest(location, None, None, storage_options)
    except NamespaceHasNoManifest:
        return None
    if manifest.metadata:
        raise NamespaceExists(location=location)
    return manifest
