"""Columns of types that Spark lacks: hidden as a whole, and nothing of them is lost."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import TYPE_CHECKING

import lance
import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from tests.spark.assert_join import conf
from tests.spark.spark_release import SPARK

import pennon

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

_TIME_TYPE = {"spark.sql.timeType.enabled": "true"}
_WIDE = pa.decimal256(50, 2)
_HIDDEN = {
    "wide": _WIDE,
    "age": pa.duration("us"),
    "s": pa.struct([("a", pa.int32()), ("t", pa.list_(pa.duration("s")))]),
    "m": pa.map_(pa.string(), _WIDE),
}


def _rows(first: int, count: int) -> pa.Table:
    numbers = range(first, first + count)
    columns = {
        "id": pa.array(numbers, pa.int32()),
        "wide": pa.array([Decimal(10**45 + number) for number in numbers], _WIDE),
        "v": pa.array([f"v{number}" for number in numbers]),
        "age": pa.array(numbers, pa.int64()).cast(pa.duration("us")),
        "s": pa.array([{"a": number, "t": [number]} for number in numbers], _HIDDEN["s"]),
        "m": pa.array([[("k", Decimal(number))] for number in numbers], _HIDDEN["m"]),
    }
    return pa.table(columns)


@pytest.fixture(params=["bucket(2, id)", None])
def table(
    request: pytest.FixtureRequest, spark: SparkSession, namespace: str, lake: Path
) -> tuple[str, pennon.PartitionedNamespace]:
    """A table of Python's, and its name in Spark."""
    rows = _rows(0, 6)
    spec = [] if request.param is None else [request.param]
    path = lake / namespace.partition(".")[2] / "given"
    made = pennon.create(str(path), rows.schema, spec)
    made.append(rows)
    spark.sql(f"CALL lance.system.register_table('{namespace}.t', '{path}')")
    return f"{namespace}.t", made


def test_the_other_columns_are_read_and_what_is_hidden_is_told(
    spark: SparkSession, table: tuple[str, pennon.PartitionedNamespace]
) -> None:
    name, _ = table
    assert spark.table(name).columns == ["id", "v"]
    assert [tuple(row) for row in spark.sql(f"SELECT * FROM {name} WHERE id = 3").collect()] == [
        (3, "v3")
    ]
    assert spark.sql(f"SELECT count(*) FROM {name}").first() == (6,)
    told = {row.col_name: row for row in spark.sql(f"DESCRIBE {name}").collect()}
    assert {column: told[column].comment for column in _HIDDEN} == {
        "wide": "hidden: Spark has no type for decimal256(50, 2) of wide",
        "age": "hidden: Spark has no type for duration[us] of age",
        "s": "hidden: Spark has no type for duration[s] of s.t.element",
        "m": "hidden: Spark has no type for decimal256(50, 2) of m.value",
    }
    assert spark.table(f"{name}.changes").columns[:2] == ["id", "v"]
    with pytest.raises(PySparkException, match="UNRESOLVED_COLUMN"):
        spark.sql(f"SELECT wide FROM {name}")


def test_no_value_of_a_hidden_column_is_lost(
    spark: SparkSession, table: tuple[str, pennon.PartitionedNamespace]
) -> None:
    name, made = table
    refused = [
        f"UPDATE {name} SET v = 'x' WHERE id = 1",
        f"MERGE INTO {name} t USING (SELECT 1 AS i) ON id = i WHEN MATCHED THEN UPDATE SET v = 'x'",
        f"INSERT OVERWRITE {name} SELECT id, upper(v) FROM {name}",
    ]
    for statement in refused:
        with pytest.raises(PySparkException, match=r"\[HIDDEN_COLUMN_LOST\] .* column wide"):
            spark.sql(statement)
    assert made.refresh().scan().to_arrow().sort_by("id").equals(_rows(0, 6))
    spark.sql(f"DELETE FROM {name} WHERE id IN (0, 3)")
    spark.sql(f"INSERT INTO {name} VALUES (9, 'v9')")
    spark.sql(f"CALL lance.system.compact('{name}')")
    found = made.refresh().scan().to_arrow().sort_by("id")
    kept = [1, 2, 4, 5]
    assert found["id"].to_pylist() == [*kept, 9]
    assert found.slice(0, 4).equals(_rows(0, 6).take(kept))
    assert [found[column][4].as_py() for column in _HIDDEN] == [None] * len(_HIDDEN)


def test_hidden_columns_are_dropped_by_name(
    spark: SparkSession, table: tuple[str, pennon.PartitionedNamespace]
) -> None:
    name, made = table
    spark.sql(f"ALTER TABLE {name} DROP COLUMNS (wide, S)")
    spark.sql(f"ALTER TABLE {name} DROP COLUMN age")
    spark.sql(f"ALTER TABLE {name} DROP COLUMN m")
    assert made.refresh().schema.names == ["id", "v"]
    spark.sql(f"UPDATE {name} SET v = 'x' WHERE id = 1")
    assert spark.sql(f"SELECT count(*) FROM {name} WHERE v = 'x'").first() == (1,)


def test_a_plain_dataset_hides_columns_and_keeps_their_values(
    spark: SparkSession, tmp_path: Path
) -> None:
    path, name = str(tmp_path / "plain.lance"), f"lance.`{tmp_path}/plain.lance`"
    ages = pa.array([1, 2], pa.int64()).cast(pa.duration("us"))
    lance.write_dataset(pa.table({"u": ages, "id": [1, 2], "v": ["a", "b"]}), path)
    assert spark.table(name).columns == ["id", "v"]
    spark.sql(f"INSERT INTO {name} VALUES (3, 'c')")
    spark.sql(f"DELETE FROM {name} WHERE id = 1")
    with pytest.raises(PySparkException, match="HIDDEN_COLUMN_LOST"):
        spark.sql(f"UPDATE {name} SET v = 'x'")
    rows = lance.dataset(path).to_table().sort_by("id").to_pylist()
    assert [(row["id"], row["v"]) for row in rows] == [(2, "b"), (3, "c")]
    assert rows[0]["u"] == dt.timedelta(microseconds=2)
    assert rows[1]["u"] is None
    spark.sql(f"INSERT OVERWRITE {name} VALUES (4, 'd')")
    assert lance.dataset(path).to_table().to_pylist() == [{"u": None, "id": 4, "v": "d"}]


def test_a_hidden_column_that_is_not_null_takes_no_row(
    spark: SparkSession, namespace: str, lake: Path
) -> None:
    path = lake / namespace.partition(".")[2] / "given"
    wide = pa.field("wide", _WIDE, nullable=False)
    made = pennon.create(str(path), pa.schema([("id", pa.int32()), wide]))
    with pytest.raises(PySparkException, match=r"\[HIDDEN_COLUMN_LOST\] .* it is NOT NULL"):
        spark.sql(f"INSERT INTO lance.`{path}` VALUES (1)")
    rows = pa.table({"id": pa.array([1, 2], pa.int32()), "wide": pa.array([1, 2], _WIDE)})
    made.append(rows)
    spark.sql(f"DELETE FROM lance.`{path}` WHERE id = 1")
    assert made.refresh().scan().to_arrow()["id"].to_pylist() == [2]


def test_a_table_is_partitioned_by_a_hidden_column(
    spark: SparkSession, namespace: str, lake: Path
) -> None:
    path = lake / namespace.partition(".")[2] / "given"
    rows = _rows(0, 4).select(["id", "wide"])
    made = pennon.create(str(path), rows.schema, ["bucket(3, wide)", "bucket(2, id)"])
    made.append(rows)
    name = f"lance.`{path}`"
    spark.sql(f"INSERT INTO {name} VALUES (7), (8)")
    assert spark.sql(f"SELECT sum(id) FROM {name}").first() == (0 + 1 + 2 + 3 + 7 + 8,)
    spark.sql(f"DELETE FROM {name} WHERE id = 2")
    joined = f"SELECT count(*) FROM {name} a JOIN {name} b ON a.id = b.id"
    assert spark.sql(joined).first() == (5,)
    assert spark.sql(f"DESCRIBE EXTENDED {name}").count() > 0
    assert spark.sql(f"SHOW PARTITIONS {name}").count() > 0
    assert spark.table(f"{name}.partitions").count() > 0
    assert made.refresh().scan("wide IS NULL").to_arrow().num_rows == 2


def test_times_are_hidden_where_the_session_has_none(spark: SparkSession, namespace: str) -> None:
    name = f"{namespace}.t"
    at = pa.table({"id": pa.array([1], pa.int32()), "at": pa.array([5], pa.time64("us"))})
    pennon.connect(str(spark.conf.get("spark.sql.catalog.lance.root"))).create_table(
        name.partition(".")[2], at.schema
    ).append(at)
    assert spark.table(name).columns == ["id"]
    (told,) = (row for row in spark.sql(f"DESCRIBE {name}").collect() if row.col_name == "at")
    assert "spark.sql.timeType.enabled" in told.comment
    if SPARK < (4, 3):
        return
    with conf(spark, _TIME_TYPE):
        assert spark.table(name).columns == ["id", "at"]
        assert spark.sql(f"SELECT at FROM {name}").first() == (dt.time(0, 0, 0, 5),)


@pytest.mark.skipif(SPARK < (4, 3), reason="Spark has no finished TIME")
@pytest.mark.parametrize("spec", ["bucket(3, at)", "at", "bucket(2, id)"])
def test_times_are_written_and_read(spark: SparkSession, namespace: str, spec: str) -> None:
    name = f"{namespace}.t"
    values = {1: "00:00:00", 2: "23:59:59.999999", 3: "12:30:15.5", 4: None}
    texts = [
        f"({number}, {'NULL' if text is None else f'TIME {text!r}'})"
        for number, text in values.items()
    ]
    with conf(spark, _TIME_TYPE):
        spark.sql(
            f"CREATE TABLE {name} (id INT, at TIME, s STRUCT<a: TIME(0)>, l ARRAY<TIME(3)>,"
            f" m MAP<STRING, TIME(9)>) PARTITIONED BY ({spec})"
        )
        spark.sql(
            f"INSERT INTO {name} SELECT *, named_struct('a', CAST(col2 AS TIME(0))),"
            " array(CAST(col2 AS TIME(3))), map('k', CAST(col2 AS TIME(9)))"
            f" FROM VALUES {', '.join(texts)}"
        )
        spark.sql(f"UPDATE {name} SET id = id + 10 WHERE at = TIME '12:30:15.5'")
        rows = spark.sql(f"SELECT id, at, s.a, l[0], m['k'] FROM {name} ORDER BY id").collect()
        assert [row[0] for row in rows] == [1, 2, 4, 13]
        assert rows[1][1:3] == (dt.time(23, 59, 59, 999999), dt.time(23, 59, 59))
        assert rows[1][3:] == (dt.time(23, 59, 59, 999000), dt.time(23, 59, 59, 999999))
        counts = f"SELECT at, count(*) AS n FROM {name} GROUP BY at ORDER BY at"
        assert [row.n for row in spark.sql(counts).collect()] == [1, 1, 1, 1]
        ends = spark.sql(f"SELECT min(at), max(at), count(at) FROM {name}").first()
        assert ends == (dt.time(0), dt.time(23, 59, 59, 999999), 3)
        joined = f"SELECT a.id FROM {name} a JOIN {name} b ON a.at = b.at"
        assert sorted(row.id for row in spark.sql(joined).collect()) == [1, 2, 13]
        one = f"SELECT id FROM {name} WHERE at IN (TIME '00:00:00') OR at > TIME '23:00:00'"
        assert sorted(row.id for row in spark.sql(one).collect()) == [1, 2]
        assert spark.table(f"{name}.partitions").count() > 0
        with pytest.raises(PySparkException, match="UNSUPPORTED_COLUMN_TYPE"):
            spark.sql(f"ALTER TABLE {name} ADD COLUMN other TIME(2)")
