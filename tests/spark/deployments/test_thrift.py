"""One session through a real Thrift server, by beeline and by a Python client."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pandas  # noqa: ICN001
import pyspark
import pytest
import sqlalchemy
from pyhive import exc, hive
from sqlalchemy.dialects import registry
from TCLIService import ttypes
from tests.separate_process import ENVIRONMENT, serving
from tests.spark.joins.short_joins import OVERFLOW, UNDER_THRIFT, Run, failures, mixed_up

import pennon

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def thrift_port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    with serving("thrift", tmp_path_factory.mktemp("thrift_lake")) as port:
        yield port


def beeline(port: int, *statements: str, database: str = "") -> subprocess.CompletedProcess[str]:
    home = Path(pyspark.__path__[0])
    command = [str(home / "bin" / "beeline"), "-u", f"jdbc:hive2://127.0.0.1:{port}/{database}"]
    command += ["--silent=true", "--outputformat=tsv2", "--showHeader=false"]
    for statement in statements:
        command += ["-e", statement]
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        timeout=180,
        env=ENVIRONMENT | {"SPARK_HOME": str(home)},
    )


def test_beeline_makes_fills_changes_and_evolves_a_table(thrift_port: int) -> None:
    done = beeline(
        thrift_port,
        "CREATE NAMESPACE lance.bee;",
        "CREATE TABLE lance.bee.t (id BIGINT, s STRING) PARTITIONED BY (bucket(4, id));",
        "INSERT INTO lance.bee.t SELECT id, concat('v', id) FROM range(100);",
        "ALTER TABLE lance.bee.t ADD PARTITION FIELD truncate(2, s) AS prefix;",
        "INSERT INTO lance.bee.t VALUES (100, 'w');",
        "SELECT count(*), max(id), max(s) FROM lance.bee.t WHERE id >= 50;",
        "DELETE FROM lance.bee.t WHERE id BETWEEN 10 AND 89;",
        "UPDATE lance.bee.t SET s = 'x' WHERE id = 1;",
        "MERGE INTO lance.bee.t t USING (SELECT 2 AS id UNION ALL SELECT 500) s ON t.id = s.id"
        " WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (id, s) VALUES (s.id, 'y');",
        "SELECT count(*), max(id), count_if(s = 'x'), count_if(s = 'y'), count_if(id = 2)"
        " FROM lance.bee.t;",
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["51", "100", "w", "21", "500", "1", "1", "0"]


def test_a_thrift_client_of_python_reads_types_and_gets_one_message(thrift_port: int) -> None:
    with hive.connect("127.0.0.1", thrift_port, username="tester") as connection:
        cursor = connection.cursor()
        for statement in (
            "CREATE NAMESPACE lance.py",
            "CREATE TABLE lance.py.t (d DATE, x DECIMAL(10, 2)) PARTITIONED BY (months(d))",
            "INSERT INTO lance.py.t VALUES (DATE '2025-12-10', 1.50), (NULL, NULL)",
        ):
            cursor.execute(statement)
        cursor.execute("SELECT CAST(d AS STRING), x FROM lance.py.t ORDER BY d NULLS LAST")
        assert [(str(d), str(x)) for d, x in cursor.fetchall()] == [
            ("2025-12-10", "1.50"),
            ("None", "None"),
        ]
        with pytest.raises(exc.OperationalError) as caught:
            cursor.execute("ALTER TABLE lance.py.t DROP PARTITION FIELD nothing")
        assert "PARTITION_FIELD_NOT_FOUND" in str(caught.value)
        refused = [
            ("SELECT * FROM lance.py.u", "[TABLE_NOT_FOUND] Cannot find table lance.py.u: "),
            ("SHOW TABLES IN lance.p", "[NAMESPACE_NOT_FOUND] Cannot find namespace lance.p: "),
            ("CREATE NAMESPACE lance.py", "[NAMESPACE_ALREADY_EXISTS] Cannot create namespace "),
        ]
        # Spark 4.1 has a message of its own for the last.
        for statement, message in refused if pyspark.__version__ >= "4.2" else refused[:2]:
            with pytest.raises(exc.OperationalError) as caught:
                cursor.execute(statement)
            shown = message_of(caught.value)
            assert f" org.apache.spark.sql.AnalysisException: {message}" in shown
            assert "dev.pennon" not in shown
            assert "\n" not in shown


def test_a_session_begins_in_the_lake_and_makes_its_tables_there(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    lake = tmp_path_factory.mktemp("new_lake") / "lake"
    with serving("thrift", lake) as port:
        begun = beeline(port, "SELECT current_catalog(), current_database();", "SHOW TABLES;")
        assert begun.stdout.split() == ["lance", "default"], begun.stderr
        browsed = beeline(port, "!tables")
        assert browsed.returncode == 0, browsed.stderr
        assert not lake.exists()  # a lake that is only read is served as well
        done = beeline(
            port,
            "CREATE NAMESPACE IF NOT EXISTS default;",
            "CREATE TABLE t AS SELECT 1 AS id;",
            "CREATE NAMESPACE shop;",
            "CREATE TABLE shop.orders PARTITIONED BY (bucket(4, id)) AS SELECT 7 AS id;",
            "SHOW TABLES;",
            "SHOW NAMESPACES;",
        )
        assert done.stdout.split() == ["default", "t", "false", "default", "shop"], done.stderr
        named = beeline(port, "SELECT id FROM orders;", database="shop")
        assert named.stdout.split() == ["7"], named.stderr
    assert pennon.connect(lake).list_tables() == ["default.t", "shop.orders"]


def metadata(connection: hive.Connection, operation: str, **asked: str) -> list[tuple[Any, ...]]:
    """What a JDBC driver asks for beside SQL."""
    client, session = connection._client, connection._sessionHandle
    request = getattr(ttypes, f"T{operation}Req")(sessionHandle=session, **asked)
    handle = getattr(client, operation)(request).operationHandle
    fetched = client.FetchResults(
        ttypes.TFetchResultsReq(operationHandle=handle, orientation=0, maxRows=1000)
    )
    columns = [
        values.values  # noqa: PD011
        for column in fetched.results.columns
        for values in vars(column).values()
        if values is not None
    ]
    return list(zip(*columns, strict=True))


def test_what_browses_by_jdbc_sees_the_lake_as_it_is(thrift_port: int) -> None:
    with hive.connect("127.0.0.1", thrift_port, username="browser") as connection:
        cursor = connection.cursor()
        for statement in (
            "CREATE NAMESPACE lance.bi",
            (
                "CREATE TABLE lance.bi.orders (id BIGINT COMMENT 'the key', x DECIMAL(10, 2))"
                " PARTITIONED BY (bucket(4, id)) COMMENT 'all of them'"
            ),
            "ALTER TABLE lance.bi.orders ADD COLUMN later ARRAY<INT>",
        ):
            cursor.execute(statement)
        assert metadata(connection, "GetCatalogs") == [("lance",), ("spark_catalog",)]
        assert ("bi", "lance") in metadata(connection, "GetSchemas", schemaName="%")
        tables = metadata(connection, "GetTables", schemaName="b_", tableName="ORD%")
        assert [row[:5] for row in tables] == [("lance", "bi", "orders", "TABLE", "all of them")]
        columns = metadata(connection, "GetColumns", schemaName="bi", tableName="orders")
        # Name, JDBC's type, Spark's, precision, scale and comment.
        assert [(*row[3:7], row[8], row[11], row[16]) for row in columns] == [
            ("id", -5, "BIGINT", 0, 0, "the key", 1),
            ("x", 3, "DECIMAL(10,2)", 10, 2, "", 2),
            ("later", 12, "ARRAY<INT>", 0, 0, "", 3),
        ]
        cursor.execute("CREATE VIEW spark_catalog.default.seen AS SELECT id FROM lance.bi.orders")
        of_spark = {"catalogName": "spark_catalog", "schemaName": "default", "tableName": "%"}
        assert [row[2:4] for row in metadata(connection, "GetTables", **of_spark)] == [
            ("seen", "VIEW")
        ]
    browsed = beeline(thrift_port, "!tables")
    assert "lance\tbi\torders\tTABLE\tall of them" in browsed.stdout, browsed.stderr
    done = beeline(thrift_port, "SHOW TABLES;", database="lance.bi")
    assert done.stdout.split() == ["bi", "orders", "false"], done.stderr


def test_sqlalchemy_inspects_reads_and_writes_tables(thrift_port: int) -> None:
    registry.register("pennon", "pennon.sqlalchemy_dialect", "PennonDialect")
    engine = sqlalchemy.create_engine(f"pennon://127.0.0.1:{thrift_port}/alchemy")
    with hive.connect("127.0.0.1", thrift_port, username="alchemist") as connection:
        connection.cursor().execute("CREATE NAMESPACE lance.alchemy")
    day, moment = date(2025, 12, 10), datetime.fromisoformat("2025-12-10T11:12:13")
    frame = pandas.DataFrame(
        {"id": [1, 2], "s": ["it's", "a\\b %"], "d": [day, None], "t": [moment] * 2}
    )
    for if_exists in ("fail", "replace", "append"):
        frame.to_sql("frame", engine, if_exists=if_exists, index=False)
    inspector = sqlalchemy.inspect(engine)
    assert inspector.get_table_names() == ["frame"]
    types = {column["name"]: str(column["type"]) for column in inspector.get_columns("frame")}
    assert types == {"id": "BIGINT", "s": "VARCHAR", "d": "DATE", "t": "DATETIME"}
    read = pandas.read_sql_table("frame", engine).sort_values("id")
    assert list(read["s"]) == ["it's"] * 2 + ["a\\b %"] * 2
    assert list(read["t"]) == [moment] * 4
    # Two rows are one commit.
    versions = pandas.read_sql("SELECT * FROM alchemy.frame.history", engine)
    assert len(versions) <= 4
    table = sqlalchemy.Table("frame", sqlalchemy.MetaData(), autoload_with=engine)
    with engine.begin() as connection:
        chosen = sqlalchemy.select(table.c.id, table.c.d).where(table.c.d == day).distinct()
        assert connection.execute(chosen).all() == [(1, day)]
        with pytest.raises(sqlalchemy.exc.OperationalError) as caught:
            connection.execute(sqlalchemy.text("SELECT x FROM frame"))
        assert len(str(caught.value)) < 500
    with pytest.raises(sqlalchemy.exc.NoSuchTableError):
        sqlalchemy.Table("nothing", sqlalchemy.MetaData(), autoload_with=engine)


def runner(connection: hive.Connection) -> Run:
    cursor = connection.cursor()

    def run(statement: str) -> list[tuple[object, ...]]:
        cursor.execute(statement)
        return cursor.fetchall() if cursor.description else []

    return run


def message_of(error: Exception) -> str:
    """What a JDBC driver shows: the further texts of the answer are the server's own stack."""
    assert isinstance(error, exc.OperationalError)
    return str(error.args[0].status.errorMessage)


def test_joins_do_not_shuffle_under_thrift(thrift_port: int) -> None:
    with (
        hive.connect("127.0.0.1", thrift_port, username="joiner") as first,
        hive.connect("127.0.0.1", thrift_port, username="joiner") as second,
    ):
        found = failures(runner(first), message_of, UNDER_THRIFT)
        found = found or mixed_up(runner(first), runner(second))
    assert not found, "\n".join(found)
    failed = beeline(thrift_port, f"{OVERFLOW};")
    assert failed.returncode != 0
    assert "ARITHMETIC_OVERFLOW" in failed.stderr
