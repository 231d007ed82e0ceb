"""Random histories of a table: after every step the rows are those of a model in plain Python."""

from __future__ import annotations

import datetime as dt
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from tests.catalog.evolving_table import (
    VALUES,
    WIDER,
    Column,
    Model,
    paths,
    spark_path,
)
from tests.transaction.lake import latest

from pennon.catalog.configured_catalog import Catalog
from pennon.catalog.ddl import alter
from pennon.catalog.partitioning import FieldChange
from pennon.errors import PartitionFieldExists, UnsupportedTableChange
from pennon.leaf import WriteTarget, write_partitions
from pennon.manifest import Snapshot, create
from pennon.namespace import Scan
from pennon.spec import NamespaceSchema, PartitionField, PartitionSpec
from pennon.spec.schema import children_of, with_children
from pennon.transaction import Committed, Transaction
from pennon.transforms.identity import Identity
from pennon.transforms.registry import parse_transform

NAMES = ["a", "b", "c", "d"]
_EPOCH = dt.date(1970, 1, 1)


class Evolving:
    """One table and its model; every step draws what it does."""

    def __init__(self, folder: str, draw: Callable[[st.SearchStrategy], Any]) -> None:
        self.draw = draw
        self.catalog = Catalog("lance", folder)
        schema = NamespaceSchema.with_fresh_ids(
            pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("k", pa.utf8())])
        )
        spec = PartitionSpec(1, (PartitionField("k", (1,), Identity(), None, pa.utf8()),))
        self.is_strong = bool(draw(st.booleans()))
        self.snapshot = create(str(Path(folder) / "ns"), schema, spec, strong=self.is_strong)
        self.model = Model([Column("id", "long"), Column("k", "string")])
        self.history: list[tuple[int, list[dict[str, object]]]] = []
        self.log: list[str] = []

    def one_of(self, choices: Sequence) -> Any:
        return self.draw(st.sampled_from(choices))

    # Steps

    def append(self) -> None:
        model = self.model
        rows: list[dict[int, object]] = []
        batch: list[dict[str, object]] = []
        for _ in range(self.draw(st.integers(1, 3))):
            stored: dict[int, object] = {}
            given_row: dict[str, object] = {}
            for column in model.columns:
                value = self.value(column)
                if column.name == "id":
                    value = len(model.rows) + len(rows)
                elif column.name == "k":
                    value = self.one_of(["eu", "us", None])
                stored[column.token] = value
                given_row[column.name] = _arrow_value(column, value)
            rows.append(stored)
            batch.append(given_row)
        schema = pa.schema([_plain(field) for field in self.snapshot.schema.arrow])
        self.write(pa.RecordBatch.from_pylist(batch, schema))
        model.rows += rows

    def write(self, batch: pa.RecordBatch) -> None:
        self.drop_lost_fields()
        snapshot = self.snapshot
        target = WriteTarget(
            snapshot.location, snapshot.version, snapshot.current_spec.spec_version
        )
        transaction = Transaction(snapshot)
        transaction.append(write_partitions([batch], target))
        outcome = transaction.commit()
        assert isinstance(outcome, Committed), outcome
        self.snapshot = outcome.snapshot

    def drop_lost_fields(self) -> None:
        """Drop the partition fields whose column was dropped: writes wait for that."""
        for field in self.snapshot.current_spec.fields:
            if any(
                self.snapshot.schema.field_by_id(source_id) is None
                for source_id in field.source_ids
            ):
                self.evolve_spec("drop", dropped=field.field_id)

    def add(self) -> None:
        parents = [path for path in paths(self.model.columns) if path[-1].kind == "struct"]
        parent = self.one_of([None, None, *parents])
        siblings = self.model.columns if parent is None else parent[-1].children
        free = [name for name in NAMES if all(sibling.name != name for sibling in siblings)]
        if not free:
            return
        column = self.new_column(self.one_of(free), depth=1)
        more: dict[str, object] = {"type": column.spark_type(), **self.position(siblings, column)}
        if parent is None and self.draw(st.booleans()):
            column.default = self.value(column)
            more |= {"default": "x", "initial": _json_value(column, column.default)}
            if column.default is None:
                more = {key: change for key, change in more.items() if key != "initial"}
        path = [*(spark_path(parent) if parent else []), column.name]
        if self.alter("add_column", path, **more):
            siblings.insert(self.place, column)

    def drop(self) -> None:
        path = self.some_column()
        if path is not None and self.alter("delete_column", spark_path(path)):
            self.model.siblings(path).remove(path[-1])

    def rename(self) -> None:
        path = self.some_column()
        if path is not None:
            name = self.one_of(NAMES)
            if self.alter("rename_column", spark_path(path), new_name=name):
                path[-1].name = name

    def promote(self) -> None:
        known = [path for path in paths(self.model.columns) if path[-1].kind in WIDER]
        if not known:
            return
        path = self.one_of(known)
        kind = self.one_of(WIDER[path[-1].kind])
        if self.alter("update_type", spark_path(path), type=f'"{kind}"'):
            path[-1].kind = kind

    def move(self) -> None:
        path = self.some_column()
        if path is None or (len(path) > 1 and path[-2].kind != "struct"):
            return
        siblings = self.model.siblings(path)
        more = self.position([sibling for sibling in siblings if sibling is not path[-1]], path[-1])
        if self.alter("update_position", spark_path(path), **more):
            siblings.remove(path[-1])
            siblings.insert(self.place, path[-1])

    def comment(self) -> None:
        path = self.one_of(paths(self.model.columns))
        self.alter("update_comment", spark_path(path), comment=self.one_of(["", "it's", None]))

    def partition(self) -> None:
        if self.draw(st.booleans()) and self.snapshot.current_spec.fields:
            field = self.one_of(list(self.snapshot.current_spec.fields))
            self.evolve_spec("drop", dropped=field.field_id)
            return
        self.drop_lost_fields()
        kinds = {"byte", "short", "integer", "long", "string", "decimal(5,2)", "date"}
        known = [
            path
            for path in paths(self.model.columns)
            if path[-1].kind in kinds and all(column.kind == "struct" for column in path[:-1])
        ]
        path = self.one_of(known)
        columns = [{"column": spark_path(path)}]
        choices: list[tuple[str, list[dict[str, object]]]] = [
            ("identity", []),
            ("bucket", [{"literal": 3}]),
        ]
        if path[-1].kind != "date":
            choices.append(("truncate", [{"literal": 2}]))
        if path[-1].kind == "string":
            choices.append(("expression", [{"literal": "coalesce(upper(col0), 'none')"}]))
        function, literals = self.one_of(choices)
        if function == "bucket" and self.draw(st.booleans()):
            other = {"column": spark_path(self.one_of(known))}
            columns += [other] if other != columns[0] else []
        self.evolve_spec(
            "add", transform={"function": function, "arguments": [*literals, *columns]}
        )

    # What steps are made of

    def some_column(self) -> list[Column] | None:
        known = [path for path in paths(self.model.columns) if path[-1].name not in ("id", "k")]
        return self.one_of(known) if known else None

    def position(self, siblings: list[Column], column: Column) -> dict[str, object]:
        choice = self.one_of([None, "first", *[sibling.name for sibling in siblings]])
        names = [sibling.name for sibling in siblings]
        if choice is None:
            self.place = len(siblings)
            return {"position": None}
        self.place = 0 if choice == "first" else names.index(choice) + 1
        return {"position": {"first": True} if choice == "first" else {"after": choice}}

    def new_column(self, name: str, depth: int) -> Column:
        kinds = [*VALUES, *(["struct", "struct", "array", "map"] if depth < 3 else [])]
        kind = self.one_of(kinds)
        if kind == "struct":
            names: list[str] = self.draw(
                st.lists(st.sampled_from(NAMES), min_size=1, max_size=3, unique=True)
            )
            return Column(name, kind, [self.new_column(name, depth + 1) for name in names])
        if kind in ("array", "map"):
            return Column(name, kind, [self.new_column("item", depth + 1)])
        return Column(name, kind)

    def value(self, column: Column) -> object:
        if self.draw(st.integers(0, 4)) == 0:
            return None
        if column.kind == "struct":
            return {child.token: self.value(child) for child in column.children}
        if column.kind == "array":
            size = self.draw(st.integers(0, 2))
            return [self.value(column.children[0]) for _ in range(size)]
        if column.kind == "map":
            keys: list[str] = self.draw(st.lists(st.sampled_from("xyz"), max_size=2, unique=True))
            return [(key, self.value(column.children[0])) for key in keys]
        return self.one_of(VALUES[column.kind])

    def alter(self, kind: str, column: list[str], **more: object) -> bool:
        change = {"change": kind, "column": column, **more}
        self.log.append(repr(change))
        try:
            alter.alter_table(self.catalog, (self.snapshot.location,), [change])
        except UnsupportedTableChange as refused:
            self.log[-1] += f" refused: {refused}"
            return False
        self.snapshot = latest(self.snapshot)
        return True

    def evolve_spec(
        self,
        action: str,
        dropped: str | None = None,
        transform: dict[str, object] | None = None,
    ) -> None:
        self.log.append(f"{action} {dropped} {transform}")
        field = None if dropped is None else parse_transform(dropped)
        try:
            alter.alter_partitioning(
                self.catalog,
                (self.snapshot.location,),
                FieldChange(action, transform, field),
            )
        except PartitionFieldExists:
            return
        self.snapshot = latest(self.snapshot)

    # Checks

    def check(self) -> None:
        shown = self.model.shown()
        assert read(self.snapshot) == counted(shown), "\n".join(self.log)
        if self.is_strong:  # the leaves of older versions are pinned
            self.history.append((self.snapshot.version, shown))
        for _ in range(2):
            self.check_predicate(shown)

    def check_predicate(self, shown: list[dict[str, object]]) -> None:
        scalars = [
            path
            for path in paths(self.model.columns)
            if path[-1].kind in VALUES and all(column.kind == "struct" for column in path[:-1])
        ]
        path = self.one_of(scalars)
        there = [stored for stored in (_at(row, path) for row in shown) if stored is not None]
        value = self.one_of([*VALUES[path[-1].kind], *there])
        if path[-1].kind == "double":
            value = float(value)
        name = ".".join(f"`{part}`" for part in spark_path(path))
        literal = _literal(value, path[-1].kind)
        texts: dict[str, Callable[[object], bool]] = {
            f"{name} = {literal}": lambda stored: stored is not None and stored == value,
            f"{name} <> {literal}": lambda stored: stored is not None and stored != value,
            f"{name} < {literal}": lambda stored: stored is not None and stored < value,
            f"{name} >= {literal}": lambda stored: stored is not None and stored >= value,
            f"{name} <=> {literal}": lambda stored: stored == value,
            f"{name} IS NULL": lambda stored: stored is None,
            f"{name} IS NOT NULL": lambda stored: stored is not None,
        }
        text = self.one_of(list(texts))
        wanted = [row for row in shown if texts[text](_at(row, path))]
        found = read(self.snapshot, text)
        assert found == counted(wanted), "\n".join([*self.log, text])


def _at(row: dict[str, object], path: list[Column]) -> object:
    value: object = row
    for column in path:
        if value is None:
            return None
        assert isinstance(value, dict)
        value = value[column.name]
    return value


def _literal(value: object, kind: str) -> str:
    if isinstance(value, str):
        return "'" + value.replace("'", "\\'") + "'"
    if kind == "date":
        return f"DATE '{_EPOCH + dt.timedelta(days=int(value))}'"  # type: ignore[call-overload]
    if kind in ("float", "double"):
        return f"CAST('{value!r}' AS {kind})"
    return f"CAST('{value}' AS {kind})" if isinstance(value, Decimal) else str(value)


def _json_value(column: Column, value: Any) -> object:
    if value is None:
        return None
    if column.kind == "struct":
        return {child.name: _json_value(child, value[child.token]) for child in column.children}
    if column.kind == "array":
        return [_json_value(column.children[0], item) for item in value]
    if column.kind == "map":
        inner = column.children[0]
        return {
            "keys": [key for key, _ in value],
            "values": [_json_value(inner, item) for _, item in value],
        }
    return f"{value}" if isinstance(value, Decimal) else value


def _arrow_value(column: Column, value: object) -> object:
    """A value as pyarrow takes it: by name, dates as dates."""
    return _dated(column, column.shown(value))


def _dated(column: Column, value: Any) -> object:
    if value is None:
        return None
    if column.kind == "struct":
        return {child.name: _dated(child, value[child.name]) for child in column.children}
    if column.kind == "array":
        return [_dated(column.children[0], item) for item in value]
    if column.kind == "map":
        return [(key, _dated(column.children[0], item)) for key, item in value]
    return _EPOCH + dt.timedelta(days=value) if column.kind == "date" else value


def _plain(field: pa.Field) -> pa.Field:
    children = [_plain(child) for child in children_of(field.type)]
    return field.with_type(with_children(field.type, children)).with_metadata(None)


def read(snapshot: Snapshot, predicate: str | None = None) -> Counter[str]:
    table = Scan(snapshot, predicate).to_arrow()
    return counted(_undated(table.to_pylist()))


def _undated(value: object) -> Any:
    if isinstance(value, dict):
        return {key: _undated(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_undated(item) for item in value)
    return (value - _EPOCH).days if isinstance(value, dt.date) else value


def counted(rows: list) -> Counter[str]:
    return Counter(repr(list(row.items())) for row in rows)


STEPS = (
    *[Evolving.append] * 4,
    *[Evolving.add] * 4,
    *[Evolving.drop] * 2,
    *[Evolving.rename] * 2,
    *[Evolving.promote] * 3,
    Evolving.move,
    Evolving.comment,
    *[Evolving.partition] * 2,
)


@settings(
    max_examples=20,
    deadline=None,
    phases=(Phase.explicit, Phase.reuse, Phase.generate),  # shrinking takes minutes; the log tells
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(data=st.data())
def test_rows_are_the_models_after_every_step(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        table = Evolving(folder, data.draw)
        for _ in range(data.draw(st.integers(4, 16))):
            table.one_of(STEPS)(table)
            table.check()
        for version, shown in table.history:
            then = Snapshot.open(table.snapshot.location, version)
            assert read(then) == counted(shown), "\n".join([f"at {version}", *table.log])
