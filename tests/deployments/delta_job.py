"""Delta's statements with Pennon beside it, on a Spark that Delta is made for.

Prints what Delta's tables have become, as JSON, and checks Pennon's own and joins across.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from tests.deployments.neighbour_session import (
    check_joins_across,
    check_merges_across,
    check_migration,
    neighbour_session,
    rows_of,
)

STATEMENTS = [
    """CREATE TABLE t (id BIGINT, s STRING, day DATE) USING delta PARTITIONED BY (day)
    TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')""",
    """INSERT INTO t SELECT id, concat('s', id % 3), DATE '2024-01-01' + CAST(id % 4 AS INT)
    FROM range(40)""",
    "ALTER TABLE t ADD CONSTRAINT positive CHECK (id >= 0)",
    "ALTER TABLE t ADD COLUMN n INT",
    """MERGE INTO t USING (SELECT id + 35 AS id FROM range(10)) s ON t.id = s.id
    WHEN MATCHED THEN UPDATE SET s = 'm'
    WHEN NOT MATCHED THEN INSERT (id, s) VALUES (s.id, 'n')""",
    "UPDATE t SET s = 'u' WHERE id = 3",
    "DELETE FROM t WHERE id % 10 = 1",
    "OPTIMIZE t ZORDER BY (id)",
    "VACUUM t RETAIN 168 HOURS",
    "CREATE TABLE cloned SHALLOW CLONE t",
    "UPDATE t SET s = 'v' WHERE id = 4",
    "RESTORE TABLE t TO VERSION AS OF 6",
]
STATES = [
    "SELECT id, s, day FROM t ORDER BY id",
    "SELECT id, s, day FROM cloned ORDER BY id",
    "SELECT count(*) FROM t VERSION AS OF 1",
    "SELECT id, _change_type FROM table_changes('t', 5, 5) ORDER BY 1, 2",
    "SHOW PARTITIONS t",
]


def main() -> int:
    """Run the statements; arguments: folder, extensions by comma, Maven coordinates."""
    folder, extensions, package = sys.argv[1:]
    conf = {
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.warehouse.dir": f"{folder}/warehouse",
        "spark.databricks.delta.snapshotPartitions": "2",
    }
    spark = neighbour_session(folder, extensions, package, conf)
    for statement in STATEMENTS:
        spark.sql(statement)
    said = [rows_of(spark, query) for query in STATES]
    history = spark.sql("DESCRIBE HISTORY t").orderBy("version").collect()
    said.append([[row.operation] for row in history])
    said.append([[_refusal(spark, "INSERT INTO t (id) VALUES (-1)")]])
    if "PennonExtensions" in extensions:
        _check_pennon(spark, is_last=extensions.endswith("PennonExtensions"))
    print(json.dumps(said))
    spark.stop()
    return 0


def _refusal(spark: SparkSession, statement: str) -> str:
    try:
        spark.sql(statement)
    except (PySparkException, Py4JJavaError) as error:
        found = re.search(r"\[([A-Z][A-Z_.]+)\]", str(error))
        return f"[{found.group(1)}" if found is not None else "no condition"
    return "accepted"


def _check_pennon(spark: SparkSession, *, is_last: bool) -> None:
    spark.sql("CREATE NAMESPACE lance.db")
    spark.sql("CREATE TABLE lance.db.t PARTITIONED BY (days(day)) AS SELECT * FROM t")
    spark.sql("ALTER TABLE lance.db.t ADD PARTITION FIELD bucket(4, id) AS shard")
    spark.sql("ALTER TABLE lance.db.t WRITE ORDERED BY id")
    check_merges_across(spark, "t")
    assert "PARTITIONED BY (days(day)" in spark.sql("SHOW CREATE TABLE lance.db.t").head()[0]
    assert spark.sql("SELECT count(*) FROM lance.db.t VERSION AS OF 2").head()[0] == 0
    check_joins_across(spark, "t", "day")
    clicks = spark.sql("SELECT id, CAST(day AS TIMESTAMP) AS ts FROM t")
    place = f"{Path.cwd()}/clicks"
    clicks.write.format("delta").save(place)
    check_migration(spark, "Delta", f"delta.`{place}`", "lance.shop.clicks")
    for statement in ("OPTIMIZE lance.db.t", "VACUUM lance.db.t", "DESCRIBE HISTORY lance.db.t"):
        # Delta reads these first where it is named last.
        refused = _refusal(spark, statement)
        assert refused == "[STATEMENT_NOT_SUPPORTED" if is_last else refused != "accepted", refused


if __name__ == "__main__":
    sys.exit(main())
