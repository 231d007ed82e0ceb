"""A catalog of Spark whose names are a service's: upstream's REST adapter over a directory."""

from __future__ import annotations

from pathlib import Path

import pytest
from lance.namespace import RestAdapter
from pyspark.sql import SparkSession
from tests.spark.statement_results import sorted_rows

import pennon
from pennon.session import CATALOG_CLASS

TOKEN = "Bearer of-nobody-else"  # noqa: S105 - of a service that asks for none


def test_a_session_reads_and_writes_what_a_service_names(
    spark: SparkSession, tmp_path: Path
) -> None:
    root = tmp_path / "served"
    root.mkdir()
    with RestAdapter("dir", {"root": str(root)}, host="127.0.0.1", port=0) as service:
        settings = {
            "": CATALOG_CLASS,
            ".root": str(root),
            ".implementation": "rest",
            ".namespace.uri": f"http://127.0.0.1:{service.port}",
            ".namespace.header.Authorization": TOKEN,
        }
        for name, value in settings.items():
            spark.conf.set(f"spark.sql.catalog.served{name}", value)
        spark.sql("CREATE NAMESPACE served.shop")
        spark.sql("CREATE TABLE served.shop.t (id INT, r STRING) PARTITIONED BY (r)")
        spark.sql("INSERT INTO served.shop.t VALUES (1, 'eu'), (2, 'us'), (3, 'eu')")
        spark.sql("UPDATE served.shop.t SET id = 20 WHERE r = 'us'")
        spark.sql("ALTER TABLE served.shop.t RENAME TO shop.u")
        joined = spark.sql("SELECT a.id FROM served.shop.u a JOIN served.shop.u b ON a.r = b.r")
        assert sorted(row.id for row in joined.collect()) == [1, 1, 3, 3, 20]
        assert TOKEN not in joined._jdf.queryExecution().toString()
        assert sorted_rows(spark.sql("SHOW TABLES IN served.shop").select("tableName")) == [("u",)]
        assert pennon.connect(root).load_table("shop.u").scan().count_rows() == 3
        spark.conf.set("spark.sql.catalog.served.namespace.uri", "http://127.0.0.1:9")
        with pytest.raises(Exception, match="CATALOG_STORAGE_FIXED") as refused:
            spark.sql("SELECT * FROM served.shop.u").collect()
        spark.conf.set("spark.sql.catalog.served.namespace.uri", settings[".namespace.uri"])
        assert TOKEN not in str(refused.value)
        spark.sql("DROP TABLE served.shop.u")
        spark.sql("DROP NAMESPACE served.shop")
