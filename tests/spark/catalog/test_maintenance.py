"""Other layouts in SQL: the older draft, adopted and split datasets, repaired and migrated ones."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import lance
import pyarrow as pa
import pytest
from tests.draft.older_draft import CASES, make
from tests.spark.statement_results import failure_of

from pennon.manifest.format.properties import WRITER_FLAGS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def table(spark: SparkSession, namespace: str) -> str:
    name = f"{namespace}.t"
    spark.sql(f"CREATE TABLE {name} (id BIGINT, region STRING) PARTITIONED BY (region)")
    spark.sql(f"INSERT INTO {name} VALUES (1, 'eu'), (2, 'eu'), (3, NULL)")
    return name


def location_of(spark: SparkSession, table: str) -> str:
    (row,) = spark.sql(f"DESCRIBE EXTENDED {table}").where("col_name = 'Location'").collect()
    return str(row.data_type).removeprefix("file:")


def rows_of(spark: SparkSession, query: str) -> list[tuple[object, ...]]:
    return sorted((tuple(row) for row in spark.sql(query).collect()), key=repr)


def violations(spark: SparkSession, table: str) -> list[object]:
    found = spark.sql(f"CALL lance.system.check(table => '{table}')")
    return found.where("severity = 'violation'").collect()


def test_adopted_and_split_datasets_are_read(
    spark: SparkSession, table: str, tmp_path: Path
) -> None:
    location = location_of(spark, table)
    lance.write_dataset(pa.table({"id": [4], "region": ["us"]}), f"{location}/old/region=us")
    mixed = str(tmp_path / "mixed")
    lance.write_dataset(pa.table({"id": [5, 6, 7], "region": ["us", "eu", "de"]}), mixed)
    call = f"CALL lance.system.adopt(table => '{table}', path => '{{}}'{{}})"
    (done,) = spark.sql(call.format(f"{location}/old", "")).collect()
    assert (done.partition, done.rows) == ("region=us", 1)
    assert rows_of(spark, f"SELECT id FROM {table} WHERE region = 'us'") == [(4,)]
    assert re.search(
        r"row 0 \(region us\).*row 1 \(region eu\)", failure_of(spark, call.format(mixed, ""))
    )
    done = spark.sql(call.format(mixed, ", split => true")).collect()
    assert sorted(row.partition for row in done) == ["region=de", "region=eu", "region=us"]
    by_region = f"SELECT region, sum(id) FROM {table} GROUP BY region"
    assert rows_of(spark, by_region) == [("de", 7), ("eu", 9), ("us", 9), (None, 3)]
    spark.sql(f"INSERT INTO {table} VALUES (8, 'us')")
    assert rows_of(spark, f"SELECT id FROM {table} WHERE region = 'us'") == [(4,), (5,), (8,)]
    assert violations(spark, table) == []


def test_a_damaged_manifest_is_named_and_repaired(spark: SparkSession, table: str) -> None:
    manifest = lance.dataset(f"{location_of(spark, table)}/__manifest")
    manifest.update_metadata({WRITER_FLAGS: "0", "schema": None, "partition_spec_v1": None})
    manifest.drop_columns(["read_version", "partition_field_region"])
    repair = f"CALL lance.system.repair(table => '{table}', dry_run => true)"
    (planned,) = spark.sql(repair).collect()
    assert planned.restored_columns == "read_version, partition_field_region"
    assert "pennon repair" in failure_of(spark, f"SELECT * FROM {table}")
    (done,) = spark.sql(f"CALL lance.system.repair(table => '{table}')").collect()
    assert done.restored_columns == "read_version, partition_field_region"
    assert (done.restored_keys, done.mended_rows) == ("partition_spec_v1, schema", "")
    assert rows_of(spark, f"SELECT * FROM {table}") == [(1, "eu"), (2, "eu"), (3, None)]
    assert violations(spark, table) == []


@pytest.fixture
def draft(tmp_path: Path) -> str:
    column, name, *_ = CASES["epoch day"]
    return make(tmp_path / "draft", [column], lambda row: [name(row)])


def test_a_draft_is_read_pruned_and_joined_and_not_written(
    spark: SparkSession, draft: str, table: str
) -> None:
    path = f"lance.`{draft}`"
    query = f"SELECT id FROM {path} WHERE ts < TIMESTAMP '2025-02-01'"
    assert rows_of(spark, query) == [(3,), (4,), (8,), (9,)]
    shown = "\n".join(row[0] for row in spark.sql(f"EXPLAIN {query}").collect())
    assert re.search(r"2 of 4", shown), shown
    grouped = f"SELECT date(ts), count(*), sum(n) FROM {path} GROUP BY date(ts)"
    counted = sorted(row[1:] for row in rows_of(spark, grouped))
    assert counted == [(2, -50), (2, 34), (2, 50), (4, 0)]
    joined = f"SELECT d.id, t.region FROM {path} d JOIN {table} t ON d.id = t.id"
    assert rows_of(spark, joined) == [(1, "eu"), (2, "eu"), (3, None)]
    for statement in (
        f"INSERT INTO {path} SELECT * FROM {path}",
        f"DELETE FROM {path} WHERE ts < TIMESTAMP '2025-01-02'",
        f"DELETE FROM {path}",
        f"ALTER TABLE {path} ADD COLUMN x INT",
        f"ALTER TABLE {path} ADD PARTITION FIELD country",
        f"ALTER TABLE {path} SET TBLPROPERTIES ('a' = 'b')",
        f"DROP TABLE {path}",
    ):
        assert "pennon migrate" in failure_of(spark, statement), statement
    assert len(rows_of(spark, f"SELECT * FROM {path}")) == 10


def test_a_migrated_draft_is_written(spark: SparkSession, draft: str) -> None:
    path = f"lance.`{draft}`"
    before = rows_of(spark, f"SELECT * FROM {path}")
    version = lance.dataset(f"{draft}/__manifest").version
    (done,) = spark.sql(f"CALL lance.system.migrate(path => '{draft}')").collect()
    assert (done.leaves, done.rows) == (4, 10)
    assert rows_of(spark, f"SELECT * FROM {path}") == before
    spark.sql(f"INSERT INTO {path} SELECT id + 100, country, ts, n FROM {path}")
    assert len(rows_of(spark, f"SELECT * FROM {path}")) == 20
    assert rows_of(spark, f"SELECT * FROM {path} VERSION AS OF {version}") == before
    assert violations(spark, draft) == []
