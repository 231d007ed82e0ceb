"""Settings of Spark: the user's own stay, and what Pennon needs goes with its query."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import AnalysisException, PySparkException
from tests.separate_process import run_script
from tests.spark.assert_join import EXECUTION, conf, execute, views
from tests.spark.joins.join_sides import Sides

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BUCKETING = "spark.sql.sources.v2.bucketing"
# Every setting of Spark that Pennon makes while it plans, where the user has not.
NEEDED = {
    f"{BUCKETING}.enabled": "true",
    f"{BUCKETING}.pushPartValues.enabled": "true",
    f"{BUCKETING}.allowCompatibleTransforms.enabled": "true",
    f"{BUCKETING}.allowJoinKeysSubsetOfPartitionKeys.enabled": "true",
    f"{BUCKETING}.shuffle.enabled": "true",
    f"{BUCKETING}.partition.filter.enabled": "true",
    f"{BUCKETING}.preserveOrderingOnCoalesce.enabled": "true",
    "spark.sql.requireAllClusterKeysForCoPartition": "false",
}
OPPOSITE = {"true": "false", "false": "true"}
JOIN = "SELECT l.v, r.v AS rv FROM l JOIN r ON l.id = r.id"


def settings_of(session: SparkSession) -> dict[str, str]:
    stated = {row.key: row.value for row in session.sql("SET -v").collect()}
    return stated | dict(session.conf.getAll)


@pytest.mark.parametrize("adaptive", ["true", "false"])
def test_a_session_is_as_it_was_after_its_queries(sides: Sides, adaptive: str) -> None:
    left, right = sides.table("l", "bucket(16, id)"), sides.table("r", "bucket(8, id)")
    session = sides.spark.newSession()
    session.conf.set("spark.sql.adaptive.enabled", adaptive)
    before = settings_of(session)
    session.sql(f"CREATE TEMPORARY VIEW lv AS SELECT * FROM {left}")
    session.sql(f"CREATE TEMPORARY VIEW rv AS SELECT * FROM {right}")
    joined = "SELECT l.v FROM lv l JOIN rv r ON l.id = r.id"
    for query in (
        joined,
        f"EXPLAIN {joined}",
        f"{joined} WHERE l.v > (SELECT avg(v) FROM rv) AND l.id IN (SELECT id FROM rv)",
        "SELECT id, count(*) FROM lv GROUP BY id HAVING count(*) > (SELECT min(v) FROM rv)",
    ):
        session.sql(query).collect()
    with pytest.raises(AnalysisException):
        session.sql(f"SELECT nothing FROM {left}").collect()
    divided = pytest.raises(PySparkException, match="DIVIDE_BY_ZERO")
    with conf(session, {"spark.sql.ansi.enabled": "true"}), divided:
        session.sql("SELECT l.id / (l.v - l.v) FROM lv l JOIN rv r ON l.id = r.id").collect()
    assert settings_of(session) == before


def test_subqueries_that_are_planned_within_a_query_leave_it_its_settings(sides: Sides) -> None:
    tables = {"l": sides.table("l", "bucket(16, id)"), "r": sides.table("r", "bucket(8, id)")}
    query = f"{JOIN} WHERE l.v > (SELECT min(v) - 1 FROM r) AND r.v > (SELECT min(v) - 1 FROM l)"
    for adaptive in ("true", "false"):
        settings = {"spark.sql.adaptive.enabled": adaptive, EXECUTION: "spark"}
        with conf(sides.spark, settings), views(sides.spark, tables):
            with_subqueries = execute(sides.spark, query).shuffles
            alone = execute(sides.spark, "SELECT min(v) FROM r").shuffles
        # Each minimum is merged by a shuffle of its own; the join has none.
        assert with_subqueries <= 2 * alone


@pytest.mark.parametrize("key", NEEDED)
def test_j35_what_the_user_set_by_sql_is_kept(sides: Sides, key: str) -> None:
    tables = {"l": sides.table("l", "bucket(16, id)"), "r": sides.table("r", "bucket(8, id)")}
    with views(sides.spark, {"l": "l_plain", "r": "r_plain"}):
        expected = execute(sides.spark, JOIN).rows
    value = OPPOSITE[NEEDED[key]]
    session = sides.spark.newSession()
    session.sql(f"SET {key} = {value}")
    with views(session, tables):
        assert execute(session, JOIN).rows == expected
    assert session.conf.get(key) == value


@pytest.mark.parametrize("name", ["allowKeysSubset", "allowJoinKeysSubset"])
def test_j35_both_names_of_a_setting_are_the_users(sides: Sides, name: str) -> None:
    left = sides.table("l", "region", "bucket(8, id)")
    session = sides.spark.newSession()
    session.sql(f"SELECT * FROM {left} LIMIT 1").collect()
    session.sql(f"SET {BUCKETING}.{name}OfPartitionKeys.enabled = false")
    session.sql(f"SELECT count(*) FROM {left}").collect()
    either = {
        f"{BUCKETING}.allow{which}SubsetOfPartitionKeys.enabled" for which in ("Keys", "JoinKeys")
    }
    assert {value for key, value in dict(session.conf.getAll).items() if key in either} == {"false"}


def test_j35_a_table_without_partitioning_stays_where_the_user_wants_both_to_move(
    sides: Sides,
) -> None:
    key = f"{BUCKETING}.shuffle.enabled"
    left = sides.table("l", "bucket(16, id)")
    with conf(sides.spark, {key: "false"}), views(sides.spark, {"l": left, "r": "r_plain"}):
        assert execute(sides.spark, JOIN).shuffles == 2
        assert sides.spark.conf.get(key) == "false"


SCRIPT = """
import ast, sys
import pennon

settings = ast.literal_eval(sys.argv[2])
builder = pennon.spark(root=sys.argv[1]).master("local[1]")
builder.config("spark.ui.enabled", "false").config("spark.sql.shuffle.partitions", "2")
for key, value in settings.items():
    builder.config(key, value)
spark = builder.getOrCreate()
spark.sql("CREATE NAMESPACE lance.c")
spark.sql("CREATE TABLE lance.c.t PARTITIONED BY (bucket(4, id)) AS SELECT id FROM range(50)")
rows = spark.sql("SELECT count(*) FROM lance.c.t x JOIN lance.c.t y USING (id)").collect()[0][0]
other = spark.newSession()
other.sql("SELECT * FROM lance.c.t").collect()
kept = all(session.conf.get(key) == settings[key] for session in (spark, other) for key in settings)
print(repr((rows, kept)))
spark.stop()
"""


@pytest.mark.slow
def test_j35_what_the_user_set_in_spark_conf_is_kept(tmp_path: Path) -> None:
    opposite = {key: OPPOSITE[value] for key, value in NEEDED.items()}
    printed = run_script(SCRIPT, str(tmp_path), repr(opposite))
    assert ast.literal_eval(printed.splitlines()[-1]) == (50, True)


def test_who_executes_joins_is_one_of_two(spark: SparkSession, lake: Path) -> None:
    catalog = "spark.sql.catalog.odd"
    settings = {catalog: "dev.pennon.spark.PennonCatalog", f"{catalog}.root": str(lake)}
    for key, value in settings.items():
        spark.conf.set(key, value)
    unknown = re.escape(f"[EXECUTION_UNKNOWN] Cannot use {catalog}.execution = wroker: ")
    with (
        conf(spark, {f"{catalog}.execution": "wroker"}),
        pytest.raises(AnalysisException, match=unknown),
    ):
        spark.sql("SHOW NAMESPACES IN odd")
    with conf(spark, {f"{catalog}.execution": "SPARK"}):
        spark.sql("SHOW NAMESPACES IN odd")


def test_who_executes_joins_is_judged_in_every_query(sides: Sides) -> None:
    with views(sides.spark, {"l": sides.table("l", "bucket(16, id)"), "r": "r_plain"}):
        for value in ("wroker", ""):
            with (
                conf(sides.spark, {EXECUTION: value}),
                pytest.raises(AnalysisException, match="EXECUTION_UNKNOWN"),
            ):
                sides.spark.sql(JOIN).collect()


def test_a_limit_that_is_no_number_of_bytes_is_refused(spark: SparkSession, namespace: str) -> None:
    spark.range(3).writeTo(f"{namespace}.t").create()
    setting = "spark.sql.catalog.lance.execution.replicatedBytes"
    with (
        conf(spark, {setting: "much"}),
        pytest.raises(AnalysisException, match=f"BYTES_UNKNOWN.*{setting} = much: "),
    ):
        spark.sql(f"SELECT sum(id) FROM {namespace}.t").collect()
