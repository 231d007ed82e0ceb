"""A few of the join cases by SQL alone, for clusters and servers: rows, and shuffles in EXPLAIN.

Run as a script in a process of its own it is a client of Spark Connect, or the driver of a
cluster: ``python -m tests.spark.joins.short_joins sc://127.0.0.1:15002``, or behind it
``local-cluster[…] ROOT``.
"""

from __future__ import annotations

import os
import re
import sys
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, NamedTuple

from tests.spark.assert_join import EXECUTION, WITHOUT_BROADCASTS
from tests.spark.joins.joined_rows import ROWS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Run = Callable[[str], Sequence[Sequence[object]]]
"""Runs one statement in one session and gives its rows."""

MessageOf = Callable[[Exception], str]
"""What a client shows its user of an error."""

# Only lines of the tree: the details below it begin with a number in parentheses.
_SHUFFLE = re.compile(r"^[\s:+\-*]*Exchange \(", re.MULTILINE)
_FRAGMENT = re.compile(r"fragment: (\w+) in")
BUCKETING = "spark.sql.sources.v2.bucketing.enabled"
SETTINGS = {
    # These tables are small: what is looked at is how large ones are joined.
    "spark.sql.catalog.lance.execution.oneTaskBytes": "0",
    "spark.sql.catalog.lance.execution.replicatedBytes": "0",
    **WITHOUT_BROADCASTS,
    "spark.sql.shuffle.partitions": "3",
    # A query of a few rows is compiled longer than it runs.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
# Spark makes runtime filters where it believes in a gain; small tables it does not believe in.
PRUNING = {
    "spark.sql.optimizer.dynamicPartitionPruning.reuseBroadcastOnly": "false",
    "spark.sql.optimizer.dynamicPartitionPruning.useStats": "false",
    "spark.sql.optimizer.dynamicPartitionPruning.fallbackFilterRatio": "1000",
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
    "l_evolved": "dep, bucket(8, id)",
    "r_evolved": "bucket(16, id)",
}
# Half of a table's rows are written before its change, half after it.
CHANGES = {
    "l_evolved": [
        "DROP PARTITION FIELD dep",
        "REPLACE PARTITION FIELD bucket(8, id) WITH bucket(4, id) AS few",
        "ADD PARTITION FIELD region",
    ],
}


class Query(NamedTuple):
    """What is asked, of which pair of tables, with how many shuffles, and what workers do."""

    sql: str
    pair: str
    shuffles: int
    fragment: str | None


_BOTH = "SELECT l.id, l.v, r.v AS rv FROM {l} l {join} JOIN {r} r ON "
_FEW = _BOTH.replace("{r}", "(SELECT * FROM {r} WHERE v < 6)")
QUERIES = [
    Query(_BOTH.replace("{join}", "INNER") + "l.id = r.id", "buckets", 0, "rows"),
    Query(_BOTH.replace("{join}", "FULL") + "l.id <=> r.id", "buckets", 0, "rows"),
    Query(_BOTH.replace("{join}", "LEFT") + "l.ts = r.ts", "levels", 0, "rows"),
    Query(
        _BOTH.replace("{join}", "RIGHT") + "l.region = r.region AND l.id = r.id", "mixed", 0, "rows"
    ),
    Query(
        "SELECT l.v FROM {l} l LEFT SEMI JOIN {r} r ON l.a = r.a AND l.b = r.b", "many", 0, "rows"
    ),
    Query(
        "SELECT v FROM {l} l WHERE NOT EXISTS (SELECT 1 FROM {r} r WHERE r.id = l.id)",
        "buckets",
        0,
        "rows",
    ),
    Query(_BOTH.replace("{join}", "LEFT") + "l.id = r.id", "evolved", 0, "rows"),
    Query("SELECT a, b, count(*), sum(v) FROM {l} GROUP BY a, b", "many", 0, "complete"),
    Query(
        "SELECT l.id, count(*), sum(r.v) FROM {l} l JOIN {r} r ON l.id = r.id GROUP BY l.id",
        "evolved",
        0,
        "complete",
    ),
    Query(
        "SELECT l.s, count(*), sum(r.v) FROM {l} l JOIN {r} r ON l.id = r.id GROUP BY l.s",
        "buckets",
        1,
        "partial",
    ),
    Query("SELECT id, v, rank() OVER (PARTITION BY id ORDER BY v) FROM {l}", "buckets", 0, "rows"),
    Query(
        _BOTH.replace("{join}", "LEFT").replace("{r}", "{plain}") + "l.id = r.id",
        "buckets",
        1,
        None,
    ),
]
# What a server plans is planned alike under Connect and Thrift: each is asked one half of the
# queries, and a cluster all of them.
_IS_EXHAUSTIVE = "PENNON_EXHAUSTIVE" in os.environ
UNDER_CONNECT = QUERIES if _IS_EXHAUSTIVE else QUERIES[::2]
UNDER_THRIFT = QUERIES if _IS_EXHAUSTIVE else QUERIES[1::2]
PRUNED = _FEW.replace("{join}", "INNER") + "l.id = r.id"
OVERFLOW = (
    "SELECT max(l.id + 9223372036854775806) FROM lance.short.l_buckets l"
    " JOIN lance.short.r_buckets r ON l.id = r.id"
)


def failures(
    run: Run, message_of: MessageOf = str, queries: Sequence[Query] = QUERIES
) -> list[str]:
    """Make the tables, run the queries, and list what is wrong; empty when all is well."""
    applied(run, SETTINGS)
    make_tables(run, {"buckets", *(query.pair for query in queries)})
    return [
        *(problem for query in queries for problem in problems(run, query)),
        *pruning_problems(run),
        *explanation_problems(run),
        *error_problems(run, message_of),
    ]


def applied(run: Run, settings: Mapping[str, str]) -> None:
    for key, value in settings.items():
        run(f"SET {key} = {value}")


def make_tables(run: Run, pairs: Collection[str]) -> None:
    run("CREATE NAMESPACE lance.short")
    for side, (step, deps, rows) in SIDES.items():
        query = ROWS.format(step=step, deps=deps, rows=rows)
        run(f"CREATE TABLE lance.short.{side}_plain AS {query}")
    for name, by in TABLES.items():
        if name.partition("_")[2] not in pairs:
            continue
        source = f"SELECT * FROM lance.short.{name[0]}_plain"
        halves = ("v % 2 = 0", "v % 2 <> 0") if name in CHANGES else ("TRUE",)
        created = f"CREATE TABLE lance.short.{name} PARTITIONED BY ({by}) AS"
        run(f"{created} {source} WHERE {halves[0]}")
        for change in CHANGES.get(name, []):
            run(f"ALTER TABLE lance.short.{name} {change}")
        for half in halves[1:]:
            run(f"INSERT INTO lance.short.{name} {source} WHERE {half}")


def problems(run: Run, query: Query) -> list[str]:
    plain = {"l": "lance.short.l_plain", "r": "lance.short.r_plain"}
    tables = {side: f"lance.short.{side}_{query.pair}" for side in "lr"} | {"plain": plain["r"]}
    applied(run, {EXECUTION: "spark"})
    expected = counted(run(query.sql.format(**plain, plain=plain["r"])))
    sql = query.sql.format(**tables)
    found = []
    plans = {}
    for execution in ("worker", "spark"):
        applied(run, {EXECUTION: execution})
        if counted(run(sql)) != expected:
            found.append(f"wrong rows, execution {execution}: {sql}")
        plans[execution] = explained(run, sql)
    if len(_SHUFFLE.findall(plans["spark"])) != query.shuffles:
        found.append(f"not {query.shuffles} shuffles: {sql}\n{plans['spark']}")
    if "grouping: " not in plans["spark"]:
        found.append(f"no grouping in EXPLAIN: {sql}\n{plans['spark']}")
    if _FRAGMENT.findall(plans["worker"]) != [query.fragment] * (query.fragment is not None):
        found.append(f"not a fragment {query.fragment}: {sql}\n{plans['worker']}")
    return found


def pruning_problems(run: Run) -> list[str]:
    """A runtime filter and a join without a shuffle, at the same time."""
    applied(run, PRUNING | {EXECUTION: "spark"})
    names = {side: f"lance.short.{side}_buckets" for side in "lr"}
    expected = counted(run(PRUNED.format(l="lance.short.l_plain", r="lance.short.r_plain")))
    sql = PRUNED.format(**names)
    found = [] if counted(run(sql)) == expected else [f"wrong rows, pruned at run time: {sql}"]
    plan = explained(run, sql)
    if "dynamicpruning" not in plan:
        found.append(f"no runtime filter: {sql}\n{plan}")
    return found


def explanation_problems(run: Run) -> list[str]:
    query = "SELECT l.v FROM lance.short.l_buckets l JOIN lance.short.r_buckets r ON l.id = r.id"
    rows = run(f"CALL lance.system.explain_join('{query}')")
    said = str([tuple(row) for row in rows])
    wanted = ("bucket(16, ", "bucket(8, ", "0 shuffle(s) in the whole plan")
    return [f"explain_join says no {part!r}: {said}" for part in wanted if part not in said]


def error_problems(run: Run, message_of: MessageOf) -> list[str]:
    """An error of a task reaches the client as its message, whoever executes the task."""
    found = []
    for execution in ("worker", "spark"):
        applied(run, {EXECUTION: execution})
        try:
            run(OVERFLOW)
        except Exception as error:  # noqa: BLE001 - each client has classes of its own
            message = message_of(error)
            if "ARITHMETIC_OVERFLOW" not in message or "\tat " in message:
                found.append(f"not the message of an overflow, execution {execution}: {message}")
        else:
            found.append(f"no error, execution {execution}: {OVERFLOW}")
    return found


def mixed_up(one: Run, other: Run) -> list[str]:
    """Run a join in two sessions at once, each with settings of its own: list what crossed over.

    The tables of ``failures`` are there.
    """
    sql = QUERIES[0].sql.format(l="lance.short.l_buckets", r="lance.short.r_buckets")
    ways: list[tuple[Run, dict[str, str], int, str | None]] = [
        (one, {EXECUTION: "worker", BUCKETING: "true"}, 0, "rows")
    ]
    ways.append((other, {EXECUTION: "spark", BUCKETING: "false"}, 2, None))
    for run, settings, _, _ in ways:
        applied(run, SETTINGS | settings)

    def planned(way: tuple[Run, Mapping[str, str], int, str | None]) -> list[str]:
        run, settings, shuffles, fragment = way
        found = []
        for _ in range(5):
            plan = explained(run, sql)
            run(sql)
            kinds = _FRAGMENT.findall(plan)
            if len(_SHUFFLE.findall(plan)) != shuffles or kinds != [fragment] * bool(fragment):
                found.append(f"not the plan of {settings}:\n{plan}")
        return found

    with ThreadPoolExecutor(len(ways)) as pool:
        return [problem for found in pool.map(planned, ways) for problem in found]


def explained(run: Run, sql: str) -> str:
    return str(run(f"EXPLAIN FORMATTED {sql}")[0][0])


def counted(rows: Sequence[Sequence[object]]) -> Counter[str]:
    return Counter(repr(tuple(row)) for row in rows)


def session_for(master: str, root: str | None) -> SparkSession:
    """Connect to a server, or start a session of Pennon with a master of its own."""
    from pyspark.sql import SparkSession

    if master.startswith("sc://"):
        return SparkSession.builder.remote(master).create()
    import pennon

    builder = pennon.spark(root=str(root)).master(master)
    for key, value in {"spark.ui.enabled": "false", "spark.executor.memory": "1g"}.items():
        builder.config(key, value)
    return builder.getOrCreate()


def runner(spark: SparkSession) -> Run:
    return lambda sql: spark.sql(sql).collect()


def main() -> int:
    master, root = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else None
    spark = session_for(master, root)
    is_remote = master.startswith("sc://")
    other = session_for(master, root) if is_remote else spark.newSession()
    queries = UNDER_CONNECT if is_remote else QUERIES
    found = failures(runner(spark), queries=queries) or mixed_up(runner(spark), runner(other))
    print("\n".join(found) or "every join is right")
    if is_remote:
        other.stop()
    spark.stop()
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
