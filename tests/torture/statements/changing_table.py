"""A table without Spark that random statements change, beside a model of its rows."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import duckdb
import pyarrow as pa
from tests.strategies.statement_rows import (
    ADDED,
    FIELDS,
    SCHEMA,
    SPECS,
    Row,
    as_bag,
    as_literal,
    condition,
    positions,
    random_row,
)

import pennon
from pennon.errors import NotWholePartitions, PennonError, PredicateNotEvaluable
from pennon.namespace import PartitionedNamespace

_ROW_CHANGES: Final = ("delete", "update", "merge")
# How often each step is chosen.
_STEPS: Final[dict[str, float]] = {
    "append": 6,
    "delete": 5,
    "update": 5,
    "merge": 4,
    "overwrite": 1,
    "overwrite_some": 1,
    "add_field": 1.5,
    "drop_field": 1,
    "add_column": 1.2,
    "rename": 0.8,
    "drop_column": 0.8,
    "widen": 0.4,
    "set_mode": 1,
    "compact": 2.5,
    "rewrite": 1.2,
    "vacuum": 0.8,
    "expire": 0.8,
    "analyze": 0.5,
    "roll_back": 0.8,
}
# Steps between whose versions the change feed has to lead from the rows before to those after.
_FED: Final = ("append", "merge", "delete", "update", "overwrite", "compact", "rewrite", "vacuum")


class Difference(AssertionError):
    """The table has other rows than the model; the text is all that was done to it."""


@dataclass
class ChangingTable:
    """A table at a path, and what its rows should be.

    Args:
        path: Where it is made.
        seed: Chooses everything that is done.
        is_strong: Whether its transactions are strong.
    """

    path: Path
    seed: int
    is_strong: bool = True
    rows: list[Row] = field(default_factory=list)
    log: list[str] = field(default_factory=list)
    kept: dict[int, list[Row]] = field(default_factory=dict)
    uids: int = 0

    def __post_init__(self) -> None:
        self.choose = random.Random(self.seed)  # noqa: S311 - to be repeated
        self.engine = duckdb.connect()
        self.engine.execute("SET TimeZone = 'UTC'")
        properties = {} if self.is_strong else {"transaction": "weak"}
        if self.choose.random() < 0.5:
            properties |= {f"write.{change}.mode": "copy-on-write" for change in _ROW_CHANGES}
        spec = self.choose.choice(SPECS)
        self.log.append(f"seed {self.seed}: {spec} {properties}")
        self.table: PartitionedNamespace = pennon.create(
            self.path, SCHEMA, spec, properties=properties
        )

    def run(self, steps: int) -> None:
        """Do some random steps, and compare all rows after each.

        Raises:
            Difference: Rows, counts, an earlier version or the change feed differ from the
                model, or the table is no longer valid.
        """
        for number in range(steps):
            names = list(_STEPS)
            step = self.choose.choices(names, [_STEPS[name] for name in names])[0]
            step = step if number else "append"
            before, rows_before = self.table.version, self.rows
            getattr(self, step)()
            is_new = self.choose.random() < 0.5
            self.table = pennon.open(self.path) if is_new else self.table.refresh()
            self._compare(self.table, self.rows)
            if self.is_strong:
                if step in _FED:
                    self._compare_feed(before, rows_before)
                self._look_back()
        report = self.table.maintenance.check()
        if not report.is_valid:
            raise self._difference(str(report))

    # What is done to it

    def append(self) -> None:
        rows = self._new_rows(self.choose.choice([1, 5, 30]))
        self.log.append(f"append {len(rows)}")
        self.table.append(self._as_table(rows))
        self.rows = self.rows + rows

    def overwrite(self) -> None:
        self.log.append("overwrite")
        rows = self._new_rows(10)
        self.table.overwrite(self._as_table(rows))
        self.rows = rows

    def overwrite_some(self) -> None:
        where, rows = self._condition(), self._new_rows(30)
        fulfilling = positions(self.engine, self._as_table(rows), where)
        rows = [row for at, row in enumerate(rows) if at in fulfilling]
        self.log.append(f"overwrite {where} by {len(rows)}")
        chosen = self._positions(where)
        if self._does(lambda: self.table.overwrite(self._as_table(rows), where=where)):
            self.rows = [*self._without(chosen), *rows]

    def delete(self) -> None:
        where = self._condition()
        self.log.append(f"delete {where}")
        chosen = self._positions(where)
        if self._does(lambda: self.table.delete(where)):
            self.rows = self._without(chosen)

    def update(self) -> None:
        where, (name, value) = self._condition(), self._new_value()
        self.log.append(f"update {name} = {value!r} where {where}")
        chosen = self._positions(where)
        new = as_literal(value) if isinstance(value, str) else value
        if self._does(lambda: self.table.update({name: new}, where)):
            self.rows = [
                {**row, name: value} if at in chosen else row for at, row in enumerate(self.rows)
            ]

    def merge(self) -> None:
        count = self.choose.choice([1, 4, 12])
        uids = sorted({self.choose.randrange(self.uids + 10) for _ in range(count)})
        source = {uid: random_row(self.choose, uid, self._columns) for uid in uids}
        self.uids = max(self.uids, *(uid + 1 for uid in uids))
        kind = self.choose.choice(["upsert", "update", "insert", "delete", "replace"])
        others = self._condition() if kind == "replace" else "false"
        self.log.append(f"merge {kind} {uids} {others}")
        merge = self.table.merge(self._as_table(source.values()), on="uid")
        if kind in ("upsert", "update", "replace"):
            merge = merge.when_matched_update_all()
        if kind == "delete":
            merge = merge.when_matched_delete()
        if kind in ("upsert", "insert"):
            merge = merge.when_not_matched_insert_all()
        if kind == "replace":
            merge = merge.when_not_matched_by_source_delete(others)
        chosen = self._positions(others)
        if not self._does(merge.execute):
            return
        known = {row["uid"] for row in self.rows}
        rows = []
        for at, row in enumerate(self.rows):
            matched = source.get(row["uid"])  # type: ignore[call-overload]
            if matched is None:
                rows += [] if at in chosen else [row]
            elif kind != "delete":
                rows.append(row if kind == "insert" else matched)
        if kind in ("upsert", "insert"):
            rows += [row for uid, row in source.items() if uid not in known]
        self.rows = rows

    def add_field(self) -> None:
        transform = self.choose.choice(FIELDS)
        self.log.append(f"add partition field {transform}")
        name = f"p{len(self.log)}"
        self._does(lambda: self.table.add_partition_field(transform, name), PennonError)

    def drop_field(self) -> None:
        fields = self.table.spec.fields
        if fields:
            name = self.choose.choice(fields).field_id
            self.log.append(f"drop partition field {name}")
            self._does(lambda: self.table.drop_partition_field(name), PennonError)

    def add_column(self) -> None:
        free = [name for name in ADDED if name not in self._columns]
        if free:
            name, default = self.choose.choice(free), self.choose.choice([None, 4])
            self.log.append(f"add column {name} default {default}")
            self.table.add_column(name, pa.int32(), default=default)
            self.rows = [{**row, name: default} for row in self.rows]

    def rename(self) -> None:
        old = [name for name in ADDED if name in self._columns]
        new = [name for name in ADDED if name not in self._columns]
        if old and new:
            before, after = self.choose.choice(old), self.choose.choice(new)
            self.log.append(f"rename column {before} to {after}")
            self.table.rename_column(before, after)
            self.rows = [
                {(after if name == before else name): value for name, value in row.items()}
                for row in self.rows
            ]

    def drop_column(self) -> None:
        name = self.choose.choice(self._columns)
        if name in ("s", "f", "n", "dec", *ADDED):
            self.log.append(f"drop column {name}")
            self.table.drop_column(name)
            self.rows = [
                {key: value for key, value in row.items() if key != name} for row in self.rows
            ]

    def widen(self) -> None:
        name = self.choose.choice(["v", *(name for name in ADDED if name in self._columns)])
        self.log.append(f"widen column {name}")
        self._does(lambda: self.table.alter_column(name, type=pa.int64()), PennonError)

    def set_mode(self) -> None:
        mode = self.choose.choice(["copy-on-write", "merge-on-read"])
        self.log.append(mode)
        self.table.set_properties({f"write.{change}.mode": mode for change in _ROW_CHANGES})

    def compact(self) -> None:
        self.log.append("compact")
        self.table.maintenance.compact()

    def rewrite(self) -> None:
        self.log.append("rewrite partitions")
        self.table.maintenance.rewrite_partitions()

    def vacuum(self) -> None:
        self.log.append("vacuum")
        self.table.maintenance.vacuum(older_than=dt.datetime.now(dt.UTC))

    def expire(self) -> None:
        self.log.append("expire")
        retained = self.choose.randint(1, 4)
        now = dt.datetime.now(dt.UTC)
        self.table.maintenance.expire_snapshots(retain_last=retained, older_than=now)
        self.kept = {}

    def analyze(self) -> None:
        self.log.append("analyze")
        self.table.maintenance.analyze()

    def roll_back(self) -> None:
        if self.kept:
            version = self.choose.choice(list(self.kept))
            self.log.append(f"roll back to {version}")
            self.table.maintenance.rollback(version)
            self.rows = self.kept[version]

    # What steps are made of

    @property
    def _columns(self) -> Sequence[str]:
        return self.table.schema.names

    def _condition(self) -> str:
        return condition(self.choose, self._columns)

    def _new_rows(self, count: int) -> list[Row]:
        first = self.uids
        self.uids += count
        return [random_row(self.choose, first + at, self._columns) for at in range(count)]

    def _new_value(self) -> tuple[str, object]:
        row = random_row(self.choose, 3, self._columns)
        if self.choose.random() < 0.7:
            row = {name: row[name] for name in ("k", "v", "d", "b")}
        name = self.choose.choice(list(row))
        return name, row[name]

    def _as_table(self, rows: Iterable[Row]) -> pa.Table:
        return pa.Table.from_pylist(list(rows), schema=self.table.schema)

    def _positions(self, where: str) -> set[int]:
        return positions(self.engine, self._as_table(self.rows), where)

    def _without(self, chosen: set[int]) -> list[Row]:
        return [row for at, row in enumerate(self.rows) if at not in chosen]

    def _does(self, step: Callable[[], object], *refusals: type[PennonError]) -> bool:
        """Say whether a step was done, not refused as what it may be refused for."""
        kinds: tuple[type[PennonError], ...] = (
            PredicateNotEvaluable,
            NotWholePartitions,
            *refusals,
        )
        try:
            step()
        except kinds as refusal:
            self.log.append(f"  refused: {type(refusal).__name__}")
            return False
        return True

    # How it is compared

    def _compare(self, table: PartitionedNamespace, rows: list[Row]) -> None:
        names = table.schema.names
        given = pa.Table.from_pylist(rows, schema=table.schema)
        for where in (None, *(condition(self.choose, names) for _ in range(4))):
            chosen = range(len(rows)) if where is None else positions(self.engine, given, where)
            expected = as_bag((rows[at] for at in chosen), names)
            scan = table.scan(where)
            try:
                read, count = as_bag(scan.to_arrow().to_pylist(), names), scan.count_rows()
            except PredicateNotEvaluable:
                continue
            if read != expected or count != expected.total():
                missing, extra = (expected - read).most_common(2), (read - expected).most_common(2)
                what = (
                    f"WHERE {where} at version {table.version}: {read.total()} rows, counted"
                    f" {count}, not {expected.total()}; missing {missing}, too many {extra}"
                )
                raise self._difference(what)

    def _look_back(self) -> None:
        self.kept[self.table.version] = self.rows
        if self.choose.random() < 0.3:
            version = self.choose.choice(list(self.kept))
            self._compare(pennon.open(self.path, version=version), self.kept[version])

    def _compare_feed(self, before: int, rows: list[Row]) -> None:
        names = self._columns
        changes = self.table.changes(before).to_pylist()
        bags = {
            kind: as_bag((row for row in changes if row["_change_type"] == kind), names)
            for kind in ("insert", "delete")
        }
        if as_bag(rows, names) + bags["insert"] - bags["delete"] != as_bag(self.rows, names):
            what = f"changes since version {before}: {bags}"
            raise self._difference(what)

    def _difference(self, what: str) -> Difference:
        return Difference("\n".join([*self.log, what]))
