"""Failures of tasks: those of arithmetic are Spark's own, and a worker that hangs is ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyspark.errors import ArithmeticException
from tests.spark.assert_join import EXECUTION

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

from tests.separate_process import run_script

# One place that can fail, so that it can be named.
FAILING = [
    "max(id % (id - 1))",
    "sum(id / (id - 1))",
    "max(1 div (id - 1))",
    "max(id + 9223372036854775807)",
    "max(id * 9223372036854775806)",
    "max(CAST(id * 300 AS TINYINT))",
    "max(CAST(CAST(id AS DECIMAL(20, 0)) * 3000000000 AS INT))",
    "max(CAST(id + 99 AS DECIMAL(2, 0)))",
]


@pytest.fixture(scope="module")
def numbers(spark: SparkSession) -> str:
    spark.sql("CREATE NAMESPACE IF NOT EXISTS lance.failing_tasks")
    spark.sql("CREATE TABLE lance.failing_tasks.n (id BIGINT, k STRING) PARTITIONED BY (k)")
    spark.sql("INSERT INTO lance.failing_tasks.n VALUES (1, 'a'), (2, 'b')")
    return "lance.failing_tasks.n"


def failure(spark: SparkSession, query: str, execution: str) -> ArithmeticException:
    spark.conf.set(EXECUTION, execution)
    try:
        with pytest.raises(ArithmeticException) as caught:
            spark.sql(query).collect()
    finally:
        spark.conf.unset(EXECUTION)
    return caught.value


@pytest.mark.parametrize("value", FAILING)
def test_arithmetic_fails_in_a_worker_as_it_fails_in_spark(
    spark: SparkSession, numbers: str, value: str
) -> None:
    query = f"SELECT k, {value} FROM {numbers} GROUP BY k"
    assert "fragment: complete" in spark.sql(f"EXPLAIN {query}").head()[0]
    ours, theirs = (failure(spark, query, execution) for execution in ("worker", "spark"))
    assert ours.getCondition() == theirs.getCondition()
    assert ours.getSqlState() == theirs.getSqlState()
    contexts = [[context.fragment() for context in one.getQueryContext()] for one in (ours, theirs)]
    assert contexts[0] == contexts[1]
    assert "\tat " not in str(ours)


HANGING = """
import os, signal, sys, threading
import pennon

builder = pennon.spark(root=sys.argv[1]).master("local[1, 2]").config("spark.ui.enabled", "false")
builder.config("spark.driver.host", "127.0.0.1").config("spark.pennon.worker.timeout", "3s")
spark = builder.getOrCreate()
spark.sql("CREATE TABLE lance.t AS SELECT id FROM range(10)")
worker = spark._jvm.dev.pennon.spark.worker.WorkerProcess.shared().pid()
os.kill(worker, signal.SIGSTOP)
print(spark.table("lance.t").count())
"""


def test_a_worker_that_hangs_is_ended_and_the_query_goes_on(tmp_path: Path) -> None:
    assert run_script(HANGING, str(tmp_path / "lake")).splitlines()[-1] == "10"
