"""One random query, executed without partitioning and with it, in Spark and in the workers."""

from __future__ import annotations

import random
import re
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tests.spark.assert_join import EXECUTION, executed_plan, shuffles_in
from tests.strategies.query_ends import random_query
from tests.torture.least_shuffles import least_shuffles
from tests.torture_session import NOT_COMPILED

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from tests.strategies.random_queries import Query
    from tests.strategies.random_tables import Table

# For the rows without partitioning; a query that needs more is left out.
MOST_SECONDS = 120
FAST = {
    # The tables are small, and what is under test are joins of large ones.
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.adaptive.autoBroadcastJoinThreshold": "-1",
    "spark.sql.shuffle.partitions": "2",
    **NOT_COMPILED,
}
COMPILED = {"spark.sql.codegen.wholeStage": "true", "spark.sql.codegen.factoryMode": "FALLBACK"}
# With the second ones few rows are much: groups are divided, or left to a shuffle.
USUAL = {"spark.sql.files.maxPartitionBytes": "128mb", "spark.sql.leafNodeDefaultParallelism": "1"}
MUCH = {"spark.sql.files.maxPartitionBytes": "1kb", "spark.sql.leafNodeDefaultParallelism": "3"}
OFF = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.sources.v2.bucketing.enabled": "false",
    "spark.sql.lightweightPlanChangeValidation": "false",
}
ADAPTIVE = "spark.sql.adaptive.enabled"
# Spark 4.3 fails on some correlated subqueries above UNION ALL, whatever the tables are.
SPARKS_OWN = "optimizer.PushProjectionThroughUnion"
ONE_COULD_STAY = "both sides of a join with nothing in common are shuffled, one could stay"
_NUMBER = re.compile(r"\d+(\.\d+)?")
_COLUMN = re.compile(r"[\w.]*lance\.torture\.\w+(\.\w+)?")


@dataclass(frozen=True, slots=True)
class Case:
    """One random query, and the settings that it runs with.

    Args:
        number: Its number.
        query: The query.
        least: The shuffles that it cannot do without.
        both: The same, if both sides of a join are shuffled where one could stay.
        unpartitioned: Those of the same query over tables without partitioning.
        settings: Of the session.
    """

    number: int
    query: Query
    least: int
    both: int
    unpartitioned: int
    settings: Mapping[str, str]

    @property
    def is_adaptive(self) -> bool:
        """Whether its plan changes while it runs, and its shuffles with it."""
        return self.settings[ADAPTIVE] == "true"

    @property
    def is_thorough(self) -> bool:
        """Whether it is compiled, and joined by shuffles where it runs without partitioning.

        A query of a few rows is planned and compiled longer than it runs: one in ten is.
        """
        return self.number % 10 == 5

    def over(self, tables: Sequence[str]) -> str:
        """Write its SQL over tables of these names."""
        return self.query.sql.format_map({f"t{at}": name for at, name in enumerate(tables)})


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came out.

    Args:
        case: The query.
        shuffles: How its shuffles compare: ``none``, ``fewer``, ``same``; or why there are none.
        problem: What is wrong, if anything.
        is_fragment: Whether workers executed a part of it.
        reasons: Why it has more shuffles than it needs; none where it has not.
    """

    case: Case
    shuffles: str
    problem: str | None = None
    is_fragment: bool = False
    reasons: tuple[str, ...] = ()
    more: int = 0


@dataclass(frozen=True, slots=True)
class Ran:
    """A query that ran: its rows as a multiset, and its plans before and after."""

    rows: Counter[str]
    plan: str

    @property
    def shuffles(self) -> int:
        """The shuffles that ran."""
        return shuffles_in(self.plan)

    @property
    def places(self) -> int:
        """The places of the plan where rows are shuffled, by whatever reads the same rows again.

        What merges all rows into one is not counted: where there is one task, it merges nothing.
        """
        final = self.plan.split("== Initial Plan ==")[0]
        merges = final.count("Exchange SinglePartition")
        return self.shuffles + final.count("ReusedExchange") - merges


def case_of(seed: int, number: int, tables: Sequence[Table]) -> Case:
    """Make the query of a number."""
    rng = random.Random(f"{seed}/{number}")  # noqa: S311 - it has to repeat
    query = random_query(rng, tables)
    bare = [replace(table, specs=((),)) for table in tables]
    settings = {ADAPTIVE: str(number % 2 == 0).lower()}
    settings |= MUCH if number % 6 == 1 else USUAL
    settings |= FAST if number % 10 != 5 else COMPILED
    least = least_shuffles(query.tree, tables)
    both = least.shuffles + least.costly.count("join with incompatible side")
    most = least_shuffles(query.tree, bare).shuffles
    return Case(number, query, least.shuffles, both, most, settings)


class Sessions(threading.local):
    """Two sessions per thread: settings of one do not reach into the queries of another."""

    def __init__(self, spark: SparkSession, tables: Sequence[Table]) -> None:
        self.partitioned = spark.newSession()
        self.plain = spark.newSession()
        self.copies = [f"global_temp.plain{table.number}" for table in tables]
        self.wholes = [f"global_temp.whole{table.number}" for table in tables]
        self.tables = [
            self.copies[table.number] if table.is_parquet else f"lance.torture.t{table.number}"
            for table in tables
        ]
        self.known: dict[int, dict[str, str]] = {}

    def set(self, session: SparkSession, settings: Mapping[str, str]) -> None:
        known = self.known.setdefault(id(session), {})
        for key, value in settings.items():
            if known.get(key) != value:
                session.conf.set(key, value)
                known[key] = value


def check(sessions: Sessions, case: Case) -> Outcome:
    """Run a query without partitioning, in the workers, and in Spark.

    Where the workers have no part in it, the plan is Spark's own and runs once.
    """
    sessions.set(sessions.plain, {**case.settings, **OFF})
    sessions.set(sessions.partitioned, case.settings)
    copies = sessions.copies if case.is_thorough else sessions.wholes
    outcome = Outcome(case, "none")
    try:
        with _limited(sessions.plain, f"torture {case.number}"):
            expected = _run(sessions.plain, case.over(copies))
    except Exception as error:  # noqa: BLE001 - a query that Spark refuses is a mistake here
        if "cancelled job group" in str(error):
            return replace(outcome, shuffles="too large")
        if SPARKS_OWN in str(error):
            return replace(outcome, shuffles="refused by Spark itself")
        return replace(outcome, shuffles="error", problem=f"no query: {str(error)[:2000]}")
    sql = case.over(sessions.tables)
    fewest = 0
    for execution in ("worker", "spark"):
        sessions.set(sessions.partitioned, {EXECUTION: execution})
        try:
            actual = _run(sessions.partitioned, sql)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is the finding
            problem = f"execution {execution}, {type(error).__name__}: {str(error)[:3000]}"
            return replace(outcome, shuffles="error", problem=problem)
        is_fragment = outcome.is_fragment or "fragment: " in actual.plan
        outcome = replace(_judged(outcome, execution, actual, expected), is_fragment=is_fragment)
        if outcome.problem or not (is_fragment or case.is_thorough):
            break
        if execution == "worker":
            fewest = actual.places
        elif not case.is_adaptive and fewest > actual.places:
            problem = f"{fewest} shuffles with workers, {actual.places} without"
            return replace(outcome, problem=problem)
    if not outcome.problem and actual.shuffles > min(case.least, case.unpartitioned):
        outcome = _explained(sessions, outcome, sql, actual)
    return outcome


@contextmanager
def _limited(session: SparkSession, group: str) -> Iterator[None]:
    """Cancel what takes too long: a few rows times a few rows may be more than ever come out."""
    context = session.sparkContext
    context.setJobGroup(group, group)
    timer = threading.Timer(MOST_SECONDS, context.cancelJobGroup, [group])
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        context.setLocalProperty("spark.jobGroup.id", None)


def _run(session: SparkSession, sql: str) -> Ran:
    frame = session.sql(sql)
    rows = Counter(map(repr, frame.collect()))
    return Ran(rows, executed_plan(frame))


def _judged(outcome: Outcome, execution: str, actual: Ran, expected: Ran) -> Outcome:
    if actual.rows != expected.rows:
        missing, extra = expected.rows - actual.rows, actual.rows - expected.rows
        examples = f"missing {list(missing)[:3]}, too many {list(extra)[:3]}"
        problem = f"execution {execution}, {missing.total()} rows missing, {extra.total()} too many"
        return replace(outcome, shuffles="wrong", problem=f"{problem}\n{examples}\n{actual.plan}")
    if actual.shuffles == 0:
        return replace(outcome, shuffles="none")
    is_fewer = actual.shuffles < outcome.case.unpartitioned
    return replace(outcome, shuffles="fewer" if is_fewer else "same")


def _explained(sessions: Sessions, outcome: Outcome, sql: str, actual: Ran) -> Outcome:
    """Ask why a query shuffles more than it has to; more than without partitioning is wrong."""
    case, shuffles = outcome.case, actual.shuffles
    if not case.is_adaptive and shuffles > case.unpartitioned:
        frame = sessions.plain.sql(case.over(sessions.copies))
        plain = Ran(Counter(), executed_plan(frame))
        if actual.places > plain.places:
            problem = f"{actual.places} shuffles, without partitioning {plain.places}"
            return replace(outcome, problem=problem)
        if shuffles >= plain.shuffles:
            return replace(outcome, reasons=("as many without partitioning",))
    more = shuffles - min(case.least, case.unpartitioned)
    if shuffles <= case.both:
        return replace(outcome, reasons=(ONE_COULD_STAY,), more=more)
    quoted = sql.replace("'", "\\'")
    rows = sessions.partitioned.sql(f"CALL lance.system.explain_join('{quoted}')").collect()
    reasons = {
        f"{row.operator}: {_NUMBER.sub('N', _COLUMN.sub('C', row.reason))}"
        for row in rows
        if row.reason and "in the worker" not in row.reason
    }
    return replace(outcome, reasons=tuple(sorted(reasons)) or ("no reason told",), more=more)
