"""Refuses table rows that are called as no leaf of their spec, or do not say where it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow.compute as pc

from pennon.errors import LeafMisnamed, LeafNotLocated, ManifestMetadataLost
from pennon.manifest.format.names import ObjectId
from pennon.spec.partition_spec import PartitionSpec, spec_key

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import pyarrow as pa

__all__ = ["check_located", "check_no_leaves"]


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
