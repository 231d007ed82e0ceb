"""The change feed in SQL: a metadata table and a procedure."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pyspark
import pytest
from pyspark.errors import PySparkException

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


@pytest.mark.skipif(pyspark.__version__ < "4.2", reason="the grammar is newer")
def test_a_range_of_commits_is_read_by_spark_s_own_grammar(
    spark: SparkSession, namespace: str
) -> None:
    table = f"{namespace}.feed"
    spark.sql(f"CREATE TABLE {table} (id INT, dep STRING, v INT) PARTITIONED BY (dep)")
    spark.sql(f"INSERT INTO {table} VALUES (1, 'a', 1), (2, NULL, 2)")
    versions = f"SELECT max(snapshot_id) AS n, max(committed_at) AS at FROM {table}.snapshots"
    start = spark.sql(versions).first().n
    spark.sql(f"ALTER TABLE {table} CREATE TAG loaded")
    spark.sql(f"UPDATE {table} SET v = 20 WHERE dep IS NULL")
    spark.sql(f"INSERT INTO {table} VALUES (3, 'c', 3)")
    middle = spark.sql(versions).first()
    spark.sql(f"DELETE FROM {table} WHERE id = 3")
    end = spark.sql(versions).first().n

    def told(bounds: str, options: str = "") -> list[tuple[object, ...]]:
        query = f"SELECT _change_type, id, v FROM {table} CHANGES FROM {bounds} {options}"
        return sorted(tuple(row) for row in spark.sql(query).collect())

    updated = [("delete", 2, 2), ("insert", 2, 20)]
    inserted = [("insert", 3, 3)]
    deleted = [("delete", 3, 3)]
    assert told(f"VERSION {start} EXCLUSIVE TO VERSION {middle.n}") == sorted(updated + inserted)
    assert told(f"VERSION {middle.n} EXCLUSIVE TO VERSION {end}") == deleted
    assert told(f"VERSION {middle.n} TO VERSION {middle.n}") == inserted
    assert told(f"VERSION 'loaded' EXCLUSIVE TO VERSION {end} EXCLUSIVE") == sorted(
        updated + inserted
    )
    at = f"TIMESTAMP '{middle.at}'"
    assert told(f"{at} EXCLUSIVE TO TIMESTAMP '2999-01-01'") == deleted
    whole = f"VERSION {start} EXCLUSIVE TO VERSION {end}"
    paired = [("update_postimage", 2, 20), ("update_preimage", 2, 2)]
    options = "WITH (computeUpdates = 'true', key = 'ID')"
    assert told(whole, options) == sorted([*paired, *inserted, *deleted])
    assert told(whole, "WITH (deduplicationMode = 'netChanges')") == updated
    by_name = spark.read.option("startingVersion", start + 1).changes(table)
    assert by_name.where("v > 2").select("id").distinct().count() == 2
    for bounds, given, condition in (
        (whole, "WITH (computeUpdates = 'true')", "CHANGE_KEY_MISSING"),
        (f"VERSION {end} TO VERSION {start}", "", "CHANGE_RANGE_REVERSED"),
        (f"VERSION {start} TO VERSION 99", "", "99"),
    ):
        with pytest.raises(PySparkException, match=condition):
            told(bounds, given)


def test_delta_s_function_reads_the_changes_of_a_range(spark: SparkSession, namespace: str) -> None:
    table = f"{namespace}.called"
    spark.sql(f"CREATE TABLE {table} (id INT, dep STRING) PARTITIONED BY (dep)")
    for number in range(4):
        spark.sql(f"INSERT INTO {table} VALUES ({number}, 'a')")
    feed = spark.sql(f"SELECT * FROM {table}.changes").collect()
    versions = sorted({row._commit_version for row in feed})
    assert len(versions) == 4
    first, last = versions[1], versions[2]

    def told(call: str) -> list[int]:
        found = spark.sql(f"SELECT c.* FROM {call} AS c ORDER BY id").collect()
        assert set(found) <= set(feed)
        return [row.id for row in found]

    assert told(f"table_changes('{table}', {first}, {last})") == [1, 2]
    assert told(f"Table_Changes('{table}', {first}L)") == [1, 2, 3]
    moment = next(row._commit_timestamp for row in feed if row._commit_version == last)
    assert told(f"table_changes('{table}', '{moment}')") == [2, 3]
    assert told(f"table_changes('{table}', DATE '2000-01-01', DATE '2000-01-02')") == []
    assert told(f"table_changes('{table}', TIMESTAMP '{moment}', TIMESTAMP '{moment}')") == [2]
    below = f"SELECT id FROM {table} WHERE id IN (SELECT id FROM table_changes('{table}', {last}))"
    assert sorted(row.id for row in spark.sql(below).collect()) == [2, 3]
    with_name = f"WITH c AS (SELECT * FROM table_changes('{table}', {last})) SELECT id FROM c"
    assert sorted(row.id for row in spark.sql(with_name).collect()) == [2, 3]
    assert told(f"table_changes('{table}', 0)") == [0, 1, 2, 3]
    assert told(f"table_changes('{table}', {first}, '{moment}')") == [1, 2]
    for arguments in ("", ", 1, 2, 3", ", NULL", ", 1.5", ", -1"):
        with pytest.raises(PySparkException, match=r"TABLE_CHANGES_REFUSED.*', 3, 9\)"):
            spark.sql(f"SELECT * FROM table_changes('{table}'{arguments})")
    # Spark 4.1 reads of such a range what there is.
    refused = (
        (f"{last}, {first}", f"CHANGE_RANGE_REVERSED.*{table} from version {last} to"),
        (f"{first}, 99", f"SNAPSHOT_NOT_FOUND.*{table} at version 99"),
        ("99", f"SNAPSHOT_NOT_FOUND.*{table} at version 99"),
        ("'2025-01-02', '2025-01-01'", "CHANGE_RANGE_REVERSED.*2025-01-02.*2025-01-01"),
    )
    for arguments, condition in refused if pyspark.__version__ >= "4.2" else ():
        with pytest.raises(PySparkException, match=condition):
            spark.sql(f"SELECT * FROM table_changes('{table}', {arguments})").collect()
    expiry = "older_than => TIMESTAMP '2999-01-01', retain_last => 2"
    spark.sql(f"CALL lance.system.expire_snapshots('{table}', {expiry})")
    for expired in (f"table_changes('{table}', {first})", f"{table}.changes"):
        with pytest.raises(PySparkException, match=f"SNAPSHOT_NOT_FOUND.*{table} at version"):
            spark.sql(f"SELECT * FROM {expired} WHERE _commit_version >= {first}").collect()
    with pytest.raises(PySparkException, match=r"UNRESOLVABLE_TABLE_VALUED_FUNCTION"):
        spark.sql("SELECT * FROM table_changes('spark_catalog.default.t', 1)")
