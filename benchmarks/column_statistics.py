"""What statistics of columns cost and save: 10,000 leaves of 20 columns, and a write of 20 leaves.

python -m benchmarks.column_statistics
"""

from __future__ import annotations

import json
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

import lance
import numpy as np
import pyarrow as pa

import pennon
from pennon.manifest.format.column_statistics import (
    COLUMN_STATISTICS,
    ColumnStatistics,
    LeafStatistics,
)
from pennon.namespace import PartitionedNamespace
from pennon.planning import plan_scan

_LEAVES: Final = 10_000
_COLUMNS: Final = 20
_ROWS: Final = 2_000
_RUNS: Final = 7
_COMMITS: Final = 20
_SCHEMA: Final = pa.schema(
    {"k": pa.int64(), **{f"c{at}": pa.int64() if at % 2 else pa.utf8() for at in range(_COLUMNS)}}
)


def main() -> None:
    """Print the medians of planning, with statistics and without, and of a commit."""
    for has_statistics in (False, True):
        table = _planned(has_statistics=has_statistics)
        snapshot = table.snapshot
        told = "with" if has_statistics else "without"
        for condition in (None, "k = 77", "c1 = 77001", "c2 = 'customer 0000077'"):
            first, median = _timed(partial(plan_scan, snapshot, condition))
            kept = plan_scan(snapshot, condition).table.num_rows
            print(
                f"{told} statistics, WHERE {condition}: {kept:,} of {_LEAVES:,} leaves,"
                f" first {first:.0f} ms, then {median:.0f} ms"
            )
    tables = {columns: _table({"write.statistics.columns": columns}) for columns in ("0", "32")}
    spent: dict[str, list[float]] = {columns: [] for columns in tables}
    for number in range(_COMMITS):
        rows = _rows(number)
        for columns, table in tables.items():  # in turns, since the machine is not alone
            began = time.perf_counter()
            table.append(rows)
            spent[columns].append(1e3 * (time.perf_counter() - began))
    for columns, millis in spent.items():
        print(f"append to 20 leaves, {columns} columns counted: {statistics.median(millis):.0f} ms")


def _table(properties: dict[str, str]) -> PartitionedNamespace:
    location = Path(tempfile.mkdtemp()) / "t"
    properties = {"write.compaction.enabled": "false", **properties}
    return pennon.create(location, _SCHEMA, ["k"], properties=properties)


def _rows(number: int) -> pa.Table:
    columns: dict[str, object] = {"k": [at % 20 for at in range(_ROWS)]}
    for name in _SCHEMA.names[1:]:
        values = [at * (number + 1) for at in range(_ROWS)]
        is_text = pa.types.is_string(_SCHEMA.field(name).type)
        columns[name] = [f"customer {value:07d}" for value in values] if is_text else values
    return pa.table(columns, schema=_SCHEMA)


def _planned(*, has_statistics: bool) -> PartitionedNamespace:
    """Write rows of leaves into the manifest alone: planning opens no leaf."""
    table = _table({})
    manifest = lance.dataset(f"{table.location}/__manifest")
    names = [f"v1${at:016d}$dataset" for at in range(_LEAVES)]
    columns = {
        "object_id": pa.array(names),
        "object_type": pa.repeat("table", _LEAVES),
        "location": pa.array([f"12345678_{name}" for name in names]),
        "metadata": pa.array([_metadata(at, has_it=has_statistics) for at in range(_LEAVES)]),
        "read_version": pa.array(np.ones(_LEAVES, dtype=np.uint64)),
        "partition_field_k": pa.array(np.arange(_LEAVES)),
    }
    rows = [
        columns.get(field.name, pa.nulls(_LEAVES, field.type)).cast(field.type)
        for field in manifest.schema
    ]
    lance.write_dataset(pa.table(rows, schema=manifest.schema), manifest.uri, mode="append")
    return pennon.open(table.location)


def _metadata(leaf: int, *, has_it: bool) -> str:
    numbers = {"num_rows": 1000, "num_bytes": 4000, "num_fragments": 1, "counted_version": 1}
    told: dict[str, str | None] = {name: str(number) for name, number in numbers.items()}
    if has_it:
        text, number = f"customer {leaf:07d}", leaf * 1000
        known = {
            at + 1: ColumnStatistics(str(number + at), str(number + at + 999), 0)
            if at % 2
            else ColumnStatistics(text, text, 0)
            for at in range(_COLUMNS)
        }
        told[COLUMN_STATISTICS] = LeafStatistics(known).to_json(1)
    return json.dumps(told, separators=(",", ":"))


def _timed(run: Callable[[], object]) -> tuple[float, float]:
    spent = []
    for _ in range(_RUNS):
        began = time.perf_counter()
        run()
        spent.append(1e3 * (time.perf_counter() - began))
    return spent[0], statistics.median(spent[1:])


if __name__ == "__main__":
    main()
