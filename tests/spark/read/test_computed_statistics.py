"""Leaves that the statistics of columns drop under computed conditions: the rows are Parquet's."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyspark.errors import ArithmeticException
from tests.spark.assert_join import conf
from tests.spark.read.test_queries import partitions_read
from tests.spark.statement_results import counted_rows

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

ROWS = """
SELECT id DIV 10 AS k, CAST(id AS INT) AS i, IF(id DIV 10 = 2, NULL, id * 1000000007) AS l,
  DATE '2024-01-01' + CAST(id AS INT) AS d, IF(id = 35, NULL, CAST(id AS STRING)) AS s,
  IF(id DIV 10 = 1, NULL, id DIV 10 = 3) AS o, CAST(id AS DECIMAL(10, 2)) / 4 AS m,
  TIMESTAMP '2024-01-01 00:00:00' + MAKE_INTERVAL(0, 0, 0, CAST(id AS INT)) AS ts
FROM RANGE(40)
"""
# Four partitions of ten rows; what another conjunct already prunes is not here.
CASES = {
    "i + 1 = 6": 1,
    "20 - i > 0": 2,
    "-i <= -30": 1,
    "i * 3 IN (3, 99)": 2,
    "abs(i - 25) < 3": 1,
    "CAST(i AS BIGINT) + l < 0": 0,
    "coalesce(i, 0) = 5": 1,
    "nvl(l, -1) = -1": 1,
    "ifnull(l, 0) > 39000000000": 1,
    "coalesce(o, false)": 1,
    "coalesce(o, true)": 2,
    "coalesce(s, '') = ''": 1,
    "date_add(d, 7) = DATE '2024-01-10'": 1,
    "date_sub(d, 7) > DATE '2024-01-31'": 1,
    "coalesce(ts, TIMESTAMP '2020-01-01 00:00:00') > TIMESTAMP '2024-02-08 00:00:00'": 1,
    "m + 1.5 > 11": 1,
    "CASE WHEN i < 10 THEN 1 ELSE 2 END = 1": 1,
    "i > l": 1,
}


@pytest.mark.parametrize("ansi", ["true", "false"], ids=["ANSI", "not ANSI"])
def test_leaves_are_dropped_and_the_rows_are_those_of_parquet(
    spark: SparkSession, namespace: str, tmp_path: Path, ansi: str
) -> None:
    table, parquet = f"{namespace}.computed", f"parquet.`{tmp_path}/rows`"
    spark.sql(f"CREATE TABLE {table} PARTITIONED BY (k) AS {ROWS}")
    spark.sql(ROWS).write.parquet(f"{tmp_path}/rows")

    def query(name: str) -> str:
        return " UNION ALL ".join(
            f"SELECT {at} AS condition, * FROM {name} WHERE {condition}"
            for at, condition in enumerate(CASES)
        )

    with conf(spark, {"spark.sql.ansi.enabled": ansi}):
        read = {
            condition: partitions_read(spark.sql(f"SELECT * FROM {table} WHERE {condition}"))[0]
            for condition in CASES
        }
        assert read == CASES
        assert counted_rows(spark.sql(query(table))) == counted_rows(spark.sql(query(parquet)))


def test_an_overflow_in_a_leaf_without_a_match_still_appears(
    spark: SparkSession, namespace: str
) -> None:
    table = f"{namespace}.greatest"
    spark.sql(
        f"CREATE TABLE {table} PARTITIONED BY (k) AS SELECT id AS k,"
        " IF(id = 3, 2147483647, CAST(id AS INT)) AS i FROM RANGE(4)"
    )
    with pytest.raises(ArithmeticException, match="ARITHMETIC_OVERFLOW"):
        spark.sql(f"SELECT * FROM {table} WHERE i + 1 = 2").collect()
    wrapped = f"SELECT k FROM {table} WHERE i + 1 < 0"
    with conf(spark, {"spark.sql.ansi.enabled": "false"}):
        assert [row["k"] for row in spark.sql(wrapped).collect()] == [3]
        assert partitions_read(spark.sql(wrapped)) == (1, 4)
