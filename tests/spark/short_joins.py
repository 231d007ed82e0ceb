"""A few of the join cases by SQL alone, for clusters and servers: rows, and shuffles in EXPLAIN.

Run as a script in a process of its own it is a client of Spark Connect, or the driver of a
cluster: ``python -m tests.spark.short_joins sc://127.0.0.1:15002``, or ``… local-cluster[…] ROOT``.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from tests.spark.joined_rows import ROWS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Run = Callable[[str], Sequence[Sequence[object]]]

# Only lines of the tree: the details below it begin with a number in parentheses.
_SHUFFLE = re.compile(r"^[\s:+\-*]*Exchange \(", re.MULTILINE)
SETTINGS = {
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.adaptive.autoBroadcastJoinThreshold": "-1",
    "spark.sql.shuffle.partitions": "3",
}
SIDES = {"l": (3, "'a', 'b', NULL", 90), "r": (5, "'b', 'c', NULL", 70)}
TABLES = {
    "l_buckets": "bucket(16, id)",
    "r_buckets": "bucket(8, id)",
    "l_levels": "year(ts), month(ts), day(ts)",
    "r_levels": "months(ts)",
    "l_mixed": "region, bucket(4, id)",
    "r_mixed": "bucket(2, id), region",
    "l_many": "multi_bucket(8, a, b)",
    "r_many": "multi_bucket(4, a, b)",
}
EXECUTIONS = ("worker", "spark")  # EXPLAIN is asked under the last
_BOTH = "SELECT l.id, l.v, r.v AS rv FROM {l} l {join} JOIN {r} r ON "
# What is asked, which pair of tables, and the shuffles.
QUERIES = [
    (_BOTH.replace("{join}", "INNER") + "l.id = r.id", "buckets", 0),
    (_BOTH.replace("{join}", "FULL") + "l.id <=> r.id", "buckets", 0),
    (_BOTH.replace("{join}", "LEFT") + "l.ts = r.ts", "levels", 0),
    (_BOTH.replace("{join}", "RIGHT") + "l.region = r.region AND l.id = r.id", "mixed", 0),
    ("SELECT l.v FROM {l} l LEFT SEMI JOIN {r} r ON l.a = r.a AND l.b = r.b", "many", 0),
    ("SELECT v FROM {l} WHERE NOT EXISTS (SELECT 1 FROM {r} r WHERE r.id = id)", "buckets", 0),
    ("SELECT a, b, count(*), sum(v) FROM {l} GROUP BY a, b", "many", 0),
    ("SELECT id, v, rank() OVER (PARTITION BY id ORDER BY v) FROM {l}", "buckets", 0),
    (_BOTH.replace("{join}", "LEFT").replace("{r}", "{plain}") + "l.id = r.id", "buckets", 1),
]


def failures(run: Run) -> list[str]:
    """Make the tables, run the queries, and list what is wrong; empty when all is well.

    Args:
        run: Runs one statement in one session and gives its rows.
    """
    for key, value in SETTINGS.items():
        run(f"SET {key} = {value}")
    run("CREATE NAMESPACE lance.short")
    for side, (step, deps, rows) in SIDES.items():
        query = ROWS.format(step=step, deps=deps, rows=rows)
        run(f"CREATE TABLE lance.short.{side}_plain AS {query}")
    for name, by in TABLES.items():
        source = f"lance.short.{name[0]}_plain"
        run(f"CREATE TABLE lance.short.{name} PARTITIONED BY ({by}) AS SELECT * FROM {source}")
    return [
        problem
        for query, pair, shuffles in QUERIES
        for problem in problems(run, query, pair, shuffles)
    ]


def problems(run: Run, query: str, pair: str, shuffles: int) -> list[str]:
    plain = {"l": "lance.short.l_plain", "r": "lance.short.r_plain"}
    tables = {side: f"lance.short.{side}_{pair}" for side in "lr"} | {"plain": plain["r"]}
    expected = counted(run(query.format(**plain, plain=plain["r"])))
    sql = query.format(**tables)
    found = []
    for execution in EXECUTIONS:
        run(f"SET spark.sql.catalog.lance.execution = {execution}")
        if counted(run(sql)) != expected:
            found.append(f"wrong rows, execution {execution}: {sql}")
    explained = str(run(f"EXPLAIN FORMATTED {sql}")[0][0])
    if len(_SHUFFLE.findall(explained)) != shuffles:
        found.append(f"not {shuffles} shuffles: {sql}\n{explained}")
    if "grouping: " not in explained:
        found.append(f"no grouping in EXPLAIN: {sql}\n{explained}")
    return found


def counted(rows: Sequence[Sequence[object]]) -> Counter[str]:
    return Counter(repr(tuple(row)) for row in rows)


def session_for(master: str, root: str | None) -> SparkSession:
    """Connect to a server, or start a session of Pennon with a master of its own."""
    from pyspark.sql import SparkSession

    if master.startswith("sc://"):
        return SparkSession.builder.remote(master).getOrCreate()
    import pennon

    builder = pennon.spark(root=str(root)).master(master)
    for key, value in {"spark.ui.enabled": "false", "spark.executor.memory": "1g"}.items():
        builder.config(key, value)
    return builder.getOrCreate()


def main() -> int:
    spark = session_for(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else None)
    found = failures(lambda sql: spark.sql(sql).collect())
    print("\n".join(found) or "every join is right")
    spark.stop()
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
