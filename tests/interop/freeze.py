"""Writes the frozen namespace that this release leaves to all later ones.

Run once per release with a new name, in ``tests``: ``python -m interop.freeze
interop/frozen/v0_1.zip``. What is written is checked in and never written again; a later release
has to read it as it is.

Two spec versions, NULL partitions, several appends to a leaf (detached versions), an added and a
renamed column, an expression, and values of many types.
"""

from __future__ import annotations

import datetime as dt
import json
import shutil
import sys
import tempfile
from decimal import Decimal
from pathlib import Path

import pyarrow as pa

from pennon.leaf import WriteTarget, write_partitions
from pennon.manifest import ManifestCommitted, Snapshot, change_root, create
from pennon.spec import NamespaceSchema, spec_of
from pennon.transaction import Committed, Transaction
from pennon.transforms.registry import TransformCall, from_sql

SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("region", pa.utf8()),
        pa.field("at", pa.timestamp("us", "UTC")),
        pa.field("price", pa.decimal128(10, 2)),
        pa.field("point", pa.struct([pa.field("x", pa.float64()), pa.field("y", pa.float32())])),
        pa.field("tags", pa.list_(pa.utf8())),
        pa.field("vector", pa.list_(pa.float32(), 2)),
    ]
)
Row = dict[str, object]


def call(function: str, *arguments: object) -> TransformCall:
    """Make a transform call: text is a column, but for the SQL of an expression."""
    given: list[dict[str, object]] = []
    for at, argument in enumerate(arguments):
        is_column = isinstance(argument, str) and not (function == "expression" and at == 0)
        given.append({"column": [argument]} if is_column else {"literal": argument})
    return from_sql(function, given)


def row(number: int, region: str | None, at: dt.datetime | None) -> Row:
    """Make a row of many types."""
    return {
        "id": number,
        "region": region,
        "at": at,
        "price": None if number % 3 == 0 else Decimal(number) / 4,
        "point": {"x": number / 2, "y": float(number)},
        "tags": [f"t{n}" for n in range(number % 3)],
        "vector": [float(number), -1.0],
    }


def time(month: int, day: int, hour: int) -> dt.datetime:
    """Make a time in 2025, UTC."""
    return dt.datetime(2025, month, day, hour, 30, tzinfo=dt.UTC)


FIRST = [
    row(1, "eu", time(1, 1, 0)),
    row(2, "eu", time(1, 31, 23)),
    row(3, "us/$ =.", time(12, 31, 23)),
    row(4, None, None),
    row(5, "日本", time(2, 28, 12)),
]
SECOND = [row(6, "eu", time(1, 2, 3)), row(7, None, time(6, 15, 12))]
THIRD = [
    {**row(number, None, time(3, 4, 5)), "zone": "EU", "note": f"n{number}"}
    for number in (8, 9, 41)
]


def append(snapshot: Snapshot, rows: list[Row]) -> Snapshot:
    """Append rows and commit."""
    target = WriteTarget(snapshot.location, snapshot.version, snapshot.current_spec.spec_version)
    plain = pa.schema([field.remove_metadata() for field in snapshot.schema.arrow])
    full = [{name: row_.get(name) for name in plain.names} for row_ in rows]
    transaction = Transaction(snapshot)
    transaction.append(write_partitions([pa.RecordBatch.from_pylist(full, plain)], target))
    outcome = transaction.commit()
    assert isinstance(outcome, Committed), outcome
    return outcome.snapshot


def freeze(place: Path) -> None:
    """Write the namespace and, beside it, its rows."""
    location = str(place / "orders")
    schema = NamespaceSchema.with_fresh_ids(SCHEMA)
    spec = spec_of(schema, [call("identity", "region"), call("months", "at")])
    snapshot = create(location, schema, spec, {"owner": "frozen"}, comment="never write again")
    snapshot = append(append(snapshot, FIRST), SECOND)
    renamed = [
        field.with_name("zone") if field.name == "region" else field
        for field in snapshot.schema.arrow
    ]
    evolved = snapshot.schema.evolved(pa.schema([*renamed, pa.field("note", pa.utf8())]))
    following = spec_of(
        evolved,
        [call("expression", "lower(col0)", "zone"), call("bucket", 4, "id"), call("days", "at")],
        snapshot.specs,
    )
    outcome = change_root(snapshot, schema=evolved, spec=following)
    assert isinstance(outcome, ManifestCommitted), outcome
    append(Snapshot.open(location), THIRD)
    wanted = []
    for row_ in (*FIRST, *SECOND, *THIRD):
        zone = row_.get("zone", row_["region"])
        others = {name: value for name, value in row_.items() if name != "region"}
        wanted.append({**others, "zone": zone, "note": row_.get("note")})
    text = json.dumps(wanted, default=str, ensure_ascii=False, indent=1)
    (place / "rows.json").write_text(text + "\n", encoding="utf-8")


def packed(archive: Path) -> None:
    """Write the namespace and its rows into one archive."""
    with tempfile.TemporaryDirectory() as place:
        freeze(Path(place))
        shutil.make_archive(str(archive.with_suffix("")), "zip", place)


if __name__ == "__main__":
    packed(Path(sys.argv[1]))
