"""Streams while tables change: state outlives every plan, and no table is taken for another."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyspark.errors import StreamingQueryException

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession
    from pyspark.sql.streaming import StreamingQuery

SCHEMA = "id BIGINT, amount BIGINT"


def arrive(spark: SparkSession, folder: str, first: int) -> None:
    rows = spark.range(first, first + 40).selectExpr("id % 10 AS id", "id AS amount")
    rows.coalesce(1).write.mode("append").parquet(folder)


def test_groups_of_a_stream_stay_whole_when_the_partitioning_evolves(
    spark: SparkSession, namespace: str, tmp_path: Path
) -> None:
    a, b, folder = f"{namespace}.a", f"{namespace}.b", str(tmp_path / "arriving")
    for name in (a, b):
        spark.sql(f"CREATE TABLE {name} (id BIGINT, v INT) PARTITIONED BY (bucket(4, id))")
        spark.sql(f"INSERT INTO {name} SELECT id, CAST(id % 2 AS INT) FROM range(10)")

    def run() -> StreamingQuery:
        stream = spark.readStream.schema(SCHEMA).parquet(folder)
        static = spark.table(a).join(spark.table(b).withColumnRenamed("v", "w"), "id")
        grouped = stream.join(static, "id").groupBy("id", "v").sum("amount")
        query = (
            grouped.writeStream.format("memory")
            .queryName("sums")
            .outputMode("complete")
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(240)
        return query

    arrive(spark, folder, 0)
    first = run()
    assert "_derived_key" not in first._jsq.explainInternal(True)
    spark.sql(f"ALTER TABLE {a} REPLACE PARTITION FIELD bucket(4, id) WITH v")
    spark.sql(f"INSERT INTO {a} SELECT id, CAST(id % 2 AS INT) FROM range(0)")
    arrive(spark, folder, 40)
    run()
    expected = {
        (row.id, row.total)
        for row in spark.read.schema(SCHEMA)
        .parquet(folder)
        .groupBy("id")
        .agg({"amount": "sum"})
        .withColumnRenamed("sum(amount)", "total")
        .collect()
    }
    assert {(row.id, row[2]) for row in spark.table("sums").collect()} == expected
    assert spark.table("sums").count() == 10


DROP_AND_CREATE = ["DROP TABLE {}", "CREATE TABLE {} (id BIGINT, k BIGINT) PARTITIONED BY (k)"]
REPLACE = ["CREATE OR REPLACE TABLE {} AS SELECT 500L AS id, 1L AS k"]


# A source is looked at all the time: between DROP and CREATE it is not there, and told so.
@pytest.mark.parametrize(
    ("replaced", "statements"),
    [("source", REPLACE), ("target", REPLACE), ("target", DROP_AND_CREATE)],
    ids=["source replaced", "target replaced", "target dropped and created"],
)
def test_a_table_that_is_made_anew_under_a_running_stream_is_told_as_such(
    spark: SparkSession, namespace: str, tmp_path: Path, replaced: str, statements: list[str]
) -> None:
    source, target = f"{namespace}.source", f"{namespace}.target"
    for name in (source, target):
        spark.sql(f"CREATE TABLE {name} (id BIGINT, k BIGINT) PARTITIONED BY (k)")
    spark.sql(f"INSERT INTO {source} VALUES (1, 1)")
    writer = spark.readStream.table(source).writeStream
    query = writer.option("checkpointLocation", str(tmp_path / "c")).toTable(target)
    try:
        query.processAllAvailable()
        table = f"{namespace}.{replaced}"
        for statement in statements:
            spark.sql(statement.format(table))
        spark.sql(f"INSERT INTO {source} VALUES (2, 1)")
        with pytest.raises(StreamingQueryException, match=f"TABLE_MADE_ANEW.*table {table} as"):
            query.processAllAvailable()
    finally:
        query.stop()
