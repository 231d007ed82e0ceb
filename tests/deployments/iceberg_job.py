"""Iceberg's statements with Pennon beside it, on a Spark that Iceberg is made for.

Prints what Iceberg's tables have become, as JSON, and checks Pennon's own and joins across.
"""

from __future__ import annotations

import json
import sys

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
    """CREATE TABLE ice.db.t (id BIGINT NOT NULL, s STRING, ts TIMESTAMP)
    USING iceberg PARTITIONED BY (days(ts))""",
    """INSERT INTO ice.db.t SELECT id, concat('s', id % 3), TIMESTAMP '2024-01-01 00:00:00'
    + make_dt_interval(CAST(id % 4 AS INT)) FROM range(40)""",
    "ALTER TABLE ice.db.t ADD PARTITION FIELD bucket(4, id) AS shard",
    "ALTER TABLE ice.db.t REPLACE PARTITION FIELD shard WITH truncate(2, s)",
    "ALTER TABLE ice.db.t DROP PARTITION FIELD truncate(2, s)",
    "ALTER TABLE ice.db.t WRITE DISTRIBUTED BY PARTITION LOCALLY ORDERED BY id DESC",
    "ALTER TABLE ice.db.t SET IDENTIFIER FIELDS id",
    "ALTER TABLE ice.db.t CREATE BRANCH later",
    """MERGE INTO ice.db.t t USING (SELECT id + 35 AS id FROM range(10)) s ON t.id = s.id
    WHEN MATCHED THEN UPDATE SET s = 'm'
    WHEN NOT MATCHED THEN INSERT (id, s) VALUES (s.id, 'n')""",
    "UPDATE ice.db.t SET s = 'u' WHERE id = 3",
    "DELETE FROM ice.db.t WHERE id % 10 = 1",
    "CALL ice.system.rewrite_data_files(table => 'db.t')",
]
STATES = [
    "SELECT id, s FROM ice.db.t ORDER BY id",
    "SELECT count(*) FROM ice.db.t.snapshots",
    "SELECT name, type FROM ice.db.t.refs ORDER BY name",
    "SELECT id, s FROM ice.db.t VERSION AS OF 'later' ORDER BY id",
]
# What Iceberg's parser reads, and how it ends where Pennon's comes first; None: it succeeds.
SHARED = {
    "CREATE TAG first": None,
    "DROP TAG first": None,
    "CREATE BRANCH later": "BRANCHES_NOT_SUPPORTED",
    "DROP BRANCH later": "BRANCHES_NOT_SUPPORTED",
    "SET IDENTIFIER FIELDS id": "STATEMENT_NOT_SUPPORTED",
    "DROP IDENTIFIER FIELDS id": "STATEMENT_NOT_SUPPORTED",
}


def main() -> int:
    """Run the statements; arguments: folder, extensions by comma, Maven coordinates."""
    folder, extensions, package = sys.argv[1:]
    conf = {}
    for name in ("ice", "iceberg"):  # the second as documents name it
        conf[f"spark.sql.catalog.{name}"] = "org.apache.iceberg.spark.SparkCatalog"
        conf[f"spark.sql.catalog.{name}.type"] = "hadoop"
        conf[f"spark.sql.catalog.{name}.warehouse"] = f"{folder}/warehouse"
    spark = neighbour_session(folder, extensions, package, conf)
    for statement in STATEMENTS:
        spark.sql(statement)
    said = [rows_of(spark, query) for query in (*STATES, "DESCRIBE TABLE ice.db.t")]
    order = {row.key: row.value for row in spark.sql("SHOW TBLPROPERTIES ice.db.t").collect()}
    said.append([[str(order.get("sort-order")), str(order.get("write.distribution-mode"))]])
    if "PennonExtensions" in extensions:
        _check_pennon(spark)
    print(json.dumps(said))
    spark.stop()
    return 0


def _check_pennon(spark: SparkSession) -> None:
    spark.sql("CREATE NAMESPACE lance.db")
    spark.sql("CREATE TABLE lance.db.t PARTITIONED BY (days(ts)) AS SELECT * FROM ice.db.t")
    spark.sql("ALTER TABLE lance.db.t ADD PARTITION FIELD bucket(4, id) AS shard")
    spark.sql("ALTER TABLE lance.db.t REPLACE PARTITION FIELD shard WITH s")
    refusal = _refusal(spark, "ALTER TABLE lance.db.t WRITE ORDERED BY id")
    is_iceberg_first = refusal is not None
    if is_iceberg_first:
        assert refusal == "STATEMENT_READ_BY_ANOTHER"
        spark.sql("ALTER TABLE lance.db.t SET TBLPROPERTIES ('write.order' = 'id')")
    for statement, condition in SHARED.items():
        ended = _refusal(spark, f"ALTER TABLE lance.db.t {statement}")
        expected = "STATEMENT_READ_BY_ANOTHER" if is_iceberg_first else condition
        assert ended == expected, (statement, ended)
    check_merges_across(spark, "ice.db.t")
    assert "PARTITIONED BY (days(ts), s)" in spark.sql("SHOW CREATE TABLE lance.db.t").head()[0]
    check_joins_across(spark, "ice.db.t", "ts")
    spark.sql(
        "CREATE TABLE iceberg.db.events USING iceberg PARTITIONED BY (days(ts), bucket(16, id))"
        " AS SELECT id, ts FROM ice.db.t"
    )
    check_migration(spark, "Iceberg", "iceberg.db.events", "lance.shop.events")


def _refusal(spark: SparkSession, statement: str) -> str | None:
    try:
        spark.sql(statement)
    except PySparkException as refusal:
        return str(refusal).partition("]")[0].lstrip("[")
    return None


if __name__ == "__main__":
    sys.exit(main())
