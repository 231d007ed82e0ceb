"""A namespace whose year, month and day of one column are a level each, made with pylance alone.

No part of Pennon makes it: names, columns and metadata follow the specification's text.
"""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path

import lance
import pyarrow as pa
from tests.manifest.handmade import manifest_row

LEVELS = ("year", "month", "day")
_LAST_CHARACTERS = "k7m2n9p4q8r5"


def write_levels(location: Path, rows: pa.Table) -> None:
    """Write rows with a column ``ts`` (UTC), one leaf per day; NULL has a leaf of its own.

    Args:
        location: The folder of the namespace.
        rows: Columns ``id``, ``ts`` and ``v``.
    """
    days = [None if ts is None else ts.astimezone(dt.UTC).date() for ts in rows["ts"].to_pylist()]
    objects = [manifest_row("v1", "namespace")]
    for day in sorted(set(days), key=str):
        values = {f"ts_{level}": getattr(day, level, None) for level in LEVELS}
        above = "v1"
        for number in range(1, len(LEVELS) + 1):
            levels = dict(list(values.items())[:number])
            above = f"{above}${_name(levels)}"
            objects.append(manifest_row(above, "namespace", **levels))
        leaf = f"{above}$dataset"
        some = rows.filter(pa.array([day_ == day for day_ in days]))
        dataset = lance.write_dataset(some, str(location / f"0a1b2c3d_{leaf}"))
        table = manifest_row(leaf, "table", read_version=dataset.version, **values)
        objects.append(table | {"location": f"0a1b2c3d_{leaf}"})
    unique = list({row["object_id"]: row for row in objects}.values())
    manifest = pa.Table.from_pylist(unique, pa.schema(_columns()))
    lance.write_dataset(manifest, str(location / "__manifest")).update_metadata(
        {key: json.dumps(value) for key, value in _metadata().items()}
    )


def _name(values: dict[str, object]) -> str:
    """Make 16 characters that differ between values; what they say is nobody's business."""
    digits = "".join(f"{value or 0}" for value in values.values())
    return f"{digits}{_LAST_CHARACTERS}"[-16:].rjust(16, "z")


def _columns() -> list[pa.Field]:
    key = {"lance-schema:unenforced-primary-key:position": "0"}
    return [
        pa.field("object_id", pa.utf8(), nullable=False, metadata=key),
        pa.field("object_type", pa.utf8(), nullable=False),
        pa.field("location", pa.utf8()),
        pa.field("metadata", pa.utf8()),
        pa.field("base_objects", pa.list_(pa.field("object_id", pa.utf8()))),
        pa.field("read_version", pa.uint64()),
        *(pa.field(f"partition_field_ts_{level}", pa.int32()) for level in LEVELS),
    ]


def _metadata() -> dict[str, object]:
    kinds = {
        "id": {"type": "int64"},
        "ts": {"type": "timestamp[us, tz=UTC]"},
        "v": {"type": "float64"},
    }
    fields = [
        {"name": name, "nullable": True, "type": kind, "metadata": {"lance:field_id": str(at)}}
        for at, (name, kind) in enumerate(kinds.items())
    ]
    levels = [
        {
            "field_id": f"ts_{level}",
            "source_ids": [1],
            "transform": {"type": level},
            "result_type": {"type": "int32"},
        }
        for level in LEVELS
    ]
    return {"schema": {"fields": fields}, "partition_spec_v1": {"id": 1, "fields": levels}}
