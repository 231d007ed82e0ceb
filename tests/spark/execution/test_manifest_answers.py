"""Aggregates that the manifest answers: the rows are Spark's, and no leaf is opened."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from tests.spark.assert_join import EXECUTION, conf, executed_plan
from tests.spark.statement_results import counted_rows

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Sequence

    from pyspark.sql import SparkSession

ANSWERED = "answered by the manifest"
BY_SPARK = {EXECUTION: "spark"}
ROWS = """
SELECT id, IF(id % 4 = 0, NULL, ELT(id % 4, 'b', 'a''s', 'ü')) AS region, CAST(id % 3 AS INT) AS k,
  TIMESTAMP '2024-11-30 20:00:00' + MAKE_INTERVAL(0, 0, 0, id) AS ts
FROM RANGE(90)
"""
ANSWERS = (
    "SELECT count(*) FROM {t}",
    "SELECT count(*), count(region), min(region), max(region), max(k) + 1 FROM {t}",
    "SELECT region, count(*) AS n, min(k) FROM {t} GROUP BY region",
    "SELECT k, region, count(*) FROM {t} WHERE k > 0 AND region IS NOT NULL GROUP BY k, region",
    "SELECT DISTINCT region FROM {t} WHERE upper(region) <> 'B'",
    "SELECT upper(region), count(1) FROM {t} GROUP BY upper(region) HAVING count(1) > 22",
    "SELECT region, count(*) AS n FROM {t} GROUP BY region ORDER BY n DESC, region LIMIT 2",
    "SELECT count(*) FROM {t} WHERE ts >= TIMESTAMP '2024-12-01 00:00:00'",
    "SELECT count(*), min(k) FROM {t} WHERE region = 'none'",
)
READ = (
    "SELECT sum(k) FROM {t}",
    "SELECT max(id) FROM {t}",
    "SELECT count(*) FROM {t} WHERE id > 3",
    "SELECT count(*) FROM {t} WHERE ts >= TIMESTAMP '2024-12-03 00:00:00'",
)


def is_answered(spark: SparkSession, query: str) -> bool:
    return ANSWERED in executed_plan(spark.sql(query))


def check_answers(
    spark: SparkSession, table: str, answered: Sequence[str], read: Sequence[str]
) -> list[Counter[str]]:
    """See that all rows are Spark's own, and which are answered; gives the rows."""
    queries = [query.format(t=table) for query in (*answered, *read)]
    with conf(spark, BY_SPARK):
        expected = [counted_rows(spark.sql(query)) for query in queries]
    assert [counted_rows(spark.sql(query)) for query in queries] == expected
    told = [is_answered(spark, query) for query in queries]
    assert told == [True] * len(answered) + [False] * len(read)
    return expected


def test_aggregates_over_partition_values_need_no_leaf(spark: SparkSession, namespace: str) -> None:
    table = f"{namespace}.t"
    spark.sql(f"CREATE TABLE {table} PARTITIONED BY (region, k, months(ts)) AS {ROWS}")
    spark.sql(f"DELETE FROM {table} WHERE id IN (5, 6, 7) OR region = 'b' AND k = 1")
    expected = check_answers(spark, table, ANSWERS, READ)
    described = {row[0]: row[1] for row in spark.sql(f"DESCRIBE EXTENDED {table}").collect()}
    for leaf in Path(described["Location"].removeprefix("file:")).glob("*$dataset/data"):
        shutil.rmtree(leaf)
    again = [counted_rows(spark.sql(query.format(t=table))) for query in ANSWERS]
    assert again == expected[: len(ANSWERS)]


def test_answers_are_those_of_the_version_that_is_asked(
    spark: SparkSession, namespace: str
) -> None:
    """Also where partitions of an older spec have a column's values only together."""
    table = f"{namespace}.t"
    spark.sql(f"CREATE TABLE {table} PARTITIONED BY (region) AS {ROWS}")
    spark.sql(f"ALTER TABLE {table} ADD PARTITION FIELD k")
    spark.sql(f"INSERT INTO {table} SELECT id, region, k, ts FROM ({ROWS}) WHERE id < 20")
    spark.sql(f"DELETE FROM {table} WHERE id = 3")
    by_region = "SELECT region, count(*) FROM {t} GROUP BY region"
    by_k = "SELECT k, count(*) FROM {t} GROUP BY k"
    for query, answered in ((by_region, True), (by_k, False)):
        for source in (table, f"{table} VERSION AS OF 3"):
            text = query.format(t=source)
            with conf(spark, BY_SPARK):
                expected = counted_rows(spark.sql(text))
            assert counted_rows(spark.sql(text)) == expected
            assert is_answered(spark, text) == answered


def test_what_nobody_counted_is_read(spark: SparkSession, namespace: str) -> None:
    table = f"{namespace}.t"
    spark.sql(
        f"CREATE TABLE {table} PARTITIONED BY (region)"
        f" TBLPROPERTIES ('transaction' = 'weak') AS {ROWS}"
    )
    assert not is_answered(spark, f"SELECT count(*) FROM {table}")
    assert spark.table(table).count() == 90


def test_exact_statistics_answer_for_other_columns(spark: SparkSession, namespace: str) -> None:
    table = f"{namespace}.t"
    spark.sql(
        f"CREATE TABLE {table} PARTITIONED BY (k) AS SELECT id, region, k, ts, CAST(ts AS DATE) d,"
        " CAST(id AS DECIMAL(12, 2)) / 8 AS price, REPEAT(region, 9) AS long,"
        " IF(id = 7, DOUBLE('NaN'), id) AS f, IF(id = 7, -0D, id - 90D) AS zero,"
        " IF(id = 7, -DOUBLE('Infinity'), id + 0.1D) AS g, DOUBLE(id) AS f0,"
        " IF(id % 5 = 0, NULL, FLOAT(id + 0.1)) AS h"
        f" FROM ({ROWS})"
    )
    answered = [
        "SELECT max(id), min(id), count(id), count(region), count(*) FROM {t}",
        "SELECT min(region), max(region), min(ts), max(d), min(price) FROM {t}",
        "SELECT k, max(id), count(region) + 1 FROM {t} WHERE k > 0 GROUP BY k",
        "SELECT max(i) FROM (SELECT id AS i, k FROM {t}) WHERE k = 1",
        "SELECT min(g), max(g), count(g), min(h), max(h), count(h) FROM {t}",
        "SELECT k, min(g), max(h) FROM {t} GROUP BY k",
        "SELECT min(zero), count(zero), count(f) FROM {t}",
        "SELECT max(y) - 1, count(y) FROM (SELECT id - 0 AS x, f0 AS y FROM {t})",
    ]
    read = [
        "SELECT max(f) FROM {t}",
        "SELECT min(f) FROM {t}",
        "SELECT max(zero) FROM {t}",
        "SELECT min(f0) FROM {t}",
        "SELECT max(id + 1) FROM {t}",
        "SELECT max(long) FROM {t}",
        "SELECT sum(id), max(id) FROM {t}",
        "SELECT max(id) FROM {t} WHERE id < 50",
    ]
    check_answers(spark, table, answered, read)
    first = answered[0].format(t=table)
    spark.sql(f"DELETE FROM {table} WHERE id = 89")  # what is left of its bounds is no answer
    assert spark.sql(first).collect() == [(88, 0, 89, 66, 89)]
    assert not is_answered(spark, first)
    spark.sql(f"CALL lance.system.analyze('{table.partition('.')[2]}', columns => 'id, region')")
    assert spark.sql(first).collect() == [(88, 0, 89, 66, 89)]
    assert is_answered(spark, first)


def test_what_excludes_itself_is_answered_beside_bytes(spark: SparkSession, namespace: str) -> None:
    """A condition on bytes, which ended the planning, is one of no partition here."""
    spark.sql(f"CREATE TABLE {namespace}.t AS SELECT id, CAST('b1' AS BINARY) AS b FROM RANGE(9)")
    for condition, expected in (
        ("b = X'6231' AND b IS NULL", (0, None)),
        ("id < 3 AND id > 5 AND coalesce(b, X'00') > X'61'", (0, None)),
        ("id < 3 AND coalesce(b, X'00') > X'61'", (3, 2)),
    ):
        found = spark.sql(f"SELECT count(*), max(id) FROM {namespace}.t WHERE {condition}")
        assert tuple(found.collect()[0]) == expected, condition
        assert "fragment: " in executed_plan(found), condition


def test_expressions_of_times_are_answered_by_levels(spark: SparkSession, namespace: str) -> None:
    """Where a partition's times all have one value of them, also across versions of the spec."""
    table = f"{namespace}.t"
    spark.sql(
        f"CREATE TABLE {table} (id BIGINT, ts TIMESTAMP_NTZ, d DATE)"
        " PARTITIONED BY (months(ts), months(d))"
    )
    insert = (
        f"INSERT INTO {table} SELECT id, IF(id % 11 = 0, NULL, TIMESTAMP_NTZ '1969-11-30 23:59:59'"
        " + MAKE_DT_INTERVAL(CAST(id AS INT) % 61 * 9, 0, 0, CAST(id % 2 AS DECIMAL(18, 6)))),"
        " IF(id % 7 = 0, NULL, DATE '2020-02-29' + CAST(id % 50 AS INT) * 20) FROM RANGE({range})"
    )
    spark.sql(insert.format(range="100"))
    spark.sql(f"ALTER TABLE {table} ADD PARTITION FIELD days(ts)")
    spark.sql(insert.format(range="100, 160"))
    answered = [
        "SELECT year(ts), count(*) FROM {t} GROUP BY year(ts)",
        "SELECT date_trunc('MONTH', ts) m, count(*), count(year(d)) FROM {t} GROUP BY m",
        "SELECT date_format(ts, 'yyyy-MM') m, quarter(d), count(ts) FROM {t} GROUP BY ALL",
        "SELECT year(ts) * 100 + month(ts) m, count(*) FROM {t} WHERE d IS NOT NULL GROUP BY m",
        "SELECT max(year(ts)), min(trunc(d, 'YEAR')), count(quarter(d)) FROM {t}",
        "SELECT DISTINCT last_day(d) FROM {t} WHERE year(d) > 2020",
        "SELECT y, count(*) FROM (SELECT year(ts) y, d FROM {t}) WHERE d IS NULL GROUP BY y",
    ]
    read = [
        "SELECT date_trunc('DAY', ts) x, count(*) FROM {t} GROUP BY x",
        "SELECT weekofyear(d) w, count(*) FROM {t} GROUP BY w",
        "SELECT year(ts) y, sum(id) FROM {t} GROUP BY y",
        "SELECT year(ts + INTERVAL '1' SECOND) y, count(*) FROM {t} GROUP BY y",
    ]
    check_answers(spark, table, answered, read)
