"""Rows do not depend on how a session is set: the short form of ``make test-deployments``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.deployments.same_rows import (
    different_queries,
    different_writes,
    make_tables,
    settings,
)
from tests.separate_process import run_script

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

WRITING = "far from the laboratory"
# As many settings at once as have nothing to do with each other.
SHORT = {
    WRITING: {
        "spark.sql.shuffle.partitions": "3",
        "spark.sql.session.timeZone": "America/New_York",
        "spark.sql.ansi.enabled": "false",
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.sql.autoBroadcastJoinThreshold": "10m",
    },
    "pennon's own limits": {
        "spark.sql.shuffle.partitions": "3",
        "spark.sql.session.timeZone": "Asia/Kolkata",
        "spark.sql.autoBroadcastJoinThreshold": "10m",
        "spark.sql.catalog.lance.execution.oneTaskBytes": "16m",
        "spark.sql.catalog.lance.execution.replicatedBytes": "64m",
    },
}


@pytest.fixture(scope="module")
def folder(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("deployed")
    make_tables(spark, folder, "lance.deployed")
    return folder


@pytest.mark.parametrize("name", SHORT)
def test_rows_are_those_of_parquet_however_the_session_is_set(
    spark: SparkSession, folder: Path, name: str
) -> None:
    session = spark.newSession()
    with settings(session, SHORT[name]):
        found = different_queries(session, folder, "lance.deployed")
        if name == WRITING:
            found += different_writes(session, folder, "lance.deployed")
    assert not found, "\n".join(found)


def test_columns_that_differ_by_case_are_two_columns(spark: SparkSession, namespace: str) -> None:
    session = spark.newSession()
    with settings(session, {"spark.sql.caseSensitive": "true"}):
        session.sql(f"CREATE TABLE {namespace}.t (a INT, A INT, v STRING) PARTITIONED BY (A)")
        session.sql(f"INSERT INTO {namespace}.t VALUES (1, 2, 'x'), (3, 4, 'y')")
        query = f"SELECT a, A, v FROM {namespace}.t WHERE A = 4"
        assert session.sql(query).collect() == [(3, 4, "y")]
        grouped = session.sql(f"SELECT A, sum(a) FROM {namespace}.t GROUP BY A ORDER BY A")
        assert grouped.collect() == [(2, 1), (4, 3)]


def test_scripts_variables_and_immediate_statements_reach_the_tables(
    spark: SparkSession, namespace: str
) -> None:
    table = f"{namespace}.t"
    spark.sql(f"CREATE TABLE {table} (id INT, k STRING)")
    with settings(spark, {"spark.the.table": table, "spark.sql.variable.substitute": "true"}):
        spark.sql("ALTER TABLE ${spark.the.table} ADD PARTITION FIELD k")
        spark.sql("INSERT INTO ${spark.the.table} VALUES (1, 'a'), (2, 'b')")
    script = f"""BEGIN
        DECLARE most INT DEFAULT 0;
        ALTER TABLE {table} REPLACE PARTITION FIELD k WITH bucket(2, id);
        SET most = (SELECT max(id) FROM {table});
        EXECUTE IMMEDIATE 'INSERT INTO {table} VALUES (?, "c")' USING most + 1;
        WHILE most < 5 DO
            INSERT INTO {table} VALUES (most + 10, 'd');
            SET most = most + 1;
        END WHILE;
        SELECT id, k FROM {table} ORDER BY id;
    END"""
    rows = [(1, "a"), (2, "b"), (3, "c"), (12, "d"), (13, "d"), (14, "d")]
    assert spark.sql(script).collect() == rows
    assert "bucket(2, id)" in spark.sql(f"SHOW CREATE TABLE {table}").head()[0]


_IN_PS = """
import contextlib, sys
from pathlib import Path
import pennon
secret = "-".join(["hush", "hush"])
options = {"aws_secret_access_key": secret, "aws_session_token": secret}
spark = pennon.spark(root=sys.argv[1], storage_options=options).master("local[1]").getOrCreate()
spark.sql("CREATE NAMESPACE lance.shop")
spark.sql("CREATE TABLE lance.shop.t (a INT, b INT) PARTITIONED BY (b)")
spark.sql("INSERT INTO lance.shop.t VALUES (1, 2)")
assert spark.table("lance.shop.t").count() == 1
assert spark.conf.get("spark.sql.catalog.lance.storage.aws_session_token") == secret
for place in Path("/proc").glob("[0-9]*/cmdline"):
    with contextlib.suppress(OSError):
        assert secret.encode() not in place.read_bytes(), place
spark.stop()
print("nowhere")
"""


def test_credentials_of_a_session_stand_on_no_command_line(
    tmp_path: Path,
) -> None:
    assert "nowhere" in run_script(_IN_PS, str(tmp_path / "lake"))
