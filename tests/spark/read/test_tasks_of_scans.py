"""How many tasks read a table where Spark itself groups its rows, and where the keys serve it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.spark.assert_join import IN_SPARK, WITHOUT_BROADCASTS, conf

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import Row, SparkSession

ROWS = "SELECT id, id % 24 AS k, uuid() AS u, array(id) AS a FROM RANGE(120000)"
BUCKETING = "spark.sql.sources.v2.bucketing.enabled"

# By other columns, by functions of one, windows, joins of other columns.
GROUPED_BY_SPARK = [
    "SELECT u, collect_list(k) FROM {} GROUP BY u",
    "SELECT id % 7, max(u) FROM {} GROUP BY id % 7",
    "SELECT k, max(u) FROM {} WHERE a[0] >= 0 GROUP BY ROLLUP(k, id)",
    "SELECT id, lag(k) IGNORE NULLS OVER (PARTITION BY u ORDER BY id) FROM {}",
    "SELECT t.id, o.v FROM {} t JOIN others o ON t.id = o.id AND t.a[0] = o.v",
]


@pytest.fixture(scope="module", autouse=True)
def tables(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    spark.sql("CREATE NAMESPACE lance.tasks")
    rows = str(tmp_path_factory.mktemp("tasks") / "rows")
    spark.sql(ROWS).write.parquet(rows)
    spark.read.parquet(rows).createOrReplaceTempView("rows")
    spark.sql("CREATE TABLE lance.tasks.keyed PARTITIONED BY (k) AS SELECT * FROM rows")
    spark.sql("CREATE TABLE lance.tasks.plain AS SELECT * FROM rows WHERE id < 60000")
    spark.sql("INSERT INTO lance.tasks.plain SELECT * FROM rows WHERE id >= 60000")
    spark.range(0, 120000, 7).selectExpr("id", "id AS v", "id % 24 AS k").createOrReplaceTempView(
        "others"
    )
    yield
    for view in ("rows", "others"):
        spark.catalog.dropTempView(view)
    spark.sql("DROP NAMESPACE lance.tasks CASCADE")


def digest(spark: SparkSession, query: str) -> list[Row]:
    """Sum up the rows of a query, for there are many."""
    return spark.sql(f"SELECT count(*), sum(hash(*)) FROM ({query})").collect()


def tasks_of_scans(spark: SparkSession, query: str) -> list[int]:
    """Count the tasks of each scan of Pennon's tables as Spark plans them."""
    leaves = spark.sql(query)._jdf.queryExecution().sparkPlan().collectLeaves()
    scans = (leaves.apply(at) for at in range(leaves.size()))
    return [s.inputRDD().getNumPartitions() for s in scans if s.nodeName().startswith("BatchScan")]


@pytest.mark.parametrize("query", GROUPED_BY_SPARK)
def test_leaves_share_tasks_where_their_keys_serve_nothing(spark: SparkSession, query: str) -> None:
    with conf(spark, {**IN_SPARK, **WITHOUT_BROADCASTS}):
        [tasks] = tasks_of_scans(spark, query.format("lance.tasks.keyed"))
        assert tasks <= spark.sparkContext.defaultParallelism
        assert digest(spark, query.format("lance.tasks.keyed")) == digest(
            spark, query.format("rows")
        )


@pytest.mark.parametrize("bucketing", ["true", "false"])
@pytest.mark.parametrize("query", ["SELECT * FROM {}", GROUPED_BY_SPARK[0], GROUPED_BY_SPARK[-1]])
def test_a_large_leaf_is_read_by_several_tasks(
    spark: SparkSession, query: str, bucketing: str
) -> None:
    with conf(spark, {**IN_SPARK, **WITHOUT_BROADCASTS, BUCKETING: bucketing}):
        assert tasks_of_scans(spark, query.format("lance.tasks.plain")) == [2]
        assert digest(spark, query.format("lance.tasks.plain")) == digest(
            spark, query.format("rows")
        )


@pytest.mark.parametrize(
    "query",
    [
        "SELECT k, max(u) FROM {} GROUP BY k",
        "SELECT k, lag(id) IGNORE NULLS OVER (PARTITION BY k ORDER BY id) FROM {}",
        "SELECT t.id, o.v FROM {} t JOIN others o ON t.k = o.k AND t.id = o.id",
    ],
)
def test_keys_that_serve_an_operator_are_kept_apart(spark: SparkSession, query: str) -> None:
    with conf(spark, {**IN_SPARK, **WITHOUT_BROADCASTS}):
        [tasks] = tasks_of_scans(spark, query.format("lance.tasks.keyed"))
        assert tasks > spark.sparkContext.defaultParallelism
