"""Tells leaves from other tables by their names, and refuses rows that are no whole leaves."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from pennon.errors import LeafMisnamed, LeafNotLocated, ManifestMetadataLost
from pennon.manifest.format.names import SEPARATOR, TABLE_NAME, ObjectId
from pennon.spec.partition_spec import PartitionSpec, leaf_prefix, spec_key

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["check_located", "check_no_leaves", "leaf_spec_versions"]


def check_located(rows: pa.Table, *, location: str, version: int) -> None:
    """Hold that the rows of leaves say where their files are.

    Args:
        rows: Rows of ``__manifest``, with ``object_id`` and ``location``.
        location: Of the namespace.
        version: Of its ``__manifest``.

    Raises:
        LeafNotLocated: One does not.

    Spec: "Physical Layout and Naming".
    """
    if rows["location"].null_count:
        leaf = rows["object_id"].filter(pc.is_null(rows["location"]))[0]
        raise LeafNotLocated(location=location, version=version, object_id=leaf)


def leaf_spec_versions(
    names: pa.ChunkedArray, specs: Mapping[int, PartitionSpec]
) -> pa.ChunkedArray:
    """Give the spec version of each table that is called as a leaf: int32, NULL for all others.

    Args:
        names: Object ids of tables.
        specs: Every partition spec, by version.

    Example:
        >>> names = pa.chunked_array([["v1$dataset", "v1$k7m2n9p4q8r5s3t6$dataset", "orders"]])
        >>> leaf_spec_versions(names, {1: PartitionSpec(1, ())}).to_pylist()
        [1, None, None]

    Spec: "Physical Layout and Naming".
    """
    depth = pc.count_substring(names, SEPARATOR)
    is_table = pc.ends_with(names, SEPARATOR + TABLE_NAME)
    versions = pa.chunked_array([pa.nulls(len(names), pa.int32())])
    for version, spec in specs.items():
        has_depth = pc.and_(is_table, pc.equal(depth, len(spec.fields) + 1))
        is_leaf = pc.and_(has_depth, pc.starts_with(names, leaf_prefix(version)))
        versions = pc.if_else(is_leaf, pa.scalar(version, pa.int32()), versions)
    return versions


def check_no_leaves(
    names: Iterable[str], specs: Mapping[int, PartitionSpec], *, location: str, version: int
) -> None:
    """Hold that tables of ``__manifest`` are other objects than leaves.

    Args:
        names: Object ids of tables that are no leaves of the specs.
        specs: Every partition spec, by version.
        location: Of the namespace.
        version: Of its ``__manifest``.

    Raises:
        LeafMisnamed: One is called as a leaf of a spec is not, by its levels or its version.
        ManifestMetadataLost: One is a leaf of a spec that is not there.

    Spec: "Physical Layout and Naming".
    """
    for name in names:
        parsed = ObjectId.parse(name)
        if parsed is None or not parsed.is_table:
            continue
        spec = specs.get(parsed.spec_version)
        if spec is None:
            key = spec_key(parsed.spec_version)
            raise ManifestMetadataLost(
                location=location, version=version, keys=f"{key}, the spec of leaf {name}"
            )
        levels = len(spec.fields)
        raise LeafMisnamed(
            location=location,
            version=version,
            object_id=name,
            expected=f"v{parsed.spec_version}, a name for each of {levels} fields, dataset",
        )
