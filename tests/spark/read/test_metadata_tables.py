"""Metadata tables against what the table's own rows, files and statements say."""

from __future__ import annotations

import os
from collections import Counter
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import AnalysisException

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession


@pytest.fixture
def table(spark: SparkSession, namespace: str) -> str:
    """A table of two spec versions, with NULLs in its partition values."""
    name = f"{namespace}.t"
    spark.sql(f"CREATE TABLE {name} (id INT, region STRING) PARTITIONED BY (region)")
    rows = "SELECT id, IF(id % 3 = 0, NULL, concat('r', id % 3)) FROM range(20)"
    spark.sql(f"INSERT INTO {name} {rows}")
    spark.sql(f"ALTER TABLE {name} ADD PARTITION FIELD bucket(2, id) AS shard")
    spark.sql(f"INSERT INTO {name} {rows}")
    return name


def rows(spark: SparkSession, query: str) -> list[Row]:
    return spark.sql(query).collect()


def test_partitions_have_the_rows_that_a_scan_counts(spark: SparkSession, table: str) -> None:
    partitions = rows(spark, f"SELECT * FROM {table}.partitions")
    assert Counter(row.spec_version for row in partitions) == {1: 3, 2: 6}
    by_region: Counter[str | None] = Counter()
    for row in partitions:
        by_region[row.partition.region] += row.record_count
        assert (row.partition.shard is None) == (row.spec_version == 1)
        assert row.file_count == 1
        assert row.total_data_file_size_in_bytes > 0
    scanned = rows(spark, f"SELECT region, count(*) AS n FROM {table} GROUP BY region")
    assert by_region == {row.region: row.n for row in scanned}
    assert rows(spark, f"SELECT count(*) AS n FROM {table}.partitions")[0].n == 9
    told = {row.leaf: row.readable_metrics for row in partitions}
    assert {
        leaf: (statistics.id.lower_bound, statistics.id.upper_bound, statistics.id.value_count)
        for leaf, statistics in told.items()
    } == {
        row.leaf: (row.low, row.high, row.n)
        for row in rows(
            spark,
            "SELECT _leaf AS leaf, min(id) AS low, max(id) AS high, count(*) AS n"
            f" FROM {table} GROUP BY _leaf",
        )
    }
    assert (
        sum(statistics.region.null_value_count for statistics in told.values()) == by_region[None]
    )
    spark.sql(f"DELETE FROM {table} WHERE id = 0")
    of_null = f"SELECT * FROM {table}.partitions WHERE partition.region IS NULL"
    assert {row.readable_metrics.id.null_value_count for row in rows(spark, of_null)} <= {None, 0}
    assert min(row.readable_metrics.id.lower_bound for row in rows(spark, of_null)) == 0


@pytest.mark.parametrize(
    ("predicate", "count"),
    [
        ("partition.region = 'r1'", 3),
        ("partition.region IS NULL AND partition.shard = 1", 1),
        ("partition.region <=> NULL", 3),
        ("upper(partition.region) = 'R2'", 3),
        ("partition.shard IN (0, 5) OR spec_version = 1", 6),
        ("NOT (partition.region > 'r1')", 3),
        ("spec_version = 2 AND coalesce(partition.region, '-') = '-'", 2),
        ("spec_version = 3", 0),
        ("leaf = 'none' OR (spec_version = 1 AND Partition.REGION = 'r1')", 1),
    ],
)
def test_partitions_are_chosen_by_predicates(
    spark: SparkSession, table: str, predicate: str, count: int
) -> None:
    found = rows(spark, f"SELECT leaf FROM {table}.partitions WHERE {predicate}")
    assert len(found) == len({row.leaf for row in found}) == count
    files = rows(spark, f"SELECT leaf FROM {table}.files WHERE {predicate}")
    assert {row.leaf for row in files} == {row.leaf for row in found}


def test_partitions_are_shown_by_statement(spark: SparkSession, table: str) -> None:
    def shown(statement: str) -> list[str]:
        return [row.partition for row in rows(spark, statement)]

    region = rows(spark, f"SELECT field_id FROM {table}.specs WHERE spec_version = 1")[0].field_id
    every = shown(f"SHOW PARTITIONS {table}")
    assert every == sorted(every)
    assert len(every) == 9
    assert f"{region}=null" in every
    assert f"{region}=r1/shard=0" in every
    chosen = shown(f"SHOW PARTITIONS {table} PARTITION ({region} = 'r1', shard = 0)")
    assert chosen == [f"{region}=r1/shard=0"]
    assert len(shown(f"SHOW PARTITIONS {table} PARTITION ({region} = NULL)")) == 3
    for number in ("0.0", "CAST( 0.0 AS DECIMAL(3, 1) )", "- 0", ".0", "-1.5"):
        chosen = shown(f"SHOW PARTITIONS {table} PARTITION ( {region}='r1',shard={number} )")
        assert chosen == [f"{region}=r1/shard=0"] * (number != "-1.5")
    marked = f"SHOW PARTITIONS {table} PARTITION (`{region}` == :region)"
    assert len(spark.sql(marked, {"region": "r1"}).collect()) == 3
    catalog, namespace, name = table.split(".")
    try:
        spark.sql(f"USE {catalog}.{namespace}")
        assert shown(f"SHOW PARTITIONS {name}") == every
    finally:
        spark.sql("USE spark_catalog.default")


@pytest.mark.parametrize(
    ("behind", "refusal"),
    [
        ("foo", "near 'foo'"),
        ("PARTITON (region = 'r1')", "near 'PARTITON'"),
        ("x OR true", "near 'x'"),
        ("OR true", "near 'OR'"),
        ("LIKE 'x'", "near 'LIKE'"),
        ("PARTITION", "near end of input"),
        ("PARTITION ()", r"near '\)'"),
        ("PARTITION (region)", "`region` must set value"),
        ("PARTITION (region =)", r"near '\)'"),
        ("PARTITION (region = 'r1' OR true)", "near 'OR'"),
        ("PARTITION (region = 'r1') OR true", "near 'OR'"),
        ("PARTITION (region = 'r1' AND shard = 0)", "near 'AND'"),
        ("PARTITION (region => 'r1')", "near '=>'"),
        ("PARTITION (region = shard)", r"near '\)'"),
        ("PARTITION (region = 'r1') extra", "near 'extra'"),
        ("PARTITION (region = 'r1'", "near end of input"),
        ("PARTITION (region = 'r1')) UNION SELECT (1", r"near '\)'"),
        ("PARTITION (region = lower('r1') || 'x')", r"near '\('"),
    ],
)
def test_partitions_are_shown_of_no_other_statement(
    spark: SparkSession, table: str, behind: str, refusal: str
) -> None:
    statement = f"SHOW PARTITIONS {table} {behind}"
    with pytest.raises(AnalysisException, match=refusal) as refused:
        rows(spark, statement)
    assert "SELECT name" not in str(refused.value)


def test_names_of_partitions_are_unlike_and_escaped_as_in_paths(
    spark: SparkSession, namespace: str
) -> None:
    texts = ("", "a", "a/l=b", "50%", "%2F", "two\nlines", "it's {é😀} [:]?*#^\\")
    hive = spark._jvm.org.apache.spark.sql.catalyst.catalog.ExternalCatalogUtils
    names: dict[str | None, str] = {text: hive.escapePathName(text) for text in texts}
    names |= {None: "null", "null": "%6Eull"}
    assert hive.unescapePathName(names["null"]) == "null"
    table = f"{namespace}.names"
    spark.sql(f"CREATE TABLE {table} (k STRING, l STRING) PARTITIONED BY (k, l)")
    values = [(text, other) for text in names for other in (None, "b")]
    spark.createDataFrame(values, "k STRING, l STRING").writeTo(table).append()
    shown = [row.partition for row in rows(spark, f"SHOW PARTITIONS {table}")]
    assert sorted(shown) == sorted(
        f"k={name}/l={other}" for name in names.values() for other in ("null", "b")
    )


@pytest.mark.parametrize("name", ["files", "PARTITIONS"])
def test_metadata_that_is_named_as_a_table_is_called_metadata(
    spark: SparkSession, table: str, name: str
) -> None:
    with pytest.raises(AnalysisException, match=f"metadata of the table {table}"):
        rows(spark, f"SHOW PARTITIONS {table}.{name}")


def test_files_are_those_on_disk(spark: SparkSession, table: str) -> None:
    files = rows(spark, f"SELECT * FROM {table}.files")
    assert sum(row.record_count for row in files) == rows(spark, f"SELECT * FROM {table}").__len__()
    for row in files:
        assert row.file_size_in_bytes == sum(map(os.path.getsize, row.file_paths))
    of_partitions = rows(spark, f"SELECT leaf, readable_metrics AS told FROM {table}.partitions")
    assert {row.leaf: row.readable_metrics for row in files} == {
        row.leaf: row.told for row in of_partitions
    }, "each leaf has one fragment"


def test_specs_tell_every_version_of_the_partitioning(spark: SparkSession, table: str) -> None:
    specs = rows(spark, f"SELECT * FROM {table}.specs ORDER BY spec_version, position")
    told = [(row.spec_version, row.is_current, row.field_id, row.transform) for row in specs]
    region = specs[0].field_id
    assert told == [
        (1, False, region, "region"),
        (2, True, region, "region"),
        (2, True, "shard", "bucket(2, id)"),
    ]


def test_every_snapshot_can_be_read_and_counts_what_was_there(
    spark: SparkSession, table: str
) -> None:
    snapshots = rows(spark, f"SELECT * FROM {table}.snapshots ORDER BY snapshot_id")
    ids = [row.snapshot_id for row in snapshots]
    assert ids == [row.snapshot_id for row in rows(spark, f"SELECT * FROM {table}.history")]
    assert [row.parent_id for row in snapshots] == [None, *ids[:-1]]
    appends = [row.summary for row in snapshots if row.operation == "append"]
    assert [(row["added-records"], row["changed-partition-count"]) for row in appends] == [
        ("20", "3"),
        ("20", "6"),
    ]
    assert [row.committed_at for row in snapshots] == sorted(row.committed_at for row in snapshots)
    for id_ in ids:
        counted = rows(spark, f"SELECT count(*) AS n FROM {table} VERSION AS OF {id_}")[0].n
        partitions = rows(spark, f"SELECT * FROM {table}.partitions VERSION AS OF {id_}")
        assert counted == sum(row.record_count for row in partitions)
    refs = rows(spark, f"SELECT * FROM {table}.refs")
    assert [(row.name, row.type, row.snapshot_id) for row in refs] == [("main", "BRANCH", ids[-1])]


def test_manifest_shows_the_rows_of_the_format(spark: SparkSession, table: str) -> None:
    found = rows(spark, f"SELECT object_type, count(*) AS n FROM {table}.manifest GROUP BY ALL")
    counts = {row.object_type: row.n for row in found}
    assert counts["table"] == 9
    assert rows(spark, f"SELECT DISTINCT partition_field_shard FROM {table}.manifest")


def test_metadata_tables_join_and_are_never_written(spark: SparkSession, table: str) -> None:
    joined = rows(
        spark,
        f"SELECT p.leaf FROM {table}.partitions p JOIN {table}.files f ON p.leaf = f.leaf "
        f"JOIN {table} t ON t.region = p.partition.region AND t.id = 1",
    )
    assert len(joined) == 6
    with pytest.raises(AnalysisException):
        spark.sql(f"INSERT INTO {table}.refs VALUES ('a', 'TAG', 1)")
    for statement, change in (
        (f"ALTER TABLE {table}.files ADD COLUMN x INT", "alter files"),
        (f"ALTER TABLE {table}.files ADD PARTITION FIELD leaf", "alter files"),
        (f"COMMENT ON TABLE {table}.files IS 'x'", "alter files"),
        (f"ALTER TABLE {table}.refs RENAME TO x", "rename refs"),
        (f"DROP TABLE {table}.refs", "drop refs"),
    ):
        refused = rf"UNSUPPORTED_TABLE_CHANGE.*Cannot {change} of table {table}: .* table itself\."
        with pytest.raises(AnalysisException, match=refused):
            spark.sql(statement)
    with pytest.raises(AnalysisException, match="TABLE_NOT_FOUND"):
        spark.sql(f"SELECT * FROM {table}.nothing")


def test_a_table_of_that_name_comes_first(spark: SparkSession, namespace: str, table: str) -> None:
    spark.sql(f"CREATE TABLE {namespace}.partitions (a INT)")
    assert spark.table(f"{namespace}.partitions").columns == ["a"]
    assert "partition" in spark.table(f"{table}.partitions").columns


def test_every_commit_of_a_session_names_its_user_and_its_application(
    spark: SparkSession, namespace: str
) -> None:
    """ALTER and CALL, which the worker commits by itself, said python and the process's user."""
    table = f"{namespace}.t"
    spark.sql(f"CREATE TABLE {table} (id INT)")
    for id_ in (1, 2):
        spark.sql(f"INSERT INTO {table} VALUES ({id_})")
    spark.sql(f"ALTER TABLE {table} ADD COLUMN v INT")
    spark.sql(f"CALL lance.system.compact(table => '{table}')")
    spark.sql(f"UPDATE {table} SET v = 1")
    context = spark.sparkContext
    made = rows(spark, f"SELECT operation, summary FROM {table}.snapshots WHERE operation > 'a'")
    who = {
        row.operation: (row.summary["user"], row.summary["application"])
        for row in made
        if "commit-id" in row.summary  # those of the manifest alone have none
    }
    assert who.keys() >= {"alter", "compact", "update", "append"}
    assert set(who.values()) == {(context.sparkUser(), context.applicationId)}
