"""Statements of Spark that are held open: analyzed, their table pinned, not executed yet."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession


def analyzed(spark: SparkSession, statement: str) -> Callable[[], object]:
    """Have Spark analyze a statement, which pins its table, and give what executes it."""
    jvm, session = spark._jvm.org.apache.spark.sql, spark._jsparkSession
    state = session.sessionState()
    modes = getattr(getattr(jvm.execution, "CommandExecutionMode$"), "MODULE$")
    parsed = jvm.catalyst.parser.CatalystSqlParser().parsePlan(statement)
    plan = state.executePlan(parsed, modes.SKIP()).analyzed()
    return lambda: jvm.classic.Dataset.ofRows(session, plan)
