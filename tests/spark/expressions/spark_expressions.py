"""Expressions over rows, as Spark computes them and as the shim writes them."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
from pyspark.sql import functions as sql
from pyspark.sql.classic.column import Column
from tests.pushdown.spark_answers import Answer, Compared, SparkAnswers
from tests.spark.assert_join import conf

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from pennon.predicate.expressions import Semantics

# A part that several expressions have would be computed before any of them is tried; and hundreds
# of expressions are computed by their trees sooner than code for them is compiled.
_ROW_BY_ROW = {
    "spark.sql.subexpressionElimination.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}


def settings_of(*, ansi: bool, zone: str) -> dict[str, str]:
    """Give the settings of a session that reads times as they are written."""
    return {
        "spark.sql.ansi.enabled": str(ansi).lower(),
        "spark.sql.session.timeZone": zone,
        "spark.sql.legacy.timeParserPolicy": "CORRECTED",
        "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    }


def zone_offsets_of(spark: SparkSession, zone: str) -> tuple[int, ...]:
    """Ask Java for the offsets of a zone, as its rule sends them."""
    shim = spark._jvm.dev.pennon.spark
    numbers = shim.worker.Messages.array()
    shim.plan.DerivedKeyRule.addZoneOffsets(numbers, zone)
    return tuple(json.loads(numbers.toString()))


@dataclass(frozen=True)
class Expressions:
    """Rows as Spark reads them, and what is computed over them."""

    spark: SparkSession
    rows: pa.Table
    frame: DataFrame

    @classmethod
    def over(cls, spark: SparkSession, rows: pa.Table, root: Path) -> Expressions:
        root.mkdir(exist_ok=True)
        path = root / "edges.parquet"
        pq.write_table(rows, path, coerce_timestamps="us")
        return cls(spark, rows, spark.read.parquet(str(path)))

    def compare(self, expressions: Sequence[str], semantics: Semantics) -> Compared:
        """Compute expressions in Spark, and those that are taken in DataFusion too."""
        return self.answers(expressions).compare(semantics)

    def answers(self, expressions: Sequence[str]) -> SparkAnswers:
        """Compute expressions in Spark, in one job."""
        every = zip(self.written(expressions), self.tried(expressions), strict=True)
        answers = [Answer(text, kind, values) for (text, kind), values in every]
        given = self.rows.rename_columns([f"c{at}" for at in range(self.rows.num_columns)])
        return SparkAnswers(given, dict(zip(expressions, answers, strict=True)))

    def written(self, expressions: Sequence[str]) -> list[tuple[str | None, object]]:
        """Give the texts that the shim writes of expressions, and their types."""
        jvm = self.spark._jvm
        selected = [f"{expression} AS e{at}" for at, expression in enumerate(expressions)]
        plan = self.frame.selectExpr(*selected)._jdf.queryExecution().optimizedPlan()
        below = plan
        while below.children().size():
            below = below.children().apply(0)
        texts = jvm.dev.pennon.spark.expressions.PlanTexts()
        place = {name: f"c{at}" for at, name in enumerate(self.rows.column_names)}
        names = {}
        for at in range(below.output().size()):
            column = below.output().apply(at)
            names[texts.name(column.exprId())] = place[column.name()]
        projected = jvm.scala.jdk.javaapi.CollectionConverters.asJava(plan.projectList())
        return [
            (text and re.sub(r"`(c\d+)`", lambda match: f"`{names[match[1]]}`", text), kind)
            for _, text, kind in json.loads(texts.ofValues(projected).toString())
        ]

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
