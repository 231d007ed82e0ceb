"""Conditions that keep exactly the partitions whose value can match, counted in Spark's plans.

Whether a partition can match is found by trying values: those of the table, of the literals, and
those at either end of each partition and one beyond each literal. Spark evaluates the condition on
them, and computes the partition field by the function of its name. Only kinds of conditions are
asked that a partition field decides as well as can be: the marked ones of the acceptance list.
"""

from __future__ import annotations

import calendar
import datetime as dt
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.parquet as pq
from tests.spark.read.test_queries import partitions_read
from tests.strategies.edge_columns import FIELDS, TYPES, VALUES, literal

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from random import Random

    from pyspark.sql import SparkSession

_INTEGERS: Final = ("TINYINT", "SMALLINT", "INT", "BIGINT")
_TIMES: Final = ("DATE", "TIMESTAMP", "TIMESTAMP_NTZ")
_LEVELS: Final = ("years", "months", "days", "hours")
_DAYS: Final = ("2013-01-01", "1970-01-01", "1582-10-04", "2000-02-29", "2013-03-10", "2012-12-31")


@dataclass(frozen=True, slots=True)
class OneField:
    """A table with one partition field, of column ``c``, and values to try."""

    spark: SparkSession
    random: Random
    name: str
    kind: str
    field: str

    def make(self, folder: Path) -> None:
        """Write each value once, without statistics, and more values beside them."""
        short = self.name.rsplit(".", 1)[1]
        values = [None, *VALUES[self.kind]]
        for view, column in (
            (f"{short}_rows", values),
            (f"{short}_tried", [*values, *self._ends()]),
        ):
            pq.write_table(pa.table({"c": pa.array(column, TYPES[self.kind])}), folder / view)
            self.spark.read.parquet(str(folder / view)).createOrReplaceTempView(view)
        self.spark.sql(
            f"CREATE TABLE {self.name} PARTITIONED BY ({self.field})"
            f" TBLPROPERTIES ('write.statistics.columns' = '0') AS SELECT * FROM {short}_rows"
        )

    def misses(self, count: int) -> Iterator[str]:
        """Ask so many conditions; yield those that keep another number of partitions."""
        short = self.name.rsplit(".", 1)[1]
        asked = [self.condition() for _ in range(count)]
        flags = ", ".join(f"max(({text}) IS TRUE)" for text, _ in asked)
        literals = sorted({text for _, of in asked for text in of})
        tried = " UNION ALL ".join(
            [
                f"SELECT c FROM {short}_tried",
                *(f"SELECT CAST({text} AS {self.kind})" for text in literals),
            ]
        )
        key = self._key()
        can = self.spark.sql(f"SELECT {key}, {flags} FROM ({tried}) t(c) GROUP BY {key}").collect()
        there = {row[0] for row in self.spark.sql(f"SELECT {key} FROM {short}_rows").collect()}
        for at, (text, _) in enumerate(asked):
            matching = {row[0] for row in can if row[at + 1]} & there
            query = f"SELECT c FROM {self.name} WHERE {text}"
            kept, total = partitions_read(self.spark.sql(query)) if matching else (0, len(there))
            if total != len(there) or kept != len(matching):
                possible = f"can match: {len(matching)} of {len(there)}"
                yield f"{query}\nkeeps {kept} of {total}, {possible}"

    def condition(self) -> tuple[str, list[str]]:
        """Make a condition, and list the values at the edges of what it is true of."""
        one, two = (literal(self.random.choice(VALUES[self.kind]), self.kind) for _ in "ab")
        few = [literal(self.random.choice(VALUES[self.kind]), self.kind) for _ in range(4)]
        kinds: list[tuple[str, list[str]]] = [
            (f"c = {one}", [one]), (f"{one} = c", [one]), (f"c <=> {one}", [one]),
            (f"c IN ({', '.join(few)})", few), ("c IS NULL", []), ("c IS NOT NULL", []),
            ("c <=> NULL", []), (f"c IN ({one}, NULL)", [one]), (f"c = {one} OR c IS NULL", [one]),
        ]  # fmt: skip
        is_plain, is_level = self.field == "c", self.field.split("(")[0] in _LEVELS
        if is_plain:
            kinds.append((f"c NOT IN ({', '.join(few)})", []))
        if (is_plain or is_level or "truncate" in self.field) and self.kind != "BOOLEAN":
            kinds.append((f"c BETWEEN {one} AND {two}", [one, two]))
        if self.kind == "STRING" and (is_plain or "truncate" in self.field):
            kinds.append((f"startswith(c, {one})", [one]))
        if self.kind in _INTEGERS and "bucket" in self.field:
            low = self.random.choice((-12, 0, 3, 9))
            inside = range(low, low + self.random.choice((1, 5, 90)))
            kinds += [(f"c BETWEEN {low} AND {inside[-1]}", list(map(str, inside)))] * 3
        if self.kind in _TIMES and is_level:
            kinds += self._of_time()
        return self.random.choice(kinds)

    def _of_time(self) -> list[tuple[str, list[str]]]:
        """Years, months and days in the session's zone."""
        day = dt.date.fromisoformat(self.random.choice(_DAYS))
        month = day.replace(day=1)
        next_month = month + dt.timedelta(days=calendar.monthrange(day.year, day.month)[1])
        edges = [day, day + dt.timedelta(days=1), month, next_month]
        edges += [dt.date(day.year, 1, 1), dt.date(day.year + 1, 1, 1)]
        texts = [f"TIMESTAMP '{edge} 00:00:00'" for edge in edges]
        if self.kind == "TIMESTAMP_NTZ":
            texts = [text.replace("TIMESTAMP", "TIMESTAMP_NTZ") for text in texts]
        if self.kind == "DATE":
            texts = [f"DATE '{edge}'" for edge in edges]
            texts += [f"DATE '{edge - dt.timedelta(days=1)}'" for edge in edges]
        else:
            texts += [f"{text} - INTERVAL '0.000001' SECOND" for text in texts]
        kinds = [(f"year(c) = {day.year}", texts), (f"year(c) IN ({day.year}, 2024)", texts)]
        if self.field.split("(")[0] != "years":
            kinds.append((f"date_trunc('MONTH', c) = TIMESTAMP '{month} 00:00:00'", texts))
        if self.kind == "DATE":
            kinds.append((f"CAST(c AS TIMESTAMP) = TIMESTAMP '{day} 00:00:00'", texts))
        else:
            kinds.append((f"CAST(c AS DATE) = DATE '{day}'", texts))
        return kinds

    def _key(self) -> str:
        if self.field == "c":
            return (
                "CAST(c + 0 AS STRING)" if self.kind in ("FLOAT", "DOUBLE") else "CAST(c AS STRING)"
            )
        return f"CAST(lance.system.{self.field} AS STRING)"

    def _ends(self) -> list[object]:
        """Values at the ends of the partitions of each value."""
        found: set[object] = set()
        for value in VALUES[self.kind]:
            match value:
                case dt.datetime():
                    found |= _moments_around(value)
                case dt.date():
                    found |= _days_around(value)
                case int() if self.kind in _INTEGERS:
                    bound = 2 ** (TYPES[self.kind].bit_width - 1)
                    near = range(value - 10, value + 11)
                    found |= {number for number in near if -bound <= number < bound}
        return list(found)


def _days_around(day: dt.date) -> set[object]:
    last = calendar.monthrange(day.year, day.month)[1]
    return {day.replace(day=1), day.replace(day=last), *_ends_of_year(day.year)}


def _ends_of_year(year: int) -> list[dt.date]:
    return [dt.date(year, 1, 1), dt.date(year, 12, 31)]


def _moments_around(moment: dt.datetime) -> set[object]:
    last = calendar.monthrange(moment.year, moment.month)[1]
    day = moment.replace(hour=0, minute=0, second=0, microsecond=0)
    days = [day, day.replace(day=1), day.replace(day=last)]
    days += [day.replace(month=1, day=1), day.replace(month=12, day=31)]
    starts = [(moment.replace(minute=0, second=0, microsecond=0), dt.timedelta(hours=1))]
    starts += [(start, dt.timedelta(days=1)) for start in days]
    micro = dt.timedelta(microseconds=1)
    return {edge for start, size in starts for edge in (start, start + (size - micro))}


def some_field(random: Random) -> tuple[str, str]:
    """Choose a type and a field of column ``c`` of it that has a function in SQL."""
    kind = random.choice(list(VALUES))
    fields = [field for field in FIELDS[kind] if "expression" not in field]
    if kind in _TIMES:
        fields = [field for field in fields if not field.startswith(("year(", "month(", "day("))]
    return kind, random.choice(fields).format("c")
