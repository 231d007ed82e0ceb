"""CALL explain_join: the one reason for each shuffle, and what would remove it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyspark.errors import AnalysisException
from tests.spark.assert_join import EXECUTION, conf, execute, executed_plan

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession


pytestmark = pytest.mark.usefixtures("without_broadcasts")


def explained(spark: SparkSession, query: str) -> list[Row]:
    return spark.sql(f"CALL lance.system.explain_join('{query}')").collect()


@pytest.fixture
def tables(spark: SparkSession, namespace: str) -> str:
    for name, partitioning in {
        "eight": "bucket(8, id)",
        "six": "bucket(6, id)",
        "nine": "bucket(9, id)",
        "both": "multi_bucket(4, id, k)",
    }.items():
        spark.sql(
            f"CREATE TABLE {namespace}.{name} (id BIGINT, k INT, v DOUBLE)"
            f" PARTITIONED BY ({partitioning})"
        )
        spark.sql(f"INSERT INTO {namespace}.{name} SELECT id, id % 3, id FROM RANGE(30)")
    return namespace


def test_a_join_is_explained(spark: SparkSession, tables: str) -> None:
    query = f"SELECT x.v FROM {tables}.eight x JOIN {tables}.six y ON x.id = y.id"
    join, whole = explained(spark, query)
    assert (join.operator, join.reason) == ("join", "joined in the worker")
    assert join.left == f"bucket(8, {tables}.eight.id)"
    assert join.right == f"bucket(6, {tables}.six.id)"
    assert join.common == f"bucket(2, {tables}.eight.id)"
    assert whole.common == "0 shuffle(s) in the whole plan"
    with conf(spark, {EXECUTION: "spark"}):
        in_spark, _ = explained(spark, query)
        assert "as one key (2 groups)" in executed_plan(spark.sql(query))
    assert (in_spark.common, in_spark.reason) == (join.common, "")


def test_the_expression_that_leaves_an_operator_to_spark_is_told(
    spark: SparkSession, tables: str
) -> None:
    one, other = f"{tables}.eight x", f"{tables}.eight y"
    for column, operator, why in (
        ("max(soundex(CAST(x.k AS STRING)))", "aggregate", "soundex"),
        ("collect_set(x.v)", "aggregate", "the aggregate function collect_set"),
        ("avg(DISTINCT x.id)", "aggregate", "the aggregate function avg(DISTINCT …)"),
    ):
        query = f"SELECT x.k, {column} FROM {one} JOIN {other} ON x.id = y.id GROUP BY x.k"
        found = {row.operator: row.reason for row in explained(spark, query)}
        assert found["join"] == "joined in the worker"
        text = f"Spark computes it, for the workers do not compute: {why}"
        assert found[operator].lower().endswith(text.lower())


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("(SELECT x.k AS k, explode(array(x.k, 1)) AS e FROM {0}.eight x)", "the operator explode"),
        (
            "(SELECT k FROM {0}.eight ORDER BY v OFFSET 3)",
            "OFFSET, within a query of several tasks",
        ),
    ],
)
def test_the_operator_that_leaves_an_aggregate_to_spark_is_told(
    spark: SparkSession, tables: str, source: str, why: str
) -> None:
    found, *_ = explained(spark, f"SELECT k, count(*) FROM {source.format(tables)} GROUP BY k")
    assert found.reason.endswith(f"do not compute: {why}")


@pytest.mark.parametrize(
    ("sql", "reason", "remedy"),
    [
        (
            "SELECT x.v FROM {0}.nine x JOIN {0}.eight y ON x.id = y.id",
            "greatest common divisor 1",
            "one divides the other",
        ),
        (
            "SELECT x.v FROM {0}.both x JOIN {0}.both y ON x.id = y.id",
            "does not compare {0}.both.id and {0}.both.k",
            "add {0}.both.id and {0}.both.k to the join condition",
        ),
        (
            "SELECT x.v FROM {0}.eight x JOIN {0}.eight y ON x.id = CAST(y.v AS BIGINT)",
            "equates no columns as they are",
            "without casts",
        ),
        (
            "SELECT k, count(*) FROM {0}.both GROUP BY k",
            "does not group by {0}.both.id and {0}.both.k",
            "group by",
        ),
    ],
)
def test_a_shuffle_has_a_reason_and_a_remedy(
    spark: SparkSession, tables: str, sql: str, reason: str, remedy: str
) -> None:
    first, *_, whole = explained(spark, sql.format(tables))
    assert reason.format(tables) in first.reason
    assert remedy.format(tables) in first.remedy
    assert not whole.common.startswith("0 ")


def test_a_setting_of_the_user_is_named(spark: SparkSession, tables: str) -> None:
    with conf(spark, {"spark.sql.sources.v2.bucketing.enabled": "false"}):
        join, whole = explained(
            spark, f"SELECT x.v FROM {tables}.eight x JOIN {tables}.six y ON x.id = y.id"
        )
    assert (join.left, join.reason) == (f"bucket(8, {tables}.eight.id)", "")
    assert "spark.sql.sources.v2.bucketing.enabled is false" in whole.reason
    assert whole.common == "2 shuffle(s) in the whole plan"
    key = "spark.sql.sources.v2.bucketing.shuffle.enabled"
    with conf(spark, {key: "false"}):
        *_, whole = explained(
            spark, f"SELECT x.v FROM {tables}.eight x JOIN RANGE(9) y ON x.id = y.id"
        )
    assert (whole.reason, whole.remedy) == (f"the setting {key} is false", f"unset {key}")


@pytest.mark.parametrize("procedure", ["explain_join", "explain_scan"])
def test_what_reads_no_rows_is_refused_and_not_run(
    spark: SparkSession, tables: str, procedure: str
) -> None:
    for statement in (f"DROP TABLE {tables}.eight", f"DELETE FROM {tables}.eight", "SHOW TABLES"):
        call = f"CALL lance.system.{procedure}('{statement}')"
        if statement.startswith("DELETE"):  # which reads what it deletes
            spark.sql(call).collect()
            continue
        with pytest.raises(AnalysisException, match=r"STATEMENT_NOT_EXPLAINED.*reads no rows"):
            spark.sql(call)
    assert spark.table(f"{tables}.eight").count() == 30


@pytest.mark.parametrize("execution", ["worker", "spark"])
def test_an_expression_that_fails_for_a_value_costs_its_own_join_the_keys_alone(
    spark: SparkSession, tables: str, execution: str
) -> None:
    """The other side may be of a writer whose engine computes it: its rows have to meet."""
    spark.sql(f"CREATE TABLE {tables}.texts (s STRING, n INT) PARTITIONED BY (s)")
    spark.sql(f"INSERT INTO {tables}.texts VALUES ('7', 1), ('x', 2), (NULL, 3), ('12', 4)")
    spark.sql(
        f"CREATE TABLE {tables}.numbers (s STRING, n INT)"
        " PARTITIONED BY (expression('CAST(col0 AS INT)', s))"
    )
    spark.sql(f"INSERT INTO {tables}.numbers VALUES ('7', 5), ('12', 6), ('13', 7)")
    failing = (
        f"SELECT a.n + b.n AS n FROM {tables}.texts a LEFT JOIN {tables}.numbers b ON a.s = b.s"
    )
    other = f"SELECT x.k AS n FROM {tables}.eight x JOIN {tables}.six y ON x.id = y.id"
    with conf(spark, {EXECUTION: execution}):
        found = execute(spark, f"{failing} UNION ALL {other}")
        assert found.shuffles == 1  # onto the texts as they are
        assert found.rows["Row(n=6)"] == found.rows["Row(n=10)"] == 1
        assert (found.rows["Row(n=None)"], found.rows.total()) == (2, 34)
        known = execute(spark, f"{failing} WHERE a.s <> 'x'")
        assert known.shuffles == 0
        join, _ = explained(spark, failing)
    assert join.reason.startswith(
        "the expression CAST(col0 AS INT) fails for a partition of the other side: "
    )


def test_a_query_of_too_many_levels_stays_in_spark_and_is_told(
    spark: SparkSession, tables: str
) -> None:
    """A window is four queries within each other."""
    query = f"{tables}.eight"
    for depth in range(45):
        total = "sum(v) OVER (PARTITION BY id ORDER BY v DESC, k)"
        query = f"(SELECT id, k, {total} + {depth} AS v FROM {query})"
    reasons = [row.reason for row in explained(spark, f"SELECT * FROM {query}")]
    assert any(reason.endswith("do not compute: a query of too many levels") for reason in reasons)
