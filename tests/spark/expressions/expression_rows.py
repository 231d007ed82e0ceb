"""Rows of edge values, and the two ways in which an expression is computed over them."""

from __future__ import annotations

import datetime as dt
import json
import math
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import functions as sql
from pyspark.sql.classic.column import Column
from tests.pushdown.computed import computed, relation, scan_of
from tests.pushdown.stated_nodes import output_of
from tests.spark.assert_join import conf

from pennon.catalog.columns.spark_types import arrow_type
from pennon.errors import PennonError, UnsupportedColumnType
from pennon.execution.engine import rows_over
from pennon.execution.engine_failures import VALUE_FAILURES
from pennon.leaf.schema.reconciliation import stream_type
from pennon.plan import Output, PlanNode, Project
from pennon.predicate.expressions import Declined, Semantics
from pennon.pushdown.query import fragment_query

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

MANY = 1_000_000
_MOST_FAILING = 2
# A part that several expressions have would be computed before any of them is tried; and hundreds
# of expressions are computed by their trees sooner than code for them is compiled.
_ROW_BY_ROW = {
    "spark.sql.subexpressionElimination.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
DAYS = ["1970-01-01", "1969-12-31", "1582-10-04", "1582-10-15", "0001-01-01", "9999-12-31"]
DAYS += ["2000-02-29", "1900-02-28", "1999-01-31", "1995-03-17", "2024-12-30", "2021-01-03"]
MOMENTS = ["1970-01-01 00:00:00.000000", "1969-12-31 23:59:59.999999", "1582-10-04 12:30:00.5"]
MOMENTS += [
    "0001-01-01 00:00:00.000001",
    "9999-12-31 23:59:59.999999",
    "2000-02-29 13:14:15.161718",
]
MOMENTS += ["1999-01-31 00:00:00", "2024-12-30 11:00:59.000999"]
DAY_TEXTS = ["2020", "+2020-2", "2021-1-5", " 2020-02-29 \n", "1999-12-31T", "0000-12-1 anything"]
DAY_TEXTS += ["-0044-3-15", "0012345-01-01", "-290307-01-01", "+5000000", "\x002020-01-01\x7f"]
DAY_TEXTS += ["2020-01-05 \n2020", "2400-02-29T12:00:00Z", "-0000-2-29"]
TEXTS = ["", "ab", "a%b", "a_b", "é", "éxé", " ab ", "\tab\n", "a\\b", "a\nb", "ABba", "ß", "İi"]
TEXTS += ["aspecial x requestsb", "\U0001d4b3a", "a.(b", "aaxxaa", "a|%b|", "x", "ΑΣ", "b"]

VALUES: dict[str, tuple[pa.DataType, Sequence[object]]] = {
    "flag": (pa.bool_(), [True, False]),
    "i8": (pa.int8(), [0, 1, -1, 7, 63, -64]),
    "i16": (pa.int16(), [0, 1, -1, 2, 3, -7, 100]),
    "i32": (pa.int32(), [0, 1, -1, 7, -7, 10, 1_000_000, 2**30]),
    "i64": (pa.int64(), [0, 1, -1, 5, -11, 2**53 + 1, -(2**60)]),
    "f32": (pa.float32(), [0.0, -0.0, 1.5, math.nan, math.inf, -2.25]),
    "f64": (pa.float64(), [0.0, -0.0, 1.5, math.nan, -math.inf, -2.25, 1e300, 0.1, 3.0]),
    "dec": (
        pa.decimal128(12, 2),
        [Decimal(text) for text in ("0.00", "1.50", "-0.01", "99.99", "-7.25", "1000000000.05")],
    ),
    "dec2": (pa.decimal128(12, 2), [Decimal(text) for text in ("3.00", "-0.05", "0.07", "7.00")]),
    "wide": (
        pa.decimal128(30, 10),
        [Decimal(text) for text in ("0.0000000001", "-12345678901234567890.1234567891", "2.5")],
    ),
    "n32": (pa.int32(), [3, -3, 7, 1, -10]),
    "n64": (pa.int64(), [3, -3, 2**40, 1, -10]),
    "nf": (pa.float64(), [0.5, -3.0, 1e-300, math.inf, math.nan]),
    "s": (pa.string(), TEXTS),
    "s2": (pa.string(), ["", "a", "x", "é", "b", "aa"]),
    "int_text": (pa.string(), ["0", " 12 ", "-7", "+5", "007", "\t3\n", "\x0044\x7f", "-0", "5"]),
    "day_text": (pa.string(), [*DAYS, *DAY_TEXTS]),
    "day": (pa.string(), [*DAYS, "0000-01-01", "+12345-12-31", "-0001-02-28", "-12345-01-01"]),
    "compact": (pa.string(), [day.replace("-", "") for day in DAYS]),
    "clock": (pa.string(), ["1999-01-31 23:59:59", "0001-01-01 00:00:00", "-0044-03-15 12:00:01"]),
    "d": (pa.date32(), [dt.date.fromisoformat(day) for day in DAYS]),
    "ntz": (pa.timestamp("us"), [dt.datetime.fromisoformat(moment) for moment in MOMENTS]),
    "ts": (
        pa.timestamp("us", "UTC"),
        [dt.datetime.fromisoformat(moment + "+00:00") for moment in MOMENTS],
    ),
}


def edge_rows(extra: int = 150) -> pa.Table:
    """Every value of every column, and NULL, in lengths that are prime to each other in effect."""
    columns = {}
    for at, (name, (kind, values)) in enumerate(VALUES.items()):
        ring = [*values, None]
        columns[name] = pa.array(
            [ring[(row * (1 + at % 5) + row // (7 + at)) % len(ring)] for row in range(extra)], kind
        )
    return pa.table(columns)


def zone_offsets_of(spark: SparkSession, zone: str) -> tuple[int, ...]:
    """Ask Java for the offsets of a zone, as its rule sends them."""
    shim = spark._jvm.dev.pennon.spark
    numbers = shim.worker.Messages.array()
    shim.plan.DerivedKeyRule.addZoneOffsets(numbers, zone)
    return tuple(json.loads(numbers.toString()))


@dataclass(frozen=True)
class Compared:
    """What became of expressions: those that Spark is left with, and why; those that differ."""

    declined: dict[str, str]
    different: dict[str, object]


def _type(kind: object) -> pa.DataType | None:
    try:
        return stream_type(arrow_type(kind, "a column"))
    except UnsupportedColumnType:
        return None


def values_of(column: pa.ChunkedArray) -> list[object]:
    """Give values, and of dates and timestamps the numbers: Python's years have four digits."""
    if pa.types.is_date(column.type):
        return column.cast(pa.int32()).to_pylist()
    return (column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column).to_pylist()


def differing(
    rows: pa.Table, expected: pa.ChunkedArray, actual: pa.Table | PennonError, name: str
) -> list[object]:
    """Give the rows of which a column has other values than in Spark, or the error that it is."""
    if isinstance(actual, PennonError):
        return [repr(actual)]
    pairs = zip(values_of(expected), values_of(actual[name]), strict=True)
    return [
        (*pair, {name: values_of(rows.slice(at, 1)[name])[0] for name in rows.column_names})
        for at, pair in enumerate(pairs)
        if normal(pair[0]) != normal(pair[1])
    ]


def normal(value: object) -> object:
    """Give a value a form in which NaN equals itself and the zeros differ."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else repr(value)
    return str(value) if isinstance(value, dt.datetime | Decimal) else value


@dataclass(frozen=True)
class Expressions:
    """The edge values as Spark reads them, and as leaves that DataFusion reads."""

    spark: SparkSession
    rows: pa.Table
    frame: DataFrame
    root: Path

    @classmethod
    def over(cls, spark: SparkSession, rows: pa.Table, root: Path) -> Expressions:
        root.mkdir(exist_ok=True)
        path = root / "edges.parquet"
        pq.write_table(rows, path, coerce_timestamps="us")
        return cls(spark, rows, spark.read.parquet(str(path)), root)

    def outputs(self, frame: DataFrame) -> tuple[pa.Table, list[Output]]:
        """Give the rows as the texts call their columns, and the columns of a projection."""
        jvm = self.spark._jvm
        plan = frame._jdf.queryExecution().optimizedPlan()
        below = plan
        while below.children().size():
            below = below.children().apply(0)
        read = [below.output().apply(at) for at in range(below.output().size())]
        given = self.rows.select([column.name() for column in read])
        texts = jvm.dev.pennon.spark.expressions.PlanTexts()
        given = given.rename_columns([texts.name(column.exprId()) for column in read])
        projected = jvm.scala.jdk.javaapi.CollectionConverters.asJava(plan.projectList())
        written = texts.ofValues(projected)
        return given, [
            output_of(number + MANY, text, _type(kind))
            for number, text, kind in json.loads(written.toString())
        ]

    def compare(self, expressions: Sequence[str], semantics: Semantics) -> Compared:
        """Compute expressions in Spark, in one job, and those that are taken in DataFusion too.

        What is an error of Spark for a row has to be one of DataFusion, and nothing else may be.
        """
        selected = [f"{expression} AS e{at}" for at, expression in enumerate(expressions)]
        given, outputs = self.outputs(self.frame.selectExpr(*selected))
        declined: dict[str, str] = {}
        taken: dict[int, Output] = {}
        for at, output in enumerate(outputs):
            try:
                fragment_query([scan_of(given), Project(0, (output,))], 1, semantics)
                taken[at] = output
            except Declined as reason:
                declined[expressions[at]] = str(reason)
        answers = dict(zip(taken, self.tried([expressions[at] for at in taken]), strict=True))
        whole = [output for at, output in taken.items() if not answers[at].null_count]
        actual = self.computed_of_leaf(given, whole, semantics) if whole else given
        different: dict[str, object] = {}
        for at, output in taken.items():
            answer, rows, values = answers[at], given, actual
            bad: list[object] = []
            if answer.null_count:
                failing = given.filter(answer.is_null())
                bad += self.not_failing(failing, output, semantics)
                rows, answer = given.filter(answer.is_valid()), answer.drop_null()
            if rows is not given or not isinstance(values, pa.Table):
                values = self.computed_over(rows, [output], semantics)
            bad += differing(rows, pc.struct_field(answer, "v"), values, f"c{output.id}")
            if bad:
                different[f"{expressions[at]}: {output.value}"] = bad[:3]
        return Compared(declined, different)

    def not_failing(self, rows: pa.Table, output: Output, semantics: Semantics) -> Iterator[object]:
        """Give rows for which an expression is an error in Spark, and none in DataFusion."""
        for at in range(0, rows.num_rows, rows.num_rows // _MOST_FAILING + 1):
            row = rows.slice(at, 1)
            if isinstance(self.computed_over(row, [output], semantics), pa.Table):
                yield "an error in Spark", row.to_pylist()

    def tried(self, expressions: Sequence[str]) -> list[pa.ChunkedArray]:
        """Compute expressions in Spark: structs of the value, and NULL where it is an error."""
        packages = self.spark._jvm.org.apache.spark.sql
        converter, of_spark = packages.classic.ExpressionUtils, packages.catalyst.expressions
        columns = []
        for at, expression in enumerate(expressions):
            value = converter.expression(sql.expr(expression)._jc)
            # Arrow's structs would say of some fields that they are never NULL.
            nullable = Column(converter.column(of_spark.KnownNullable(value)))
            struct = converter.expression(sql.struct(nullable.alias("v"))._jc)
            columns.append(Column(converter.column(of_spark.TryEval(struct))).alias(f"e{at}"))
        with conf(self.spark, _ROW_BY_ROW):
            return self.frame.select(*columns).toArrow().columns

    def computed_over(
        self, given: pa.Table, outputs: Sequence[Output], semantics: Semantics
    ) -> pa.Table | PennonError:
        """Compute expressions in DataFusion; give the error if it is one."""
        query = fragment_query([scan_of(given), Project(0, tuple(outputs))], 1, semantics).select
        try:
            return rows_over(query.sql, {"r0": given}, query.zone_offsets)
        except VALUE_FAILURES as error:
            return error

    def computed_of_leaf(
        self, given: pa.Table, outputs: Sequence[Output], semantics: Semantics
    ) -> pa.Table | PennonError:
        """Do so over a leaf that has the rows."""
        nodes: list[PlanNode] = [scan_of(given), Project(0, tuple(outputs))]
        place = self.root / f"leaf{len(list(self.root.iterdir()))}"
        try:
            return computed(nodes, [relation(place, "edges", given.schema, [given])], semantics)
        except VALUE_FAILURES as error:
            return error

    def is_error_in_spark(self, expression: str) -> bool:
        """Whether Spark answers with an error."""
        try:
            self.frame.selectExpr(expression).toArrow()
        except (PySparkException, Py4JJavaError):
            return True
        return False

    def compute(self, expression: str, semantics: Semantics) -> list[object]:
        """Compute an expression in DataFusion."""
        given, outputs = self.outputs(self.frame.selectExpr(f"{expression} AS e"))
        result = self.computed_of_leaf(given, outputs, semantics)
        if not isinstance(result, pa.Table):
            raise result
        return values_of(result.column(0))
