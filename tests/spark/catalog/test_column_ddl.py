"""ALTER TABLE on columns by SQL, with rows that were written before."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyspark.errors import PySparkException
from tests.spark.spark_release import SPARK
from tests.spark.statement_results import failure_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EVOLVES = pytest.mark.skipif(SPARK < (4, 2), reason="INSERT WITH SCHEMA EVOLUTION is newer")


def rows(spark: SparkSession, query: str) -> list[tuple]:
    return sorted((tuple(row) for row in spark.sql(query).collect()), key=repr)


def test_columns_change_under_rows_that_are_there(spark: SparkSession, namespace: str) -> None:
    table = f"{namespace}.changing"
    spark.sql(
        f"CREATE TABLE {table} (id INT NOT NULL, v INT, p STRUCT<x: INT, y: INT>) "
        "PARTITIONED BY (id)"
    )
    spark.sql(f"INSERT INTO {table} VALUES (1, 10, named_struct('x', 1, 'y', 2)), (2, 20, NULL)")
    for change in (
        "ADD COLUMNS (n DOUBLE COMMENT 'new' AFTER id)",
        "ALTER COLUMN id TYPE BIGINT",
        "DROP COLUMN v",
        "ADD COLUMN v STRING",
        "RENAME COLUMN p.x TO z",
        "DROP COLUMN p.y",
        "ALTER COLUMN id DROP NOT NULL",
        "ALTER COLUMN v SET DEFAULT 'd'",
    ):
        spark.sql(f"ALTER TABLE {table} {change}")
    assert rows(spark, f"SELECT id, n, p.z, v FROM {table}") == [
        (1, None, 1, None),
        (2, None, None, None),
    ]
    spark.sql(f"INSERT INTO {table} (id, n) VALUES (1, 0.5), (5000000000, 1.5)")
    assert rows(spark, f"SELECT id, n, v FROM {table} WHERE id = 1") == [
        (1, 0.5, "d"),
        (1, None, None),
    ]
    assert rows(spark, f"SELECT a.id FROM {table} a JOIN {table} b ON a.id = b.id") == [
        *[(1,)] * 4,
        (2,),
        (5000000000,),
    ]


def test_columns_are_not_changed_where_rows_would_be_wrong(
    spark: SparkSession, namespace: str
) -> None:
    table = f"{namespace}.kept"
    spark.sql(f"CREATE TABLE {table} (id INT, k STRING, p STRUCT<x: INT>) PARTITIONED BY (k)")
    spark.sql(f"INSERT INTO {table} VALUES (1, 'a', NULL)")
    for change, why in (
        ("ADD COLUMN c INT NOT NULL", "Add it with a DEFAULT, or without NOT NULL"),
        ("ALTER COLUMN id SET NOT NULL", "nullable column to non-nullable"),
        ("ALTER COLUMN id TYPE SMALLINT", ""),
        ("DROP COLUMN p.x", "only field of p"),
        ("ADD COLUMN p.y INT DEFAULT 1", "for a whole column"),
        ("ADD COLUMN k INT", "already exists"),
    ):
        assert why in failure_of(spark, f"ALTER TABLE {table} {change}"), change
    assert rows(spark, f"SELECT * FROM {table}") == [(1, "a", None)]


def test_defaults_are_sparks(spark: SparkSession, namespace: str) -> None:
    table = f"{namespace}.defaults"
    spark.sql(
        f"CREATE TABLE {table} (id INT NOT NULL, k STRING DEFAULT 'kk', v INT DEFAULT 7) "
        "PARTITIONED BY (k)"
    )
    spark.sql(f"INSERT INTO {table} (id) VALUES (1)")
    spark.sql(f"INSERT INTO {table} VALUES (2, 'x', DEFAULT), (3, DEFAULT, NULL)")
    assert rows(spark, f"SELECT * FROM {table}") == [(1, "kk", 7), (2, "x", 7), (3, "kk", None)]
    spark.sql(f"ALTER TABLE {table} ADD COLUMN c INT NOT NULL DEFAULT 2 + 3")
    assert rows(spark, f"SELECT id, c FROM {table} WHERE c = 5") == [(1, 5), (2, 5), (3, 5)]
    spark.sql(f"INSERT INTO {table} (id) VALUES (4)")
    spark.sql(f"ALTER TABLE {table} ALTER COLUMN c SET DEFAULT 8")
    spark.sql(f"INSERT INTO {table} (id, k) VALUES (5, 'kk'), (6, 'new')")
    assert rows(spark, f"SELECT id, c FROM {table}") == [
        *[(at, 5) for at in range(1, 5)],
        *[(at, 8) for at in (5, 6)],
    ]
    spark.sql(f"ALTER TABLE {table} ALTER COLUMN c DROP DEFAULT")
    failure_of(spark, f"INSERT INTO {table} (id) VALUES (7)")
    spark.sql(f"ALTER TABLE {table} ALTER COLUMN c DROP NOT NULL")
    spark.sql(f"INSERT INTO {table} (id) VALUES (7)")
    assert rows(spark, f"SELECT id FROM {table} WHERE c IS NULL") == [(7,)]
    assert rows(spark, f"SELECT count(*) FROM {table} a JOIN {table} b ON a.c = b.c") == [(20,)]


def test_a_default_is_the_constant_of_the_session_that_added_it(
    spark: SparkSession, namespace: str
) -> None:
    table = f"{namespace}.constants"
    spark.sql(f"CREATE TABLE {table} (id INT)")
    spark.sql(f"INSERT INTO {table} VALUES (1)")
    constants = {
        "t": ("TIMESTAMP", "TIMESTAMP '2020-01-01 00:00:00'"),
        "n": ("TIMESTAMP_NTZ", "TIMESTAMP_NTZ '1999-12-31 23:59:59.999999'"),
        "d": ("DATE", "DATE '2020-02-29'"),
        "f": ("FLOAT", "CAST(0.1 AS FLOAT)"),
        "g": ("DECIMAL(10,2)", "12.34"),
        "b": ("BINARY", "X'0AFF'"),
        "s": ("STRING", "'it\\'s'"),
        "a": ("ARRAY<INT>", "array(1, 2)"),
        "m": ("MAP<STRING, INT>", "map('a', 1)"),
        "p": ("STRUCT<x: INT, y: STRING>", "named_struct('x', 1, 'y', 'z')"),
    }
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    try:
        columns = ", ".join(f"{name} {kind} DEFAULT {of}" for name, (kind, of) in constants.items())
        spark.sql(f"ALTER TABLE {table} ADD COLUMNS ({columns})")
        values = ", ".join(of for _, of in constants.values())
        names = ", ".join(constants)
        expected = rows(spark, f"SELECT {values}")
        assert rows(spark, f"SELECT {names} FROM {table}") == expected
        same = " AND ".join(
            f"{name} <=> {of}" for name, (_, of) in constants.items() if name != "m"
        )
        assert rows(spark, f"SELECT id FROM {table} WHERE {same} AND m['a'] = 1") == [(1,)]
        spark.sql(f"INSERT INTO {table} (id) VALUES (2)")
        assert rows(spark, f"SELECT {names} FROM {table}") == [*expected, *expected]
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")


def test_nested_columns_change_one_by_one(spark: SparkSession, namespace: str) -> None:
    table = f"{namespace}.nested"
    spark.sql(
        f"CREATE TABLE {table} (id INT, p STRUCT<x: INT, y: STRING>, a ARRAY<STRUCT<v: INT>>,"
        " m MAP<STRING, STRUCT<v: INT>>)"
    )
    spark.sql(
        f"INSERT INTO {table} VALUES (1, named_struct('x', 1, 'y', 'p'), array(named_struct('v',"
        " 2)), map('k', named_struct('v', 3)))"
    )
    for change, shown in (
        ("ALTER COLUMN m FIRST", "({'k': Row(v=3)}, 1, Row(x=1, y='p'), [Row(v=2)])"),
        ("ALTER COLUMN m AFTER p", "(1, Row(x=1, y='p'), {'k': Row(v=3)}, [Row(v=2)])"),
        ("ADD COLUMN p.n INT FIRST", "(1, Row(n=None, x=1, y='p'), {'k': Row(v=3)}, [Row(v=2)])"),
        (
            "ALTER COLUMN p.y AFTER n",
            "(1, Row(n=None, y='p', x=1), {'k': Row(v=3)}, [Row(v=2)])",
        ),
        (
            "ADD COLUMN a.element.b STRING COMMENT 'inner'",
            "(1, Row(n=None, y='p', x=1), {'k': Row(v=3)}, [Row(v=2, b=None)])",
        ),
        (
            "RENAME COLUMN a.element.v TO w",
            "(1, Row(n=None, y='p', x=1), {'k': Row(v=3)}, [Row(w=2, b=None)])",
        ),
        (
            "ADD COLUMN m.value.u DOUBLE",
            "(1, Row(n=None, y='p', x=1), {'k': Row(v=3, u=None)}, [Row(w=2, b=None)])",
        ),
        (
            "DROP COLUMN p.y",
            "(1, Row(n=None, x=1), {'k': Row(v=3, u=None)}, [Row(w=2, b=None)])",
        ),
    ):
        spark.sql(f"ALTER TABLE {table} {change}")
        assert [repr(row) for row in rows(spark, f"SELECT * FROM {table}")] == [shown], change
    for column in ("p.x", "a.element.w", "m.value.v"):
        spark.sql(f"ALTER TABLE {table} ALTER COLUMN {column} TYPE BIGINT")
        spark.sql(f"ALTER TABLE {table} ALTER COLUMN {column} COMMENT 'wide'")
    spark.sql(
        f"INSERT INTO {table} VALUES (2, named_struct('n', 1, 'x', 5000000000),"
        " map('k', named_struct('v', 5000000000, 'u', 0.5D)),"
        " array(named_struct('w', 5000000000, 'b', 'b')))"
    )
    assert rows(spark, f"SELECT id, p.n, p.x, a[0].w, a[0].b, m['k'].v, m['k'].u FROM {table}") == [
        (1, None, 1, 2, None, 3, None),
        (2, 1, 5000000000, 5000000000, "b", 5000000000, 0.5),
    ]
    assert rows(spark, f"SELECT id FROM {table} WHERE p.x > 1") == [(2,)]
    assert rows(spark, f"SELECT id FROM {table} WHERE p.n IS NULL") == [(1,)]
    [(data_type,)] = [
        (row.data_type,) for row in spark.sql(f"DESCRIBE {table}").collect() if row.col_name == "p"
    ]
    assert data_type == "struct<n:int,x:bigint>"


def test_the_length_of_a_text_is_kept_and_widened(spark: SparkSession, namespace: str) -> None:
    table = f"{namespace}.texts"
    spark.sql(f"CREATE TABLE {table} (id INT)")
    spark.sql(f"ALTER TABLE {table} ADD COLUMN s VARCHAR(3)")
    spark.sql(f"INSERT INTO {table} VALUES (1, 'abc')")
    with pytest.raises(PySparkException, match="EXCEED_LIMIT_LENGTH|exceeds"):
        spark.sql(f"INSERT INTO {table} VALUES (2, 'abcd')")
    spark.sql(f"ALTER TABLE {table} ALTER COLUMN s TYPE VARCHAR(4)")
    spark.sql(f"INSERT INTO {table} VALUES (2, 'abcd')")
    assert rows(spark, f"SELECT * FROM {table}") == [(1, "abc"), (2, "abcd")]


def test_a_column_is_dropped_behind_the_partition_fields_that_are_made_of_it(
    spark: SparkSession, namespace: str
) -> None:
    """Identity, bucket over columns and an expression; the advice of each refusal is followed."""
    table = f"{namespace}.dropped"
    spark.sql(
        f"CREATE TABLE {table} (id INT, k STRING, q INT, v INT)"
        " PARTITIONED BY (k, bucket(4, id), multi_bucket(3, id, q), expression('lower(col0)', k))"
    )
    source = "SELECT CAST(id AS INT), concat('K', id % 3), CAST(id % 5 AS INT), 1 FROM RANGE(40)"
    spark.sql(f"INSERT INTO {table} {source}")
    assert "partitioned by k." in failure_of(spark, f"ALTER TABLE {table} REPLACE COLUMNS (v INT)")
    for column in ("k", "q", "k"):
        message = failure_of(spark, f"ALTER TABLE {table} DROP COLUMNS (q, k)")
        assert f"Cannot drop column {column} of table {table}: it is partitioned by" in message
        field = message.partition("DROP PARTITION FIELD ")[2].partition(" first")[0]
        spark.sql(f"ALTER TABLE {table} DROP PARTITION FIELD {field}")
    spark.sql(f"ALTER TABLE {table} DROP COLUMNS (q, k)")
    assert rows(spark, f"SELECT count(*), sum(id) FROM {table}") == [(40, 780)]
    assert rows(spark, f"SELECT * FROM {table} WHERE id = 7") == [(7, 1)]
    joined = f"SELECT count(*) FROM {table} a JOIN {table} b ON a.id = b.id"
    assert rows(spark, joined) == [(40,)]
    assert rows(spark, f"SELECT sum(n) FROM (SELECT id, count(*) n FROM {table} GROUP BY id)") == [
        (40,)
    ]
    spark.sql(f"INSERT INTO {table} VALUES (7, 2), (100, 2)")
    assert rows(spark, f"SELECT v FROM {table} WHERE id = 7") == [(1,), (2,)]
    assert rows(spark, joined) == [(44,)]
    spark.sql(f"ALTER TABLE {table} ADD COLUMN k STRING DEFAULT 'new'")
    spark.sql(f"ALTER TABLE {table} ADD PARTITION FIELD k")
    spark.sql(f"INSERT INTO {table} VALUES (101, 3, 'new'), (102, 3, NULL)")
    assert rows(spark, f"SELECT count(*) FROM {table} WHERE k = 'new'") == [(43,)]
    assert rows(spark, f"SELECT k, count(*) FROM {table} GROUP BY k") == [("new", 43), (None, 1)]


@EVOLVES
def test_a_name_is_refused_at_every_door_where_it_would_not_work(
    spark: SparkSession, namespace: str
) -> None:
    table = f"{namespace}.doors"
    spark.sql(f"CREATE TABLE {table} (id INT, s STRUCT<r: INT>)")
    merge = f"MERGE WITH SCHEMA EVOLUTION INTO {table} t USING"
    insert = "s ON t.id = s.id WHEN NOT MATCHED THEN INSERT *"
    for name in ("", "*", "a.b", "_LEAF", "_RowAddr", "__Row_Operation", "__original_row_id_x"):
        for statement in (
            f"CREATE TABLE {namespace}.made (id INT, `{name}` INT)",
            f"CREATE TABLE {namespace}.made AS SELECT 1 AS id, 2 AS `{name}`",
            f"ALTER TABLE {table} ADD COLUMN `{name}` INT",
            f"ALTER TABLE {table} RENAME COLUMN id TO `{name}`",
            f"INSERT WITH SCHEMA EVOLUTION INTO {table} BY NAME SELECT 1 AS id, 2 AS `{name}`",
            f"{merge} (SELECT 1 AS id, 2 AS `{name}`) {insert}",
        ):
            # Spark's MERGE takes the source's column for the metadata column of that name.
            conditions = ["INVALID_COLUMN_NAME", *["UNKNOWN_COLUMN"] * ("MERGE" in statement)]
            failure = failure_of(spark, statement)
            assert any(condition in failure for condition in conditions), statement
    for field in ("named_struct('', 1) AS s", "named_struct('r', 1, '', 1) AS s"):
        statement = f"INSERT WITH SCHEMA EVOLUTION INTO {table} BY NAME SELECT 1 AS id, {field}"
        assert "INVALID_COLUMN_NAME" in failure_of(spark, statement)
    for kind in ("STRUCT<a: INT, A: INT>", "ARRAY<STRUCT<``: INT>>"):
        for head in (f"CREATE TABLE {namespace}.made (x", f"ALTER TABLE {table} ADD COLUMNS (x"):
            failure = failure_of(spark, f"{head} {kind})")
            assert "INVALID_COLUMN_NAME" in failure or "ALREADY_EXISTS" in failure
    assert spark.table(table).columns == ["id", "s"]
    assert [row.tableName for row in spark.sql(f"SHOW TABLES IN {namespace}").collect()] == [
        "doors"
    ]


@EVOLVES
def test_a_field_with_a_dot_in_its_name_works_in_every_statement(
    spark: SparkSession, namespace: str
) -> None:
    table = f"{namespace}.dotted"
    spark.sql(f"CREATE TABLE {table} (id INT, s STRUCT<r: INT>)")
    spark.sql(f"INSERT INTO {table} VALUES (1, named_struct('r', 3))")
    spark.sql(f"ALTER TABLE {table} ADD COLUMN s.`t.u` INT")
    spark.sql(f"INSERT INTO {table} (id) VALUES (2)")
    spark.sql(f"UPDATE {table} SET s.`t.u` = 7 WHERE id = 1")
    source = "SELECT 3 AS id, named_struct('r', 1, 't.u', 2, 'user.name', 'x', '*', 5, '`', 6) AS s"
    spark.sql(f"INSERT WITH SCHEMA EVOLUTION INTO {table} BY NAME {source}")
    spark.sql(f"ALTER TABLE {table} ADD PARTITION FIELD bucket(4, s.`t.u`)")
    spark.sql(f"ALTER TABLE {table} ADD PARTITION FIELD s.`user.name`")
    spark.sql(f"INSERT OVERWRITE {table} SELECT * FROM {table}")
    spark.sql(
        f"MERGE INTO {table} t USING ({source}) x ON t.id = x.id AND t.s.`t.u` = x.s.`t.u`"
        " WHEN MATCHED THEN UPDATE SET t.id = 4, t.s.`*` = t.s.```` + 1"
    )
    spark.sql(f"ALTER TABLE {table} RENAME COLUMN s.`user.name` TO `u.n`")
    spark.sql(f"ALTER TABLE {table} DROP COLUMN s.````")
    assert rows(spark, f"SELECT id, s.* FROM {table}") == [
        (1, 3, 7, None, None),
        (2, None, None, None, None),
        (4, 1, 2, "x", 7),
    ]
    joined = f"{table} a JOIN {table} b ON a.s.`t.u` = b.s.`t.u` WHERE a.s.`*` = 7 AND b.s.r > 0"
    assert rows(spark, f"SELECT b.id, a.s.`u.n` FROM {joined}") == [(4, "x")]
