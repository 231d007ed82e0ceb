"""Searches in SQL: the table function, joins with the nearest rows, statements about indexes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql.functions import expr

import pennon

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

ROWS, SIZE = 1_500, 8
VECTORS = np.random.default_rng(7).normal(size=(ROWS, SIZE)).astype(np.float32)
TABLE = "lance.found.docs"


@pytest.fixture(scope="module")
def docs(spark: SparkSession, lake: Path) -> Iterator[str]:
    """A table of five tenants, of which every hundredth row has no vector."""
    spark.sql("CREATE NAMESPACE lance.found")
    spark.sql(
        f"CREATE TABLE {TABLE} (id BIGINT, tenant STRING, v ARRAY<FLOAT>)"
        " PARTITIONED BY (tenant) TBLPROPERTIES ('v.arrow.fixed-size-list.size' = '8')"
    )
    vectors = [None if i % 100 == 99 else vector.tolist() for i, vector in enumerate(VECTORS)]
    tenants = [f"t{i % 5}" for i in range(ROWS)]
    table = pennon.connect(lake).load_table("found.docs")
    kind = pa.list_(pa.float32(), SIZE)
    table.append(pa.table({"id": range(ROWS), "tenant": tenants, "v": pa.array(vectors, kind)}))
    yield TABLE
    spark.sql("DROP NAMESPACE lance.found CASCADE")


def nearest(query: int, k: int, among: range = range(ROWS)) -> list[int]:
    """The ids of the rows that are nearest to one of them, by NumPy."""
    ids = np.array([i for i in among if i % 100 != 99])
    far = ((VECTORS[ids] - VECTORS[query]) ** 2).sum(axis=1)
    return ids[np.lexsort((ids, far))][:k].tolist()


def literal(query: int) -> str:
    return "array(" + ", ".join(f"{value!r}F" for value in VECTORS[query].tolist()) + ")"


FAR = f"vector_l2_distance(v, {literal(3)})"


def ids(spark: SparkSession, sql: str) -> list[int]:
    return [row[0] for row in spark.sql(sql).collect()]


@pytest.mark.spark
def test_vector_search_is_a_table_of_the_nearest_rows(spark: SparkSession, docs: str) -> None:
    call = f"vector_search('{docs}', {literal(3)}, num_results => 6"
    assert ids(spark, f"SELECT id FROM {call}) ORDER BY _distance") == nearest(3, 6)
    of_tenant = nearest(3, 6, range(1, ROWS, 5))
    assert ids(spark, f"""SELECT id FROM {call}, where => "tenant = 't1'")""") == of_tenant
    query = f"TABLE(SELECT * FROM {docs} WHERE tenant = 't1')"
    assert ids(spark, f"SELECT id FROM {call.replace(repr(docs), query)})") == of_tenant
    plan = spark.sql(f"SELECT id FROM {call.replace(repr(docs), query)})")._jdf.queryExecution()
    assert "partitions: 1 of 5; by index: 0 leaves" in plan.toString()
    # A condition above it chooses among what was found.
    assert len(ids(spark, f"SELECT id FROM {call}) WHERE tenant = 't1'")) < 6
    batch = f"vector_search('{docs}', array({literal(3)}, {literal(8)}), num_results => 2)"
    rows = spark.sql(f"SELECT query_index, id FROM {batch}").collect()
    assert [(row[0], row[1]) for row in rows] == [
        *((0, found) for found in nearest(3, 2)),
        *((1, found) for found in nearest(8, 2)),
    ]


@pytest.mark.spark
@pytest.mark.parametrize(
    ("condition", "is_asked"),
    [
        ("ts >= '2024-01-02' AND ts < DATE '2024-01-03'", True),
        ("ts = TIMESTAMP '2024-01-02 01:00:00'", True),
        ("CAST(ts AS DATE) = DATE '2024-01-02'", False),
    ],
)
def test_times_before_a_search_are_of_the_sessions_zone(
    spark: SparkSession, docs: str, condition: str, *, is_asked: bool
) -> None:
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    table = "lance.found.times"
    try:
        spark.sql(
            f"CREATE TABLE {table} (id BIGINT, ts TIMESTAMP, v ARRAY<FLOAT>)"
            " TBLPROPERTIES ('v.arrow.fixed-size-list.size' = '1')"
        )
        spark.sql(
            f"""INSERT INTO {table} VALUES (1, TIMESTAMP '2024-01-01 22:00:00', array(1F)),
            (2, TIMESTAMP '2024-01-02 01:00:00', array(2F)),
            (3, TIMESTAMP '2024-01-02 22:00:00', array(3F))"""
        )
        chosen = f"SELECT * FROM {table} WHERE {condition}"
        plain = spark.sql(f"SELECT id, ts FROM ({chosen}) ORDER BY id").collect()
        assert 0 < len(plain) < 3
        for call in (f'{table!r}, array(0), where => "{condition}"', f"TABLE({chosen}), array(0)"):
            search = f"SELECT id, ts FROM vector_search({call})"
            if is_asked:
                assert spark.sql(search).collect() == plain, call
            else:
                with pytest.raises(PySparkException, match="PREDICATE_NOT_EVALUABLE"):
                    spark.sql(search)
        if spark.version.startswith("4.3"):
            joined = f"""SELECT t.id, t.ts FROM (SELECT array(0F) q) JOIN ({chosen}) t
            EXACT NEAREST 3 BY DISTANCE vector_l2_distance(q, t.v) ORDER BY 1"""
            assert spark.sql(joined).collect() == plain
    finally:
        spark.sql(f"DROP TABLE IF EXISTS {table}")
        spark.conf.set("spark.sql.session.timeZone", "UTC")


@pytest.mark.spark
def test_a_view_of_a_search_finds_what_came_later(spark: SparkSession, docs: str) -> None:
    spark.sql(
        "CREATE OR REPLACE TEMPORARY VIEW near AS SELECT id"
        f" FROM vector_search('{docs}', {literal(3)}, num_results => 2)"
    )
    before = ids(spark, "SELECT * FROM near")
    spark.sql(f"INSERT INTO {docs} SELECT -1, tenant, v FROM {docs} WHERE id = 3")
    assert set(ids(spark, "SELECT * FROM near")) == {3, -1} != set(before)
    spark.sql(f"DELETE FROM {docs} WHERE id = -1")
    assert ids(spark, "SELECT * FROM near") == before


@pytest.mark.spark
@pytest.mark.parametrize(
    ("arguments", "condition"),
    [
        ("array(1.0)", "QUERY_DIMENSION_MISMATCH"),
        (f"{literal(1)}, num_results => 0", "SEARCH_OPTION_REFUSED"),
        (f"{literal(1)}, nprobs => 3", "SEARCH_OPTION_REFUSED"),
        (f"{literal(1)}, vector_column => 'tenant'", "NOT_A_VECTOR_COLUMN"),
        (f"{literal(1)}, where => 'rand() > 0'", "SEARCH_CALL_REFUSED"),
        ("CAST(NULL AS ARRAY<FLOAT>)", "QUERY_VECTOR_REFUSED"),
        ("(SELECT max(v) FROM lance.found.docs)", "SEARCH_CALL_REFUSED"),
    ],
)
def test_a_bad_call_says_in_one_sentence_why(
    spark: SparkSession, docs: str, arguments: str, condition: str
) -> None:
    with pytest.raises(PySparkException, match=rf"^\[{condition}\] Cannot search"):
        spark.sql(f"SELECT * FROM vector_search('{docs}', {arguments})")


@pytest.mark.spark
@pytest.mark.parametrize("mode", ["EXACT", "APPROX"])
@pytest.mark.parametrize("kind", ["", "LEFT"])
def test_a_join_with_the_nearest_rows_is_that_of_spark(
    spark: SparkSession, docs: str, mode: str, kind: str
) -> None:
    if not spark.version.startswith("4.3"):
        pytest.skip("NEAREST BY is of Spark 4.3")
    spark.sql(
        "CREATE OR REPLACE TEMPORARY VIEW q AS SELECT id AS qid, 'x' AS name, v AS qv"
        f" FROM {docs} WHERE id IN (3, 99, 700)"
    )
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW copied AS SELECT * FROM {docs} LIMIT 1000000")
    join = (
        f"SELECT qid, name, d.id, d.tenant FROM q {kind} JOIN {{}} d {mode} NEAREST 3"
        " BY {} ORDER BY 1, 3"
    )
    for ranking in (
        "DISTANCE vector_l2_distance(qv, d.v)",
        "SIMILARITY vector_cosine_similarity(d.v, qv)",
        "SIMILARITY vector_inner_product(qv, d.v)",
    ):
        for chosen in (docs, f"(SELECT * FROM {docs} WHERE tenant IN ('t1', 't3') AND id > 20)"):
            ours = spark.sql(join.format(chosen, ranking))
            plain = spark.sql(join.format(chosen.replace(docs, "copied"), ranking))
            partitions = 5 if chosen == docs else 2
            assert (
                f"{docs}; partitions: {partitions} of 5; by index: 0 leaves, 0 rows (none);"
                f" row by row: {partitions} leaves"
            ) in ours._jdf.queryExecution().toString()
            assert "MapInArrow" not in plain._jdf.queryExecution().toString()
            assert ours.collect() == plain.collect(), (ranking, chosen)
    # Both sides have columns of the same names.
    itself = f"""SELECT q.id, d.id FROM {docs} q {kind} JOIN {docs} d {mode} NEAREST 1
    BY DISTANCE vector_l2_distance(q.v, d.v)"""
    found = {row[0]: row[1] for row in spark.sql(itself).collect()}
    assert found == {i: i for i in range(ROWS) if i % 100 != 99} | (
        dict.fromkeys(range(99, ROWS, 100)) if kind else {}
    )


@pytest.mark.spark
def test_a_statement_that_changes_what_it_reads_tells_its_reads(
    spark: SparkSession, docs: str
) -> None:
    if not spark.version.startswith("4.3"):
        pytest.skip("NEAREST BY is of Spark 4.3")
    other = "lance.found.other"
    spark.sql(f"CREATE TABLE {other} (id BIGINT, tenant STRING, v ARRAY<FLOAT>)")
    query = f"""SELECT d.id, d.tenant, d.v FROM (SELECT {literal(3)} q) JOIN {docs} d
    EXACT NEAREST 2 BY DISTANCE vector_l2_distance(q, d.v)"""
    first = f"SELECT * FROM {docs} ORDER BY {FAR} LIMIT 2"
    for statement, is_searched in (
        (f"INSERT INTO {other} {first}", True),
        (f"INSERT OVERWRITE {docs} {first}", False),
        (f"INSERT INTO {other} {query}", True),
        (f"CREATE TABLE lance.found.made AS {query}", True),
        (f"INSERT OVERWRITE {docs} {query}", False),
        (f"CREATE OR REPLACE TABLE {docs} AS {query}", False),
    ):
        (plan,) = spark.sql(f"EXPLAIN EXTENDED {statement}").collect()
        is_planned = "MapInArrow" in plan[0] or "first_rows" in plan[0]
        assert is_planned is is_searched, statement
    spark.sql(f"DROP TABLE {other}")


ORDERS = [
    f"SELECT id FROM {{0}} ORDER BY {FAR} LIMIT 20",  # of which fifteen have no vector
    f"SELECT id, {FAR} AS far FROM {{0}} ORDER BY far NULLS LAST LIMIT 7",
    f"""SELECT tenant, far FROM (SELECT *, {FAR} far FROM {{0}} WHERE tenant > 't1' AND id < 900) d
    ORDER BY far NULLS LAST LIMIT 3""",
    f"""SELECT v FROM {{0}} WHERE v IS NOT NULL
    ORDER BY vector_l2_distance(CAST({literal(8)} AS ARRAY<FLOAT>), v) LIMIT 2""",
    f"SELECT id, (SELECT count(*) FROM {{0}}) n FROM {{0}} ORDER BY {FAR} NULLS LAST LIMIT 2000",
    f"SELECT id FROM {{0}} ORDER BY {FAR}, id LIMIT 2",
]


@pytest.mark.spark
@pytest.mark.parametrize("order", ORDERS)
def test_the_first_rows_by_a_distance_are_those_of_spark(
    spark: SparkSession, docs: str, order: str
) -> None:
    if not spark.version.startswith("4.3"):
        pytest.skip("distances of vectors are of Spark 4.3")
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW copied AS SELECT * FROM {docs} LIMIT 1000000")
    setting = "spark.sql.catalog.lance.execution"
    ours, plain = spark.sql(order.format(docs)), spark.sql(order.format("copied"))
    spark.conf.set(setting, "spark")
    left = spark.sql(order.format(docs))
    is_found = "first_rows" in left._jdf.queryExecution().toString()
    spark.conf.unset(setting)
    assert not is_found
    # By two columns Spark sorts the table.
    assert ("first_rows" in ours._jdf.queryExecution().toString()) is (", id" not in order)
    # Rows without a vector come in any order.
    rows = [sorted(frame.collect(), key=repr) for frame in (ours, plain, left)]
    assert rows[0] == rows[1] == rows[2]


@pytest.mark.spark
def test_the_first_rows_of_a_frame_are_found_when_it_is_run(spark: SparkSession, docs: str) -> None:
    if not spark.version.startswith("4.3"):
        pytest.skip("distances of vectors are of Spark 4.3")
    frame = spark.table(docs).where("tenant = 't3'").orderBy(expr(FAR).asc_nulls_last()).limit(4)
    firsts = frame.select("id")
    plan = firsts._jdf.queryExecution().toString()
    assert "partitions: 1 of 5; by index: 0 leaves" in plan
    assert [row[0] for row in firsts.collect()] == nearest(3, 4, range(3, ROWS, 5))


@pytest.mark.spark
def test_statements_make_show_and_drop_indexes(spark: SparkSession, docs: str) -> None:
    spark.sql(f"CREATE INDEX v_idx ON {docs} USING ivf_flat (v) OPTIONS (min_bytes = '0')")
    spark.sql(f"ALTER TABLE {docs} CREATE INDEX IF NOT EXISTS id_idx USING btree (id)")
    spark.sql(f"CREATE INDEX IF NOT EXISTS v_idx ON TABLE {docs} (v)")
    shown = spark.sql(f"SHOW INDEXES ON {docs}").toPandas()
    assert set(shown["index"]) == {"v_idx", "id_idx"}
    assert ids(spark, f"SELECT id FROM vector_search('{docs}', {literal(3)})") == nearest(3, 10)
    assert spark.sql("CALL lance.system.refresh_indexes('found.docs')").count() == 1
    spark.sql(f"DROP INDEX v_idx ON {docs}")
    spark.sql(f"ALTER TABLE {docs} DROP INDEX id_idx")
    spark.sql(f"DROP INDEX IF EXISTS id_idx ON {docs}")
    assert spark.sql(f"SHOW INDEXES IN {docs}").count() == 0
    with pytest.raises(PySparkException, match="INDEX_NOT_FOUND"):
        spark.sql(f"DROP INDEX id_idx ON {docs}")
    with pytest.raises(PySparkException, match="INDEX_SYNTAX.*, is missing|INDEX_SYNTAX"):
        spark.sql(f"CREATE INDEX i ON {docs} USING ivf_flat v")


@pytest.fixture(scope="module")
def notes(spark: SparkSession, docs: str) -> str:
    """A table of texts beside vectors, of two tenants; in the namespace that goes with docs."""
    name = "lance.found.notes"
    spark.sql(
        f"CREATE TABLE {name} (id BIGINT, tenant STRING, body STRING, v ARRAY<FLOAT>)"
        " PARTITIONED BY (tenant) TBLPROPERTIES ('v.arrow.fixed-size-list.size' = '2')"
    )
    spark.sql(
        f"INSERT INTO {name} VALUES (1, 'a', 'the blue sky', array(0.0F, 1.0F)),"
        " (2, 'b', 'Blue, blue sea', array(5.0F, 1.0F)), (3, 'b', NULL, array(9.0F, 1.0F)),"
        " (4, 'a', 'a red fox', array(8.0F, 1.0F))"
    )
    return name


@pytest.mark.spark
def test_text_and_hybrid_search_are_tables_of_the_best_rows(
    spark: SparkSession, notes: str
) -> None:
    call = f"search('{notes}', 'blue', search_columns => 'body'"
    assert ids(spark, f"SELECT id FROM {call})") == [2, 1]
    assert ids(spark, f"SELECT id FROM {call}, num_results => 1, scope => 'partition')") == [1]
    assert ids(spark, f"""SELECT id FROM {call}, where => "tenant = 'a'")""") == [1]
    query = f"TABLE(SELECT * FROM {notes} WHERE tenant = 'a')"
    scored = spark.sql(
        f"SELECT _score FROM search_text({query}, query => 'blue', text_column => 'body')"
        f" UNION ALL SELECT _score FROM {call}) WHERE id = 1"
    ).collect()
    assert len(scored) == 2
    assert scored[0] == scored[1]
    hybrid = (
        f"hybrid_search('{notes}', query => 'blue', query_vector => array(8.9F, 1.0F),"
        " search_columns => 'body', num_results => 3, candidates => 2)"
    )
    rows = spark.sql(f"SELECT id, _relevance_score FROM {hybrid}").collect()
    assert [row[0] for row in rows[:2]] in ([2, 3], [3, 2])
    assert [row[1] for row in rows] == pytest.approx([1 / 60, 1 / 60, 1 / 61])


@pytest.mark.spark
@pytest.mark.parametrize(
    "arguments",
    [
        "'x', search_columns => 'id'",
        "'x', search_columns => array('body', 'tenant')",
        "'', search_columns => 'body'",
        "search_columns => 'body'",
        "'x', search_columns => 'body', num_results => 0",
        "'x', search_columns => 'body', nprobes => 2",
    ],
)
def test_a_bad_text_search_says_in_one_sentence_why(
    spark: SparkSession, notes: str, arguments: str
) -> None:
    with pytest.raises(PySparkException, match=r"^\[SEARCH_OPTION_REFUSED\] Cannot search"):
        spark.sql(f"SELECT * FROM search('{notes}', {arguments})")
    with pytest.raises(PySparkException, match="SEARCH_CALL_REFUSED"):
        spark.sql("SELECT * FROM search(query => 'x')")
