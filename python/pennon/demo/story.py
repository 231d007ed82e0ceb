"""The demo's five steps, in the order in which a person sees them."""

from __future__ import annotations

import contextlib
import os
import re
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

import pennon
from pennon.demo import lake_on_disk
from pennon.demo import lake_on_disk as flights_data
from pennon.errors import DemoCheckFailed
from pennon.namespace import read_plan

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_BOLD, _DIM, _GREEN, _PLAIN = "\033[1m", "\033[2m", "\033[32m", "\033[0m"


def is_terminal() -> bool:
    """Tell whether a person looks on, so that colour and moving progress make sense."""
    return sys.stdout.isatty()


def _styled(text: str, style: str) -> str:
    return f"{style}{text}{_PLAIN}" if is_terminal() else text


def heading(text: str) -> None:
    """Print the title of a step."""
    print(f"\n{_styled(text, _BOLD)}\n{'─' * len(text)}")


def statement(sql: str) -> None:
    """Print a SQL statement, set in."""
    for line in sql.splitlines():
        for part in _folded(line):
            print(_styled(f"    {part}", _DIM))


def say(text: str) -> None:
    """Print a sentence."""
    print(f"  {text}")


def done(text: str) -> None:
    """Print a sentence about something that was checked and holds."""
    print(f"  {_styled('✓', _GREEN)} {text}")


def table(names: Sequence[str], rows: Sequence[Sequence[object]], width: int = 44) -> None:
    """Print rows under their column names, each cell cut to a width."""
    texts = [[_cell(value, width) for value in row] for row in rows]
    widths = [
        max(len(name), *(len(row[place]) for row in texts)) if texts else len(name)
        for place, name in enumerate(names)
    ]
    print("    " + "  ".join(name.ljust(size) for name, size in zip(names, widths, strict=True)))
    for row in texts:
        line = "  ".join(text.ljust(size) for text, size in zip(row, widths, strict=True))
        print("    " + line.rstrip())


@contextlib.contextmanager
def progress(label: str, spark: SparkSession | None = None) -> Iterator[None]:
    """Show that something is going on, and at the end how long it took.

    Args:
        label: What is going on.
        spark: When given, the tasks of its running stages are counted.
    """
    started = time.monotonic()
    stop = threading.Event()
    shower = threading.Thread(target=_show, args=(label, spark, started, stop), daemon=True)
    if is_terminal():
        shower.start()
    try:
        yield
    finally:
        stop.set()
        if is_terminal():
            shower.join()
            print("\r\033[K", end="")
    print(f"  {label}: {time.monotonic() - started:.1f} s")


def _show(label: str, spark: SparkSession | None, started: float, stop: threading.Event) -> None:
    while not stop.wait(0.2):
        elapsed = time.monotonic() - started
        print(f"\r\033[K  {label} … {elapsed:.0f} s{_tasks(spark)}", end="", flush=True)


def _tasks(spark: SparkSession | None) -> str:
    if spark is None:
        return ""
    tracker = spark.sparkContext.statusTracker()
    stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
    finished = sum(stage.numCompletedTasks for stage in stages if stage is not None)
    total = sum(stage.numTasks for stage in stages if stage is not None)
    return f", {finished} of {total} tasks" if total else ""


def _cell(value: object, width: int) -> str:
    text = "NULL" if value is None else str(value)
    return text if len(text) <= width else text[: width - 1] + "…"


def _folded(line: str, width: int = 96) -> Iterator[str]:
    """Break a long line between words."""
    indent = ""
    while len(line) > width:
        cut = line.rfind(" ", len(indent) + 1, width)
        if cut < 0:
            break
        yield line[:cut]
        indent = "    "
        line = indent + line[cut + 1 :]
    yield line


# What a query did, read from the plan that Spark executed: its joins and its shuffles.
#
# Spark prints a plan as a tree of lines; a node's subtree are the deeper lines that follow it.
# Under adaptive execution the text holds the final plan first and the initial plan behind it.

_NODE = re.compile(r"^(?P<indent>[\s:+\-]*)(?:\*\(\d+\) |\* )?(?P<name>[A-Za-z]+)")

_COLUMN_NUMBER = re.compile(r"#\d+L?")
_COLUMNS_OF_FRAGMENT = re.compile(r"\[[^\]]*\] (?=fragment: )")
# What a part of a query reads is listed behind it: r0, and r1 where there are two tables.
_JOINED_FRAGMENT = re.compile(r"^BatchScan .* fragment: .*; r1: ")


@dataclass(frozen=True, slots=True)
class PlanLine:
    """One node of a printed plan."""

    depth: int
    name: str
    text: str


@dataclass(frozen=True, slots=True)
class ExecutedPlan:
    r"""The nodes of an executed plan, from the root down.

    Example:
        >>> plan = ExecutedPlan.parse(
        ...     "SortMergeJoin [a], [b], Inner\n"
        ...     ":- *(1) Sort [a]\n"
        ...     ":  +- Exchange hashpartitioning(a, 5)\n"
        ...     "+- *(2) Sort [b]\\n"
        ...     "   +- BatchScan t[b]"
        ... )
        >>> plan.shuffles, plan.joins
        (1, ('SortMergeJoin',))
    """

    lines: tuple[PlanLine, ...]

    @classmethod
    def of(cls, frame: DataFrame) -> ExecutedPlan:
        """Read the plan of a frame whose rows have been fetched."""
        return cls.parse(frame._jdf.queryExecution().executedPlan().toString())  # noqa: SLF001

    @classmethod
    def parse(cls, text: str) -> ExecutedPlan:
        """Read a plan from Spark's text."""
        if "== Final Plan ==" in text:
            text = text.split("== Final Plan ==")[1]
        text = text.split("== Initial Plan ==")[0]
        lines = []
        for line in text.splitlines():
            node = _NODE.match(line)
            if node is not None:
                lines.append(PlanLine(len(node["indent"]), node["name"], line))
        return cls(tuple(lines))

    @property
    def joins(self) -> tuple[str, ...]:
        """The names of Spark's joins, from the root down."""
        return tuple(line.name for line in self.lines if line.name.endswith("Join"))

    @property
    def is_joined_in_workers(self) -> bool:
        """Whether a scan's rows are joined before Spark sees them."""
        return any(_JOINED_FRAGMENT.match(line.text.lstrip(" :+-")) for line in self.lines)

    @property
    def shuffles(self) -> int:
        """The number of shuffles; a broadcast is none."""
        return sum(line.name == "Exchange" for line in self.lines)

    def print_join(self, width: int = 92) -> str:
        """Print the topmost join and what is under it, without Spark's numbers of columns."""
        start = next((n for n, line in enumerate(self.lines) if line.name.endswith("Join")), 0)
        top = self.lines[start].depth
        printed: list[str] = []
        for line in self.lines[start:]:
            if printed and line.depth <= top:
                break
            text = _COLUMN_NUMBER.sub("", _COLUMNS_OF_FRAGMENT.sub(" ", line.text[top:]))
            printed.append(text if len(text) <= width else text[: width - 1] + "…")
        return "\n".join(printed)


NAMESPACE = "lance.nyc"
SUMMER = (
    "time_hour >= TIMESTAMP '2013-07-01 00:00:00' AND time_hour < TIMESTAMP '2013-08-01 00:00:00'"
)
PLANES_JOIN = f"""SELECT f.tailnum, f.time_hour, f.origin, f.dest, p.manufacturer, p.seats
FROM {NAMESPACE}.flights f JOIN {NAMESPACE}.planes p ON f.tailnum = p.tailnum"""
WEATHER_JOIN = f"""SELECT f.time_hour, f.origin, f.flight, f.dep_delay, w.temp, w.precip
FROM {NAMESPACE}.flights f JOIN {NAMESPACE}.weather w
  ON f.time_hour = w.time_hour AND f.origin = w.origin"""
# A month of the year is held back for step 4, so that it arrives when the table has evolved.
BEFORE_DECEMBER, IN_DECEMBER = "month < 12", "month = 12"


@dataclass(frozen=True, slots=True)
class Story:
    """The demo over one Spark session and one lake."""

    spark: SparkSession
    lake: Path
    csv: Path

    def tell(self) -> None:
        """Run all five steps; a check that does not hold ends the demo with an error."""
        self.make_tables()
        self.read_a_month()
        self.join_without_shuffle("3/5  Joins, partition by partition (Spark may not broadcast)")
        self.evolve()
        self.show_files()

    def make_tables(self) -> None:
        """Step 1: three tables made and filled by SQL."""
        heading("1/5  Three tables, made by SQL")
        self._run(f"CREATE NAMESPACE {NAMESPACE}")
        for table in flights_data.TABLES:
            self.spark.sql(table.create_view(self.csv))
            self._run(table.create_table(NAMESPACE))
            source = f"SELECT * FROM {table.name}_csv"
            if table is flights_data.FLIGHTS:
                source += f" WHERE {BEFORE_DECEMBER}"
            self._insert(table.name, source)

    def read_a_month(self) -> None:
        """Step 2: a time range reads the partitions that can hold it, and no other."""
        heading("2/5  A query with a time range")
        sql = (
            "SELECT origin, count(*) AS flights, round(avg(dep_delay), 1) AS delay_minutes\n"
            f"FROM {NAMESPACE}.flights\nWHERE {SUMMER}\nGROUP BY origin ORDER BY origin"
        )
        statement(sql)
        started = time.monotonic()
        with progress("query", self.spark):
            rows = self.spark.sql(sql).collect()
        seconds = time.monotonic() - started
        table(("origin", "flights", "delay_minutes"), rows)
        path = lake_on_disk.location_of(self.spark, f"{NAMESPACE}.flights")
        plan = pennon.open(path).scan(SUMMER).plan()
        say("The same plan without Spark, from pennon.open(path).scan(…).plan():")
        say(
            f"partitions read: {len(plan.partitions)} of {plan.partitions_total}; "
            f"rows found: {sum(row.flights for row in rows):,}; time: {seconds:.2f} s"
        )
        say("SQL that ran on __manifest:")
        statement(plan.manifest_sql)
        _check(
            read_plan(plan).to_arrow().num_rows == sum(row.flights for row in rows),
            "the library reads the same number of rows as Spark",
        )

    def join_without_shuffle(self, title: str) -> None:
        """Steps 3 and 4: both joins, their plans, and their rows against the shuffled join's."""
        heading(title)
        for name, sql in (("planes", PLANES_JOIN), ("weather", WEATHER_JOIN)):
            print()
            statement(sql)
            rows, frame = self._fetch(f"flights with {name}", sql)
            plan = ExecutedPlan.of(frame)
            statement(plan.print_join())
            with self._shuffled():
                expected, shuffled_frame = self._fetch("the shuffled join, to compare", sql)
            shuffled = ExecutedPlan.of(shuffled_frame)
            joined_by = "the workers" if plan.is_joined_in_workers else ", ".join(plan.joins)
            _check(joined_by != "", f"joined by {joined_by}")
            _check(
                plan.shuffles == 0,
                f"shuffles: {plan.shuffles}, with partitioning ignored: {shuffled.shuffles}",
            )
            _check(
                _same_rows(rows, expected),
                f"the same {rows.num_rows:,} rows as the shuffled join, compared one by one",
            )

    def evolve(self) -> None:
        """Step 4: one more partition field, more rows, queries and joins over both specs."""
        heading("4/5  The partitioning evolves; nothing is rewritten")
        self._run(f"ALTER TABLE {NAMESPACE}.flights ADD PARTITION FIELD origin")
        self._insert("flights", f"SELECT * FROM flights_csv WHERE {IN_DECEMBER}")
        path = lake_on_disk.location_of(self.spark, f"{NAMESPACE}.flights")
        namespace = pennon.open(path)
        for version, spec in namespace.specs.items():
            fields = ", ".join(field.field_id for field in spec.fields)
            say(f"partition spec v{version}: {fields}")
        sql = (
            f"SELECT count(*) AS flights FROM {NAMESPACE}.flights\n"
            "WHERE origin = 'JFK' AND time_hour >= TIMESTAMP '2013-12-01 00:00:00'"
        )
        statement(sql)
        with progress("query", self.spark):
            count = self.spark.sql(sql).collect()[0].flights
        plan = namespace.scan(
            "origin = 'JFK' AND time_hour >= TIMESTAMP '2013-12-01 00:00:00'"
        ).plan()
        say(
            f"{count:,} rows from {len(plan.partitions)} of {plan.partitions_total} partitions, "
            "over both spec versions"
        )
        expected = self.spark.sql(
            "SELECT count(*) AS flights FROM flights_csv WHERE origin = 'JFK' "
            "AND time_hour >= TIMESTAMP '2013-12-01 00:00:00'"
        ).collect()[0]
        _check(count == expected.flights, "as many as the CSV file has")
        self.join_without_shuffle("4/5  Both joins again, over the two spec versions")
        total = self.spark.table(f"{NAMESPACE}.flights").count()
        _check(total == self.spark.table("flights_csv").count(), f"flights holds {total:,} rows")

    def show_files(self) -> None:
        """Step 5: what is on disk."""
        heading("5/5  The files, and the manifest as a table")
        path = lake_on_disk.location_of(self.spark, f"{NAMESPACE}.flights")
        say(os.path.relpath(path) + os.sep)
        for line in lake_on_disk.tree(Path(path)):
            print(f"    {line}")
        say(f"\n  {NAMESPACE}.flights/__manifest, a Lance table:")
        names, rows = lake_on_disk.manifest_rows(path)
        table(names, rows)

    def _run(self, sql: str) -> None:
        statement(sql)
        self.spark.sql(sql)

    def _insert(self, table: str, source: str) -> None:
        sql = f"INSERT INTO {NAMESPACE}.{table} {source}"
        statement(sql)
        before = self.spark.table(f"{NAMESPACE}.{table}").count()
        with progress("written", self.spark):
            self.spark.sql(sql)
        rows = self.spark.table(f"{NAMESPACE}.{table}").count() - before
        path = lake_on_disk.location_of(self.spark, f"{NAMESPACE}.{table}")
        partitions = pennon.open(path).scan().plan().partitions_total
        done(f"{table}: {rows:,} rows inserted, {partitions} partitions in all")

    def _fetch(self, label: str, sql: str) -> tuple[pa.Table, DataFrame]:
        frame = self.spark.sql(sql)
        with progress(label, self.spark):
            rows = frame.toArrow()
        return rows, frame

    def _shuffled(self) -> _Conf:
        return _Conf(self.spark, "spark.sql.sources.v2.bucketing.enabled", "false")


@dataclass(frozen=True, slots=True)
class _Conf:
    """A setting of the session for the length of a block."""

    spark: SparkSession
    key: str
    value: str

    def __enter__(self) -> None:
        self.spark.conf.set(self.key, self.value)

    def __exit__(self, *_: object) -> None:
        self.spark.conf.unset(self.key)


def _same_rows(one: pa.Table, other: pa.Table) -> bool:
    """Compare two tables as multisets of rows."""
    keys = [(name, "ascending") for name in one.column_names]
    return bool(one.sort_by(keys).equals(other.sort_by(keys)))


def _check(holds: bool, what: str) -> None:  # noqa: FBT001 - reads as a sentence
    if not holds:
        raise DemoCheckFailed(what=what)
    done(what)
