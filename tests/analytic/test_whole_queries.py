"""The queries of the benchmarks over small tables: Pennon's rows are those of plain Parquet tables.

They run at the defaults of Spark and of Pennon, where a small query is one task, and without
broadcasts and small sides, where tables meet partition by partition.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from benchmarks.query_files import read_queries
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUERIES = Path(__file__).parents[2] / "benchmarks" / "queries"
SALES = 4000
# The session of the tests has neither broadcasts nor small sides; these are what a user has.
DEFAULTS = {
    "spark.sql.catalog.lance.execution.oneTaskBytes": "16m",
    "spark.sql.catalog.lance.execution.replicatedBytes": "64m",
    "spark.sql.autoBroadcastJoinThreshold": "10485760",
    "spark.sql.adaptive.autoBroadcastJoinThreshold": "10485760",
}
NO_BROADCASTS = {key: "0" if "lance" in key else "-1" for key in DEFAULTS}


@dataclass(frozen=True)
class Tables:
    """The same tables twice, each in a session of its own."""

    pennon: SparkSession
    parquet: SparkSession


def tables_of(path: Path) -> Iterator[tuple[str, str, str]]:
    for title, select in read_queries(path).items():
        name, _, partitioned_by = title.partition(":")
        yield name, partitioned_by.strip(), select.replace("{rows}", str(SALES))


@pytest.fixture(scope="module")
def tables(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tables]:
    folder = tmp_path_factory.mktemp("whole")
    pennon, parquet = spark.newSession(), spark.newSession()
    pennon.sql("CREATE NAMESPACE lance.whole")
    pennon.sql("USE lance.whole")
    definitions = (Path(__file__).parent / "small_tpch.sql", QUERIES / "star_tables.sql")
    for name, partitioned_by, select in (
        table for path in definitions for table in tables_of(path)
    ):
        parquet.sql(select).coalesce(1).write.parquet(str(folder / name))
        parquet.read.parquet(str(folder / name)).createOrReplaceTempView(name)
        clause = f"PARTITIONED BY ({partitioned_by})" if partitioned_by else ""
        pennon.sql(f"CREATE TABLE {name} {clause} AS SELECT * FROM parquet.`{folder / name}`")
    yield Tables(pennon, parquet)
    pennon.sql("DROP NAMESPACE lance.whole CASCADE")


def rows_of(session: SparkSession, sql: str, conf: Mapping[str, str]) -> list[str]:
    for key, value in conf.items():
        session.conf.set(key, value)
    return sorted(
        repr([round(value, 6) if isinstance(value, float) else value for value in row])
        for row in session.sql(sql).collect()
    )


CASES = [
    pytest.param(sql, id=f"{suite} {name}")
    for suite in ("tpch", "star")
    for name, sql in read_queries(QUERIES / f"{suite}.sql").items()
]


@pytest.mark.spark
@pytest.mark.parametrize("sql", CASES)
def test_a_whole_query_has_the_rows_of_plain_tables(tables: Tables, sql: str) -> None:
    expected = rows_of(tables.parquet, sql, DEFAULTS)
    assert rows_of(tables.pennon, sql, DEFAULTS) == expected
    assert rows_of(tables.pennon, sql, NO_BROADCASTS) == expected


@pytest.mark.spark
def test_a_subquery_with_several_rows_is_the_error_of_spark(tables: Tables) -> None:
    several = "(SELECT store_id FROM stores WHERE city_id < 50)"
    sql = f"SELECT count(*) AS n, sum(amount) AS amount FROM sales WHERE store_id = {several}"
    for session in (tables.parquet, tables.pennon):
        with pytest.raises(
            (PySparkException, Py4JJavaError), match="SCALAR_SUBQUERY_TOO_MANY_ROWS"
        ):
            rows_of(session, sql, DEFAULTS)
    nothing = several.replace("< 50", "< 0")
    assert rows_of(tables.pennon, sql.replace(several, nothing), DEFAULTS) == ["[0, None]"]
    plan = tables.pennon.sql(f"EXPLAIN {sql}").collect()[0][0]
    assert plan.count("fragment: complete") == 1
    assert "Subquery" not in plan
