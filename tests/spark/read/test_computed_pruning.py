"""Conditions that are no comparisons of columns, through Spark: which partitions they leave.

Each is compared with the rows of a table without partitions that Spark filters, and with the number
of partitions in the executed plan.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from tests.spark.assert_join import conf
from tests.spark.read.test_queries import partitions_read
from tests.spark.statement_results import counted_rows

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

ROWS = """
SELECT id, ELT(id % 4 + 1, 'US', 'de', 'EU', 'eu') AS region, IF(id % 4 = 0, NULL, id % 4) AS k,
  TIMESTAMP '2024-11-30 20:00:00' + MAKE_INTERVAL(0, 0, 0, id, 3) AS ts,
  DATE '2024-11-30' + CAST(id AS INT) AS day
FROM RANGE(64)
"""
BY_VALUE, BY_TIME, BY_BUCKET, BY_DAY = "region, k", "months(ts)", "bucket(8, id)", "day"
BY_PREFIX = "truncate(1, region)"
BY_EXPRESSION, BY_MANY = "expression('lower(col0)', region)", "multi_bucket(16, region, id)"
LAYOUTS = (BY_VALUE, BY_TIME, BY_BUCKET, BY_DAY, BY_PREFIX, BY_EXPRESSION, BY_MANY)
MANY = ", ".join(map(str, range(50, 10_050)))
EVOLVED = "lance.computed.evolved"
# 4 partitions by value, 4 months of ts (of day: 4, too), 8 buckets, 64 days.
CASES = [
    (BY_VALUE, "coalesce(k, 7L) = 7", 1),
    (BY_VALUE, "lower(region) = 'eu'", 2),
    (BY_VALUE, "k % 3 = 1", 1),
    (BY_VALUE, "NOT (k % 3 = 1)", 2),
    (BY_VALUE, "lower(region) = 'eu' AND id % 5 = 1", 2),
    (BY_VALUE, "CASE WHEN region = 'US' THEN id > 3 ELSE k = 2 END", 2),
    (BY_VALUE, "if(k IS NULL, 'x', upper(region)) IN ('x', 'DE')", 2),
    # What DataFusion is not known to compute Spark evaluates on the partitions' values.
    (BY_VALUE, "soundex(region) = 'U200'", 1),
    (BY_VALUE, "soundex(region) IS NULL OR k IS NULL", 1),
    (BY_VALUE, "levenshtein(region, 'EX') + coalesce(k, 9L) < 5", 2),
    (BY_VALUE, "hash(region, k) <=> hash('de', 1L)", 1),
    (BY_VALUE, "soundex(region) = 'U200' AND id % 8 = 4", 1),
    (BY_VALUE, "soundex(region) = 'U200' OR id = 1", 4),
    (BY_VALUE, "soundex(region) = 'none'", 0),
    (BY_TIME, "year(ts) = 2025", 2),
    (BY_TIME, "date_trunc('MONTH', ts) = TIMESTAMP '2024-12-01 00:00:00'", 1),
    (BY_TIME, "trunc(ts, 'MM') > DATE '2024-12-01'", 2),
    (BY_TIME, "CAST(ts AS DATE) = DATE '2025-01-05'", 1),
    (BY_TIME, "lance.system.months(ts) = 660", 1),
    (BY_TIME, "lance.system.year(ts) > 2024", 2),
    (BY_TIME, "lance.system.days(ts) BETWEEN 20089 AND 20095", 1),
    (BY_TIME, "unix_timestamp(ts) BETWEEN 1733011200 AND 1735689599", 1),
    (BY_TIME, "to_unix_timestamp(ts) >= 1735689600", 2),
    (BY_TIME, "unix_micros(ts) < 1733011200000000 OR unix_millis(ts) < 0", 1),
    (BY_TIME, "CAST(ts AS BIGINT) >= 1735689600", 2),
    # What days say of months: the function is tried on the days.
    (BY_TIME, "year(ts) * 100 + month(ts) >= 202501", 2),
    (BY_TIME, "year(ts) * 100 + month(ts) BETWEEN 202412 AND 202501", 2),
    (BY_TIME, "date_format(ts, 'yyyy-MM') = '2025-01'", 1),
    (BY_TIME, "date_format(ts, 'yyyy-MM-dd') > '2025-01-31'", 1),
    (BY_TIME, "date_format(ts, 'MM') = '12' AND date_format(ts, 'yyyy') < '2025'", 1),
    (BY_TIME, "quarter(ts) = 4", 2),
    (BY_TIME, "weekofyear(ts) IN (50, 51)", 1),
    (BY_TIME, "date_sub(ts, 3) = DATE '2024-11-29'", 1),
    (BY_TIME, "add_months(ts, 1) > DATE '2025-02-28'", 1),
    (BY_TIME, "datediff(ts, DATE '2024-11-30') < 5", 2),
    (BY_TIME, "last_day(ts) = DATE '2024-12-31'", 1),
    (BY_TIME, "coalesce(year(ts), 2025) = 2025", 2),
    (BY_TIME, "ts + INTERVAL 1 DAY >= TIMESTAMP '2025-02-01 00:00:00'", 2),
    (BY_TIME, "ts - INTERVAL 2 MONTH < TIMESTAMP '2024-10-31 00:00:00'", 2),
    (BY_TIME, "hour(ts) = 3", 4),
    (BY_TIME, "(year(ts), month(ts)) IN ((2024, 12), (2025, 1))", 2),
    (BY_TIME, "(year(ts), quarter(ts)) = (2025, 1)", 2),
    (BY_DAY, "CAST(day AS TIMESTAMP) < TIMESTAMP '2024-12-03 12:00:00'", 4),
    (BY_DAY, "dayofweek(day) = 1", 9),
    (BY_DAY, "date_add(day, 30) = DATE '2025-01-09'", 1),
    (BY_BUCKET, "lance.system.bucket(8, id) = 3", 1),
    (BY_BUCKET, "lance.system.bucket(4, id) IN (1, 2)", 4),
    (BY_BUCKET, "lance.system.bucket(8, id) % 2 = 0 AND region = 'US'", 4),
    (BY_BUCKET, "lance.system.bucket(16, id) = 3", 8),
    (BY_VALUE, f"k IN (3, {MANY})", 1),
    (BY_VALUE, f"k NOT IN (3, {MANY})", 2),
    (BY_PREFIX, "lance.system.truncate(1, region) = 'E'", 1),
    (BY_PREFIX, "lance.system.truncate(1, region) IN ('d', 'U') AND id % 4 = 0", 2),
    (BY_PREFIX, "lance.system.truncate(2, region) = 'EU'", 4),
    (BY_PREFIX, "region LIKE 'e%'", 1),
    # What a field is computed by is its value.
    (BY_PREFIX, "left(region, 1) = 'E'", 1),
    (BY_PREFIX, "substring(region, 1, 1) IN ('d', 'U') AND id % 4 = 0", 2),
    (BY_EXPRESSION, "lower(region) = 'eu'", 1),
    (BY_EXPRESSION, "lower(region) NOT IN ('eu', 'us') OR lower(region) IS NULL", 1),
    # Appendix D: a transform without a projection has the literals put in its columns' places.
    (BY_EXPRESSION, "region = 'EU'", 1),
    (BY_EXPRESSION, "region IN ('EU', 'de', 'none')", 2),
    (BY_EXPRESSION, "region <=> 'eu' OR region = 'US' AND id > 3", 2),
    (BY_MANY, "region = 'de' AND id = 5", 1),
    (BY_MANY, "(region, id) = ('de', 5L)", 1),
    (BY_MANY, "(region, id) IN (('de', 5L), ('EU', 6L), ('none', -1L))", 2),
    (BY_VALUE, "(region, k) = ('US', CAST(NULL AS BIGINT))", 1),
    (BY_VALUE, "struct(region, k) <> struct('US', CAST(NULL AS BIGINT))", 3),
    (BY_MANY, "id IN (5, 9) AND region IN ('de')", 2),
]


@pytest.fixture(scope="module")
def tables(spark: SparkSession) -> Iterator[dict[str, str]]:
    """Every layout's table with the same rows, and the rows as view ``computed_rows``."""
    spark.sql("CREATE NAMESPACE lance.computed")
    spark.sql(ROWS).createOrReplaceTempView("computed_rows")
    names = {}
    for number, layout in enumerate(LAYOUTS):
        names[layout] = f"lance.computed.t{number}"
        spark.sql(f"CREATE TABLE {names[layout]} PARTITIONED BY ({layout}) AS {ROWS}")
    _make_evolved(spark)
    yield names
    spark.catalog.dropTempView("computed_rows")
    spark.sql("DROP NAMESPACE lance.computed CASCADE")


def _make_evolved(spark: SparkSession) -> None:
    """Make a table with a spec for every third of the rows."""
    spark.sql(f"CREATE TABLE {EVOLVED} PARTITIONED BY ({BY_VALUE}) AS {ROWS} WHERE id % 3 = 0")
    spark.sql(f"ALTER TABLE {EVOLVED} DROP PARTITION FIELD region")
    spark.sql(f"ALTER TABLE {EVOLVED} ADD PARTITION FIELD {BY_TIME}")
    spark.sql(f"ALTER TABLE {EVOLVED} ADD PARTITION FIELD {BY_EXPRESSION}")
    spark.sql(f"INSERT INTO {EVOLVED} {ROWS} WHERE id % 3 = 1")
    spark.sql(f"ALTER TABLE {EVOLVED} ADD PARTITION FIELD days(ts)")
    spark.sql(f"ALTER TABLE {EVOLVED} ADD PARTITION FIELD multi_bucket(3, region, id)")
    spark.sql(f"INSERT INTO {EVOLVED} {ROWS} WHERE id % 3 = 2")


def test_evolved_specs_lose_no_row(spark: SparkSession, tables: dict[str, str]) -> None:
    del tables

    def query(name: str) -> str:
        return " UNION ALL ".join(
            f"SELECT {number} AS condition, id FROM {name} WHERE {condition}"
            for number, (_, condition, _) in enumerate(CASES)
        )

    assert counted_rows(spark.sql(query(EVOLVED))) == counted_rows(
        spark.sql(query("computed_rows"))
    )
    kept, total = partitions_read(spark.sql(f"SELECT * FROM {EVOLVED} WHERE year(ts) = 2025"))
    assert kept < total


@pytest.mark.spec("Partition Pruning 2")
def test_each_condition_reads_the_partitions_that_it_needs(
    spark: SparkSession, tables: dict[str, str]
) -> None:
    read = {
        condition: partitions_read(spark.sql(f"SELECT * FROM {tables[layout]} WHERE {condition}"))
        for layout, condition, _ in CASES
    }
    assert {condition: kept for condition, (kept, _) in read.items()} == {
        condition: expected for _, condition, expected in CASES
    }


@pytest.mark.parametrize(
    "settings",
    [{}, {"spark.sql.session.timeZone": "Asia/Tokyo"}, {"spark.sql.ansi.enabled": "false"}],
    ids=["default", "Tokyo", "not ANSI"],
)
def test_the_rows_are_those_of_a_full_scan(
    spark: SparkSession, tables: dict[str, str], settings: dict[str, str]
) -> None:
    def query(names: dict[str, str]) -> str:
        return " UNION ALL ".join(
            f"SELECT {number} AS condition, * FROM {names[layout]} WHERE {condition}"
            for number, (layout, condition, _) in enumerate(CASES)
        )

    with conf(spark, settings):
        found = counted_rows(spark.sql(query(tables)))
        full = counted_rows(spark.sql(query(dict.fromkeys(tables, "computed_rows"))))
    assert found == full


def test_a_query_keeps_the_time_zone_that_it_was_written_in(
    spark: SparkSession, tables: dict[str, str]
) -> None:
    """The first day of December in Tokyo begins in November in UTC, where the query is planned."""
    query = "SELECT id FROM {} WHERE CAST(ts AS DATE) = DATE '2024-12-01'"
    with conf(spark, {"spark.sql.session.timeZone": "Asia/Tokyo"}):
        found = spark.sql(query.format(tables[BY_TIME]))
        full = spark.sql(query.format("computed_rows"))
    assert counted_rows(found) == counted_rows(full)
    assert [row["id"] for row in found.collect()] == [0]


def test_explain_scan_tells_what_each_condition_prunes(
    spark: SparkSession, tables: dict[str, str]
) -> None:
    query = (
        f"SELECT count(*) FROM {tables[BY_VALUE]} a JOIN {tables[BY_BUCKET]} b ON a.id = b.id"
        " WHERE lower(a.region) = ''eu'' AND soundex(a.region) = ''E000'' AND a.id < 50"
    )
    told = spark.sql(f"CALL lance.system.explain_scan('{query}')").collect()
    of_values = [(row["item"], row["description"]) for row in told if row["table"].endswith("t0")]
    by_item = dict(of_values)
    assert by_item["partitions"] == "2 of 4"
    predicates = [text for item, text in of_values if item == "predicate"]
    assert any("lower(" in text and "keeps 2 of 4 by" in text for text in predicates)
    assert any("soundex" in text and "prunes nothing" in text for text in predicates)
    assert by_item["rows"] == "32 before filters"
    assert {"residual", "left to Spark", "bytes"} <= by_item.keys()
    assert {row["table"][-2:] for row in told} == {"t0", "t2"}


def test_explain_scan_says_that_nothing_is_read(
    spark: SparkSession, tables: dict[str, str]
) -> None:
    query = f"SELECT id FROM {tables[BY_VALUE]} WHERE 1 = 2"
    (told,) = spark.sql(f"CALL lance.system.explain_scan('{query}')").collect()
    assert told["description"].startswith("none: the rows are known")


@pytest.mark.parametrize("ansi", ["true", "false"], ids=["ANSI", "not ANSI"])
def test_a_zone_that_changes_its_clocks_loses_no_row(
    spark: SparkSession, namespace: str, ansi: str
) -> None:
    """An hour of March is not there in New York, and an hour of November is there twice."""
    rows = (
        "SELECT id, TIMESTAMP '2025-03-08 22:30:00Z' + MAKE_INTERVAL(0, 0, 0, IF(id < 40, 0, 238),"
        " CAST(id % 40 AS INT)) AS ts FROM RANGE(80)"
    )
    conditions = [
        "CAST(ts AS DATE) = DATE '2025-03-09'",
        "CAST(ts AS DATE) IN (DATE '2025-11-01', DATE '2025-11-02')",
        "hour(ts) = 2",
        "hour(ts) = 1 AND month(ts) = 11",
        "date_trunc('DAY', ts) = TIMESTAMP '2025-11-02 00:00:00'",
        "date_trunc('HOUR', ts) = TIMESTAMP '2025-11-02 01:00:00'",
        "ts BETWEEN TIMESTAMP '2025-11-02 01:00:00' AND TIMESTAMP '2025-11-02 01:59:59'",
        "CAST(ts AS TIMESTAMP_NTZ) < TIMESTAMP_NTZ '2025-03-09 03:00:00'",
        "ts < DATE '2025-03-09'",
        "dayofmonth(ts) = 9 AND NOT (hour(ts) < 20)",
        "CAST(ts AS STRING) LIKE '2025-11-02 01:%'",
        "lance.system.days(ts) = 20156",
        "year(ts) = 2025 AND date_trunc('MONTH', ts) = TIMESTAMP '2025-03-01 00:00:00'",
        "trunc(ts, 'WEEK') > DATE '2025-10-20'",
    ]

    def query(name: str) -> str:
        return " UNION ALL ".join(
            f"SELECT {at} AS condition, id FROM {name} WHERE {condition}"
            for at, condition in enumerate(conditions)
        )

    table = f"{namespace}.clocks"
    spark.sql(f"CREATE TABLE {table} PARTITIONED BY (days(ts), hour(ts)) AS {rows}")
    settings = {
        "spark.sql.session.timeZone": "America/New_York",
        "spark.sql.ansi.enabled": ansi,
    }
    spark.sql(rows).createOrReplaceTempView("clock_rows")
    try:
        with conf(spark, settings):
            found = counted_rows(spark.sql(query(table)))
            full = counted_rows(spark.sql(query("clock_rows")))
            plan = spark.sql(f"EXPLAIN SELECT id FROM {table} WHERE {conditions[-2]}").collect()
    finally:
        spark.catalog.dropTempView("clock_rows")
    assert found == full
    assert found
    kept = re.search(r"partitions: (\d+) of (\d+)", plan[0][0])
    assert kept is not None
    assert int(kept[1]) < int(kept[2])


def test_a_partition_of_both_zeros_is_computed_row_by_row(
    spark: SparkSession, namespace: str
) -> None:
    """They are equal, and one partition; what is computed of them may differ."""
    zeros = "SELECT id, CASE id % 3 WHEN 0 THEN 0D WHEN 1 THEN -0D ELSE 1D END AS v FROM range(9)"
    table = f"{namespace}.zeros"
    spark.sql(f"CREATE TABLE {table} PARTITIONED BY (v) AS {zeros}")
    for condition in ("power(v, -1) < 0", "power(v, -1) > 0", "power(v, -1) > 1"):
        rows = spark.sql(f"SELECT id FROM {table} WHERE {condition}").collect()
        expected = spark.sql(f"SELECT id FROM ({zeros}) WHERE {condition}").collect()
        assert sorted(rows) == sorted(expected)
        (counted,) = spark.sql(f"SELECT count(*) FROM {table} WHERE {condition}").collect()
        assert counted[0] == len(expected)
