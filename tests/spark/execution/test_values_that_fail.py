"""Values that are an error for some rows: in the workers for exactly the rows of which Spark asks.

DataFusion computes what it has merged for more rows than Spark: a projection below its filter, a
part of a join's condition for one side alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from tests.spark.assert_join import EXECUTION, ONE_TASK, conf
from tests.spark.execution.fragment_tables import assert_same

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

# Of every key of l but 90 to 99 there are rows in r; b is zero, and s no number, of some.
LEFT = """SELECT id % 100 AS k, id % 7 AS b, id * 3 AS a, id % 5 AS c,
  named_struct('b', id % 7) AS st, IF(id % 7 = 0, NULL, array(id)) AS many,
  IF(id % 11 = 0, 'none', CAST(id AS STRING)) AS s, IF(id = 95, {most}, id) AS w FROM RANGE(200)"""
RIGHT = """SELECT id % 90 AS k, id % 6 AS b, id * 2 AS a,
  IF(id % 10 = 0, 'none', CAST(id AS STRING)) AS s, IF(id = 3, {most}, id) AS w FROM RANGE(200)"""
MOST = 2**63 - 1
NUMBERED = "(SELECT *, row_number() OVER (PARTITION BY k ORDER BY a) AS n FROM l)"
GROUPS = "SELECT k, b, max(b) AS n, max(a) AS t, max(c) AS m FROM l GROUP BY k, b HAVING max(b) > 0"


@pytest.fixture(scope="module", autouse=True)
def tables(spark: SparkSession, without_broadcasts: None) -> Iterator[None]:
    spark.sql("CREATE NAMESPACE lance.failing")
    for name, rows in (("l", LEFT), ("r", RIGHT)):
        table = f"lance.failing.{name}"
        source = rows.format(most=MOST)
        spark.sql(f"CREATE TABLE {table} PARTITIONED BY (bucket(4, k)) AS {source}")
        spark.table(table).createOrReplaceTempView(name)
    yield
    for name in ("l", "r"):
        spark.catalog.dropTempView(name)
    spark.sql("DROP NAMESPACE lance.failing CASCADE")


@pytest.mark.parametrize(
    "query",
    [
        "SELECT b, max((a * c) DIV b) FROM l WHERE b <> 0 GROUP BY b",
        "SELECT b, sum((a * c) DIV b), max((a * c) DIV b) FROM l WHERE b % 7 <> 0 GROUP BY b",
        "SELECT DISTINCT b, (a * c) DIV b FROM l WHERE b <> 0",
        "SELECT s, max(CAST(s AS INT) * c + b) FROM l WHERE s <> 'none' GROUP BY s, b",
        "SELECT k, max(CAST(s AS DOUBLE) / 3) FROM l WHERE s <> 'none' GROUP BY k",
        "SELECT b, sum(CAST(s AS DOUBLE)) FROM l WHERE try_cast(s AS DOUBLE) > 7.5 GROUP BY b",
        f"SELECT n, (t * m) DIV n FROM ({GROUPS})",
        f"SELECT st, (a * n) DIV st.b FROM {NUMBERED} WHERE st.b <> 0",
        f"SELECT many, (a * n) DIV b FROM {NUMBERED} WHERE many IS NOT NULL",
        f"SELECT k, n, sum((t * m) DIV n), max((t * m) DIV n) FROM ({GROUPS}) GROUP BY k, n",
        f"SELECT n, rank() OVER (PARTITION BY n ORDER BY (t * m) DIV n) FROM ({GROUPS})",
        f"SELECT n, (t * m) DIV n FROM ({GROUPS}) UNION ALL SELECT b, a FROM r",
    ],
)
def test_what_a_filter_leaves_out_is_not_computed(spark: SparkSession, query: str) -> None:
    with conf(spark, ONE_TASK):
        assert_same(spark, query)


NUMBERS = "(SELECT * FROM l WHERE s <> 'none')"


@pytest.mark.parametrize(
    ("query", "is_computed"),
    [
        (f"SELECT l.k, r.b FROM {NUMBERS} l JOIN r ON l.k = r.k AND CAST(l.s AS INT) = r.b", True),
        (f"SELECT l.k, r.b FROM {NUMBERS} l JOIN r ON l.k = r.k AND CAST(l.s AS INT) > r.b", True),
        ("SELECT * FROM l JOIN r ON l.k = r.k AND l.b <> r.b AND 9 DIV (l.b - r.b) > 3", True),
        ("SELECT * FROM l LEFT JOIN r ON l.k = r.k AND l.b + r.b < 7", True),
        ("SELECT * FROM l FULL JOIN r ON l.k = r.k AND l.b * r.b < 7", True),
        # computed of all rows of one side, of the first partner, or not at all
        ("SELECT * FROM l LEFT JOIN r ON l.k = r.k AND l.w + 1 > 3", False),
        ("SELECT * FROM l LEFT SEMI JOIN r ON l.k = r.k AND l.w + r.b > 9", False),
        ("SELECT * FROM l LEFT ANTI JOIN r ON l.k = r.k AND l.w + r.b > 9", False),
        (f"SELECT l.k FROM {NUMBERS} l JOIN r ON l.k = r.k AND CAST(l.s AS INT) <=> r.b", False),
        # of no values that the columns have an error
        ("SELECT * FROM l LEFT JOIN r ON l.k = r.k AND l.b + 1 > 3", True),
        ("SELECT * FROM l JOIN r ON l.k = r.k AND l.k - r.b > 3", True),
        ("SELECT * FROM l LEFT SEMI JOIN r ON l.k = r.k AND l.a - r.a > -9", True),
        ("SELECT * FROM l LEFT ANTI JOIN r ON l.k = r.k AND NOT (l.a - r.a * 2) > -9", True),
        ("SELECT * FROM l JOIN r ON l.k = r.k AND l.b + 1 <=> r.b", True),
        ("SELECT * FROM l LEFT SEMI JOIN r ON l.k = r.k AND l.w - r.w - 1 > -9", True),
        ("SELECT * FROM l LEFT SEMI JOIN r ON l.k = r.k AND CAST(l.w AS DECIMAL(20)) > r.w", True),
        ("SELECT k FROM l WHERE 9 DIV b NOT IN (SELECT b FROM r WHERE k > 999)", False),
    ],
)
def test_a_join_s_condition_is_computed_of_the_pairs_that_spark_asks(
    spark: SparkSession, query: str, *, is_computed: bool
) -> None:
    with conf(spark, ONE_TASK):
        assert_same(spark, query, is_fragment=is_computed)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM l JOIN r ON l.k = r.k AND 9 DIV l.b = r.b",
        "SELECT * FROM l LEFT JOIN r ON l.k = r.k AND CAST(r.s AS INT) = l.b",
        "SELECT * FROM l JOIN r ON l.k = r.k AND 9 DIV (l.b - r.b) > 3",
        "SELECT * FROM l FULL JOIN r ON l.k = r.k AND 9 DIV (l.b - r.b) > 3",
        "SELECT * FROM l LEFT JOIN r ON l.k = r.k AND l.b > 3 AND 9 DIV (l.b - r.b) > 3",
        "SELECT * FROM l LEFT SEMI JOIN r ON l.k = r.k AND r.w + l.b < 0",
        "SELECT * FROM l LEFT ANTI JOIN r ON l.k = r.k AND l.a - r.w * 2 > r.b",
    ],
)
def test_an_error_in_a_join_s_condition_is_one_in_the_workers(
    spark: SparkSession, query: str
) -> None:
    for execution in ("spark", "worker"):
        with (
            conf(spark, {EXECUTION: execution}),
            pytest.raises((PySparkException, Py4JJavaError), match="BY_ZERO|CAST_INVALID|OVERFLOW"),
        ):
            spark.sql(query).collect()


_OVERFLOW, _RANGE = "ARITHMETIC_OVERFLOW", "NUMERIC_VALUE_OUT_OF_RANGE.WITH_SUGGESTION"


@pytest.mark.parametrize(
    ("value", "condition"),
    [
        ("sum(l.k + 9223372036854775800)", _OVERFLOW),
        ("sum(CAST(l.a AS DECIMAL(38, 2)) + 999999999999999999999999999999999999.00BD)", _RANGE),
        ("max(CAST(l.k AS INT) + 2147483640)", _OVERFLOW),
        ("sum(99999999999999999999999999999999999999BD)", _OVERFLOW),
        ("sum(IF(l.b > 2, 99999999999999999999999999999999999999BD, l.a))", _OVERFLOW),
        ("avg(99999999999999999999999999999999999999BD)", _OVERFLOW),
        ("sum(CAST(99999999999999999999 AS DECIMAL(38, 18)))", _OVERFLOW),
        (
            "max(to_date(concat('2020-02-', CAST(30 + l.b AS STRING)), 'yyyy-MM-dd'))",
            "CANNOT_PARSE_TIMESTAMP",
        ),
    ],
)
def test_failures_are_the_same_errors_in_both(
    spark: SparkSession, value: str, condition: str
) -> None:
    for execution in ("spark", "worker"):
        settings = {EXECUTION: execution, "spark.sql.session.timeZone": "UTC"}
        with conf(spark, settings), pytest.raises(PySparkException) as raised:
            spark.sql(f"SELECT {value} FROM l JOIN r ON l.k = r.k").collect()
        assert str(raised.value.getCondition()).startswith(condition), execution
