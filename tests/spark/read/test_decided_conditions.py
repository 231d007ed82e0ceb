"""Conditions that all rows of a scan satisfy: Spark does not evaluate them again.

The rows are compared with those of a view without partitions, which Spark filters by itself.
"""

from __future__ import annotations

import re
from random import Random
from typing import TYPE_CHECKING

import pytest
from tests.spark.assert_join import EXECUTION, conf, executed_plan
from tests.spark.statement_results import counted_rows

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

TABLE, ROWS = "lance.decided.t", "decided_rows"
SELECTED = """
SELECT id, ELT(id % 4 + 1, 'US', 'de', 'EU', NULL) AS region, IF(id % 5 = 0, NULL, id % 7) AS k,
  TIMESTAMP '2024-11-30 20:00:00' + MAKE_INTERVAL(0, 0, 0, id, 3) AS ts,
  CAST(id % 9 AS DECIMAL(10, 2)) / 4 AS m, IF(id % 6 = 0, DOUBLE('NaN'), id / 3) AS f
FROM RANGE({start}, {end})
"""
_FILTER = re.compile(r"^[\s:+\-*()0-9]*Filter\b", re.MULTILINE)


@pytest.fixture(scope="module")
def table(spark: SparkSession) -> Iterator[str]:
    """Three specs: by region; by region and month; by month, with a new column."""
    spark.sql("CREATE NAMESPACE lance.decided")
    first, second, third = (SELECTED.format(start=start, end=start + 60) for start in (0, 60, 120))
    spark.sql(f"CREATE TABLE {TABLE} PARTITIONED BY (region) AS {first}")
    spark.sql(f"ALTER TABLE {TABLE} ADD PARTITION FIELD months(ts)")
    spark.sql(f"INSERT INTO {TABLE} {second}")
    spark.sql(f"ALTER TABLE {TABLE} DROP PARTITION FIELD region")
    spark.sql(f"ALTER TABLE {TABLE} ADD COLUMN note STRING")
    spark.sql(f"INSERT INTO {TABLE} SELECT *, IF(id % 2 = 0, NULL, 'new') FROM ({third})")
    rows = " UNION ALL ".join(
        f"SELECT *, CAST(NULL AS STRING) AS note FROM ({one})" for one in (first, second)
    )
    spark.sql(
        f"{rows} UNION ALL SELECT *, IF(id % 2 = 0, NULL, 'new') FROM ({third})"
    ).createOrReplaceTempView(ROWS)
    yield TABLE
    spark.catalog.dropTempView(ROWS)
    spark.sql("DROP NAMESPACE lance.decided CASCADE")


def _random_condition(random: Random, depth: int = 2) -> str:
    if depth and random.random() < 0.55:
        parts = [_random_condition(random, depth - 1) for _ in range(random.choice((2, 2, 3)))]
        joined = f" {random.choice(('AND', 'AND', 'OR'))} ".join(parts)
        return f"NOT ({joined})" if random.random() < 0.2 else f"({joined})"
    operator = random.choice(("=", "<>", "<", "<=", ">", ">=", "<=>"))
    month = random.choice(("2024-12", "2025-01", "2025-03"))
    month = f"TIMESTAMP '{month}-01 0{random.choice('02')}:00:00'"
    return random.choice(
        [
            f"region {operator} '{random.choice(('EU', 'US', 'de', 'x'))}'",
            f"region IN ('EU', {random.choice(('NULL', repr('de')))})",
            f"region IS {random.choice(('', 'NOT '))}NULL",
            f"coalesce(region, 'none') = '{random.choice(('none', 'EU'))}'",
            f"lower(region) {operator} 'eu'",
            f"region LIKE '{random.choice(('E%', '%e', 'd_'))}'",
            f"ts {operator} {month}",
            f"ts BETWEEN TIMESTAMP '2024-12-01 00:00:00' AND {month}",
            f"year(ts) {operator} 2025",
            f"CAST(ts AS DATE) {operator} DATE '2025-01-01'",
            f"k {operator} {random.randrange(8)}",
            f"k % 3 {operator} 1",
            f"m {operator} 1.25",
            f"f {operator} DOUBLE('{random.choice(('NaN', '7', '0'))}')",
            f"id {operator} {random.randrange(180)}",
            f"note {operator} 'new'",
            "note IS NULL",
        ]
    )


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"spark.sql.session.timeZone": "Asia/Tokyo", "spark.sql.ansi.enabled": "false"},
        {"spark.sql.cbo.enabled": "true", EXECUTION: "spark"},
    ],
    ids=["default", "Tokyo, not ANSI", "CBO, by Spark"],
)
def test_random_conditions_leave_the_rows_of_a_full_scan(
    spark: SparkSession, table: str, settings: dict[str, str]
) -> None:
    random = Random(str(settings))  # noqa: S311 - the same conditions in every run
    conditions = [_random_condition(random) for _ in range(40)]

    def query(name: str) -> str:
        return " UNION ALL ".join(
            f"SELECT {number} AS condition, id, note FROM {name} WHERE {condition}"
            for number, condition in enumerate(conditions)
        )

    with conf(spark, settings):
        found, full = (counted_rows(spark.sql(query(name))) for name in (table, ROWS))
    different = {row for row in found.keys() | full.keys() if found[row] != full[row]}
    assert not different, [conditions[int(re.search(r"=(\d+)", row)[1])] for row in different]  # type: ignore[index]


def test_workers_aggregate_the_rows_of_random_conditions(spark: SparkSession, table: str) -> None:
    """What leaves filter by is not in the query of a fragment; what is computed is."""
    random = Random(7)  # noqa: S311 - the same conditions in every run
    conditions = [_random_condition(random) for _ in range(40)]

    def query(name: str) -> str:
        return " UNION ALL ".join(
            f"SELECT {number} AS condition, count(*), sum(id), max(note) FROM {name}"
            f" WHERE {condition}"
            for number, condition in enumerate(conditions)
        )

    found = spark.sql(query(table))
    assert "fragment: " in executed_plan(found)
    different = counted_rows(found) - counted_rows(spark.sql(query(ROWS)))
    assert not different, [conditions[int(re.search(r"=(\d+)", row)[1])] for row in different]  # type: ignore[index]


def test_a_fragment_filters_by_nothing_that_its_leaves_filter_by(
    spark: SparkSession, table: str
) -> None:
    conditions = {
        "k = 3 AND id < 170": 0,
        "region = 'EU' AND (k > 3 OR id = 7)": 0,
        "k = 3 AND id % 2 = 1": 1,
        "coalesce(region, 'none') = 'none'": 1,
    }
    found = {}
    for condition in conditions:
        sql = f"EXPLAIN FORMATTED SELECT note, max(id) FROM {table} WHERE {condition} GROUP BY note"
        [[plan]] = spark.sql(sql).collect()
        [query] = re.findall(r"^query: .*", plan, re.MULTILINE)
        found[condition] = query.count(" WHERE ")
    assert found == conditions


def test_spark_filters_by_nothing_that_partitions_or_leaves_have_decided(
    spark: SparkSession, table: str
) -> None:
    conditions = {
        # Of the rows of the last spec, the leaves' filter decides.
        "region = 'EU'": 0,
        "ts >= TIMESTAMP '2024-12-01 00:00:00' AND id < 170": 0,
        "region = 'EU' AND soundex(note) = 'N000'": 1,
        # It is computed, and the last spec's partitions do not have the column.
        "coalesce(region, 'none') = 'none'": 1,
        "coalesce(region, 'none') = 'none' AND _spec_version < 3": 0,
        "f < DOUBLE('7')": 1,
    }
    plans = {
        condition: executed_plan(spark.sql(f"SELECT id FROM {table} WHERE {condition}"))
        for condition in conditions
    }
    assert {plan_: len(_FILTER.findall(plan)) for plan_, plan in plans.items()} == conditions
    # What only they read is not given to Spark.
    assert re.search(r"BatchScan \S+\[id#\d+L\]", plans["region = 'EU'"])


def test_with_cost_based_choices_leaves_filters_stay_to_estimate_rows_by(
    spark: SparkSession, table: str
) -> None:
    with conf(spark, {"spark.sql.cbo.enabled": "true"}):
        by_leaves = executed_plan(spark.sql(f"SELECT id FROM {table} WHERE id < 170"))
        by_values = executed_plan(spark.sql(f"SELECT id FROM {table} WHERE _spec_version = 1"))
    assert _FILTER.search(by_leaves)
    assert not _FILTER.search(by_values)


def test_statements_that_change_rows_change_those_of_their_condition(
    spark: SparkSession, table: str
) -> None:
    spark.sql(f"UPDATE {table} SET note = 'changed' WHERE region = 'EU' AND id > 30")
    changed = spark.sql(f"SELECT id FROM {table} WHERE note = 'changed'").collect()
    full = spark.sql(f"SELECT id FROM {ROWS} WHERE region = 'EU' AND id > 30").collect()
    assert sorted(changed) == sorted(full)
    spark.sql(f"DELETE FROM {table} WHERE region <=> NULL AND id >= 100")
    left = spark.sql(f"SELECT id FROM {table}").collect()
    rows = spark.sql(f"SELECT id FROM {ROWS} WHERE NOT (region <=> NULL AND id >= 100)").collect()
    assert sorted(left) == sorted(rows)
