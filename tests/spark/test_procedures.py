"""CALL: named and positional arguments, rows with a schema, and what is wrong with a call."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import PySparkException

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def table(spark: SparkSession, namespace: str) -> str:
    name = f"{namespace}.t"
    spark.sql(f"CREATE TABLE {name} PARTITIONED BY (bucket(2, id)) AS SELECT id FROM RANGE(9)")
    return name


def failure_of(spark: SparkSession, statement: str) -> str:
    with pytest.raises(PySparkException) as caught:
        spark.sql(statement).collect()
    return str(caught.value)


def test_a_procedure_is_called_by_name_and_by_position(spark: SparkSession, table: str) -> None:
    named = spark.sql(f"CALL lance.system.check(table => '{table}')")
    assert named.columns == ["severity", "section", "object", "problem"]
    assert [row for row in named.collect() if row.severity == "violation"] == []
    assert spark.sql(f"CALL lance.system.check('{table}')").collect() == named.collect()
    listed = spark.sql("SHOW PROCEDURES FROM lance.system").collect()
    assert {"check", "explain_join"} <= {row.procedure_name for row in listed}
    assert spark.sql("SHOW PROCEDURES IN lance").collect() == listed


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("system.chek('t')", r"UNKNOWN_PROCEDURE.*chek.*check"),
        ("other.check('t')", r"UNKNOWN_PROCEDURE|ROUTINE"),
        ("system.check()", r"REQUIRED_PARAMETER_NOT_FOUND|PROCEDURE_ARGUMENT"),
        ("system.check(tabel => 't')", r"UNRECOGNIZED_PARAMETER_NAME.*tabel|PROCEDURE_ARGUMENT"),
        ("system.check('{namespace}.tt')", r"TABLE_NOT_FOUND.*did you mean t\b"),
    ],
)
def test_a_wrong_call_is_told(
    spark: SparkSession, namespace: str, table: str, call: str, expected: str
) -> None:
    message = failure_of(spark, f"CALL lance.{call.format(namespace=namespace)}")
    assert re.search(expected, message, re.DOTALL), message
    assert "\tat " not in message.split("JVM stacktrace")[0]
