"""A change of a large table by a small source looks at the source's keys before rows go to Spark.

Each statement runs on two tables alike, of which one is changed by Spark's rows alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.spark.assert_join import conf
from tests.spark.statement_results import sorted_rows

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

PRUNING = "spark.sql.optimizer.dynamicPartitionPruning.enabled"
ROWS = 20_000
# A thousandth of the defaults, for a table of a thousandth of the rows that this pays for.
SMALLER = {"spark.sql.autoBroadcastJoinThreshold": "10240"}
LAYOUTS = ("bucket(4, id)", "bucket(4, id), kind", "truncate(5000, id)", "kind")
TABLE = """
SELECT id, CAST(id % 7 AS INT) AS kind, DATE '2024-01-01' + CAST(id % 90 AS INT) AS day,
  concat('text ', id) AS text, CAST(id AS DECIMAL(12, 2)) AS price,
  TIMESTAMP '2024-01-01 00:00:00' + MAKE_INTERVAL(0, 0, 0, 0, CAST(id AS INT)) AS ts, 0 AS n
FROM (SELECT IF(id % 13 = 0, NULL, id) AS id FROM range({rows}))
"""
MERGE = """
MERGE INTO {table} t USING ({source}) s ON {on}
WHEN MATCHED AND s.v % 5 = 0 THEN DELETE
WHEN MATCHED THEN UPDATE SET n = s.v
WHEN NOT MATCHED THEN INSERT (id, kind, text, n) VALUES (s.id, 1, concat('text ', s.id), s.v)
"""
SOURCE = "SELECT IF(id = 3, NULL, id * 97) AS id, CAST(id AS INT) AS v FROM range(60, 260)"
ON = {
    "bigint": "t.id = s.id",
    "source first": "s.id = t.id AND t.kind < 6",
    "text": "t.text = concat('text ', s.id)",
    "decimal": "t.price = CAST(s.id AS DECIMAL(12, 2))",
    "timestamp": (
        "t.ts = TIMESTAMP '2024-01-01 00:00:00' + MAKE_INTERVAL(0, 0, 0, 0, CAST(s.id AS INT))"
    ),
    "another type": "t.kind = s.id % 3 AND t.id = s.id",
}


@pytest.fixture(autouse=True)
def small(spark: SparkSession) -> Iterator[None]:
    with conf(spark, SMALLER):
        yield


@pytest.fixture
def tables(spark: SparkSession, namespace: str, request: pytest.FixtureRequest) -> tuple[str, str]:
    """Two tables alike, partitioned as the test asks."""
    names = (f"{namespace}.keyed", f"{namespace}.whole")
    for name in names:
        spark.sql(
            f"CREATE TABLE {name} PARTITIONED BY ({request.param}) AS {TABLE.format(rows=ROWS)}"
        )
    return names


def has_keys(plan: str) -> bool:
    """Whether a scan is given keys; Spark's own filters are by partition values."""
    return "dynamicpruning" in plan.replace("dynamicpruningexpression(kind", "")


def changed(spark: SparkSession, tables: tuple[str, str], statement: str) -> str:
    """Change both tables, compare them, and give the plan of the one that is changed by keys."""
    keyed, whole = tables
    with conf(spark, {PRUNING: "false"}):
        plan = spark.sql("EXPLAIN " + statement.format(table=whole)).first()[0]
        assert not has_keys(plan)
        spark.sql(statement.format(table=whole))
    plan = str(spark.sql("EXPLAIN " + statement.format(table=keyed)).first()[0])
    spark.sql(statement.format(table=keyed))
    rows = sorted_rows(spark.table(keyed))
    assert rows == sorted_rows(spark.table(whole))
    assert any(row[-1] for row in rows) or len(rows) < ROWS
    return plan


def rows_sent(spark: SparkSession, statement: str) -> int:
    """Run a statement and count the rows that its scans of Pennon's tables gave to Spark."""
    plan = spark.sql(statement)._jdf.queryExecution().executedPlan()
    waiting, found = [plan], []
    while waiting:
        node = waiting.pop()
        name = node.nodeName()
        if name == "CommandResult":
            waiting.append(node.commandPhysicalPlan())
        elif name.startswith("AdaptiveSparkPlan"):
            waiting.append(node.executedPlan())
        elif "QueryStage" in name:
            waiting.append(node.plan())
        elif name.startswith("BatchScan lance."):
            found.append(node.metrics().apply("numOutputRows").value())
        children = node.children()
        waiting += [children.apply(at) for at in range(children.size())]
    assert len(found) == 1
    return int(found[0])


@pytest.mark.parametrize("on", ON)
@pytest.mark.parametrize("tables", LAYOUTS[:1], indirect=True)
def test_a_merge_leaves_the_rows_that_it_leaves_without_keys(
    spark: SparkSession, tables: tuple[str, str], on: str
) -> None:
    plan = changed(spark, tables, MERGE.replace("{source}", SOURCE).replace("{on}", ON[on]))
    assert has_keys(plan)


@pytest.mark.parametrize("tables", LAYOUTS, indirect=True)
def test_spark_is_sent_the_rows_that_match_alone(
    spark: SparkSession, tables: tuple[str, str]
) -> None:
    merge = MERGE.replace("{source}", SOURCE).replace("{on}", "t.id = s.id")
    numbers = spark.sql(f"SELECT count(*) FROM {tables[0]} WHERE id IN (SELECT id FROM ({SOURCE}))")
    matching = numbers.first()[0]
    assert 0 < matching < 200
    assert rows_sent(spark, merge.format(table=tables[0])) == matching
    with conf(spark, {PRUNING: "false"}):
        assert rows_sent(spark, merge.format(table=tables[1])) > ROWS // 2
    assert sorted_rows(spark.table(tables[0])) == sorted_rows(spark.table(tables[1]))


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM {table} WHERE id IN (SELECT id FROM ({source}))",
        "DELETE FROM {table} t WHERE EXISTS (SELECT 1 FROM ({source}) s WHERE s.id = t.id)",
        "UPDATE {table} SET n = 9 WHERE text IN (SELECT concat('text ', id) FROM ({source}))",
        "MERGE INTO {table} t USING ({source}) s ON t.id = s.id WHEN MATCHED THEN DELETE",
    ],
)
@pytest.mark.parametrize("tables", LAYOUTS[:1], indirect=True)
def test_other_statements_by_a_source(
    spark: SparkSession, tables: tuple[str, str], statement: str
) -> None:
    assert has_keys(changed(spark, tables, statement.replace("{source}", SOURCE)))


@pytest.mark.parametrize(
    "source",
    [
        f"SELECT id + CAST(rand() * 2 AS INT) AS id, v FROM ({SOURCE})",
        f"SELECT id, first(v) AS v FROM ({SOURCE}) GROUP BY id",
        f"SELECT * FROM ({SOURCE}) LIMIT 150",
        f"SELECT * FROM ({SOURCE}) WHERE v > (SELECT 100 + count(*) FROM range(3))",
    ],
)
@pytest.mark.parametrize("tables", LAYOUTS[:1], indirect=True)
def test_a_source_that_may_have_other_rows_next_time_is_read_once(
    spark: SparkSession, tables: tuple[str, str], source: str
) -> None:
    merge = MERGE.replace("{source}", source).replace("{on}", "t.id = s.id")
    explained = spark.sql("EXPLAIN " + merge.format(table=tables[0])).first()[0]
    assert not has_keys(explained)
    spark.sql(merge.format(table=tables[0]))


@pytest.mark.parametrize("tables", LAYOUTS[:1], indirect=True)
def test_what_has_no_match_is_read_where_the_statement_changes_it(
    spark: SparkSession, tables: tuple[str, str]
) -> None:
    merge = MERGE.replace("{source}", SOURCE).replace("{on}", "t.id = s.id")
    plan = changed(spark, tables, merge + "WHEN NOT MATCHED BY SOURCE THEN UPDATE SET n = 7")
    assert not has_keys(plan)


@pytest.mark.parametrize("tables", LAYOUTS[1:2], indirect=True)
def test_sources_of_files_and_of_pennon(
    spark: SparkSession, tables: tuple[str, str], namespace: str, tmp_path: Path
) -> None:
    spark.sql(SOURCE).write.parquet(str(tmp_path / "source"))
    for name, layout in {"plain": "", "alike": "PARTITIONED BY (bucket(8, id))"}.items():
        spark.sql(f"CREATE TABLE {namespace}.{name} {layout} AS {SOURCE}")
    files, plain, alike = f"parquet.`{tmp_path}/source`", f"{namespace}.plain", f"{namespace}.alike"
    for source in (f"SELECT * FROM {files}", f"TABLE {plain}", f"TABLE {alike}"):
        merge = MERGE.replace("{source}", source).replace("{on}", "t.id = s.id")
        assert has_keys(changed(spark, tables, merge))


@pytest.mark.parametrize("tables", LAYOUTS[:1], indirect=True)
def test_texts_that_are_equal_by_a_collation_only_match(
    spark: SparkSession, tables: tuple[str, str]
) -> None:
    on = "t.text COLLATE UTF8_LCASE = concat('TEXT ', s.id) COLLATE UTF8_LCASE"
    changed(spark, tables, MERGE.replace("{source}", SOURCE).replace("{on}", on))


@pytest.mark.parametrize("tables", LAYOUTS[:1], indirect=True)
def test_a_source_without_rows_changes_nothing(
    spark: SparkSession, tables: tuple[str, str]
) -> None:
    before = sorted_rows(spark.table(tables[0]))
    merge = MERGE.replace("{source}", f"{SOURCE} WHERE id < 0").replace("{on}", "t.id = s.id")
    for table in tables:
        spark.sql(merge.format(table=table))
        assert sorted_rows(spark.table(table)) == before
