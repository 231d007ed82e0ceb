"""Sessions through Spark Connect: the client has no jar and no Java."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.separate_process import run_module, run_script, serving

pytestmark = pytest.mark.slow

CLIENT = """
import sys
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

spark = SparkSession.builder.remote(f"sc://127.0.0.1:{sys.argv[1]}").getOrCreate()
begun = [spark.catalog.currentCatalog(), spark.catalog.listTables()]
begun.append(spark.sql("SHOW TABLES").collect())
spark.range(2).write.saveAsTable("first")
spark.catalog.setCurrentDatabase("default")
begun.append([found.name for found in spark.catalog.listDatabases()])
print("begun", begun)
print("first", spark.table("lance.default.first").count())
spark.sql("CREATE TABLE lance.root AS SELECT 1 AS id")
print("root", [row.tableName for row in spark.sql("SHOW TABLES IN lance").collect()])
spark.sql("CREATE NAMESPACE lance.far")
rows = spark.range(1000).select("id", (F.col("id") % 10).alias("k"))
rows.writeTo("lance.far.t").partitionedBy(F.partitioning.bucket(4, "id")).create()
spark.sql("ALTER TABLE lance.far.t ADD PARTITION FIELD k")
rows.where("k = 3").writeTo("lance.far.t").append()
print("rows", spark.table("lance.far.t").where("k = 3").count())
joined = spark.sql("SELECT count(*) FROM lance.far.t a JOIN lance.far.t b ON a.id = b.id")
print("joined", joined.collect()[0][0])
spark.sql("UPDATE lance.far.t SET k = 11 WHERE id < 5")
spark.sql("DELETE FROM lance.far.t WHERE id >= 10 AND k <> 3")
source = spark.range(5, 12).select("id", F.lit(12).alias("k"))
merge = source.alias("s").mergeInto("lance.far.t", F.expr("lance.far.t.id = s.id"))
merge.whenMatched().updateAll().whenNotMatched().insertAll().merge()
kept = spark.sql("SELECT id, k FROM lance.far.t WHERE id < 13 ORDER BY id, k").collect()
print("changed", [tuple(row) for row in kept])
operations = spark.sql("SELECT operation FROM lance.far.t.snapshots ORDER BY snapshot_id").collect()
print("told", [row[0] for row in operations if row[0] != "maintenance"][-3:])
try:
    spark.table("lance.far.nothing").collect()
except PySparkException as error:
    print("refused", "nothing" in str(error), "stacktrace" in str(error))
spark.stop()
"""


def test_a_connect_client_creates_appends_evolves_joins_changes_rows_and_is_refused(
    tmp_path: Path,
) -> None:
    with serving("connect", tmp_path) as port:
        printed = run_script(CLIENT, str(port)).splitlines()
    # 100 rows have k = 3, once from create and once from append: 900 + 100 * 2 * 2 pairs.
    changed = [(id_, 11) for id_ in (0, 1, 2, 3, 3, 4)]
    changed += [(id_, 12) for id_ in range(5, 12)]
    assert printed == [
        *("begun ['lance', [], [], ['default']]", "first 2", "root ['root']"),
        *("rows 200", "joined 1300", f"changed {changed}", "told ['update', 'delete', 'merge']"),
        "refused True False",
    ]


def test_joins_do_not_shuffle_under_connect(tmp_path: Path) -> None:
    with serving("connect", tmp_path) as port:
        printed = run_module("tests.spark.joins.short_joins", f"sc://127.0.0.1:{port}")
    assert printed.splitlines()[-1] == "every join is right"
