"""Columns that are constant on one side of a join, or in one input of a union, and not above it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.spark.assert_join import ONE_TASK, conf
from tests.spark.execution.fragment_tables import assert_same

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.usefixtures("fragment_tables")

MARKED = "x LEFT JOIN (SELECT id AS key, i16, 1 AS mark FROM y WHERE id % 2 = 0) m ON x.id = m.key"
FILTERED = "(SELECT * FROM y WHERE i = 3) m RIGHT JOIN x ON x.id = m.id"
EXISTS = "(SELECT *, EXISTS (SELECT 1 FROM y WHERE y.id = x.id AND y.i = x.i) AS mark FROM x)"
NESTED = f"(SELECT x.id, mark FROM {MARKED}) n FULL JOIN (SELECT id AS k, 2 AS g FROM z) ON id = k"

UNITED = """SELECT 'b' AS mark, x.id, x.s FROM x JOIN y ON x.id = y.id
  UNION ALL SELECT 'a', id + 5, s FROM z"""

KEYS = """SELECT 'b' AS mark, x.id FROM x JOIN y ON x.id = y.id
  UNION ALL SELECT 'a', id + 5 FROM z"""


@pytest.mark.parametrize(
    "query",
    [
        f"SELECT mark, x.id FROM {MARKED} ORDER BY mark NULLS LAST, x.id DESC LIMIT 7",
        f"SELECT mark, rank() OVER (PARTITION BY mark ORDER BY x.id, x.i, m.i16) FROM {MARKED}",
        f"SELECT mark, count(*) FROM {MARKED} GROUP BY mark",
        f"SELECT DISTINCT m.i FROM {FILTERED}",
        f"SELECT m.i, x.id, count(*) OVER (PARTITION BY m.i) FROM {FILTERED}",
        f"SELECT m.i, x.id FROM {FILTERED} ORDER BY m.i DESC, x.id DESC LIMIT 9",
        f"SELECT mark, id, dense_rank() OVER (PARTITION BY mark ORDER BY id) FROM {EXISTS}",
        f"SELECT mark, id FROM {EXISTS} ORDER BY mark DESC, id LIMIT 9",
        f"SELECT mark, g, id, rank() OVER (PARTITION BY mark, g ORDER BY id, k) FROM {NESTED}",
        f"SELECT mark FROM {MARKED} EXCEPT SELECT i FROM y",
        f"SELECT mark, count(*) FROM ({UNITED}) GROUP BY mark",
        f"SELECT s, mark, rank() OVER (PARTITION BY mark ORDER BY s) FROM ({UNITED})",
        f"SELECT mark, id FROM ({UNITED}) ORDER BY mark, id NULLS LAST LIMIT 9",
        f"SELECT mark, id FROM ({KEYS}) ORDER BY mark, id NULLS LAST LIMIT 9",
    ],
)
def test_a_column_that_is_constant_below_has_its_values_above(
    spark: SparkSession, query: str
) -> None:
    with conf(spark, ONE_TASK):
        assert_same(spark, query)


NO_ROWS = "(SELECT * FROM y WHERE i > 9)"


@pytest.mark.parametrize(
    "query",
    [
        f"SELECT 'sun' AS day, count(*), sum(v) FROM {NO_ROWS} GROUP BY 1",
        f"SELECT (SELECT count(*) FROM {NO_ROWS} GROUP BY 'x') AS n, id FROM x",
        f"SELECT id, n FROM x JOIN (SELECT 3 k, count(*) n FROM {NO_ROWS} GROUP BY 1) ON i = k",
        f"SELECT id FROM x WHERE i IN (SELECT 3 FROM {NO_ROWS} GROUP BY 1 HAVING count(*) = 0)",
        f"SELECT c, max(s) FROM (SELECT 'x' AS c, s FROM {NO_ROWS}) GROUP BY c",
        f"SELECT n, count(*) FROM (SELECT count(*) AS n FROM {NO_ROWS} GROUP BY NULL) GROUP BY n",
        "SELECT 'all' AS day, count(*), max(s) FROM y GROUP BY 1",
    ],
)
def test_no_rows_are_no_group_of_a_constant(spark: SparkSession, query: str) -> None:
    assert_same(spark, query)
    with conf(spark, ONE_TASK):
        assert_same(spark, query)


def test_leaves_of_other_constants_have_their_first_rows(
    spark: SparkSession, namespace: str
) -> None:
    spark.sql(
        f"CREATE TABLE {namespace}.t PARTITIONED BY (day)"
        " AS SELECT id % 2 AS day, id % 3 AS c, id AS v FROM RANGE(40)"
    )
    where = "(day = 0 AND c = 2) OR (day = 1 AND c = 1)"
    with conf(spark, ONE_TASK):
        rows = f"SELECT c, v % 20 AS n FROM {namespace}.t WHERE {where} GROUP BY c, v"
        assert_same(spark, f"SELECT c, n FROM ({rows}) ORDER BY c, n LIMIT 5")


def test_a_text_that_is_not_utf8_is_not_another_one(spark: SparkSession) -> None:
    """No literal says it, so that what compares with it stays in Spark."""
    broken = "CAST(X'61FF' AS STRING)"
    for query in (
        f"SELECT count(*) FROM x WHERE concat(s, {broken}) = concat(s, 'a\\ufffd')",
        f"SELECT count(*) FROM x WHERE s = {broken} OR octet_length(concat(s, {broken})) = 5",
    ):
        assert_same(spark, query, is_fragment=False)
    assert spark.sql(f"SELECT s FROM x WHERE s <> {broken} LIMIT 1").count() == 1
