"""``table.refs``: the main branch and the tags."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pyarrow as pa

from pennon.manifest.versions.tags import MAIN, tags_of
from pennon.metadata_tables.metadata_table import MetadataTable, Selection

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pennon.manifest import Snapshot

__all__ = ["REFS"]

_SCHEMA = pa.schema(
    {
        "name": pa.utf8(),
        "type": pa.utf8(),
        "snapshot_id": pa.int64(),
        "max_reference_age_in_ms": pa.int64(),
        "set_at": pa.timestamp("us", "UTC"),
    }
)
_MILLISECOND = timedelta(milliseconds=1)


def _schema(_: Snapshot) -> pa.Schema:
    return _SCHEMA


def _rows(snapshot: Snapshot, _: Selection) -> Iterator[pa.Table]:
    rows: list[dict[str, object]] = [
        {"name": MAIN, "type": "BRANCH", "snapshot_id": snapshot.version}
    ]
    rows += [
        {
            "name": tag.name,
            "type": "TAG",
            "snapshot_id": tag.version,
            "max_reference_age_in_ms": None if tag.retain is None else tag.retain // _MILLISECOND,
            "set_at": tag.set_at,
        }
        for tag in tags_of(snapshot.manifest).values()
    ]
    yield pa.Table.from_pylist(rows, _SCHEMA)


REFS = MetadataTable("refs", _schema, _rows)
