"""What other writers keep in ``__manifest`` survives every kind of change that Pennon makes."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from tests.manifest import handmade

from pennon.catalog.configured_catalog import Catalog
from pennon.catalog.ddl import alter
from pennon.catalog.partitioning import FieldChange
from pennon.leaf import WriteTarget, write_partitions
from pennon.leaf.write.destination import StagedPartition
from pennon.maintenance.adopt import adopt, split_datasets
from pennon.maintenance.repair import repair
from pennon.manifest import Snapshot
from pennon.manifest.format.rows import COMMIT
from pennon.transaction import Committed, Transaction

Change = Callable[[str], object]
ROWS = [
    {"id": 20, "event_date": dt.date(2025, 12, 10), "country": "US"},
    {"id": 21, "event_date": dt.date(2026, 1, 1), "country": "CN"},
]
# Types that nobody knows, at every level and below a leaf; the last looks like a version row.
FOREIGN = {
    "v2$view": "view",
    "v2$e9f0g1h2i3j4k5l6$materialized": "materialized_view",
    f"{handmade.US}$7": "table_tag",
    "elsewhere$index": "index",
}
NOTE = {"a": ["1", None], "b": "ü"}


def rows_of(snapshot: Snapshot) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(ROWS, handmade.LEAF_SCHEMA)


def transaction(location: str, change: Callable[[Transaction], object]) -> None:
    snapshot = Snapshot.open(location)
    made = Transaction(snapshot)
    change(made)
    assert isinstance(made.commit(), Committed)


def staged(location: str) -> list[StagedPartition]:
    snapshot = Snapshot.open(location)
    target = WriteTarget(location, snapshot.version, snapshot.current_spec.spec_version)
    return write_partitions([rows_of(snapshot)], target)


def append(location: str) -> None:
    parts = staged(location)
    transaction(location, lambda made: made.append(parts))


def replace(location: str) -> None:
    parts = staged(location)
    transaction(location, lambda made: made.replace(parts))


def drop(location: str) -> None:
    transaction(location, lambda made: made.drop([handmade.NOWHERE]))


def altered(*changes: dict[str, object]) -> Change:
    return lambda location: alter.alter_table(Catalog("lance", location), (location,), changes)


def evolve(location: str) -> None:
    transform = {"function": "bucket", "arguments": [{"literal": 4}, {"column": ["id"]}]}
    catalog = Catalog("lance", location)
    alter.alter_partitioning(catalog, (location,), FieldChange("add", transform))
    append(location)


def lose_and_repair(location: str) -> None:
    manifest = lance.dataset(f"{location}/__manifest")
    manifest.drop_columns(["partition_field_country", "read_version"])
    manifest.update_metadata({"schema": None, "partition_spec_v2": None})
    repair(location)


def dataset(location: str) -> str:
    table = pa.Table.from_batches([rows_of(Snapshot.open(location)).slice(1)])
    lance.write_dataset(table, f"{location}/old")
    return f"{location}/old"


CHANGES: dict[str, Change] = {
    "append": append,
    "replace": replace,
    "drop": drop,
    "properties": altered({"change": "set_property", "property": "a", "value": "b"}),
    "add column": altered(
        {"change": "add_column", "column": ["x"], "type": '"long"', "nullable": True}
    ),
    "rename column": altered(
        {"change": "rename_column", "column": ["country"], "new_name": "land"}
    ),
    "evolve": evolve,
    "repair": lose_and_repair,
    "adopt": lambda location: adopt(Snapshot.open(location), dataset(location)),
    "split": lambda location: split_datasets(Snapshot.open(location), dataset(location)),
}


@pytest.fixture
def location(tmp_path: Path) -> str:
    """The handmade namespace with more of what is not ours."""
    made = handmade.appendix_c(tmp_path).location
    manifest = lance.dataset(f"{made}/__manifest")
    manifest.add_columns({"foreign_rank": "CAST(length(object_id) AS INT)"})
    manifest.add_columns([pa.field("foreign_tags", pa.list_(pa.utf8()))])
    columns = {
        name: pa.nulls(len(FOREIGN), manifest.schema.field(name).type)
        for name in manifest.schema.names
    }
    columns["object_id"] = pa.array(FOREIGN)
    columns["object_type"] = pa.array(FOREIGN.values())
    columns["metadata"] = pa.array([json.dumps(NOTE)] * len(FOREIGN))
    columns["foreign_tags"] = pa.array([["x", None]] * len(FOREIGN))
    manifest.insert(pa.table(columns, schema=manifest.schema))
    manifest.update_metadata({"somebody.key": "kept"})
    return made


def foreign(location: str) -> tuple[dict[Any, Any], dict[str, object]]:
    """The rows of unknown types; of all others what stands in unknown columns."""
    manifest = lance.dataset(f"{location}/__manifest")
    assert manifest.metadata["somebody.key"] == "kept"
    rows = {row["object_id"]: row for row in manifest.to_table().to_pylist()}
    known = ("namespace", "table", "table_version", COMMIT)
    names = ("foreign_rank", "foreign_note", "foreign_tags")
    unknown = {
        name: {k: v for k, v in row.items() if v is not None}
        for name, row in rows.items()
        if row["object_type"] not in known or name.startswith("sales")
    }
    return unknown, {name: [row[name] for name in names] for name, row in rows.items()}


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_keeps_what_it_does_not_know(location: str, name: str) -> None:
    unknown, columns = foreign(location)
    assert len(unknown) == len(FOREIGN) + 3
    version = Snapshot.open(location).version
    CHANGES[name](location)
    assert Snapshot.open(location).version > version
    after, after_columns = foreign(location)
    assert after == unknown
    kept = {name: after_columns.get(name) for name in columns}
    if name == "drop":
        gone = {key for key in columns if key.startswith(handmade.NOWHERE)}
        columns = {key: value for key, value in columns.items() if key not in gone}
        kept = {key: value for key, value in kept.items() if key not in gone}
    assert kept == columns
