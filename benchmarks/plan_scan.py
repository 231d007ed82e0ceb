"""Planning a scan of a table of up to 1,000,000 partitions: milliseconds, and the worker's memory.

Cold is the first query of a process, behind its imports; warm is the median of those that follow;
"after a commit" is the first query behind a commit that moved one leaf. Planning opens no leaf.
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import statistics
import sys
import time
from dataclasses import dataclass

import lance
import numpy as np
import pyarrow as pa
from benchmarks.partitions_in_bulk import FIRST_DAY, PER_DAY, make_namespace
from benchmarks.side_by_side import FOLDER, RUNS, in_fresh_process, print_table, quiet_session

LAKE = FOLDER / "scan_lake"
SIZES = (10_000, 100_000, 1_000_000)
LONG_LIST = "IN of 100,000"


@dataclass(frozen=True, slots=True)
class Question:
    """A predicate in two spellings.

    Args:
        by_time: On ``k`` and ``ts``, whose days Pennon has partitions of.
        by_day: On ``k`` and a column ``day``.
        partitions: How many partitions it needs.
    """

    by_time: str
    by_day: str
    partitions: int


def questions(count: int) -> dict[str, Question]:
    """The predicates over a table of so many partitions."""
    middle = count // 2
    day = FIRST_DAY + np.timedelta64(middle // PER_DAY, "D")
    spread = ", ".join(str(at * (count // 1_000)) for at in range(1_000))
    # Most of them are of no partition, as when a list comes from another table.
    beyond = ", ".join(str(at) for at in range(10 * max(SIZES), 10 * max(SIZES) + 99_000))
    is_of_day = (
        f"ts >= TIMESTAMP '{day} 00:00:00Z' AND ts < TIMESTAMP '{day + np.timedelta64(1, 'D')}"
        " 00:00:00Z'"
    )
    of_keys = {
        "point": (f"k = {middle}", 1),
        "range of 100": (f"k BETWEEN {middle} AND {middle + 99}", 100),
        "IN of 1,000": (f"k IN ({spread})", 1_000),
        LONG_LIST: (f"k IN ({spread}, {beyond})", 1_000),
    }
    return {
        **{name: Question(text, text, needed) for name, (text, needed) in of_keys.items()},
        "one day": Question(is_of_day, f"day = DATE '{day}'", PER_DAY),
    }


def measured(location: str, count: int, name: str) -> dict[str, float]:
    """Time one question in this process; the first plan is its first use of Pennon."""
    question = questions(count)[name]
    predicate, expected = question.by_time, question.partitions
    started = time.perf_counter()
    from pennon.manifest import Snapshot
    from pennon.planning import explain, plan_scan

    def planned() -> float:
        began = time.perf_counter()
        plan = plan_scan(Snapshot.open(location), predicate)
        assert plan.table.num_rows == expected, plan.table.num_rows
        assert plan.partitions_total == count
        assert explain(plan)
        return time.perf_counter() - began

    planned()
    cold = time.perf_counter() - started
    cpu_before = time.process_time()
    warm = statistics.median(planned() for _ in range(RUNS))
    cpu = (time.process_time() - cpu_before) / RUNS
    manifest = lance.dataset(f"{location}/__manifest")
    row = manifest.to_table(filter=f"partition_field_k = {count // 2} AND object_type = 'table'")
    at = row.schema.get_field_index("read_version")
    moved = pa.array([row["read_version"][0].as_py() + 1], pa.uint64())
    row = row.set_column(at, row.schema.field(at), moved)
    manifest.merge_insert("object_id").when_matched_update_all().execute(row)
    after = planned()
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"cold": cold, "warm": warm, "cpu": cpu, "after": after, "memory": memory}


def explained(counts: list[int]) -> list[tuple[object, ...]]:
    """Time EXPLAIN in Spark: the first of each table, and the median of the others."""
    spark = quiet_session(LAKE)
    spark.sql("SELECT 1").collect()
    rows: list[tuple[object, ...]] = []
    for count in counts:
        table = f"lance.`{LAKE / str(count)}`"
        for name, question in questions(count).items():
            seconds = []
            for _ in range(RUNS + 1):
                started = time.perf_counter()
                spark.sql(f"EXPLAIN SELECT v FROM {table} WHERE {question.by_time}").collect()
                seconds.append(time.perf_counter() - started)
            rows.append(
                (f"{count:,}", name, *_milliseconds(seconds[0], statistics.median(seconds[1:])))
            )
    spark.stop()
    return rows


def _milliseconds(*seconds: float) -> tuple[str, ...]:
    return tuple(f"{1000 * second:.0f}" for second in seconds)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--one", nargs=3, help="for the fresh processes: location, count, question")
    parser.add_argument("--partitions", type=int, nargs="*", default=SIZES)
    parser.add_argument("--shuffled", action="store_true", help="partitions come in no order")
    parser.add_argument("--no-spark", action="store_true")
    options = parser.parse_args()
    if options.one:
        location, count, name = options.one
        json.dump(measured(location, int(count), name), sys.stdout)
        return
    shutil.rmtree(LAKE, ignore_errors=True)
    rows: list[tuple[object, ...]] = []
    for count in options.partitions:
        location = LAKE / str(count)
        location.mkdir(parents=True)
        make_namespace(location, count, is_shuffled=options.shuffled)
        for name in questions(count):
            printed = in_fresh_process("plan_scan", "--one", str(location), str(count), name)
            taken = json.loads(printed.splitlines()[-1])
            times = _milliseconds(*(taken[run] for run in ("cold", "warm", "cpu", "after")))
            rows.append((f"{count:,}", name, *times, f"{taken['memory']:.0f} MB"))
    header = ("partitions", "query", "cold", f"median of {RUNS}", "CPU", "after a commit", "memory")
    print_table("planning in Python: milliseconds", header, rows)
    if not options.no_spark:
        in_spark = ("partitions", "query", "first", f"median of {RUNS}")
        print_table("EXPLAIN in Spark: milliseconds", in_spark, explained(list(options.partitions)))
    shutil.rmtree(LAKE, ignore_errors=True)


if __name__ == "__main__":
    main()
