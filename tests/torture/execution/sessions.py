"""One Spark session for each way to execute a query, and one over rows that lie in its plan.

The plain answer is Spark's own, computed cheaply: the tables are local relations of one partition,
so a query is one task without exchanges, and no code is generated for it.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from typing import TYPE_CHECKING, Final

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from tests.strategies.star_tables import settings_of, tables_of
from tests.torture_session import NOT_COMPILED

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pyspark.sql import DataFrame, SparkSession

LIMITS: Final = "spark.sql.catalog.lance.execution"
MODES: Final[Mapping[str, Mapping[str, str]]] = {
    "one task": {f"{LIMITS}.oneTaskBytes": "16m", f"{LIMITS}.replicatedBytes": "64m"},
    "one executor": {f"{LIMITS}.oneTaskBytes": "1", f"{LIMITS}.replicatedBytes": "64m"},
    "divided": {f"{LIMITS}.oneTaskBytes": "0", f"{LIMITS}.replicatedBytes": "64m"},
}
_SMALL: Final = {**NOT_COMPILED, "spark.sql.shuffle.partitions": "2"}
_PLAIN: Final = {
    **_SMALL,
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
}
# Spark 4.3 forgets that an outer join makes NULLs where this rule has taken a branch out of a
# UNION ALL below it: count(s) then counts them, too.
_FORGETFUL_RULE: Final = "org.apache.spark.sql.catalyst.optimizer.PropagateEmptyRelation"


class RefusedBySpark(Exception):
    """A query that is an error in Spark itself, or that it answers in two ways."""


class StarSessions:
    """The sessions over one set of tables.

    Args:
        spark: A session of the application.
        number: The set's number.
    """

    def __init__(self, spark: SparkSession, number: int = 0) -> None:
        self.namespace = f"lance.star{number or ''}"
        self.tables = tables_of(number)
        self.settings = settings_of(number)
        self.plain = self.session(spark, _PLAIN)
        self.ways = {
            name: self.session(spark, {**_SMALL, **settings}) for name, settings in MODES.items()
        }
        spark = self.ways["divided"]
        spark.sql(f"CREATE NAMESPACE {self.namespace}")
        for name, table in self.tables.items():
            for statement in table.statements(f"{self.namespace}.{name}"):
                spark.sql(statement)
            _as_local_view(self.plain, table.remaining(), name)
        for way in self.ways.values():
            way.sql(f"USE {self.namespace}")

    def session(self, spark: SparkSession, settings: Mapping[str, str]) -> SparkSession:
        made = spark.newSession()
        for key, value in {**self.settings, **settings}.items():
            made.conf.set(key, value)
        return made

    def differences(
        self, sql: str, ways: Iterable[str] = tuple(MODES)
    ) -> tuple[list[str], dict[str, str]]:
        """Run a query in some ways: what differs, and the plan of each.

        Raises:
            RefusedBySpark: Spark fails over plain rows, or has another answer where it plans them
                otherwise, which is then that of the workers.
        """
        wrong, plans, answers = [], {}, []
        try:
            expected = self.attempt(self.plain, sql)[0]
        except (PySparkException, Py4JJavaError) as error:
            raise RefusedBySpark(str(error)[:300]) from error
        for name in ways:
            found, plans[name] = self.attempt(self.ways[name], sql)
            answers.append(found)
            if found != expected:
                missing, extra = expected - found, found - expected
                wrong.append(f"{name}: missing {_few(missing)}, not expected {_few(extra)}")
        if wrong:
            other = self._planned_otherwise(sql)
            if all(found == other for found in answers):
                answer = f"two answers of Spark over plain rows, one of them {_few(expected)}"
                raise RefusedBySpark(answer)
        return wrong, plans

    def _planned_otherwise(self, sql: str) -> Counter[str]:
        self.plain.conf.set("spark.sql.optimizer.excludedRules", _FORGETFUL_RULE)
        try:
            return self.attempt(self.plain, sql)[0]
        finally:
            self.plain.conf.unset("spark.sql.optimizer.excludedRules")

    @staticmethod
    def attempt(way: SparkSession, sql: str) -> tuple[Counter[str], str]:
        frame = way.sql(sql)
        rows = rows_of(frame)
        plan = str(frame._jdf.queryExecution().executedPlan().toString())
        return rows, final_plan(plan)

    def reasons(self, way: str, sql: str) -> list[str]:
        """Say what the workers do not compute of a query."""
        call = f"CALL lance.system.explain_join('{sql.replace(chr(39), chr(39) * 2)}')"
        marked = " workers do not compute: "
        found = [str(row["reason"]) for row in self.ways[way].sql(call).collect()]
        return sorted({name.split(marked)[1] for name in found if marked in name})

    def drop(self) -> None:
        """Drop the tables."""
        self.ways["divided"].sql(f"DROP NAMESPACE {self.namespace} CASCADE")
        for name in self.tables:
            self.plain.catalog.dropTempView(name)


def _as_local_view(session: SparkSession, sql: str, name: str) -> None:
    made = session.sql(sql)._jdf
    local = session._jsparkSession.createDataFrame(made.collectAsList(), made.schema())
    local.coalesce(1).createOrReplaceTempView(name)


def rows_of(frame: DataFrame) -> Counter[str]:
    """Collect rows as a multiset; NaN is equal to itself, and zero has no sign."""
    return Counter(re.sub(r"-0\.0\b", "0.0", repr(row)) for row in frame.collect())


def final_plan(text: str) -> str:
    """Leave out what adaptive plans, those of subqueries among them, were at first."""
    kept, initial = [], math.inf
    for line in text.splitlines():
        depth = len(line) - len(line.lstrip(" :"))
        if depth > initial:
            continue
        initial = depth if "== Initial Plan ==" in line else math.inf
        if initial == math.inf:
            kept.append(line)
    return "\n".join(kept)


def left_to_spark(plan: str) -> tuple[str, ...]:
    """List the joins and exchanges of an executed plan that the workers did not take."""
    kept = []
    for line in plan.splitlines():
        operator = line.lstrip("+-: *()0123456789").split("(", 1)[0].split(" ", 1)[0]
        if operator.endswith("Join") or operator in ("Exchange", "Expand"):
            kept.append(operator)
    return tuple(sorted(set(kept)))


def _few(rows: Counter[str]) -> str:
    return str(list(rows.items())[:3])
