"""Namespaces, tables and partition fields by SQL, and what a user reads when a name is wrong."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyspark
import pytest
from pyspark.errors import AnalysisException, ParseException, SparkRuntimeException
from tests.spark.statement_results import failure_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def table(spark: SparkSession, namespace: str) -> str:
    name = f"{namespace}.t"
    spark.sql(
        f"CREATE TABLE {name} (id BIGINT NOT NULL COMMENT 'key', s STRING, ts TIMESTAMP, "
        "`my d` DATE, st STRUCT<a: INT, b: STRING>) "
        "PARTITIONED BY (months(ts), bucket(8, id)) COMMENT 'c' TBLPROPERTIES ('a' = 'b')"
    )
    return name


def partitioning(spark: SparkSession, table: str) -> list[str]:
    rows = spark.sql(f"DESCRIBE {table}").collect()
    return [row.data_type for row in rows if row.col_name.startswith("Part ")]


def test_namespace_is_created_shown_described_and_dropped(spark: SparkSession, namespace: str):
    child = f"{namespace}.child"
    spark.sql(f"CREATE NAMESPACE {child} COMMENT 'below'")
    assert "ALREADY_EXISTS" in failure_of(spark, f"CREATE NAMESPACE {child}")
    spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {child}")
    shown = [row[0] for row in spark.sql(f"SHOW NAMESPACES IN {namespace}").collect()]
    assert shown == [child.removeprefix("lance.")]
    described = {row[0]: row[1] for row in spark.sql(f"DESCRIBE NAMESPACE {child}").collect()}
    assert described["Comment"] == "below"
    assert "Owner" not in described  # Spark adds the user; the format has none
    spark.sql(f"DROP NAMESPACE {child}")
    assert spark.sql(f"SHOW NAMESPACES IN {namespace}").collect() == []


def test_table_is_described_as_it_was_created(spark: SparkSession, namespace: str, table: str):
    assert [row.tableName for row in spark.sql(f"SHOW TABLES IN {namespace}").collect()] == ["t"]
    assert spark.table(table).schema.fieldNames() == ["id", "s", "ts", "my d", "st"]
    assert not spark.table(table).schema["id"].nullable
    assert partitioning(spark, table) == ["months(ts)", "bucket(8, id)"]
    assert ("a", "b") in [tuple(row) for row in spark.sql(f"SHOW TBLPROPERTIES {table}").collect()]
    created = spark.sql(f"SHOW CREATE TABLE {table}").head()[0]
    spark.sql(f"DROP TABLE {table}")
    spark.sql(created)
    assert spark.sql(f"SHOW CREATE TABLE {table}").head()[0] == created


@pytest.mark.spec("Evolution Scenarios 1", "Evolution Scenarios 2", "Evolution Scenarios 3")
@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("ADD PARTITION FIELD truncate(4, s)", ["months(ts)", "bucket(8, id)", "truncate(4, s)"]),
        ("ADD PARTITION FIELD `my d` AS day_of_trip;", ["months(ts)", "bucket(8, id)", "`my d`"]),
        ("ADD PARTITION FIELD st.a", ["months(ts)", "bucket(8, id)", "st.a"]),
        ("DROP PARTITION FIELD bucket(8, id)", ["months(ts)"]),
        ("/* ADD */ drop -- PARTITION\n partition FIELD months(ts)", ["bucket(8, id)"]),
        ("REPLACE PARTITION FIELD bucket(8, id) WITH bucket(16, id)", None),
    ],
)
def test_partition_fields_are_altered(
    spark: SparkSession, table: str, statement: str, expected: list[str] | None
):
    spark.sql(f"ALTER TABLE {table} {statement}")
    expected = expected or ["months(ts)", "bucket(16, id)"]
    assert sorted(partitioning(spark, table)) == sorted(expected)


@pytest.mark.parametrize(
    "field",
    ["", "1 + 1", "id, s", "bucket(8, id", "id) COMMENT ('x'", "id AS a b"],
)
def test_partition_field_that_is_none_is_refused(spark: SparkSession, table: str, field: str):
    message = failure_of(spark, f"ALTER TABLE {table} ADD PARTITION FIELD {field}")
    assert message.startswith("[PARTITION_FIELD_SYNTAX] Cannot parse ")
    assert partitioning(spark, table) == ["months(ts)", "bucket(8, id)"]


def test_statement_about_a_table_of_another_catalog_goes_to_the_next_parser(spark: SparkSession):
    spark.sql("CREATE TABLE spark_catalog.default.other (id INT) USING parquet")
    try:
        for statement in ("ADD PARTITION FIELD id", "WRITE ORDERED BY id"):
            message = failure_of(spark, f"ALTER TABLE spark_catalog.default.other {statement}")
            assert message.strip().startswith("[PARSE_SYNTAX_ERROR]")
    finally:
        spark.sql("DROP TABLE spark_catalog.default.other")


def test_partition_fields_are_altered_in_scripts_variables_and_immediate_statements(
    spark: SparkSession, namespace: str, table: str
):
    spark.conf.set("pennon.test.table", table)
    spark.sql("ALTER TABLE ${pennon.test.table} ADD PARTITION FIELD s")
    spark.conf.unset("pennon.test.table")
    spark.sql(f"EXECUTE IMMEDIATE 'ALTER TABLE {table} REPLACE PARTITION FIELD s WITH `my d`'")
    assert partitioning(spark, table)[-1] == "`my d`"
    spark.sql(
        f"""
        BEGIN
          DECLARE wanted INT DEFAULT 1;
          IF wanted = 1 THEN
            ALTER TABLE {table} DROP PARTITION FIELD `my d`;
            ALTER TABLE {table} ADD PARTITION FIELD expression('lower(col0 || \\';'')', s) AS e;
          END IF;
          ALTER TABLE {table} WRITE ORDERED BY id;
        END
        """
    )
    assert partitioning(spark, table)[-1].startswith("expression('lower(col0 || ")
    properties = {row[0]: row[1] for row in spark.sql(f"SHOW TBLPROPERTIES {table}").collect()}
    assert properties["write.order"] == "id ASC NULLS FIRST"


def test_a_statement_behind_a_raw_string_is_read(
    spark: SparkSession, namespace: str, table: str
) -> None:
    """A backslash at its end does not keep it open: r'C:\\'."""
    spark.sql(f"BEGIN SELECT r'C:\\'; ALTER TABLE {table} ADD PARTITION FIELD s; END")
    assert partitioning(spark, table)[-1] == "s"
    spark.sql(f"BEGIN SELECT '🙂'; ALTER TABLE {table} DROP PARTITION FIELD s; END")
    assert partitioning(spark, table)[-1] != "s"


def test_a_script_that_changes_the_catalog_never_alters_another_ones_table(
    spark: SparkSession, namespace: str, table: str
):
    spark.sql("CREATE TABLE spark_catalog.default.other (id INT) USING parquet")
    script = "BEGIN USE spark_catalog.default; ALTER TABLE other ADD PARTITION FIELD id; END"
    try:
        spark.sql(f"USE {namespace}")
        message = failure_of(spark, script)
        assert message.startswith("[PARTITION_FIELDS_NOT_SUPPORTED]")
        shown = spark.sql("SHOW TBLPROPERTIES spark_catalog.default.other").collect()
        assert "pennon.statement" not in {row[0] for row in shown}
    finally:
        spark.sql("USE spark_catalog.default")
        spark.sql("DROP TABLE spark_catalog.default.other")


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT * FROM {}",
        "INSERT INTO {} VALUES (1)",
        "DESCRIBE {}",
        "ALTER TABLE {} ADD PARTITION FIELD id",
        "SELECT 1 WHERE EXISTS (SELECT * FROM {})",
    ],
)
def test_missing_table_is_told_with_the_names_that_exist(
    spark: SparkSession, namespace: str, table: str, statement: str
):
    message = failure_of(spark, statement.format(f"{namespace}.absent"))
    assert message.startswith(f"[TABLE_NOT_FOUND] Cannot find table {namespace}.absent")
    assert f"the tables there are {table.rsplit('.', 1)[1]}" in message


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("DROP TABLE {0}.tt", "[TABLE_NOT_FOUND] Cannot find table {0}.tt"),
        ("DROP NAMESPACE {0}x", "[NAMESPACE_NOT_FOUND] Cannot find namespace {0}x"),
        ("USE {0}x", "[NAMESPACE_NOT_FOUND] Cannot find namespace {0}x"),
    ],
)
def test_missing_name_of_other_statements_is_told_with_the_near_ones(
    spark: SparkSession, namespace: str, table: str, statement: str, expected: str
):
    message = failure_of(spark, statement.format(namespace))
    assert message.startswith(expected.format(namespace))
    assert "did you mean" in message
    if statement.startswith("DROP"):
        spark.sql(statement.format(namespace).replace(" lance", " IF EXISTS lance"))
    assert spark.table(table).count() == 0


def test_missing_table_is_no_failure_where_sql_allows_it(spark: SparkSession, table: str):
    spark.sql(f"DROP TABLE IF EXISTS {table}_absent")
    spark.sql(f"CREATE TABLE IF NOT EXISTS {table} (other INT)")
    assert "id" in spark.table(table).columns


def test_unknown_transform_lists_the_known(spark: SparkSession, namespace: str):
    message = failure_of(spark, f"CREATE TABLE {namespace}.u (id INT) PARTITIONED BY (frob(id))")
    assert message.startswith("[UNKNOWN_TRANSFORM]")
    assert "bucket" in message


def test_other_statements_go_to_sparks_parser(spark: SparkSession):
    assert spark.sql("SELECT :x AS `ALTER TABLE`", args={"x": 5}).head()[0] == 5
    assert spark.sql("SELECT 'ALTER TABLE t ADD PARTITION FIELD id' -- DROP").count() == 1
    with pytest.raises(ParseException):
        spark.sql("ALTER TABLE t ADD PARTITION FIELDS id")


@pytest.mark.skipif(
    pyspark.__version__ < "4.3",
    reason="Python finds no method of a parser that has one with a class that this Spark lacks",
)
def test_ordinary_statements_are_read_without_the_worker(spark: SparkSession, table: str) -> None:
    """It is stopped meanwhile: who asked it would wait."""
    parser = spark._jsparkSession.sessionState().sqlParser()
    worker = spark._jvm.dev.pennon.spark.worker.WorkerProcess.shared().pid()
    os.kill(worker, signal.SIGSTOP)
    try:
        for statement in (
            f"SELECT * FROM {table} WHERE s = 'OPTIMIZE'",
            f"INSERT INTO {table} (id) VALUES (1)",
            "DESCRIBE t",
            "SHOW TABLES IN spark_catalog.default",
            "CREATE VIEW spark_catalog.default.v AS SELECT 1",
        ):
            parser.parsePlan(statement)
    finally:
        os.kill(worker, signal.SIGCONT)


STATEMENTS_ELSEWHERE = {
    "VACUUM {} RETAIN 168 HOURS": "CALL lance.system.vacuum(table => '",
    "RESTORE TABLE {} TO VERSION AS OF 3": "CALL lance.system.rollback(table => '",
    "DESCRIBE DETAIL {}": "DESCRIBE TABLE EXTENDED lance.",
    "DESCRIBE {} PARTITION (id = 1)": "SELECT * FROM lance.",
    "DESC TABLE EXTENDED {} PARTITION (id = 1)": ".partitions, with WHERE partition.",
    "OPTIMIZE {} ZORDER BY (id)": "CALL lance.system.compact(table => '",
    "ALTER TABLE {} ADD IF NOT EXISTS PARTITION (id = 1)": "INSERT INTO lance.",
    "ALTER TABLE {} DROP PARTITION (id = 1)": "DELETE FROM lance.",
    "ALTER TABLE {} PARTITION (id = 1) RENAME TO PARTITION (id = 2)": "UPDATE lance.",
    "TRUNCATE TABLE {} PARTITION (id = 1)": "DELETE FROM lance.",
    "ALTER TABLE {} RECOVER PARTITIONS": "CALL lance.system.adopt(",
    "MSCK REPAIR TABLE {}": "CALL lance.system.check(",
    "FSCK REPAIR TABLE {}": "CALL lance.system.check(",
    "REORG TABLE {} APPLY (PURGE)": "CALL lance.system.compact(",
    "CREATE TABLE {}_1 SHALLOW CLONE x": "AS SELECT * FROM",
    "CREATE OR REPLACE TABLE {}_1 DEEP CLONE x VERSION AS OF 3": "AS SELECT * FROM",
    "ANALYZE TABLE {} COMPUTE STATISTICS FOR ALL COLUMNS": "CALL lance.system.analyze(",
    "ALTER TABLE {} SET IDENTIFIER FIELDS id": "MERGE INTO lance.",
    "ALTER TABLE {} CLUSTER BY (id)": "bucket(16, …)",
    "CREATE TABLE {}_1 (id INT) CLUSTER BY (id)": "bucket(16, …)",
    "CREATE TABLE {}_1 (id INT) CLUSTERED BY (id) SORTED BY (id) INTO 2 BUCKETS": "without SORTED",
    "CREATE VIEW IF NOT EXISTS {}_1 AS SELECT 1": "CREATE TEMPORARY VIEW",
    "EXECUTE IMMEDIATE 'OPTIMIZE {}'": "CALL lance.system.compact(table => '",
}


@pytest.mark.skipif(pyspark.__version__ < "4.3", reason="Spark asks no catalog before")
def test_a_table_like_another_has_its_columns_and_partitioning(spark: SparkSession, table: str):
    spark.sql(f"ALTER TABLE {table} REPLACE PARTITION FIELD bucket(8, id) WITH truncate(2, s)")
    spark.sql(f"INSERT INTO {table} (id, s) VALUES (1, 'abc')")
    spark.sql(f"CREATE TABLE {table}_1 LIKE {table} TBLPROPERTIES ('x' = 'y')")
    assert spark.table(f"{table}_1").schema == spark.table(table).schema
    assert partitioning(spark, f"{table}_1") == partitioning(spark, table)
    assert spark.table(f"{table}_1").isEmpty()
    properties = spark.sql(f"SHOW TBLPROPERTIES {table}_1").collect()
    assert ("x", "y") in properties
    assert "a" not in dict(properties)


def test_columns_are_listed_whatever_the_partitioning(spark: SparkSession, namespace: str):
    spark.sql(
        f"CREATE TABLE {namespace}.t (id INT, ts TIMESTAMP, `a b` STRING, s STRUCT<x: INT>)"
        " PARTITIONED BY (months(ts), bucket(4, id), bucket(8, ts), truncate(2, `a b`), s.x)"
        " COMMENT 'as it is'"
    )
    listed = spark.catalog.listColumns(f"{namespace}.t")
    assert [(column.name, column.dataType, column.isPartition) for column in listed] == [
        ("id", "int", True),
        ("ts", "timestamp", True),
        ("a b", "string", True),
        ("s", "struct<x:int>", False),
    ]
    assert spark.catalog.getTable(f"{namespace}.t").description == "as it is"
    assert "months(ts)" in partitioning(spark, f"{namespace}.t")


def test_a_table_below_the_root_that_is_not_there_is_no_file(
    spark: SparkSession, namespace: str
) -> None:
    for name in ("lance.absent", "lance.`absent`"):
        with pytest.raises(AnalysisException, match=r"TABLE_NOT_FOUND.*lance\.absent"):
            spark.sql(f"SELECT * FROM {name}")
    with pytest.raises(AnalysisException, match=r"ANALYZE_TABLES_NOT_SUPPORTED.*lance\.system\.an"):
        spark.sql(f"ANALYZE TABLES IN {namespace} COMPUTE STATISTICS")


def test_statements_of_other_tables_tell_what_to_type(spark: SparkSession, table: str):
    for statement, advice in STATEMENTS_ELSEWHERE.items():
        message = failure_of(spark, statement.format(table))
        assert message.startswith("[STATEMENT_NOT_SUPPORTED] Cannot "), message
        assert advice in message
        assert "\n" not in message
        if not statement.startswith("CREATE"):
            other = failure_of(spark, statement.format("spark_catalog.default.absent"))
            assert "STATEMENT_NOT_SUPPORTED" not in other, statement
    spark.sql(f"INSERT INTO {table} (id) VALUES (1)")
    spark.sql(f"TRUNCATE TABLE {table}")
    assert spark.table(table).isEmpty()


def test_lengths_are_kept_as_spark_keeps_them(spark: SparkSession, namespace: str):
    """The same statements give the same rows and errors as with a table of Parquet."""
    pennon, parquet = f"{namespace}.t", "spark_catalog.default.lengths"
    rows: list[Any] = []
    try:
        for name, form in ((pennon, ""), (parquet, "USING parquet")):
            spark.sql(f"CREATE TABLE {name} (id INT, v VARCHAR(3), c CHAR(3)) {form}")
            spark.sql(f"INSERT INTO {name} VALUES (1, 'abc', 'a'), (2, 'ab   ', 'bcd')")
            for values in ("3, 'abcd', 'a'", "3, 'a', 'abcd'"):
                with pytest.raises(SparkRuntimeException, match="EXCEED_LIMIT_LENGTH"):
                    spark.sql(f"INSERT INTO {name} VALUES ({values})")
            types = [row[:2] for row in spark.sql(f"DESCRIBE {name}").collect()[:3]]
            assert types == [("id", "int"), ("v", "varchar(3)"), ("c", "char(3)")], name
            assert [kind for _, kind in spark.table(name).dtypes] == ["int", "string", "string"]
            query = f"SELECT *, length(v), length(c), c = 'a' FROM {name}"
            rows.append(sorted(spark.sql(query).collect()))
            rows.append(spark.sql(f"SELECT c, count(*) FROM {name} WHERE c = 'a' GROUP BY c"))
    finally:
        spark.sql(f"DROP TABLE IF EXISTS {parquet}")
    assert rows[0] == rows[2]
    assert rows[1].collect() == [("a  ", 1)]
    created = spark.sql(f"SHOW CREATE TABLE {pennon}").head()[0]
    spark.sql(created.replace(pennon, f"{pennon}_again"))
    with pytest.raises(SparkRuntimeException, match="EXCEED_LIMIT_LENGTH"):
        spark.sql(f"INSERT INTO {pennon}_again VALUES (1, 'abcd', 'a')")


def test_a_damaged_table_can_be_dropped_and_made_again(spark: SparkSession, namespace: str):
    root = Path(spark.conf.get("spark.sql.catalog.lance.root"))
    for _ in range(2):
        spark.sql(f"CREATE TABLE {namespace}.t (id INT)")
        (folder,) = root.glob(f"*_{namespace.removeprefix('lance.')}$t")
        for version in folder.glob("__manifest/_versions/*"):
            version.write_bytes(b"xx")
        message = failure_of(spark, f"SELECT * FROM {namespace}.t")
        assert "damaged: restore it from a copy, or drop the table" in message
        spark.sql(f"DROP TABLE {namespace}.t")
        shutil.rmtree(folder)


def test_a_path_where_no_table_is_is_no_unsupported_file(spark: SparkSession, table: str):
    for query in ("SELECT * FROM {}", "WITH q AS (SELECT * FROM {}) SELECT * FROM q"):
        message = failure_of(spark, query.format("lance.`/nowhere/orders`"))
        assert message.startswith("[TABLE_NOT_FOUND] Cannot find table /nowhere/orders: ")
    spark.sql("DROP TABLE IF EXISTS lance.`/nowhere/orders`")


def test_names_are_case_sensitive_and_say_so(spark: SparkSession, table: str):
    assert "did you mean t." in failure_of(spark, f"SELECT * FROM {table[:-1]}T")


def test_procedures_tell_what_they_do(spark: SparkSession):
    described = spark.sql("DESCRIBE PROCEDURE lance.system.compact").collect()
    assert "Rewrite leaves of many small files" in described[1][0]
