"""Statements about tables of other catalogs, with another extension before or behind Pennon's."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pyspark
import pytest
from tests.separate_process import run_script

pytestmark = [pytest.mark.slow, pytest.mark.spark]

SOURCE = Path(__file__).parent / "extensions" / "OtherExtension.java"
PENNON, OTHER = "dev.pennon.spark.PennonExtensions", "tests.OtherExtension"
STATEMENTS = [
    "ALTER TABLE other.db.t ADD PARTITION FIELD bucket(4, id)",
    "ALTER TABLE other.db.t DROP PARTITION FIELD bucket(4, id)",
    "ALTER TABLE other.db.t REPLACE PARTITION FIELD a WITH b AS c",
    "ALTER TABLE other.db.t WRITE DISTRIBUTED BY PARTITION LOCALLY ORDERED BY id",
    "ALTER TABLE other.db.t WRITE ORDERED BY id",
]
JOB = """
import json, sys
from pennon.session import spark_conf
from pyspark.sql import SparkSession

root, folder, extensions, statements = sys.argv[1:]
conf = spark_conf(root)
conf["spark.sql.extensions"] = extensions
conf["spark.driver.extraClassPath"] = folder
builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
for key, value in conf.items():
    builder.config(key, value)
spark = builder.getOrCreate()
said = [spark.sql(statement).collect()[0][0] for statement in json.loads(statements)]
spark.sql("CREATE NAMESPACE lance.db")
spark.sql("CREATE TABLE lance.db.t (id BIGINT, s STRING)")
spark.sql("ALTER TABLE lance.db.t ADD PARTITION FIELD bucket(4, id) AS b")
spark.sql("ALTER TABLE lance.db.t REPLACE PARTITION FIELD b WITH s")
spark.sql("ALTER TABLE lance.db.t WRITE ORDERED BY id")
table = spark.sql("SHOW CREATE TABLE lance.db.t").collect()[0][0]
print(json.dumps([said, table]))
spark.stop()
"""


@pytest.fixture(scope="module")
def other_classes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("classes")
    jars = Path(pyspark.__file__).parent / "jars"
    command = ["javac", "-cp", f"{jars}/*", "-d", str(folder), str(SOURCE)]
    subprocess.run(command, check=True, capture_output=True)
    return folder


@pytest.mark.parametrize("extensions", [f"{PENNON},{OTHER}", f"{OTHER},{PENNON}"])
def test_statements_reach_the_catalog_whose_table_they_name(
    tmp_path: Path, other_classes: Path, extensions: str
) -> None:
    printed = run_script(
        JOB, str(tmp_path / "lake"), str(other_classes), extensions, json.dumps(STATEMENTS)
    )
    said, created = json.loads(printed.splitlines()[-1])
    assert said == STATEMENTS
    assert "PARTITIONED BY (s)" in created
    assert "'write.order' = 'id ASC NULLS FIRST'" in created
