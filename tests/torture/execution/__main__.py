"""Random queries of several tables, computed in the workers, against plain Spark.

Run it with ``make torture-execution N=1000``; a failure prints the seed that repeats it. Each query
runs divided, and as one task or on one executor (``--all-ways``: both). A hundred queries share a
set of tables, two of which evolved as they were written. At the end stands which share of the
queries left Spark no join and no aggregate over more than fragments, and what the others kept
there; ``--tally FILE`` adds the same to a file, ``--seconds`` ends a portion early. ``--master
local-cluster[2,1,1024]`` has the executors' workers apart from the driver's, ``--master local[16]``
more tasks than the tables have keys.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tests.strategies.star_queries import StarQueries
from tests.torture.execution.sessions import RefusedBySpark, StarSessions, left_to_spark
from tests.torture_session import torture_session

_QUERIES_PER_SET: Final = 100


@dataclass(slots=True)
class Tally:
    """What came out so far."""

    seed: int
    queries: int = 0
    refused: int = 0
    seconds: float = 0.0
    differ: list[int] = field(default_factory=list)
    runs: Counter[str] = field(default_factory=Counter)
    kept: dict[str, Counter[str]] = field(default_factory=dict)
    reasons: Counter[str] = field(default_factory=Counter)

    def count(self, way: str, operators: tuple[str, ...]) -> None:
        self.runs[way] += 1
        self.kept.setdefault(way, Counter())[", ".join(operators)] += 1

    def add_to(self, file: Path) -> None:
        told = {name: getattr(self, name) for name in self.__slots__}
        with file.open("a") as stream:
            print(json.dumps(told), file=stream)

    def show(self) -> None:
        print(f"{self.queries} queries in {self.seconds:.0f} s, {len(self.differ)} differ")
        print(f"{self.refused} are no answer of Spark itself") if self.refused else None
        for way, kept in self.kept.items():
            whole = kept[""] / self.runs[way]
            print(f"{way}: {whole:.0%} of {self.runs[way]} wholly in workers; the others kept:")
            for operators, times in kept.most_common(9):
                print(f"  {times:5} {operators}") if operators else None
        for reason, times in self.reasons.most_common(12):
            print(f"  {times:5} not computed there: {reason}")


def main() -> int:
    """Run the queries that the command line asks for."""
    parser = argparse.ArgumentParser(prog="make torture-execution ARGS=…")
    parser.add_argument("--queries", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--all-ways", action="store_true")
    parser.add_argument("--tally", type=Path)
    parser.add_argument("--master", default="local[2]", help="Spark's, as local-cluster[2,1,1024]")
    options = parser.parse_args()
    with torture_session({}, master=options.master) as (spark, _):
        tally = Tally(options.seed)
        started = time.monotonic()
        sessions: StarSessions | None = None
        for number in range(options.seed, options.seed + options.queries):
            if sessions is None or number % _QUERIES_PER_SET == 0:
                if sessions is not None:
                    sessions.drop()
                sessions = StarSessions(spark, number // _QUERIES_PER_SET)
            run(sessions, number, tally, is_all=options.all_ways)
            tally.seconds = time.monotonic() - started
            if tally.seconds > options.seconds:
                break
        tally.show()
        if options.tally is not None:
            tally.add_to(options.tally)
    return len(tally.differ)


def run(sessions: StarSessions, number: int, tally: Tally, *, is_all: bool) -> None:
    """Run the query of a seed."""
    sql = StarQueries(number).query()
    undivided = ("one task", "one executor")
    ways = (*(undivided if is_all else undivided[number % 2 : number % 2 + 1]), "divided")
    tally.queries += 1
    wrong: list[str] = []
    try:
        wrong, plans = sessions.differences(sql, ways)
        for way, plan in plans.items():
            tally.count(way, left := left_to_spark(plan))
            if left and way != "divided":
                tally.reasons.update(sessions.reasons(way, sql))
    except RefusedBySpark as error:
        tally.refused += 1
        print(f"seed {number}: no answer of Spark itself: {error}", flush=True)
    except Exception as error:  # noqa: BLE001 - whatever it is, the seed has to be told
        wrong = [f"{type(error).__name__}: {str(error)[:1500]}"]
    if wrong:
        tally.differ.append(number)
        print(f"--seed {number} --queries 1\n{sql}\n" + "\n".join(wrong), flush=True)
    if tally.queries % 50 == 0:
        print(f"{tally.queries} queries, {len(tally.differ)} differ", flush=True)


if __name__ == "__main__":
    sys.exit(1 if main() else 0)
