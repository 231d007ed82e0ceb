"""A schema that says ``timestamp`` and no more, as upstream writes it, is read as stored."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from tests.transaction.lake import append, make

import pennon
from pennon.manifest import Snapshot

UTC = dt.UTC
TIMES = [dt.datetime(2024, 2, 29, 23, 30, tzinfo=UTC), dt.datetime(1969, 12, 31, tzinfo=UTC), None]


def with_bare_type(snapshot: Snapshot) -> Snapshot:
    schema = json.loads(snapshot.metadata["schema"])
    for column in schema["fields"]:
        if column["type"]["type"].startswith("timestamp"):
            column["type"] = {"type": "timestamp"}
    manifest = lance.dataset(f"{snapshot.location}/__manifest")
    manifest.update_metadata({"schema": json.dumps(schema)})
    return Snapshot.open(snapshot.location)


@pytest.mark.parametrize(
    "stored", [pa.timestamp("us", "UTC"), pa.timestamp("ms"), pa.timestamp("ns", "Europe/Berlin")]
)
def test_the_unit_and_the_zone_of_the_leaf_are_taken(tmp_path: Path, stored: pa.DataType) -> None:
    columns = pa.schema([("id", pa.int64()), ("region", pa.utf8()), ("at", stored)])
    snapshot = make(tmp_path, columns)
    times = pa.array(TIMES, pa.timestamp("us", "UTC")).cast(stored)
    rows = pa.record_batch([[1, 2, 3], ["eu", "us", "eu"], times], schema=columns)
    bare = with_bare_type(append(snapshot, rows))
    assert bare.schema.arrow.field("at").type == stored
    found = pennon.open(bare.location).scan(where="region = 'eu'").to_arrow().sort_by("id")
    assert found["at"].combine_chunks().equals(times.take(pa.array([0, 2])))
    again = append(bare, rows)
    assert pennon.open(again.location).scan().to_arrow().num_rows == 6


def test_without_a_leaf_it_is_one_of_microseconds_without_a_zone(tmp_path: Path) -> None:
    columns = pa.schema([("region", pa.utf8()), ("at", pa.timestamp("us", "UTC"))])
    bare = with_bare_type(make(tmp_path, columns))
    assert bare.schema.arrow.field("at").type == pa.timestamp("us")
