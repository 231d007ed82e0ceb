"""A query, a write and a join on executors that are processes of their own."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from tests.separate_process import run_module, run_script

pytestmark = pytest.mark.slow

JOB = """
import re, sys
import pennon

builder = pennon.spark(root=sys.argv[1]).master(sys.argv[2])
for key, value in {
    "spark.ui.enabled": "false",
    "spark.executor.memory": "1g",
    "spark.sql.shuffle.partitions": "4",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.ui.showConsoleProgress": "false",
}.items():
    builder.config(key, value)
spark = builder.getOrCreate()
spark.sql("CREATE NAMESPACE lance.c")
spark.sql("CREATE TABLE lance.c.a (id BIGINT, v INT) PARTITIONED BY (bucket(4, id))")
spark.sql("CREATE TABLE lance.c.b (id BIGINT, w INT) PARTITIONED BY (bucket(2, id))")
spark.sql("INSERT INTO lance.c.a SELECT id, CAST(id % 7 AS INT) FROM range(0, 2000, 1, 4)")
spark.sql("INSERT INTO lance.c.b SELECT id, CAST(id % 5 AS INT) FROM range(0, 2000, 1, 4)")
hosts = spark.sparkContext._jsc.sc().statusTracker().getExecutorInfos()
frame = spark.sql("SELECT count(*), sum(v * w) FROM lance.c.a JOIN lance.c.b USING (id)")
row = frame.collect()[0]
spark.conf.set("spark.sql.catalog.lance.execution.oneTaskBytes", "1")
grouped = spark.sql("EXPLAIN SELECT v, count(*) FROM lance.c.a GROUP BY v").head()[0]
print(repr({
    "executors": len(hosts) - 1,
    "count": row[0],
    "sum": row[1],
    "pruned": spark.sql("SELECT v FROM lance.c.a WHERE id = 1234").collect()[0][0],
    "fragment": re.search("fragment: (.*?);", grouped)[1],
}))
spark.stop()
"""


@pytest.mark.parametrize(
    ("executors", "cores", "fragment"),
    [(2, 1, "complete in 1 tasks"), (1, 2, "complete in 1 tasks of 2 threads")],
)
def test_query_write_and_join_on_executors(
    tmp_path: Path, executors: int, cores: int, fragment: str
) -> None:
    """No setting says how many cores an executor has."""
    master = f"local-cluster[{executors},{cores},1024]"
    printed = ast.literal_eval(run_script(JOB, str(tmp_path), master).splitlines()[-1])
    assert printed == {
        "executors": executors,
        "count": 2000,
        "sum": sum((number % 7) * (number % 5) for number in range(2000)),
        "pruned": 1234 % 7,
        "fragment": fragment,
    }


def test_joins_do_not_shuffle_on_two_executors(tmp_path: Path) -> None:
    printed = run_module("tests.spark.joins.short_joins", "local-cluster[2,1,1024]", str(tmp_path))
    assert printed.splitlines()[-1] == "every join is right"
