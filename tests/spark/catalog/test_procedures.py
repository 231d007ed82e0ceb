"""CALL: named and positional arguments, rows with a schema, and what is wrong with a call."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from tests.spark.assert_join import conf
from tests.spark.statement_results import failure_of

import pennon

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


@pytest.fixture
def table(spark: SparkSession, namespace: str) -> str:
    name = f"{namespace}.t"
    spark.sql(f"CREATE TABLE {name} PARTITIONED BY (bucket(2, id)) AS SELECT id FROM RANGE(9)")
    return name


def test_a_procedure_is_called_by_name_and_by_position(spark: SparkSession, table: str) -> None:
    named = spark.sql(f"CALL lance.system.check(table => '{table}')")
    assert named.columns == ["severity", "section", "object", "problem"]
    assert [row for row in named.collect() if row.severity == "violation"] == []
    assert spark.sql(f"CALL lance.system.check('{table}')").collect() == named.collect()
    listed = spark.sql("SHOW PROCEDURES FROM lance.system").collect()
    assert {"check", "explain_join"} <= {row.procedure_name for row in listed}
    assert spark.sql("SHOW PROCEDURES IN lance").collect() == listed


@pytest.mark.parametrize(
    "call",
    [
        "expire_snapshots('{table}', now() - INTERVAL 1 DAY)",
        "expire_snapshots('{table}', current_date() - 1, retain_last => 1L)",
        "vacuum(table => '{table}', older_than => now() - INTERVAL 8 DAYS, dry_run => true)",
        "compact('{table}', target_bytes => 64L * 1024 * 1024)",
        "compact('{table}', where => 'id = ' || 1)",
        "changes('{table}', 1 + 1L)",
        "explain_scan('SELECT * FROM {table} WHERE id = ' || 1)",
    ],
)
def test_an_argument_is_computed_and_takes_the_type_of_its_parameter(
    spark: SparkSession, table: str, call: str
) -> None:
    assert spark.sql(f"CALL lance.system.{call.format(table=table)}").schema.fields


def test_an_argument_that_is_computed_is_the_one_that_is_called_with(
    spark: SparkSession, table: str
) -> None:
    spark.sql(f"INSERT INTO {table} SELECT id FROM RANGE(9, 12)")
    stated, computed = (
        spark.sql(f"CALL lance.system.changes(table => '{table}', from_version => {version})")
        for version in ("3", "2L + length('a')")
    )
    assert stated.count() == 3
    assert computed.collect() == stated.collect()


@pytest.mark.parametrize("zone", ["Asia/Tokyo", "-03:30"])
def test_where_of_a_procedure_chooses_what_where_of_a_query_does(
    spark: SparkSession, namespace: str, zone: str
) -> None:
    name = f"{namespace}.times"
    spark.sql(f"CREATE TABLE {name} (t TIMESTAMP) PARTITIONED BY (hours(t))")
    rows = "SELECT explode(sequence(0, 171000, 1800)) AS s"
    spark.sql(f"INSERT INTO {name} SELECT timestamp_seconds(1767225600 + s) FROM ({rows})")
    spark.sql(f"INSERT INTO {name} SELECT timestamp_seconds(1767225600 + s) FROM ({rows})")
    condition = "t >= TIMESTAMP '2026-01-02 01:00:00'"
    with conf(spark, {"spark.sql.session.timeZone": zone}):
        where = f'where => "{condition}", dry_run => true'
        chosen = spark.sql(f"CALL lance.system.compact('{name}', {where})").first()
        asked = spark.sql(
            f"SELECT count(DISTINCT _partition) FROM {name} WHERE {condition}"
        ).first()
    assert chosen is not None
    assert (chosen.leaves,) == asked


def test_a_table_that_is_there_is_given_a_name(
    spark: SparkSession, namespace: str, tmp_path: Path
) -> None:
    there = pennon.create(str(tmp_path / "orders"), pa.schema({"n": pa.int64()}), ["n"])
    there.append([{"n": 1}, {"n": None}])
    name = namespace.removeprefix("lance.")
    call = "CALL lance.system.register_table(table => '{}', path => '{}')"
    [row] = spark.sql(call.format(f"{name}.orders", there.location)).collect()
    assert (row.table, row.location) == (f"{namespace}.orders", there.location)
    spark.sql(f"INSERT INTO {namespace}.orders VALUES (2)")
    found = spark.sql(f"SELECT n FROM {namespace}.orders ORDER BY n").collect()
    assert [row.n for row in found] == [None, 1, 2]
    again = failure_of(spark, call.format(f"{name}.again", there.location))
    assert f"it has the name {namespace}.orders" in again


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("system.chek('t')", r"UNKNOWN_PROCEDURE.*chek.*check"),
        ("other.check('t')", r"UNKNOWN_PROCEDURE|ROUTINE"),
        ("system.check()", r"REQUIRED_PARAMETER_NOT_FOUND|PROCEDURE_ARGUMENT"),
        ("system.check(tabel => 't')", r"UNRECOGNIZED_PARAMETER_NAME.*tabel|PROCEDURE_ARGUMENT"),
        ("system.check('{namespace}.tt')", r"TABLE_NOT_FOUND.*did you mean t\b"),
        ("system.compact('{namespace}.t.files')", r"TABLE_NOT_FOUND.*t\.files.*t, it is a table"),
        (
            "system.expire_snapshots(table => '{namespace}.t', snapshot_ids => array(1, 2))",
            "PROCEDURE_ARGUMENT.*snapshot_ids.*older_than or retain_last",
        ),
        (
            "system.register_table(table => '{namespace}.u', metadata_file => '/t/v1.json')",
            r"PROCEDURE_ARGUMENT.*metadata_file.*write path =>",
        ),
        ("system.register_table(table => '{namespace}.u')", "PROCEDURE_ARGUMENT.*path: it is req"),
    ],
)
def test_a_wrong_call_is_told(
    spark: SparkSession, namespace: str, table: str, call: str, expected: str
) -> None:
    message = failure_of(spark, f"CALL lance.{call.format(namespace=namespace)}")
    assert re.search(expected, message, re.DOTALL), message
    assert "\tat " not in message.split("JVM stacktrace")[0]


def test_a_table_is_named_in_call_as_it_is_in_statements(
    spark: SparkSession, namespace: str
) -> None:
    spark.sql(f"CREATE TABLE {namespace}.here (id INT)")
    spark.sql(f"INSERT INTO {namespace}.here VALUES (1)")
    [described] = (
        row.data_type
        for row in spark.sql(f"DESCRIBE TABLE EXTENDED {namespace}.here").collect()
        if row.col_name == "Location"
    )
    catalog, current = spark.catalog.currentCatalog(), spark.catalog.currentDatabase()
    stated = ["here", "`here`", namespace.removeprefix("lance.") + ".here", f"lance.`{described}`"]
    try:
        spark.sql(f"USE {namespace}")
        for name in stated:
            rows = spark.sql(f"CALL lance.system.changes('{name}', 2)").collect()
            assert [row.change_type for row in rows] == ["insert"], name
        absent = failure_of(spark, "CALL lance.system.compact('absent')")
        assert f"Cannot find table {namespace}.absent" in absent
        spark.sql(f"USE {catalog}.{current}")
        absent = failure_of(spark, "CALL lance.system.compact('here')")
        assert "Cannot find table lance.here" in absent
    finally:
        spark.sql(f"USE {catalog}.{current}")
