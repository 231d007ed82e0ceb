"""The two ways in which an expression is computed over one table, and what they differ in."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyarrow.compute import struct_field
from pyspark.errors import PySparkException
from sqlglot import tokenize
from tests.pushdown.spark_answers import normal, values_of
from tests.spark.assert_join import EXECUTION, IN_SPARK, conf, executed_plan
from tests.spark.expressions.spark_expressions import Expressions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from tests.torture.examples.example_rows import Row

__all__ = ["SESSIONS", "Comparison", "Difference", "Outcome"]

SESSIONS: Final = tuple(
    (ansi, zone) for ansi in (True, False) for zone in ("UTC", "America/New_York")
)
"""ANSI or not, and the session's zone."""

_FAILURES: Final = (PySparkException, Py4JJavaError)
_IN_WORKERS: Final = {EXECUTION: "worker"}
_AT_ONCE: Final = 12
# What it is differs from query to query.
_OF_THE_MOMENT: Final = ("current_", "curdate", "now(", "localtime", "unix_timestamp()")


@dataclass(frozen=True, slots=True)
class Difference:
    """An expression that differs: in how many rows, the first one, and what either has there."""

    expression: str
    session: str
    rows: int
    where: str
    worker: str
    spark: str

    def __str__(self) -> str:
        stated = f"worker {self.worker}, Spark {self.spark}"
        behind = f" where {self.where}" if self.where else ""
        return f"{self.session}: {self.expression}\n  {stated}{behind} ({self.rows} rows differ)"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of expressions: of which workers computed a fragment, and which differ."""

    fragments: set[str] = field(default_factory=set)
    left: set[str] = field(default_factory=set)
    differences: list[Difference] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Failed:
    """An error, by its condition."""

    condition: str

    def __str__(self) -> str:
        return f"fails with {self.condition}"


Values = dict[int, object]


class Comparison:
    """A table whose expressions are computed by workers and by Spark.

    Args:
        spark: The session.
        table: The table, with the rows numbered in ``id``.
        rows: Its rows, as literals.
    """

    def __init__(self, spark: SparkSession, table: str, rows: Sequence[Row]) -> None:
        self._spark = spark
        self._table = table
        self._rows = rows

    def compare(self, texts: Sequence[str], *, ansi: bool, zone: str) -> Outcome:
        """Compute expressions, and compare values, types and the conditions of errors.

        Args:
            texts: Expressions; those that Spark cannot analyse are passed over.
            ansi: Whether Spark has errors where it would otherwise have NULL, or wrap.
            zone: The session's.
        """
        settings = {
            "spark.sql.ansi.enabled": str(ansi).lower(),
            "spark.sql.session.timeZone": zone,
        }
        outcome = Outcome()
        with conf(self._spark, settings):
            for text in texts:
                planned = self._is_fragment([text])
                if planned is not None:
                    (outcome.fragments if planned else outcome.left).add(text)
            taken = [text for text in texts if text in outcome.fragments]
            session = f"ANSI {ansi}, {zone}"
            for first in range(0, len(taken), _AT_ONCE):
                for difference in self._differences(taken[first : first + _AT_ONCE], session):
                    outcome.differences.append(difference)
        return outcome

    def _is_fragment(self, texts: Sequence[str]) -> bool | None:
        """Whether workers compute expressions; None where Spark has no plan of them."""
        if not texts or any(name in text.lower() for text in texts for name in _OF_THE_MOMENT):
            return None
        with conf(self._spark, _IN_WORKERS):
            try:
                frame = self._spark.sql(self._query(texts))
                return "fragment: " in executed_plan(frame)
            except _FAILURES:
                return None

    def _query(self, texts: Sequence[str], condition: str = "true") -> str:
        results = ", ".join(f"max({text}) AS r{at}" for at, text in enumerate(texts))
        return f"SELECT id, {results} FROM {self._table} WHERE {condition} GROUP BY id"

    def _rows_of(self, sql: str, execution: str) -> pa.Table | _Failed:
        with conf(self._spark, {EXECUTION: execution}):
            try:
                return self._spark.sql(sql).toArrow()
            except PySparkException as error:
                return _Failed(error.getCondition() or type(error).__name__)
            except Py4JJavaError as error:
                return _Failed(type(error).__name__)

    def _differences(self, texts: Sequence[str], session: str) -> Iterator[Difference]:
        """Compare expressions: those without an error in one query, the others by themselves."""
        try:
            ids, *answers = self._of_spark(["id", *texts])
        except _FAILURES:
            # One of them is an error that is none of a row's.
            if len(texts) > 1:
                for text in texts:
                    yield from self._differences([text], session)
            else:
                yield from self._differing_at_once(texts[0], session)
            return
        numbers = struct_field(ids, "v").to_pylist()
        whole = [text for text, answer in zip(texts, answers, strict=True) if not answer.null_count]
        together = self._rows_of(self._query(whole), "worker") if self._is_fragment(whole) else None
        for text, answer in zip(texts, answers, strict=True):
            values = struct_field(answer, "v")
            if answer.null_count:
                yield from self._beside_errors(text, session, numbers, answer)
            elif isinstance(together, pa.Table):
                actual = together.select(["id", f"r{whole.index(text)}"])
                yield from self._differing(text, session, numbers, values, actual)
            else:
                alone = self._rows_of(self._query([text]), "worker")
                yield from self._differing(text, session, numbers, values, alone)
            if pa.types.is_boolean(values.type) and not answer.null_count:
                yield from self._chosen(text, session, numbers, values)

    def _of_spark(self, texts: Sequence[str]) -> list[pa.ChunkedArray]:
        """Compute expressions in Spark: structs of the value, and NULL where it is an error."""
        with conf(self._spark, IN_SPARK):
            frame = self._spark.table(self._table)
            return Expressions(self._spark, pa.table({}), frame).tried(texts)

    def _beside_errors(
        self, text: str, session: str, numbers: Sequence[int], answer: pa.ChunkedArray
    ) -> Iterator[Difference]:
        """Compare the rows without an error, the query of all, and one row with an error."""
        failing = [
            number for number, ok in zip(numbers, answer.is_valid(), strict=True) if not ok.as_py()
        ]
        if isinstance(self._rows_of(self._query([text]), "worker"), pa.Table):
            where = self._literals(text, failing[0])
            yield Difference(text, session, len(failing), where, "has rows", "an error")
            return
        for number in sorted({failing[0], failing[-1]}):
            yield from self._differing_at_once(text, session, number)
        if len(failing) == len(numbers):
            return
        condition = f"id NOT IN ({', '.join(map(str, failing))})"
        actual = self._rows_of(self._query([text], condition), "worker")
        passing = [number for number in numbers if number not in set(failing)]
        yield from self._differing(
            text, session, passing, struct_field(answer.drop_null(), "v"), actual
        )

    def _differing_at_once(
        self, text: str, session: str, number: int | None = None
    ) -> Iterator[Difference]:
        """Compare the same query, of one row or of all, as a whole."""
        query = self._query([text], "true" if number is None else f"id = {number}")
        worker, of_spark = (
            str(side if isinstance(side, _Failed) else sorted(map(str, side["r0"].to_pylist())))
            for side in (self._rows_of(query, execution) for execution in ("worker", "spark"))
        )
        if worker != of_spark:
            where = "" if number is None else self._literals(text, number)
            yield Difference(text, session, 1, where, worker, of_spark)

    def _differing(
        self,
        text: str,
        session: str,
        numbers: Sequence[int],
        expected: pa.ChunkedArray,
        actual: pa.Table | _Failed,
    ) -> Iterator[Difference]:
        if isinstance(actual, _Failed):
            yield Difference(text, session, len(numbers), "", str(actual), "has rows")
            return
        if actual.schema.types[1] != expected.type:
            kinds = str(actual.schema.types[1]), str(expected.type)
            yield Difference(text, session, len(numbers), "", *kinds)
            return
        of_worker = dict(zip(actual["id"].to_pylist(), values_of(actual.column(1)), strict=True))
        of_spark = dict(zip(numbers, values_of(expected), strict=True))
        yield from self._unequal(text, session, of_worker, of_spark)

    def _chosen(
        self, text: str, session: str, numbers: Sequence[int], expected: pa.ChunkedArray
    ) -> Iterator[Difference]:
        """Compare the rows that a condition chooses with those for which Spark has it true."""
        sql = f"SELECT id, count(1) AS n FROM {self._table} WHERE {text} GROUP BY id"
        actual = self._rows_of(sql, "worker")
        if isinstance(actual, _Failed):
            yield Difference(f"WHERE {text}", session, len(numbers), "", str(actual), "has rows")
            return
        chosen: Values = dict.fromkeys(actual["id"].to_pylist(), True)
        of_worker: Values = {number: chosen.get(number, False) for number in numbers}
        of_spark: Values = dict(
            zip(numbers, (value is True for value in expected.to_pylist()), strict=True)
        )
        yield from self._unequal(f"WHERE {text}", session, of_worker, of_spark)

    def _unequal(
        self, text: str, session: str, of_worker: Values, of_spark: Values
    ) -> Iterator[Difference]:
        pairs = {
            number: (of_worker.get(number, "no row"), of_spark.get(number, "no row"))
            for number in of_spark | of_worker
        }
        unequal = {
            number: (ascii(worker), ascii(spark))
            for number, (worker, spark) in pairs.items()
            if repr(normal(worker)) != repr(normal(spark))
        }
        if unequal:
            at = min(unequal, key=lambda number: len(self._literals(text, number)))
            where = self._literals(text, at)
            yield Difference(text, session, len(unequal), where, *unequal[at])

    def _literals(self, text: str, number: int) -> str:
        """Give the values of the columns of an expression in a row."""
        row = self._rows[number]
        names = dict.fromkeys(token.text for token in tokenize(text, read="spark"))
        return ", ".join(f"{name} = {row[name]}" for name in names if name in row)
