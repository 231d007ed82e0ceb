"""What the format has beside rows, through SQL: runtime properties, first versions, branches."""

from __future__ import annotations

import json
import re
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from tests.manifest.handmade import NOWHERE, appendix_c, published
from tests.spark.assert_join import EXECUTION, WITHOUT_BROADCASTS, conf

from pennon.manifest import Snapshot

GOLDEN = Path(__file__).parents[2] / "golden"


def _described(spark: SparkSession, name: str) -> dict[str, str]:
    """The properties that DESCRIBE NAMESPACE EXTENDED prints as ``((key,value), (key,value))``."""
    rows = spark.sql(f"DESCRIBE NAMESPACE EXTENDED {name}").collect()
    shown = {row.info_name: row.info_value for row in rows}
    text = shown["Properties"]
    return dict(re.findall(r"\((\w[\w.]*),(.*?)\)(?=, \(|\)$)", text))


def _name(*parts: str) -> str:
    return ".".join(["lance", *(f"`{part}`" for part in parts)])


@pytest.mark.spec("Runtime Namespace Properties 1", "Runtime Namespace Properties 2")
def test_describe_namespace_answers_appendix_e(spark: SparkSession, tmp_path: Path) -> None:
    made = appendix_c(tmp_path)
    examples = json.loads((GOLDEN / "appendix_e.json").read_text(encoding="utf-8"))
    for example in examples:
        name = _name(made.location, *example["namespace"])
        assert _described(spark, name) == example["properties"]
    assert _described(spark, _name(made.location, *NOWHERE.split("$")[:-1])) == {}


def test_a_tables_name_stays_a_tables(spark: SparkSession, namespace: str) -> None:
    spark.sql(f"CREATE TABLE {namespace}.t (id INT, r STRING) PARTITIONED BY (r)")
    spark.sql(f"INSERT INTO {namespace}.t VALUES (1, 'eu')")
    properties = _described(spark, f"{namespace}.t")
    assert set(properties) == {"schema", "partition_spec_v1"}
    spec = json.loads(_described(spark, f"{namespace}.t.v1")["partition_spec"])
    assert [field["field_id"] for field in spec["fields"]] == ["r"]
    for listed in ("NAMESPACES IN", "SCHEMAS IN"):
        assert spark.sql(f"SHOW {listed} {namespace}").collect() == []
    with pytest.raises(AnalysisException, match="its? .*v1|namespaces in"):
        spark.sql(f"DESCRIBE NAMESPACE {namespace}.t.v9")
    with pytest.raises(AnalysisException):
        spark.sql(f"DESCRIBE NAMESPACE {namespace}.none")
    for refused in (
        f"USE {namespace}.t",
        f"DROP NAMESPACE {namespace}.t",
        f"DROP NAMESPACE {namespace}.t.v1 CASCADE",
        f"CREATE TABLE {namespace}.t.v1.x (a INT)",
        f"ALTER NAMESPACE {namespace}.t.v1 SET PROPERTIES ('a' = 'b')",
    ):
        with pytest.raises(AnalysisException):
            spark.sql(refused)
    spark.sql(f"DROP NAMESPACE IF EXISTS {namespace}.t")
    assert spark.table(f"{namespace}.t").count() == 1


def test_the_first_version_is_the_empty_table(spark: SparkSession, namespace: str) -> None:
    spark.sql(f"CREATE TABLE {namespace}.t (id INT, r STRING) PARTITIONED BY (r)")
    spark.sql(f"INSERT INTO {namespace}.t VALUES (1, 'eu')")
    for version in (1, 2):
        old = spark.sql(f"SELECT * FROM {namespace}.t VERSION AS OF {version}")
        assert (old.columns, old.count()) == (["id", "r"], 0)
    assert spark.sql(f"SELECT * FROM {namespace}.t VERSION AS OF 3").count() == 1
    for asked, why in (
        ("TIMESTAMP AS OF '2001-01-01'", "its first version is of"),
        ("VERSION AS OF 99", "its versions are 1 to 3"),
        ("VERSION AS OF 99999999999999999999", "numbers of 64 bits"),
        ("VERSION AS OF 'trunk'", "whole numbers"),
    ):
        with pytest.raises(AnalysisException, match=why):
            spark.sql(f"SELECT * FROM {namespace}.t {asked}")


def test_a_leaf_is_read_on_its_branch(spark: SparkSession, namespace: str) -> None:
    spark.sql(f"CREATE TABLE {namespace}.t (id INT, r STRING) PARTITIONED BY (r)")
    spark.sql(f"INSERT INTO {namespace}.t VALUES (1, 'eu'), (2, 'us')")
    row = spark.sql(f"DESCRIBE EXTENDED {namespace}.t").where("col_name = 'Location'").first()
    assert row is not None
    location = row.data_type.removeprefix("file:")
    leaf = next(
        row
        for row in Snapshot.open(location).leaves().table.to_pylist()
        if row["partition_field_r"] == "eu"
    )
    branch = lance.dataset(f"{location}/{leaf['location']}").create_branch("late")
    rows = pa.table({"id": [7, 8], "r": ["eu", "eu"]}, schema=branch.schema)
    lance.write_dataset(rows, branch.uri, mode="append")
    manifest = lance.dataset(f"{location}/__manifest")
    manifest.add_columns([pa.field("read_branch", pa.utf8())])
    manifest.update(
        {"read_branch": "'late'", "read_version": "NULL"},
        where=f"object_id = '{leaf['object_id']}'",
    )
    assert {row.id for row in spark.table(f"{namespace}.t").collect()} == {2, 7, 8}
    counted = spark.sql(f"SELECT r, count(*) AS n FROM {namespace}.t GROUP BY r ORDER BY r")
    assert [tuple(row) for row in counted.collect()] == [("eu", 2), ("us", 1)]
    with pytest.raises(Exception, match="LEAF_READ_AT_REFERENCE"):
        spark.sql(f"INSERT INTO {namespace}.t VALUES (9, 'eu')")
    assert spark.table(f"{namespace}.t").count() == 3


def test_expired_versions_are_gone_and_the_others_as_they_were(
    spark: SparkSession, namespace: str
) -> None:
    spark.sql(f"CREATE TABLE {namespace}.t (id INT, r STRING) PARTITIONED BY (r)")
    for step in range(4):
        spark.sql(f"INSERT OVERWRITE {namespace}.t VALUES ({step}, 'eu')")
    call = f"CALL lance.system.expire_snapshots(table => '{namespace}.t', retain_last => 2"
    assert spark.sql(f"{call})").first() == (0, 0, 0, 0, None, None, "")
    done = spark.sql(f"{call}, older_than => TIMESTAMP '2999-01-01 00:00:00')").first()
    assert done is not None
    # of each of the two leaf versions: its data file, its manifest and its transaction
    assert (done.expired_versions, done.deleted_leaf_versions, done.deleted_files) == (4, 2, 6)
    for version, row in ((5, 2), (6, 3)):
        found = spark.sql(f"SELECT id FROM {namespace}.t VERSION AS OF {version}").collect()
        assert [row_.id for row_ in found] == [row]
    with pytest.raises(AnalysisException, match="SNAPSHOT_NOT_FOUND"):
        spark.sql(f"SELECT * FROM {namespace}.t VERSION AS OF 4").collect()
    assert spark.sql(f"SELECT id FROM {namespace}.t").first() == (3,)


@pytest.mark.parametrize("execution", ["worker", "spark"])
def test_a_published_table_reads_what_its_leaves_lack(
    spark: SparkSession, tmp_path: Path, execution: str
) -> None:
    name = _name(published(tmp_path, strong=False))
    with conf(spark, {EXECUTION: execution, **WITHOUT_BROADCASTS}):
        every = {(1, "US"), (2, "DE"), (3, "FR"), (4, None)}
        assert set(map(tuple, spark.sql(f"SELECT id, country FROM {name}").collect())) == every
        kept = spark.sql(f"SELECT id FROM {name} WHERE country LIKE 'U%' OR id = 3").collect()
        assert {row.id for row in kept} == {1, 3}
        joined = f"SELECT a.id, count(*) FROM {name} a JOIN {name} b ON a.country = b.country"
        assert {tuple(row) for row in spark.sql(f"{joined} GROUP BY a.id").collect()} == {
            (1, 1),
            (2, 1),
            (3, 1),
        }
        spark.sql(f"UPDATE {name} SET id = 30 WHERE country = 'FR'")
        source = "SELECT * FROM VALUES ('US', 10), ('CN', 5) AS v(country, id)"
        spark.sql(
            f"MERGE INTO {name} t USING ({source}) s ON t.country = s.country"
            " WHEN MATCHED THEN UPDATE SET id = s.id"
            " WHEN NOT MATCHED THEN INSERT (id, country) VALUES (s.id, s.country)"
        )
        changed = {(10, "US"), (2, "DE"), (30, "FR"), (4, None), (5, "CN")}
        assert set(map(tuple, spark.sql(f"SELECT id, country FROM {name}").collect())) == changed
