"""Namespaces of the older draft, written by pylance alone after its text."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable, Sequence
from pathlib import Path

import lance
import mmh3
import pyarrow as pa

Row = dict[str, object]
SCHEMA = pa.schema(
    {"id": pa.int64(), "country": pa.utf8(), "ts": pa.timestamp("us", "UTC"), "n": pa.int32()}
)
TYPES = {"id": "int64", "country": "utf8", "ts": "timestamp[us, tz=UTC]", "n": "int32"}


def day(month: int, number: int, hour: int = 0) -> dt.datetime:
    return dt.datetime(2025, month, number, hour, tzinfo=dt.UTC)


ROWS: list[Row] = [
    {"id": at, "country": country, "ts": ts, "n": n}
    for at, (country, ts, n) in enumerate(
        [
            ("US", day(12, 10, 5), 7),
            ("US", day(12, 10, 6), -7),
            ("CN", day(12, 11), 17),
            (None, day(1, 1), 25),
            ("a/b c", day(1, 31), -25),
        ]
        * 2
    )
]


def murmur(value: int) -> int:
    return mmh3.hash(value.to_bytes(8, "little", signed=True))


def make(
    root: Path,
    columns: list[Row],
    name: Callable[[Row], list[str]],
    *,
    above: str = "",
    rows: Sequence[Row] | None = None,
) -> str:
    """Write a namespace of the draft; ``name`` gives a row's ``column=value`` parts."""
    parts: dict[tuple[str, ...], list[Row]] = {}
    for row in rows or ROWS:
        parts.setdefault(tuple(name(row)), []).append(row)
    fields = [
        {"metadata": {}, "name": n, "nullable": True, "type": {"fields": [], "type": t}}
        for n, t in TYPES.items()
    ]
    properties = {
        "lance.partitioning.enabled": "true",
        "lance.partitioning.partition-columns": json.dumps(columns),
        "lance.partitioning.schema": json.dumps({"fields": fields, "metadata": {}}),
    }
    prefix = f"{above}$" if above else ""
    objects: list[Row] = []
    if above:
        text = json.dumps(properties)
        objects.append({"object_id": above, "object_type": "namespace", "metadata": text})
    for at, (path, own) in enumerate(parts.items()):
        object_id = prefix + "$".join(path)
        location = f"{at:08x}_leaf.lance"
        # Another order of columns, and one that the namespace does not know.
        table = pa.Table.from_pylist(own, SCHEMA).select(["n", "ts", "country", "id"])
        table = table.append_column("own", pa.array(range(len(own)), pa.int32()))
        lance.write_dataset(table, str(root / location))
        objects.append({"object_id": object_id, "object_type": "table", "location": location})
    known = ("object_id", "object_type", "location", "metadata")
    schema = pa.schema([pa.field(name, pa.utf8(), nullable=name in known[2:]) for name in known])
    full = [{key: row.get(key) for key in known} for row in objects]
    dataset = lance.write_dataset(pa.Table.from_pylist(full, schema), str(root / "__manifest"))
    if not above:
        dataset.update_metadata({**properties})
    return str(root)


def of(row: Row, name: str) -> int:
    value = row[name]
    assert isinstance(value, int)
    return value


def stamp(row: Row) -> dt.datetime:
    ts = row["ts"]
    assert isinstance(ts, dt.datetime)
    return ts


EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
CASES: dict[str, tuple[Row, Callable[[Row], str], str, tuple[list[int], int]]] = {
    "calendar month": (
        {"name": "ts", "function": "month"},
        lambda row: f"ts_month={stamp(row).month:02d}",
        "ts = TIMESTAMP '2025-12-11 00:00:00'",
        ([2, 7], 1),
    ),
    "epoch day": (
        {"name": "ts", "function": "day"},
        lambda row: f"ts_day={(stamp(row) - EPOCH).days}",
        "ts < TIMESTAMP '2025-02-01 00:00:00'",
        ([3, 4, 8, 9], 2),
    ),
    "epoch hour": (
        {"source-id": 2, "function": "hour"},
        lambda row: f"ts_hour={(stamp(row) - EPOCH) // dt.timedelta(hours=1)}",
        "ts = TIMESTAMP '2025-12-10 06:00:00'",
        ([1, 6], 1),
    ),
    "bucket": (
        {"name": "n", "function": "bucket", "properties": {"num-buckets": "4"}},
        lambda row: f"n_bucket={abs(murmur(of(row, 'n'))) % 4}",
        "n = 17",
        ([2, 7], 1),
    ),
    "masked bucket": (
        {"name": "n", "function": "bucket[4]"},
        lambda row: f"n_bucket={(murmur(of(row, 'n')) & 0x7FFFFFFF) % 4}",
        "n = 17",
        ([2, 7], 1),
    ),
    "truncate": (
        {"name": "n", "function": "truncate", "properties": {"width": "10"}},
        lambda row: f"n_trunc={int(of(row, 'n') / 10) * 10}",
        "n > 15",
        ([2, 3, 7, 8], 2),
    ),
    "floored truncate": (
        {"name": "n", "function": "truncate", "properties": {"width": "10"}},
        lambda row: f"n_trunc={of(row, 'n') // 10 * 10}",
        "n = -7",
        ([1, 6], 1),
    ),
    "hash": (
        {"name": "n", "function": "hash"},
        lambda row: f"n_hash={murmur(of(row, 'n')) & 0xFFFFFFFF:08x}",
        "n = 25",
        ([3, 8], 1),
    ),
}
