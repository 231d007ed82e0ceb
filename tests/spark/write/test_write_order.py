"""The write order of a table: its SQL, and sorts that go where every leaf is known to be sorted."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import lance
import pyarrow as pa
import pytest
from tests.spark.assert_join import IN_SPARK, Executed, conf, execute, views

from pennon.manifest import LeafChange, Snapshot, commit_leaves

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

_SORT = re.compile(r"\bSort \[")
# Joins and windows in Spark: there is no sort in what the workers join.
WITHOUT = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.sources.v2.bucketing.enabled": "false",
}
ROWS = """
SELECT IF(id % 41 = 0, NULL, id * 7 % 300) AS id,
       timestamp_seconds(id * 13 % 997) AS ts,
       CASE id % 5 WHEN 0 THEN NULL WHEN 1 THEN '\uff61' WHEN 2 THEN '😀'
           ELSE cast(id AS STRING) END AS s,
       CASE id % 7 WHEN 0 THEN NULL WHEN 1 THEN double('NaN') WHEN 2 THEN -0.0D WHEN 3 THEN 0.0D
           ELSE id / 3.0D END AS d,
       cast(id AS INT) AS v
FROM range({first}, {end})"""
COLUMNS = "id BIGINT, ts TIMESTAMP, s STRING, d DOUBLE, v INT"


@pytest.fixture(scope="module")
def plain(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, without_broadcasts: None
) -> Iterator[str]:
    path = tmp_path_factory.mktemp("plain") / "rows"
    spark.sql(ROWS.format(first=0, end=1000)).write.parquet(str(path))
    spark.read.parquet(str(path)).createOrReplaceTempView("plain_rows")
    spark.sql("CREATE NAMESPACE lance.orders")
    yield "plain_rows"
    spark.sql("DROP NAMESPACE lance.orders CASCADE")


def made(spark: SparkSession, transform: str, order: str) -> str:
    """Make a table with the rows of ``plain``, once; each leaf gets several files."""
    name = "lance.orders.t" + re.sub(r"\W+", "_", f"{transform}_{order}")
    there = spark.sql("SHOW TABLES IN lance.orders").collect()
    if any(row["tableName"] == name.rpartition(".")[2] for row in there):
        return name
    spark.sql(
        f"CREATE TABLE {name} ({COLUMNS}) PARTITIONED BY ({transform}) "
        f"TBLPROPERTIES ('write.order' = '{order}')"
    )
    for first in (0, 500):
        spark.sql(
            f"INSERT INTO {name} {ROWS.format(first=first, end=first + 500)} ORDER BY rand(3)"
        )
    return name


def sorts_in(executed: Executed) -> int:
    return len(_SORT.findall(executed.plan.split("== Initial Plan ==", maxsplit=1)[0]))


def assert_sorts(
    spark: SparkSession,
    sql: str,
    tables: dict[str, str],
    plain: str,
    sorts: int,
    *,
    shuffles: int = 0,
) -> None:
    """Assert the sorts below joins and windows, the shuffles, and the rows; AQE on and off."""
    with views(spark, dict.fromkeys(tables, plain)), conf(spark, WITHOUT):
        expected = execute(spark, sql).rows
    for adaptive in ("true", "false"):
        settings = {**IN_SPARK, "spark.sql.adaptive.enabled": adaptive}
        with views(spark, tables), conf(spark, settings):
            found = execute(spark, sql)
        assert found.rows == expected, f"wrong rows: {sql}\n{found.plan}"
        assert (sorts_in(found), found.shuffles) == (sorts, shuffles), f"{sql}\n{found.plan}"


JOIN = "SELECT l.id, l.v, r.v AS rv FROM l {kind} JOIN r ON l.id = r.id"


@pytest.mark.parametrize("kind", ["INNER", "LEFT", "RIGHT", "FULL", "LEFT SEMI", "LEFT ANTI"])
def test_a_join_of_sorted_tables_needs_no_sort(spark: SparkSession, plain: str, kind: str) -> None:
    """Buckets 16 and 8: several leaves of a key, each of several files, are merged."""
    tables = {
        "l": made(spark, "bucket(16, id)", "id, ts DESC"),
        "r": made(spark, "bucket(8, id)", "id, ts DESC"),
    }
    sql = JOIN.format(kind=kind)
    if kind in ("LEFT SEMI", "LEFT ANTI"):
        sql = sql.replace(", r.v AS rv", "")
    assert_sorts(spark, sql, tables, plain, 0)


def test_more_keys_and_filters_and_texts(spark: SparkSession, plain: str) -> None:
    ids = dict.fromkeys("lr", made(spark, "bucket(8, id)", "id, ts DESC"))
    texts = dict.fromkeys("lr", made(spark, "bucket(4, s)", "s, v"))
    on_two = "SELECT l.v, r.v AS rv FROM l JOIN r ON l.id = r.id AND l.v = r.v WHERE l.v % 3 = 0"
    assert_sorts(spark, on_two, ids, plain, 2)  # v is not the second column of the order
    both = "SELECT l.s, r.s AS rs FROM l FULL JOIN r ON l.s = r.s AND l.v = r.v"
    assert_sorts(spark, both, texts, plain, 0)
    filtered = "SELECT l.s, r.v FROM l JOIN r ON l.s = r.s WHERE l.v > 100 AND r.v % 2 = 0"
    assert_sorts(spark, filtered, texts, plain, 0)


def test_a_window_over_a_sorted_table_needs_no_sort(spark: SparkSession, plain: str) -> None:
    tables = {"l": made(spark, "bucket(16, id)", "id, ts DESC")}
    sql = "SELECT id, v, max(v) OVER (PARTITION BY id ORDER BY ts DESC) AS m FROM l"
    assert_sorts(spark, sql, tables, plain, 0)
    top = (
        "SELECT * FROM (SELECT id, rank() OVER (PARTITION BY id ORDER BY ts DESC) AS r, ts FROM l)"
    )
    assert_sorts(spark, f"{top} WHERE r = 1", tables, plain, 0)
    other = "SELECT id, v, max(v) OVER (PARTITION BY id ORDER BY ts) AS m FROM l"
    assert_sorts(spark, other, tables, plain, 1)


@pytest.mark.parametrize("order", ["d", "d DESC", "s DESC NULLS FIRST, d", "ts, d NULLS LAST"])
def test_a_window_sees_sparks_order_of_every_value(
    spark: SparkSession, plain: str, order: str
) -> None:
    """NaN, -0.0, NULL, texts outside the BMP: without a sort the order is that of the files."""
    tables = {"l": made(spark, "bucket(4, id)", f"id, {order}")}
    window = f"OVER (PARTITION BY id ORDER BY {order})"
    sql = f"SELECT id, rank() {window} AS r, count(*) {window} AS c, d, s, ts FROM l"
    assert_sorts(spark, sql, tables, plain, 0)


def test_an_evolved_table_and_one_with_two_fields(spark: SparkSession, plain: str) -> None:
    evolved = "lance.orders.evolved"
    spark.sql(f"CREATE TABLE {evolved} ({COLUMNS}) PARTITIONED BY (bucket(16, id))")
    spark.sql(f"ALTER TABLE {evolved} WRITE DISTRIBUTED BY PARTITION LOCALLY ORDERED BY id")
    spark.sql(f"INSERT INTO {evolved} SELECT * FROM plain_rows WHERE v < 600")
    spark.sql(f"ALTER TABLE {evolved} REPLACE PARTITION FIELD bucket(16, id) WITH bucket(4, id)")
    spark.sql(f"INSERT INTO {evolved} SELECT * FROM plain_rows WHERE v >= 600")
    tables = {"l": evolved, "r": made(spark, "bucket(4, id), bucket(2, s)", "id")}
    assert_sorts(spark, JOIN.format(kind="FULL"), tables, plain, 0)
    window = "SELECT id, v, count(*) OVER (PARTITION BY id) AS n FROM l"
    assert_sorts(spark, window, tables, plain, 0)


def test_beside_a_table_without_order_only_that_one_is_sorted(
    spark: SparkSession, plain: str
) -> None:
    tables = {"l": made(spark, "bucket(4, id)", "id"), "r": plain}
    assert_sorts(spark, JOIN.format(kind="INNER"), tables, plain, 1, shuffles=1)


def test_rows_that_another_writer_appends_bring_the_sort_back(
    spark: SparkSession, plain: str, lake: Path
) -> None:
    name = "lance.orders.appended"
    spark.sql(f"CREATE TABLE {name} ({COLUMNS}) PARTITIONED BY (bucket(2, id))")
    spark.sql(f"ALTER TABLE {name} WRITE ORDERED BY id")
    spark.sql(f"INSERT INTO {name} SELECT * FROM plain_rows")
    tables = {"l": name, "r": made(spark, "bucket(4, id)", "id")}
    assert_sorts(spark, JOIN.format(kind="INNER"), tables, plain, 0)
    where = spark.sql(f"DESCRIBE TABLE EXTENDED {name}").where("col_name = 'Location'").first()
    assert where is not None
    snapshot = Snapshot.open(where["data_type"].removeprefix("file:"))
    leaves = snapshot.leaves().table.to_pylist()
    leaf = next(leaf for leaf in leaves if leaf["partition_field_id_bucket"] is not None)
    uri = f"{snapshot.location}/{leaf['location']}"
    there = lance.dataset(uri, version=leaf["read_version"]).to_table()
    turned = there.take(pa.array(range(len(there) - 1, -1, -1)))
    foreign = lance.write_dataset(turned, uri, mode="append")
    values = {
        field.field_id: pa.scalar(leaf[field.column], snapshot.partition_type(field.field_id))
        for field in snapshot.current_spec.fields
    }
    change = LeafChange(leaf["object_id"], leaf["location"], values, foreign.version)
    commit_leaves(snapshot, [change])
    assert_sorts(spark, JOIN.format(kind="INNER"), tables, plain, 1)


def test_every_kind_of_write_is_sorted(spark: SparkSession, plain: str) -> None:
    name = "lance.orders.written"
    tables = {"l": name, "r": made(spark, "bucket(4, id)", "id")}
    spark.sql(
        f"CREATE TABLE {name} PARTITIONED BY (bucket(2, id)) "
        "TBLPROPERTIES ('write.order' = 'id') AS SELECT * FROM plain_rows ORDER BY v"
    )
    assert_sorts(spark, JOIN.format(kind="INNER"), tables, plain, 0)
    spark.sql(f"INSERT OVERWRITE {name} SELECT * FROM plain_rows ORDER BY v DESC")
    assert_sorts(spark, JOIN.format(kind="INNER"), tables, plain, 0)
    spark.table("plain_rows").writeTo(name).overwritePartitions()
    assert_sorts(spark, JOIN.format(kind="INNER"), tables, plain, 0)
    spark.table("plain_rows").where("v < 0").writeTo(name).append()
    assert_sorts(spark, JOIN.format(kind="INNER"), tables, plain, 0)


def properties(spark: SparkSession, table: str) -> dict[str, str]:
    return {row["key"]: row["value"] for row in spark.sql(f"SHOW TBLPROPERTIES {table}").collect()}


def failure(spark: SparkSession, sql: str) -> str:
    with pytest.raises(Exception, match=r"\[[A-Z_]+\]") as raised:
        spark.sql(sql)
    return str(raised.value)


def test_the_order_is_a_property_that_follows_its_columns(
    spark: SparkSession, namespace: str
) -> None:
    table = f"{namespace}.t"
    spark.sql(f"CREATE TABLE {table} (id BIGINT, ts TIMESTAMP, l ARRAY<INT>)")
    spark.sql(f"ALTER TABLE {table} WRITE ORDERED BY `id`, /* newest */ TS desc;")
    wanted = "id ASC NULLS FIRST, ts DESC NULLS LAST"
    assert properties(spark, table)["write.order"] == wanted
    assert wanted in spark.sql(f"SHOW CREATE TABLE {table}").collect()[0][0]
    spark.sql(f"ALTER TABLE {table} RENAME COLUMN ts TO moment")
    assert properties(spark, table)["write.order"] == wanted.replace("ts", "moment")
    assert "writes are ordered by id" in failure(spark, f"ALTER TABLE {table} DROP COLUMN moment")
    spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('write.order' = 'moment')")
    spark.sql(f"ALTER TABLE {table} DROP COLUMN id")
    assert properties(spark, table)["write.order"] == "moment ASC NULLS FIRST"
    spark.sql(f"ALTER TABLE {table} WRITE UNORDERED")
    assert "write.order" not in properties(spark, table)
    spark.sql(f"ALTER TABLE {table} DROP COLUMN moment")


@pytest.mark.parametrize(
    ("order", "condition"),
    [
        ("ORDERED BY id id2", "WRITE_ORDER_SYNTAX"),
        ("ORDERED BY bucket(4, id)", "WRITE_ORDER_SYNTAX"),
        ("ORDERED BY", "WRITE_ORDER_SYNTAX"),
        ("SIDEWAYS", "WRITE_ORDER_SYNTAX"),
        ("ORDERED BY nope", "WRITE_ORDER_COLUMN_NOT_FOUND"),
        ("ORDERED BY l", "WRITE_ORDER_TYPE_NOT_SUPPORTED"),
    ],
)
def test_an_order_that_cannot_be_is_refused(
    spark: SparkSession, namespace: str, order: str, condition: str
) -> None:
    columns = "id BIGINT, l ARRAY<INT>"
    spark.sql(f"CREATE TABLE {namespace}.t ({columns})")
    assert f"[{condition}] Cannot" in failure(spark, f"ALTER TABLE {namespace}.t WRITE {order}")
    as_property = order.removeprefix("ORDERED BY").strip()
    if order.startswith("ORDERED BY"):
        create = f"CREATE TABLE {namespace}.u ({columns}) TBLPROPERTIES"
        text = failure(spark, f"{create} ('write.order' = '{as_property}')")
        assert f"[{condition}] Cannot" in text
    assert Counter(properties(spark, f"{namespace}.t"))["write.order"] == 0
