"""DELETE, UPDATE and MERGE of single rows through Spark, beside DuckDB and beside themselves."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import lance
import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException, PySparkException
from tests.spark.assert_join import WITHOUT_BROADCASTS, conf, shuffles_in
from tests.spark.statement_results import location_of, sorted_rows
from tests.strategies.random_row_changes import LAYOUTS
from tests.torture.held_statements import analyzed
from tests.torture.row_changes import run_table

import pennon

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

ADAPTIVE = "spark.sql.adaptive.enabled"


@pytest.fixture
def table(spark: SparkSession, namespace: str) -> str:
    name = f"{namespace}.t"
    spark.sql(f"CREATE TABLE {name} (id BIGINT NOT NULL, dep STRING, v INT) PARTITIONED BY (dep)")
    spark.sql(f"INSERT INTO {name} VALUES (1, 'a', 1), (2, 'a', 2), (3, 'b', 3), (4, NULL, 4)")
    return name


@pytest.mark.parametrize("layout", [LAYOUTS[3], LAYOUTS[4], LAYOUTS[6], "plain"])
def test_random_statements_leave_the_rows_that_duckdb_has(
    spark: SparkSession, namespace: str, layout: str
) -> None:
    seed = 100 + [*LAYOUTS, "plain"].index(layout)
    run_table(spark, namespace, seed, 6, layout)


def test_only_touched_fragments_change_and_earlier_readers_see_what_they_saw(
    spark: SparkSession, table: str
) -> None:
    root = location_of(spark, table)
    before = {
        partition.object_id: partition.version
        for partition in pennon.open(root).scan().plan().partitions
    }
    reading = spark.table(table).toLocalIterator()
    earlier = [tuple(next(reading))]
    spark.sql(f"UPDATE {table} SET v = 20 WHERE id = 2")
    plan = pennon.open(root).scan().plan()
    changed = [
        partition
        for partition in plan.partitions
        if before[partition.object_id] != partition.version
    ]
    assert [partition.values["dep"] for partition in changed] == ["a"]
    leaf = lance.dataset(f"{root}/{changed[0].location}", version=changed[0].version)
    old, new = leaf.get_fragments()
    assert (old.num_deletions, new.count_rows()) == (1, 1)
    assert plan.num_rows == 4
    earlier += [tuple(row) for row in reading]
    assert sorted(earlier, key=repr) == [(1, "a", 1), (2, "a", 2), (3, "b", 3), (4, None, 4)]
    assert sorted_rows(spark.table(table)) == [(1, "a", 1), (2, "a", 20), (3, "b", 3), (4, None, 4)]


def test_a_delete_that_partition_values_decide_reads_no_row(
    spark: SparkSession, table: str
) -> None:
    plan = spark.sql(f"EXPLAIN DELETE FROM {table} WHERE dep = 'a' OR dep IS NULL").first()[0]
    assert "DeleteFromTable" in plan
    assert "WriteDelta" not in plan
    assert "WriteDelta" in spark.sql(f"EXPLAIN DELETE FROM {table} WHERE id = 1").first()[0]


@pytest.mark.parametrize("mode", ["merge-on-read", "copy-on-write"])
def test_a_partition_goes_with_its_last_row(spark: SparkSession, table: str, mode: str) -> None:
    modes = ", ".join(f"'write.{of}.mode' = '{mode}'" for of in ("delete", "update", "merge"))
    spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ({modes})")
    spark.sql(f"ALTER TABLE {table} ADD PARTITION FIELD bucket(1, id)")
    spark.sql(f"INSERT INTO {table} VALUES (5, 'e', 5), (6, 'f', 6)")
    version = pennon.open(location_of(spark, table)).version
    spark.sql(f"DELETE FROM {table} WHERE id IN (3, 5)")
    spark.sql(f"UPDATE {table} SET dep = 'a' WHERE id = 4")
    merge = f"MERGE INTO {table} AS t USING (SELECT 6 AS id) AS s ON t.id = s.id"
    spark.sql(f"{merge} WHEN MATCHED THEN DELETE")
    shown = [row[0] for row in spark.sql(f"SHOW PARTITIONS {table}").collect()]
    assert len(shown) == 2
    assert all("dep=a" in text for text in shown)
    counts = spark.sql(f"SELECT record_count FROM {table}.partitions").collect()
    assert sorted(row[0] for row in counts) == [1, 2]
    told = spark.sql(f"CALL lance.system.explain_scan('SELECT * FROM {table}')").collect()
    assert "2 of 2" in str(told)
    assert spark.sql(f"SELECT * FROM {table} VERSION AS OF {version}").count() == 6
    changes = spark.sql(f"SELECT id FROM {table} CHANGES FROM VERSION {version + 1}")
    assert sorted(row[0] for row in changes.collect()) == [3, 4, 4, 5, 6]
    spark.sql(f"INSERT INTO {table} VALUES (3, 'b', 3)")
    assert sorted_rows(spark.table(table)) == [(1, "a", 1), (2, "a", 2), (3, "b", 3), (4, "a", 4)]


def test_metadata_columns_name_rows_and_are_not_among_all(spark: SparkSession, table: str) -> None:
    assert spark.table(table).columns == ["id", "dep", "v"]
    named = spark.sql(f"SELECT DISTINCT _leaf, _leaf_version, _rowaddr, _rowid FROM {table}")
    assert named.count() == 4
    [deleted] = spark.sql(f"SELECT _leaf, _rowaddr FROM {table} WHERE id = 2").collect()
    spark.sql(
        f"DELETE FROM {table} WHERE _leaf = '{deleted._leaf}' AND _rowaddr = {deleted._rowaddr}"
    )
    assert sorted_rows(spark.table(table)) == [(1, "a", 1), (3, "b", 3), (4, None, 4)]


@pytest.mark.parametrize("mode", ["merge-on-read", "copy-on-write"])
def test_conditions_and_values_name_metadata_columns(
    spark: SparkSession, table: str, mode: str
) -> None:
    modes = ", ".join(
        f"'write.{statement}.mode' = '{mode}'" for statement in ("delete", "update", "merge")
    )
    spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ({modes})")
    spark.sql(f"ALTER TABLE {table} ADD PARTITION FIELD bucket(2, id)")
    spark.sql(f"INSERT INTO {table} VALUES (5, 'a', 5), (6, NULL, 6)")

    def after(statement: str) -> dict[object, tuple[object, ...]]:
        spark.sql(statement.format(table))
        return {row.id: (row.dep, row.v) for row in spark.table(table).collect()}

    # With literals that have the column's type, and with those that Spark has to cast: it adds
    # metadata columns at different moments.
    assert after("DELETE FROM {0} WHERE _spec_version = 1 AND v = 1").keys() == {2, 3, 4, 5, 6}
    assert after("DELETE FROM {0} WHERE _partition.dep IS NULL AND id > 5").keys() == {2, 3, 4, 5}
    assert after("DELETE FROM {0} WHERE _partition.dep IS NULL").keys() == {2, 3, 5}
    updated = after("UPDATE {0} SET v = _spec_version WHERE _spec_version = 2")
    assert updated == {2: ("a", 2), 3: ("b", 3), 5: ("a", 2)}
    assert after("UPDATE {0} SET dep = 'c' WHERE _spec_version = 2 AND id = 5")[5] == ("c", 2)
    merge = (
        "MERGE INTO {0} t"
        " USING (SELECT id, _spec_version FROM {0} WHERE id = 3 UNION SELECT 9, 7) s"
        " ON t.id = s.id AND t._spec_version < s._spec_version + 1"
        " WHEN MATCHED AND t._partition.dep = 'b' THEN UPDATE SET v = t._spec_version + 40"
        " WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, s._spec_version)"
        " WHEN NOT MATCHED BY SOURCE AND t._partition.dep = 'c' THEN DELETE"
    )
    assert after(merge) == {2: ("a", 2), 3: ("b", 41), 9: (None, 7)}
    found_rows = (
        "MERGE INTO {0} t USING (SELECT id, _partition.dep AS dep FROM {0} WHERE id < 9) s"
        " ON t.id = s.id AND t._partition.dep <=> s.dep AND t._leaf IS NOT NULL"
        " WHEN MATCHED AND t._spec_version = 1 THEN UPDATE SET v = 50"
        " WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, -1)"
    )
    assert after(found_rows) == {2: ("a", 50), 3: ("b", 41), 9: (None, 7)}
    by_leaf = f"DELETE FROM {table} t WHERE _leaf IN (SELECT _leaf FROM {table} u WHERE u.id = 9)"
    assert after(by_leaf).keys() == {2, 3}


@pytest.mark.parametrize(
    ("statement", "after"),
    [
        ("DELETE FROM {t} WHERE dep = 'a'", {3: 3, 4: 4}),
        ("TRUNCATE TABLE {t}", {}),
        (
            "UPDATE {t} SET dep = 'c', v = 9 WHERE id IN (SELECT max(id) FROM {t})",
            {1: 1, 2: 2, 3: 3, 4: 9},
        ),
        (
            (
                "MERGE INTO {t} t USING (SELECT id + 1 AS id, v FROM {t} WHERE id IN (1, 3, 4)) s"
                " ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = s.v * 10"
                " WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, s.v)"
                " WHEN NOT MATCHED BY SOURCE AND t.id = 1 THEN DELETE"
            ),
            {2: 10, 3: 3, 4: 30, 5: 4},
        ),
        ("INSERT OVERWRITE {t} SELECT id, dep, v + 1 FROM {t} WHERE v > 2", {3: 4, 4: 5}),
    ],
    ids=["partitions", "truncate", "update", "merge", "overwrite"],
)
def test_a_statement_that_a_rewrite_came_before_is_made_all_the_same(
    spark: SparkSession, table: str, statement: str, after: dict[int, int]
) -> None:
    """The rows that it has found are in other partitions when it commits."""
    run = analyzed(spark, statement.format(t=table))
    spark.sql(f"ALTER TABLE {table} ADD PARTITION FIELD bucket(2, id)")
    root = pennon.open(location_of(spark, table))
    assert root.maintenance.rewrite_partitions().num_rows == 4
    run()
    assert {row.id: row.v for row in spark.table(table).collect()} == after
    assert [entry.operation for entry in root.history()].count("rewrite_partitions") == 1
    assert root.maintenance.check().is_valid


def test_a_statement_is_not_run_again_where_its_columns_are_others(
    spark: SparkSession, table: str
) -> None:
    by_partition = analyzed(spark, f"UPDATE {table} SET v = 0 WHERE _partition.dep = 'a'")
    spark.sql(f"ALTER TABLE {table} ADD PARTITION FIELD bucket(2, id)")
    run = analyzed(spark, f"UPDATE {table} SET v = 0")
    pennon.open(location_of(spark, table)).maintenance.rewrite_partitions()
    with pytest.raises(PySparkException, match="ROWS_MOVED"):
        by_partition()
    spark.sql(f"ALTER TABLE {table} ADD COLUMN note STRING")
    with pytest.raises(PySparkException, match="ROWS_MOVED"):
        run()
    assert sorted(row.v for row in spark.table(table).collect()) == [1, 2, 3, 4]


def test_a_row_that_matches_several_times_is_refused(spark: SparkSession, table: str) -> None:
    with pytest.raises(PySparkException, match="MERGE_CARDINALITY_VIOLATION"):
        spark.sql(
            f"MERGE INTO {table} t USING (SELECT * FROM VALUES (1, 10), (1, 11) AS x(id, v)) s"
            " ON t.id = s.id"
            " WHEN MATCHED THEN UPDATE SET v = s.v"
        )
    assert sorted_rows(spark.table(table))[0] == (1, "a", 1)


def test_not_null_holds_for_changed_rows(spark: SparkSession, table: str) -> None:
    with pytest.raises(PySparkException, match="NOT_NULL"):
        spark.sql(f"UPDATE {table} SET id = IF(v = 2, NULL, id)")
    assert len(sorted_rows(spark.table(table))) == 4


def test_columns_added_later_and_older_specs_take_part(spark: SparkSession, table: str) -> None:
    spark.sql(f"ALTER TABLE {table} ADD COLUMN note STRING DEFAULT 'none'")
    spark.sql(f"ALTER TABLE {table} ADD PARTITION FIELD bucket(2, id)")
    spark.sql(f"INSERT INTO {table} VALUES (5, 'b', 5, 'new')")
    spark.sql(f"UPDATE {table} SET note = 'old', v = v * 10 WHERE dep = 'b'")
    spark.sql(f"DELETE FROM {table} WHERE note = 'none' AND v = 1")
    assert sorted_rows(spark.table(table)) == [
        (2, "a", 2, "none"),
        (3, "b", 30, "old"),
        (4, None, 4, "none"),
        (5, "b", 50, "old"),
    ]


@pytest.mark.parametrize("name", ["_leaf", "_RowAddr", "__row_operation", "*"])
def test_another_clients_column_with_a_name_that_tells_rows_apart_is_read_and_not_changed(
    spark: SparkSession, tmp_path: Path, name: str
) -> None:
    lance.write_dataset(pa.table({"id": [1, 2], name: [10, 20]}), str(tmp_path / "t"))
    table = f"lance.`{tmp_path}/t`"
    read = spark.sql(f"SELECT id, `{name}` FROM {table} WHERE id > 1 AND `{name}` > 5")
    assert sorted_rows(read) == [(2, 20)]
    merge = f"MERGE INTO {table} t USING (SELECT 1 AS id, 3 AS v) s ON t.id = s.id WHEN MATCHED"
    for statement in (
        f"UPDATE {table} SET id = id + 100 WHERE id = 2",
        f"DELETE FROM {table} WHERE id = 102",
        f"{merge} THEN UPDATE SET `{name}` = s.v",
    ):
        if name == "*":
            spark.sql(statement)
            continue
        with pytest.raises(PySparkException, match="ROW_ID_HIDDEN"):
            spark.sql(statement)
    assert sorted_rows(spark.table(table)) == ([(1, 3)] if name == "*" else [(1, 10), (2, 20)])


@pytest.mark.parametrize(
    ("statement", "column"),
    [
        ("UPDATE {t} SET _rowid = 5", "_rowid"),
        ("UPDATE {t} AS x SET v = 9, x._LEAF = 'x' WHERE id = 1", "_leaf"),
        ("UPDATE {t} SET _partition.dep = 'b'", "_partition"),
        (
            "MERGE INTO {t} t {using} WHEN MATCHED THEN UPDATE SET t._spec_version = 4",
            "_spec_version",
        ),
        (
            "MERGE INTO {t} t {using} WHEN NOT MATCHED THEN INSERT (id, _rowid) VALUES (7, 4)",
            "_rowid",
        ),
        ("MERGE INTO {t} t {using} WHEN NOT MATCHED BY SOURCE THEN UPDATE SET _leaf = ''", "_leaf"),
    ],
)
def test_a_metadata_column_is_not_set(
    spark: SparkSession, table: str, statement: str, column: str
) -> None:
    """The statement was made without it, in silence."""
    version = spark.sql(f"SELECT max(snapshot_id) FROM {table}.history").first()
    using = "USING (SELECT 1 AS id, 2 AS v) s ON t.id = s.id"
    with pytest.raises(AnalysisException, match=rf"(?i)METADATA_COLUMN_SET.* {column} of lance"):
        spark.sql(statement.format(t=table, using=using))
    assert spark.sql(f"SELECT max(snapshot_id) FROM {table}.history").first() == version


@pytest.mark.parametrize("is_adaptive", [True, False])
@pytest.mark.parametrize(
    "statement",
    [
        (
            "MERGE INTO {t} t USING {s} s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = s.v"
            " WHEN NOT MATCHED THEN INSERT *"
        ),
        (
            "MERGE INTO {t} t USING {s} s ON t.id = s.id WHEN MATCHED THEN DELETE"
            " WHEN NOT MATCHED BY SOURCE THEN UPDATE SET v = 0"
        ),
        "UPDATE {t} SET v = 1 WHERE id IN (SELECT id FROM {s} WHERE v > 3)",
        "DELETE FROM {t} WHERE EXISTS (SELECT 1 FROM {s} s WHERE s.id = {t}.id AND s.v > 3)",
    ],
)
def test_a_source_of_the_same_partitioning_is_joined_without_a_shuffle(
    spark: SparkSession, namespace: str, statement: str, *, is_adaptive: bool
) -> None:
    """J32: what Spark may shuffle is the result, on its way to the partitions it is written to."""
    names = {"t": f"{namespace}.t", "s": f"{namespace}.s"}
    for name in names.values():
        spark.sql(
            f"CREATE TABLE {name} PARTITIONED BY (bucket(4, id)) AS"
            " SELECT id, CAST(id AS INT) AS v FROM RANGE(40)"
        )
    with conf(spark, {ADAPTIVE: str(is_adaptive).lower(), **WITHOUT_BROADCASTS}):
        plan = spark.sql("EXPLAIN " + statement.format(**names)).first()[0]
    assert "WriteDelta" in plan
    joined = re.search(r"SortMergeJoin.*", plan, re.DOTALL)
    assert joined is not None, plan
    assert shuffles_in(joined.group()) == 0, plan


@pytest.mark.parametrize(
    ("values", "condition", "rows"),
    [
        ("v = (SELECT max(w) FROM s WHERE s.id = t.id)", "id < 4", [10, None, 31]),
        (
            "v = CASE WHEN EXISTS (SELECT 1 FROM s WHERE s.id = t.id) THEN 0 ELSE v END",
            "",
            [0, 2, 0],
        ),
        ("v = IF(t.id IN (SELECT id FROM s), -v, 7)", "", [-1, 7, -3]),
        ("dep = (SELECT 'n' WHERE t.id = 2), v = (SELECT count(*) FROM s)", "id = 2", [1, 3, 3]),
        (
            "v = t._spec_version + (SELECT count(*) FROM s WHERE s.id = t.id)",
            "t._spec_version = 1 AND id IN (SELECT id FROM s)",
            [2, 2, 3],
        ),
    ],
)
def test_values_are_subqueries_of_the_row(
    spark: SparkSession, table: str, values: str, condition: str, rows: list[int | None]
) -> None:
    source = "VALUES (1, 10), (3, 30), (3, 31) AS s(id, w)"
    spark.sql(f"SELECT * FROM {source}").createOrReplaceTempView("s")
    spark.sql(f"UPDATE {table} t SET {values} WHERE t.id < 4 AND {condition or 'true'}")
    assert [row.v for row in spark.table(table).orderBy("id").collect()] == [*rows, 4]
    spark.catalog.dropTempView("s")


def test_plain_datasets_change_row_by_row(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "plain.lance")
    lance.write_dataset(pa.table({"id": [1, 2, 3], "v": ["a", "b", "c"]}), path)
    spark.sql(f"DELETE FROM lance.`{path}` WHERE id = 2")
    spark.sql(f"UPDATE lance.`{path}` SET v = 'x' WHERE id = 3")
    spark.sql(
        f"MERGE INTO lance.`{path}` t USING (SELECT * FROM VALUES (4, 'd') AS x(id, v)) s"
        " ON t.id = s.id"
        " WHEN NOT MATCHED THEN INSERT *"
    )
    assert sorted_rows(spark.table(f"lance.`{path}`")) == [(1, "a"), (3, "x"), (4, "d")]
    assert sorted(lance.dataset(path).to_table()["id"].to_pylist()) == [1, 3, 4]


def test_rows_of_a_null_partition_are_changed_by_a_source(spark: SparkSession, table: str) -> None:
    source = "SELECT id FROM VALUES (1L), (4L) AS s(id)"
    spark.sql(
        f"MERGE INTO {table} t USING ({source}) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = 7"
    )
    assert sorted_rows(spark.table(table)) == [(1, "a", 7), (2, "a", 2), (3, "b", 3), (4, None, 7)]


@pytest.mark.parametrize(("threshold", "join"), [("10MB", "ShuffledHashJoin"), ("-1", "SortMerge")])
def test_only_a_small_source_is_hashed(
    spark: SparkSession, table: str, threshold: str, join: str
) -> None:
    merge = (
        f"MERGE INTO {table} t USING (SELECT 2L AS id UNION ALL SELECT 7L) s ON t.id = s.id"
        " WHEN MATCHED THEN UPDATE SET v = 0 WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)"
    )
    with conf(spark, {"spark.sql.autoBroadcastJoinThreshold": threshold}):
        assert join in spark.sql(f"EXPLAIN {merge}").first()[0]
        spark.sql(merge)
    expected = [(1, "a", 1), (2, "a", 0), (3, "b", 3), (4, None, 4), (7, None, None)]
    assert sorted_rows(spark.table(table)) == expected


def test_a_merge_takes_a_source_that_has_other_rows_each_time(
    spark: SparkSession, table: str
) -> None:
    before = {row.id: row.v for row in spark.table(table).collect()}
    spark.sql(
        f"MERGE INTO {table} t USING (SELECT id + 1 AS id, uuid() AS name FROM {table}) s"
        " ON t.id = s.id"
        " WHEN MATCHED THEN UPDATE SET dep = s.name"
        " WHEN NOT MATCHED THEN INSERT (id, dep, v) VALUES (s.id, s.name, 0)"
    )
    after = {row.id: row for row in spark.table(table).collect()}
    added = max(before) + 1
    assert {row.id: row.v for row in after.values()} == {**before, added: 0}
    renamed = [row.dep for row in after.values() if row.id == added or row.id - 1 in before]
    assert len(renamed) == len(before)
    assert len(set(renamed)) == len(before)
    assert all(len(name) == 36 for name in renamed)
