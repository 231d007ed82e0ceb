"""Tables whose columns are called as the worker calls those of a query: the rows are Spark's."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.spark.execution.fragment_tables import assert_same

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.usefixtures("without_broadcasts")

QUERIES = [
    "SELECT c3 AS c1, c1 AS c0, c0 AS c3, count(*) AS c2 FROM x GROUP BY c3, c1, c0",
    "SELECT x.c1, x.c0 AS c2, y.c2 AS c0 FROM x JOIN y ON x.c3 = y.c3 WHERE x.c2 > 3 AND y.c0 < 9",
    (
        "SELECT x.c0 AS c3, sum(y.c3) AS c0, max(x.c1) AS c2 FROM x JOIN y ON x.c3 = y.c3"
        " GROUP BY x.c0 HAVING sum(y.c2) > 5 ORDER BY c0 DESC, c3 LIMIT 6"
    ),
    "SELECT c0, c1 AS c4, rank() OVER (PARTITION BY c3 ORDER BY c2, c1, c0) AS c1 FROM x",
    (
        "SELECT c2 AS c3, c3 AS c2 FROM x WHERE c0 IN (SELECT c3 FROM y WHERE c1 > 'x4')"
        " UNION ALL SELECT c3, min(c0) FROM y GROUP BY c3"
    ),
]


@pytest.fixture
def _tables(spark: SparkSession, namespace: str) -> None:
    for name, columns in (("x", "c2, c0, c3, c1"), ("y", "c3, c1, c0, c2")):
        table = f"{namespace}.{name}"
        spark.sql(
            f"CREATE TABLE {table} PARTITIONED BY (bucket(4, c3)) AS SELECT {columns} FROM (SELECT"
            " id % 11 AS c0, concat('x', id % 7) AS c1, id % 13 AS c2, id % 17 AS c3"
            " FROM RANGE(90))"
        )
        spark.table(table).createOrReplaceTempView(name)


@pytest.mark.usefixtures("_tables")
@pytest.mark.parametrize("query", QUERIES)
def test_names_of_columns_are_not_taken_for_numbers(spark: SparkSession, query: str) -> None:
    assert_same(spark, query)
