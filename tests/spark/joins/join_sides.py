"""The two sides of the join tests: plain rows, partitioned copies of them, and the join types."""

from __future__ import annotations

import itertools
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tests.spark.assert_join import assert_join
from tests.spark.joins.joined_rows import ROWS

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

JOINS = {
    "inner": "SELECT l.*, r.v AS rv FROM l JOIN r ON {on}",
    "left": "SELECT l.*, r.v AS rv FROM l LEFT JOIN r ON {on}",
    "right": "SELECT l.v AS lv, r.* FROM l RIGHT JOIN r ON {on}",
    "full": "SELECT l.v AS lv, r.v AS rv FROM l FULL JOIN r ON {on}",
    "semi": "SELECT l.* FROM l LEFT SEMI JOIN r ON {on}",
    "anti": "SELECT l.* FROM l LEFT ANTI JOIN r ON {on}",
}


@dataclass(frozen=True, slots=True)
class Sides:
    """The names of the plain tables, and a maker of partitioned copies of them."""

    spark: SparkSession
    namespace: str
    made: dict[tuple[str, ...], str] = field(default_factory=dict)

    def table(self, side: str, *partitioning: str, where: str = "TRUE") -> str:
        """Give a table of one side's rows; who changes it takes a ``fresh`` one."""
        asked = (side, where, *partitioning)
        if asked not in self.made:
            self.made[asked] = self.fresh(side, *partitioning, where=where)
        return self.made[asked]

    def fresh(self, side: str, *partitioning: str, where: str = "TRUE") -> str:
        """Make a table of one side's rows."""
        name = f"{self.namespace}.t{next(_numbers)}"
        by = f"PARTITIONED BY ({', '.join(partitioning)})" if partitioning else ""
        self.spark.sql(
            f"CREATE TABLE {name} {by} AS SELECT * FROM {self.plain(side)} WHERE {where}"
        )
        return name

    def plain(self, side: str) -> str:
        return f"{side}_plain"

    def location_of(self, table: str) -> str:
        described = self.spark.sql(f"DESCRIBE TABLE EXTENDED {table}").collect()
        return str(next(row.data_type for row in described if row.col_name == "Location"))


_numbers = itertools.count(1)
EXHAUSTIVE = "PENNON_EXHAUSTIVE" in os.environ


def make_sides(spark: SparkSession, folder: Path, namespace: str) -> Sides:
    """Write the plain rows of both sides, and show them as views."""
    spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {namespace}")
    makings = {"l": (3, "'a', 'b', NULL", 300), "r": (5, "'b', 'c', NULL", 170)}
    for side, (step, deps, rows) in makings.items():
        path = str(folder / side)
        spark.sql(ROWS.format(step=step, deps=deps, rows=rows)).coalesce(2).write.parquet(path)
        spark.read.parquet(path).createOrReplaceTempView(f"{side}_plain")
    return Sides(spark, namespace)


def evolved(sides: Sides, before: list[str], change: str, side: str = "l") -> str:
    name = sides.fresh(side, *before, where="v % 2 = 0")
    sides.spark.sql(f"ALTER TABLE {name} {change}")
    sides.spark.sql(f"INSERT INTO {name} SELECT * FROM {side}_plain WHERE v % 2 <> 0")
    return name


def check(
    sides: Sides,
    tables: dict[str, str],
    on: str,
    shuffles: int | range,
    kinds: tuple[str, ...] = tuple(JOINS),
) -> None:
    for kind in kinds:
        # Without AQE the plan is made by the same rules: one join type shows it.
        adaptive = (True, False) if kind == "inner" else (True,)
        check_sql(sides, tables, JOINS[kind].format(on=on), shuffles, adaptive)


def check_sql(
    sides: Sides,
    tables: dict[str, str],
    sql: str,
    shuffles: int | range,
    adaptive: tuple[bool, ...] = (True, False),
) -> None:
    plain = {name: sides.plain("l" if name.startswith("l") else "r") for name in tables}
    assert_join(sides.spark, sql, tables, plain, shuffles, adaptive=adaptive)
