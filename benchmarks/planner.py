"""One planner, asked without Spark's part: how long it takes to list what a predicate keeps.

Runs in the virtual environment of its side: ``python -m benchmarks.planner``, with a JSON object
of ``planner``, ``table``, ``conf`` and ``questions`` on the standard input. A question is the text
of its predicate, the column that it compares and the values that it compares it with: one or
several, or the bounds of a range. It prints, as JSON and by question, how many partitions were
listed, the seconds of the first plan and those of a later one.

The first plan of the first question is cold: behind the start of the process, imports included,
in Python; behind the start of Spark in the JVM. A planner plans on for two seconds, so that a JVM
compiles what it uses often, and the median of the later half counts.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

Question = dict[str, Any]
Planner = Callable[[Question], int]

IN_PYTHON, IN_THE_JVM, PYARROW, PENNON = "PyIceberg", "Iceberg's Java", "pyarrow", "Pennon"
_SECONDS = 2.0
_LEAST_PLANS = 4


def pennon(table: str, _conf: dict[str, str]) -> Planner:
    """Plan as a worker does: the newest version is looked for each time."""
    from pennon.manifest import Snapshot
    from pennon.planning import plan_scan

    return lambda question: plan_scan(Snapshot.open(table), question["text"]).table.num_rows


def pyarrow(table: str, _conf: dict[str, str]) -> Planner:
    """List the fragments of a dataset of directories, which were listed once."""
    import pyarrow.compute as pc
    import pyarrow.dataset as ds

    directories = ds.dataset(table, partitioning="hive")

    def planned(question: Question) -> int:
        column, values = pc.field(question["column"]), question["values"]
        if question["is_range"]:
            kept = (column >= values[0]) & (column <= values[1])
        else:
            kept = column.isin(values) if len(values) > 1 else column == values[0]
        return sum(1 for _ in directories.get_fragments(kept))

    return planned


def pyiceberg(table: str, _conf: dict[str, str]) -> Planner:
    """Plan the files of a table that was loaded once."""
    from pyiceberg import expressions
    from pyiceberg.table import StaticTable

    loaded = StaticTable.from_metadata(table)

    def planned(question: Question) -> int:
        column, values = question["column"], question["values"]
        if question["is_range"]:
            kept = expressions.And(
                expressions.GreaterThanOrEqual(column, values[0]),
                expressions.LessThanOrEqual(column, values[1]),
            )
        elif len(values) > 1:
            kept = expressions.In(column, values)
        else:
            kept = expressions.EqualTo(column, values[0])
        return sum(1 for _ in loaded.scan(row_filter=kept).plan_files())

    return planned


def iceberg(table: str, conf: dict[str, str]) -> Planner:
    """Plan the files of a table that was loaded once, by Iceberg's Java API."""
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.master("local[2]").config(map=conf).getOrCreate()
    library = spark._jvm.org.apache.iceberg
    count = library.relocated.com.google.common.collect.Iterables.size
    loaded = library.spark.Spark3Util.loadIcebergTable(spark._jsparkSession, table)
    expression = library.expressions.Expressions

    def planned(question: Question) -> int:
        column, values = question["column"], question["values"]
        if question["is_range"]:
            low = expression.greaterThanOrEqual(column, values[0])
            kept = getattr(expression, "and")(low, expression.lessThanOrEqual(column, values[1]))
        elif len(values) > 1:
            listed = spark._jvm.java.util.ArrayList()
            for value in values:
                listed.add(value)
            kept = getattr(expression, "in")(column, listed)
        else:
            kept = expression.equal(column, values[0])
        return int(count(loaded.newScan().filter(kept).planFiles()))

    return planned


PLANNERS = {PENNON: pennon, PYARROW: pyarrow, IN_PYTHON: pyiceberg, IN_THE_JVM: iceberg}


def main() -> None:
    """Plan each question and print the seconds."""
    order = json.load(sys.stdin)
    name = order["planner"]
    cold = time.perf_counter()
    planner = PLANNERS[name](order["table"], order["conf"])
    if name == IN_THE_JVM:
        cold = time.perf_counter()
    answers: dict[str, dict[str, float]] = {}
    for title, question in order["questions"].items():
        began = time.perf_counter() if answers else cold
        listed = planner(question)
        first = time.perf_counter() - began
        seconds: list[float] = []
        while sum(seconds) < _SECONDS or len(seconds) < _LEAST_PLANS:
            began = time.perf_counter()
            assert planner(question) == listed
            seconds.append(time.perf_counter() - began)
        later = statistics.median(seconds[len(seconds) // 2 :])
        answers[title] = {"partitions": listed, "first": first, "later": later}
    print(json.dumps(answers))


if __name__ == "__main__":
    main()
