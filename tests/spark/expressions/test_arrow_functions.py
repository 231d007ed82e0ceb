"""Functions in Python over batches: their answers belong to the rows that were sent to them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from pyspark.sql.types import LongType

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = 300_000


@pytest.mark.parametrize("columnar", ["true", "false"])
def test_a_session_that_knows_only_views_gets_the_answers_of_its_rows(
    spark: SparkSession, namespace: str, columnar: str
) -> None:
    functions = pytest.importorskip("pyspark.sql.pandas.functions")
    if not hasattr(functions, "arrow_udf"):
        pytest.skip("this Spark has no Arrow functions")
    spark.sql(
        f"CREATE TABLE {namespace}.t AS SELECT id, concat('text ', id) AS s,"
        f" CAST(id AS DECIMAL(9, 2)) AS d, named_struct('a', id) AS n FROM range({ROWS})"
    )
    session = spark.newSession()
    session.conf.set("spark.sql.execution.arrow.pythonUDF.columnarInput.enabled", columnar)
    session.sql(f"CREATE TEMPORARY VIEW v AS SELECT * FROM {namespace}.t")

    def doubled(ids: pa.Array) -> pa.Array:
        return pa.compute.multiply(ids, 2)

    session.udf.register("doubled", functions.arrow_udf(doubled, LongType()))
    wrong = session.sql(
        "SELECT count(*) FROM (SELECT id, s, d, n, doubled(id) AS twice FROM v)"
        " WHERE twice <> 2 * id OR s <> concat('text ', twice DIV 2) OR d <> id OR n.a <> id"
    )
    assert wrong.collect()[0][0] == 0
    assert session.sql("SELECT sum(doubled(id)) FROM v").collect()[0][0] == ROWS * (ROWS - 1)
