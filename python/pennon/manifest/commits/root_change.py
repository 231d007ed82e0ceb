"""Commits to the root namespace: a new partition spec, schema or properties.

Lance has no commit that changes columns and metadata at once. So the columns of ``__manifest``
come first: a partition column that no spec names yet is ignored by readers, and a wider one holds
the same values; then one metadata commit makes spec and schema visible together. A crash between
the two leaves the namespace as it was, and the change can be made again.

Two concurrent changes of spec or schema both write the key ``schema``: Lance refuses the second.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import lance
import pyarrow as pa

from pennon.errors import InternalError
from pennon.manifest.commits.manifest_outcome import (
    ConcurrentChange,
    ManifestCommitted,
    ManifestOutcome,
)
from pennon.manifest.commits.stated_commit import commit_metadata
from pennon.manifest.dataset.commit_conflict import is_conflict
from pennon.manifest.dataset.storage import storage_failure
from pennon.manifest.format.columns import partition_columns
from pennon.manifest.format.properties import COMMENT, SCHEMA, TRANSACTION, property_keys
from pennon.manifest.snapshot import Snapshot
from pennon.manifest.table_identity import open_commit_base
from pennon.spec.partition_spec import PartitionSpec
from pennon.spec.schema import NamespaceSchema

__all__ = ["change_root"]


def change_root(
    snapshot: Snapshot,
    *,
    schema: NamespaceSchema | None = None,
    spec: PartitionSpec | None = None,
    properties: Mapping[str, str] | None = None,
    removed_properties: Sequence[str] = (),
    comment: str | None = None,
    mode: str | None = None,
) -> ManifestOutcome:
    """Change what the metadata of a namespace says.

    Args:
        snapshot: The snapshot that the change was made against.
        schema: The new namespace schema; None leaves it.
        spec: The next partition spec; None adds none.
        properties: Table properties to set.
        removed_properties: Table properties to remove.
        comment: The table's comment; None leaves it, an empty one removes it.
        mode: Ends what keeps writers away, in the same commit: the mode in which they go on. Where
            another process has ended it, the change is refused.

    Returns:
        The version that has the change, or that another writer came first.

    Raises:
        InvalidPartitionSpec: The spec does not fit the schema.
        ReservedProperty: A property has a name of Pennon's own.
        StorageFailure: The storage refused.
        TableMadeAnew: Another table stands there by now.

    Spec: "Partition Evolution", "Manifest Table Schema".
    """
    written: dict[str, str | None] = dict(property_keys(properties or {}))
    written.update(dict.fromkeys(property_keys(dict.fromkeys(removed_properties, ""))))
    if comment is not None:
        written[COMMENT] = comment or None
    if mode is not None:
        written[TRANSACTION] = mode
    if schema is not None or spec is not None:
        written[SCHEMA] = (schema or snapshot.schema).to_json()
    if spec is not None:
        if spec.spec_version in snapshot.specs:
            raise InternalError(what=f"{spec.key} exists and specs never change")
        spec.check(schema or snapshot.schema)
        written[spec.key] = spec.to_json()
    base = open_commit_base(snapshot)
    try:
        if spec is not None:
            _fit_columns(base, spec)
        if written:
            number = snapshot.current_spec.spec_version
            base = commit_metadata(base, written, number, snapshot.storage_options)
    except (OSError, RuntimeError, ValueError) as error:
        if not is_conflict(error):
            raise storage_failure("change", snapshot.location, error) from error
        return ConcurrentChange()
    return ManifestCommitted(base.version)


def _fit_columns(manifest: lance.LanceDataset, spec: PartitionSpec) -> None:
    """Add the partition columns that are missing and widen those that are too narrow."""
    present = {field.name: field.type for field in manifest.schema}
    expected = partition_columns([spec])
    added = [pa.field(name, kind) for name, kind in expected.items() if name not in present]
    if added:
        manifest.add_columns(added)
    for name, kind in expected.items():
        if name in present and present[name] != kind:
            manifest.alter_columns({"path": name, "data_type": kind})  # type: ignore[dict-item]
