"""The change feed in SQL: a metadata table and a procedure."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_changes_of_statements_are_told_commit_by_commit(
    spark: SparkSession, namespace: str
) -> None:
    table = f"{namespace}.t"
    spark.sql(f"CREATE TABLE {table} (id INT, dep STRING, at TIMESTAMP_NTZ) PARTITIONED BY (dep)")
    spark.sql(f"INSERT INTO {table} VALUES (1, 'a', NULL), (2, NULL, NULL), (3, 'b', NULL)")
    start = spark.sql(f"SELECT max(snapshot_id) AS n FROM {table}.snapshots").first().n
    spark.sql(
        f"UPDATE {table} SET dep = 'b', at = TIMESTAMP_NTZ '2025-01-02 03:04:05' WHERE id < 3"
    )
    spark.sql(f"ALTER TABLE {table} ADD PARTITION FIELD bucket(2, id)")
    spark.sql(f"DELETE FROM {table} WHERE id = 3")
    spark.sql(f"INSERT OVERWRITE {table} SELECT * FROM {table}")
    found = spark.sql(
        f"SELECT _change_type, id, dep, _commit_version - {start} AS step FROM {table}.changes"
        f" WHERE _commit_version > {start} ORDER BY step, _change_type, id"
    ).collect()
    assert [tuple(row) for row in found] == [
        ("delete", 1, "a", 1),
        ("delete", 2, None, 1),
        ("insert", 1, "b", 1),
        ("insert", 2, "b", 1),
        ("delete", 3, "b", found[-1].step),
    ]
    counted = spark.sql(
        f"SELECT count(*) AS n FROM {table}.changes WHERE _commit_version = {start}"
    )
    assert counted.first().n == 3
    name = table.split(".", 1)[1]
    paired = spark.sql(f"CALL lance.system.changes('{name}', {start}, {start} + 1, 'id')").collect()
    told = [(row.change_type, json.loads(row.row)["id"]) for row in paired]
    assert sorted(told) == [
        *[("update_postimage", 1), ("update_postimage", 2)],
        *[("update_preimage", 1), ("update_preimage", 2)],
    ]
    assert json.loads(paired[-1].row)["at"] == "2025-01-02 03:04:05"
