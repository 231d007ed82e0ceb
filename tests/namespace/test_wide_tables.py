"""What statements cost by the number of columns."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from functools import partial
from itertools import product
from pathlib import Path
from types import FrameType

import pyarrow as pa
import pytest

import pennon
from pennon import PartitionedNamespace

_Statement = Callable[[PartitionedNamespace, pa.Table], object]

_FEW, _MANY = 200, 1_000
_STATEMENTS: Mapping[str, _Statement] = {
    "append": lambda table, rows: table.append(rows),
    "scan": lambda table, _: table.scan("id = 1").to_arrow(),
    "update": lambda table, _: table.update({"id": "id + 10"}, "k = 0"),
    "delete": lambda table, _: table.delete("id = 1"),
    "merge": lambda table, rows: (
        table.merge(rows, on="id").when_matched_update_all().when_not_matched_insert_all().execute()
    ),
    "merge of keys": lambda table, rows: (
        table.merge(rows.select(["id", "k"]), on="id").when_matched_update_all().execute()
    ),
    "change feed": lambda table, _: table.changes(1),
    "description": lambda table, _: (table.schema, repr(table), table.metadata("partitions")),
}


def _rows(num_columns: int, kind: str) -> pa.Table:
    values, names = pa.array([0.5, 1.5]), [f"c{at}" for at in range(num_columns)]
    columns: list[pa.Array] = [values] * num_columns
    if kind == "a struct":
        columns, names = [pa.StructArray.from_arrays(columns, names=names)], ["s"]
    return pa.table([pa.array([1, 2]), pa.array([0, 1]), *columns], names=["id", "k", *names])


def _table(path: Path, rows: pa.Table) -> PartitionedNamespace:
    table = pennon.create(str(path), rows.schema, ["k"])
    table.append(rows)
    return table


def _seconds(run: Callable[[], object]) -> float:
    began = time.process_time()
    run()
    return time.process_time() - began


def _calls(run: Callable[[], object]) -> int:
    count = 0

    def counted(_frame: FrameType, event: str, _called: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(counted)
    try:
        run()
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize("kind", ["flat columns", "a struct"])
def test_the_cpu_of_statements_grows_as_the_columns_do_and_not_as_their_square(
    tmp_path: Path, kind: str
) -> None:
    spent: dict[str, list[float]] = {}
    for num_columns in (_FEW, _MANY):
        rows = _rows(num_columns, kind)
        table = _table(tmp_path / str(num_columns), rows)
        for name, statement in _STATEMENTS.items():
            runs = [_seconds(partial(statement, table, rows)) for _ in range(2)]
            spent.setdefault(name, []).append(min(runs))
    growth = {name: many / few for name, (few, many) in spent.items()}
    # Five times the columns; by their square it is up to 25 times.
    assert max(growth.values()) < 8, growth


@pytest.mark.parametrize(
    ("kind", "named"), list(product(["flat columns", "a struct"], ["id", "c5"]))
)
def test_a_scan_asked_again_does_nothing_for_the_columns_that_it_does_not_name(
    tmp_path: Path, kind: str, named: str
) -> None:
    column = f"s.{named}" if kind == "a struct" and named != "id" else named
    calls = []
    for num_columns in (_FEW, 2 * _FEW):
        table = _table(tmp_path / str(num_columns), _rows(num_columns, kind))
        scan = partial(_scanned, table, f"{column} < 1.5")
        scan()
        calls.append(_calls(scan))
    assert calls[1] <= calls[0] + 100


def _scanned(table: PartitionedNamespace, condition: str) -> pa.Table:
    return table.scan(condition, columns=["id"]).to_arrow()
