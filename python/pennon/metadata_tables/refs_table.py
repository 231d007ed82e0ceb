"""``table.refs``: the names of versions: the main line, and the tags."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from pennon.manifest.versions.manifest_history import tagged_versions
from pennon.metadata_tables.metadata_table import MetadataTable, Selection

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pennon.manifest import Snapshot

__all__ = ["REFS"]

_SCHEMA = pa.schema({"name": pa.utf8(), "type": pa.utf8(), "snapshot_id": pa.int64()})


def _schema(_: Snapshot) -> pa.Schema:
    return _SCHEMA


def _rows(snapshot: Snapshot, _: Selection) -> Iterator[pa.Table]:
    tags = tagged_versions(snapshot)
    rows = [("main", "BRANCH", snapshot.version)]
    rows += [(name, "TAG", version) for name, version in sorted(tags.items())]
    yield pa.Table.from_pylist(
        [dict(zip(_SCHEMA.names, row, strict=True)) for row in rows], _SCHEMA
    )


REFS = MetadataTable("refs", _schema, _rows)
