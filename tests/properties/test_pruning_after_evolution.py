# ruff: noqa: RUF001, S311 - odd letters, and a generator that hypothesis can repeat
"""Real namespaces whose columns and specs changed: every snapshot gives the rows of its time.

Columns (fields of a struct too) are renamed, promoted, dropped and added, partition fields over
them come and go, rows are appended in between. A model in plain Python is changed alongside; each
snapshot has to answer each predicate as the model did then, through whichever specs it has.
"""

from __future__ import annotations

import copy
import datetime as dt
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.present import present
from tests.strategies.predicates import Predicate, Row, compared, sql_literal, trees
from tests.transaction.lake import append, latest

from pennon.catalog.configured_catalog import Catalog
from pennon.catalog.ddl import alter
from pennon.manifest import Snapshot, create
from pennon.manifest.commits.root_change import change_root
from pennon.namespace import Scan
from pennon.spec import NamespaceSchema
from pennon.spec.evolution import spec_of
from pennon.transforms.bucket import Bucket, MultiBucket
from pennon.transforms.calendar import Day, Month, Year
from pennon.transforms.expression import Expression
from pennon.transforms.identity import Identity
from pennon.transforms.registry import TransformCall
from pennon.transforms.truncate import Truncate

UTC = dt.UTC
Column = tuple[str, ...]
_KNOWN: dict[str, list[object]] = {
    "int": [0, 1, -7, 7, 10, 25, 2**31 - 1, -(2**31)],
    "wide": [0, 7, 2**31, -(2**40)],
    "text": ["", "a", "ab", "abc", "é", "𝒳y"],
    "day": [dt.date(1582, 10, 4), dt.date(1969, 12, 31), dt.date(2012, 2, 29), dt.date(2013, 1, 1)],
    "moment": [
        dt.datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
        dt.datetime(2012, 12, 31, 23, tzinfo=UTC),
        dt.datetime(2013, 1, 1, tzinfo=UTC),
    ],
}
_START: dict[Column, str] = {
    ("i",): "int",
    ("s",): "text",
    ("d",): "day",
    ("ts",): "moment",
    ("p", "x"): "int",
    ("p", "t"): "text",
}
_SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("i", pa.int32()),
        ("s", pa.utf8()),
        ("d", pa.date32()),
        ("ts", pa.timestamp("us", "UTC")),
        ("p", pa.struct([("x", pa.int32()), ("t", pa.utf8())])),
    ]
)
_TRANSFORMS: dict[str, list[tuple[object, ...]]] = {
    "int": [(Identity(),), (Bucket(4),), (Truncate(10),), (Bucket(8),)],
    "text": [(Identity(),), (Truncate(1),), (Bucket(4),), (Expression("lower(col0)"),)],
    "day": [(Year(),), (Year(), Month()), (Year(), Month(), Day()), (Identity(),)],
    "moment": [(Year(), Month()), (Year(), Month(), Day()), (Bucket(4),)],
}
_TRANSFORMS["wide"] = _TRANSFORMS["int"]


@dataclass
class Table:
    """A namespace on disk and what its rows should be."""

    snapshot: Snapshot
    random: Random
    columns: dict[Column, str] = field(default_factory=lambda: dict(_START))
    rows: list[dict[str, object]] = field(default_factory=list)
    past: list[tuple[int, dict[Column, str], list[dict[str, object]]]] = field(default_factory=list)
    names: int = 0

    def append(self) -> None:
        added = [self._row(len(self.rows) + at) for at in range(12)]
        schema = pa.schema(
            [pa.field(field_.name, field_.type) for field_ in self.snapshot.schema.arrow]
        )
        self.snapshot = append(self.snapshot, pa.RecordBatch.from_pylist(added, schema))
        self.rows += added
        self.remember()

    def remember(self) -> None:
        self.past.append((self.snapshot.version, dict(self.columns), copy.deepcopy(self.rows)))

    def evolve(self) -> None:
        """A new spec over columns that are there."""
        chosen = self.random.sample(sorted(self.columns), self.random.randint(0, 2))
        calls = [
            TransformCall(self.random.choice(_TRANSFORMS[self.columns[path]]), (path,))  # type: ignore[arg-type]
            for path in chosen
        ]
        if len(self.columns) > 2 and self.random.random() < 0.2:
            pair = tuple(self.random.sample(sorted(self.columns), 2))
            calls = [TransformCall((MultiBucket(6),), pair)]
        before = self.snapshot
        change_root(before, spec=spec_of(before.schema, calls, before.specs))
        self.snapshot = latest(before)

    def rename(self) -> None:
        path = self.random.choice(sorted(self.columns))
        self.names += 1
        new = (*path[:-1], f"n{self.names}")
        self._alter("rename_column", path, new_name=new[-1])
        self.columns[new] = self.columns.pop(path)
        for row in self.rows:
            holder = _holder(row, path)
            if holder is not None:
                holder[new[-1]] = holder.pop(path[-1])

    def promote(self) -> None:
        narrow = [path for path, kind in self.columns.items() if kind == "int"]
        if narrow:
            path = self.random.choice(sorted(narrow))
            self._alter("update_type", path, type='"long"')
            self.columns[path] = "wide"

    def drop(self) -> None:
        """Drop a column of which no new row is partitioned; older specs may be made of it."""
        live = {
            source_id for one in self.snapshot.current_spec.fields for source_id in one.source_ids
        }
        schema = self.snapshot.schema
        free = [
            path
            for path in sorted(self.columns)
            if present(schema.field_by_path(list(path))).id not in live
            and (len(path) == 1 or sum(other[0] == path[0] for other in self.columns) > 1)
        ]
        if len(self.columns) > 2 and free:
            path = self.random.choice(free)
            self._alter("delete_column", path)
            del self.columns[path]
            for row in self.rows:
                holder = _holder(row, path)
                if holder is not None:
                    del holder[path[-1]]

    def add(self) -> None:
        self.names += 1
        path = (f"n{self.names}",)
        self._alter("add_column", path, type='"string"')
        self.columns[path] = "text"
        for row in self.rows:
            row[path[0]] = None

    def _alter(self, kind: str, column: Column, **more: object) -> None:
        catalog = Catalog("lance", str(Path(self.snapshot.location).parent))
        change = {"change": kind, "column": list(column), **more}
        alter.alter_table(catalog, (self.snapshot.location,), [change])
        self.snapshot = latest(self.snapshot)

    def _row(self, number: int) -> dict[str, object]:
        row: dict[str, object] = {"id": number}
        for path, kind in self.columns.items():
            # a partition that has narrow rows refuses values that only the wider type holds
            known = _KNOWN["int" if kind == "wide" else kind]
            value = None if self.random.random() < 0.2 else self.random.choice(known)
            if len(path) == 1:
                row[path[0]] = value
            elif row.setdefault(path[0], None if self.random.random() < 0.1 else {}) is not None:
                row[path[0]][path[1]] = value  # type: ignore[index]
        return row


def _holder(row: dict[str, object], path: Column) -> dict[str, object] | None:
    return row if len(path) == 1 else row[path[0]]  # type: ignore[return-value]


def _value(row: Row, path: Column) -> object:
    found: object = row
    for name in path:
        found = None if found is None else found[name]  # type: ignore[index]
    return found


@st.composite
def _atoms(draw: st.DrawFn, columns: Mapping[Column, str]) -> Predicate:
    path = draw(st.sampled_from(sorted(columns)))
    name = ".".join(path)
    value = draw(st.sampled_from(_KNOWN[columns[path]]))
    operator = draw(st.sampled_from(["=", "=", "<>", "<", "<=", ">", ">="]))
    several = draw(st.lists(st.sampled_from(_KNOWN[columns[path]]), min_size=1, max_size=3))
    listed = ", ".join(map(sql_literal, several))
    kinds: list[tuple[str, Callable[[object], bool | None]]] = [
        (f"{name} {operator} {sql_literal(value)}", lambda v: compared(v, operator, value)),
        (f"{name} IN ({listed})", lambda v: None if v is None else v in several),
        (f"{name} IS NULL", lambda v: v is None),
        (f"{name} <=> {sql_literal(value)}", lambda v: v == value),
    ]
    sql, oracle = draw(st.sampled_from([kinds[0], *kinds]))
    return Predicate(sql, lambda row: oracle(_value(row, path)))


@pytest.mark.spec(
    "Compatibility with Partition Pruning 1",
    "Evolution Scenarios 3",
    "Partition Expression 7",
    "Read Behavior 2",
)
@settings(
    max_examples=10,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    print_blob=True,
)
@given(st.integers(0, 2**32), st.data())
def test_every_snapshot_of_an_evolved_table_gives_the_rows_of_its_time(
    seed: int, asked: st.DataObject
) -> None:
    for table in _evolved(Random(seed)):
        for version, columns, rows in asked.draw(
            st.lists(st.sampled_from(table.past), min_size=2, max_size=4)
        ):
            snapshot = Snapshot.open(table.snapshot.location, version)
            for predicate in asked.draw(
                st.lists(trees(_atoms(columns), 3), min_size=2, max_size=5)
            ):
                found = Scan(snapshot, predicate.sql).to_arrow().to_pylist()
                wanted = [row for row in rows if predicate.oracle(row) is True]
                assert _keyed(found) == _keyed(wanted), f"{predicate.sql} at {version}"
            assert _keyed(Scan(snapshot).to_arrow().to_pylist()) == _keyed(rows)


def _evolved(random: Random) -> Iterator[Table]:
    folder = tempfile.mkdtemp()
    try:
        schema = NamespaceSchema.with_fresh_ids(_SCHEMA)
        table = Table(create(f"{folder}/t", schema, spec_of(schema, [])), random)
        steps = [table.rename, table.promote, table.drop, table.add, table.rename]
        for _ in range(3):
            table.evolve()
            table.append()
            random.choice(steps)()
            table.remember()
            table.append()
        assert len(table.snapshot.specs) >= 3
        yield table
    finally:
        shutil.rmtree(folder)


def _keyed(rows: list[dict[str, object]]) -> dict[object, dict[str, object]]:
    keyed = {row["id"]: row for row in rows}
    assert len(keyed) == len(rows)
    return keyed
