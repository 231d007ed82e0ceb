"""Windows in the workers: numbers, peers and frames, beside plain Parquet."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyspark.errors import ArithmeticException
from tests.spark.assert_join import ONE_TASK, conf, execute

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from tests.torture.execution.sessions import StarSessions


_EVERY = "d, id, pk, ck, q, amt, v, s"
_RUNNING = f"(PARTITION BY id ORDER BY {_EVERY} ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING)"
_PEERS = "(PARTITION BY id ORDER BY amt DESC NULLS FIRST)"
_WINDOWS = {
    "numbers of rows": (
        "SELECT *, row_number() OVER w, ntile(2) OVER w, lag(q) OVER w, lead(amt, 2, 0.5) OVER w,"
        f" lag(s, 1, s) OVER w FROM f WINDOW w AS (PARTITION BY id ORDER BY {_EVERY})"
    ),
    "peers": (
        f"SELECT *, rank() OVER {_PEERS}, dense_rank() OVER {_PEERS}, percent_rank() OVER {_PEERS},"
        f" cume_dist() OVER (PARTITION BY id ORDER BY v), sum(amt) OVER {_PEERS} FROM f"
    ),
    "frames": (
        f"SELECT *, sum(q) OVER w, avg(q) OVER w, avg(amt) OVER w, count(amt) OVER w, min(s) OVER w"
        f" , max(d) OVER w, first_value(amt) OVER w, nth_value(pk, 2) OVER w, min(amt) OVER after,"
        f" max(amt) OVER after FROM f WINDOW w AS {_RUNNING}, after AS"
        f" (PARTITION BY id ORDER BY {_EVERY} ROWS BETWEEN 1 FOLLOWING AND 2 FOLLOWING)"
    ),
    "frames of days": (
        "SELECT *, sum(q) OVER w, avg(amt) OVER w, count(v) OVER w, min(amt) OVER w, max(s) OVER w,"
        " count(*) OVER later, sum(amt) OVER earlier FROM f WINDOW"
        " w AS (PARTITION BY id ORDER BY d RANGE BETWEEN 40 PRECEDING AND CURRENT ROW), later AS"
        " (PARTITION BY id ORDER BY d DESC NULLS FIRST RANGE BETWEEN 9 PRECEDING AND 90 FOLLOWING),"
        " earlier AS (PARTITION BY id ORDER BY d NULLS LAST"
        " RANGE BETWEEN UNBOUNDED PRECEDING AND 3 FOLLOWING)"
    ),
    "NULLs left out": (
        "SELECT *, lag(amt) IGNORE NULLS OVER w, lag(v, 2, -1D) IGNORE NULLS OVER w,"
        " lead(d, 1, DATE'2001-01-01') IGNORE NULLS OVER w, last_value(amt) IGNORE NULLS OVER w,"
        " first(amt, true) OVER near, last(d, true) OVER near, nth_value(v, 2) IGNORE NULLS OVER w"
        f" FROM f WINDOW w AS (PARTITION BY id ORDER BY {_EVERY}), near AS {_RUNNING}"
    ),
    "frames of numbers": (
        "SELECT *, sum(q) OVER w, count(*) OVER w, max(amt) OVER w, sum(pk) OVER down FROM f WINDOW"
        " w AS (PARTITION BY id ORDER BY pk RANGE BETWEEN 4 PRECEDING AND 2 FOLLOWING),"
        " down AS (PARTITION BY id ORDER BY q DESC NULLS LAST"
        " RANGE BETWEEN 2 PRECEDING AND CURRENT ROW)"
    ),
    "frames of intervals": (
        "SELECT *, sum(q) OVER w, avg(amt) OVER w, count(v) OVER hours FROM f WINDOW"
        " w AS (PARTITION BY id ORDER BY d RANGE BETWEEN INTERVAL 20 DAYS PRECEDING AND"
        " CURRENT ROW), hours AS (PARTITION BY id ORDER BY CAST(d AS TIMESTAMP_NTZ) DESC"
        " RANGE BETWEEN INTERVAL 50 HOURS PRECEDING AND INTERVAL 480 HOURS FOLLOWING)"
    ),
    "averages of large numbers": (
        f"SELECT *, avg((pk - 9) * 4503599627370497L) OVER (PARTITION BY id ORDER BY {_EVERY}"
        " ROWS UNBOUNDED PRECEDING), avg(id) OVER w FROM f WINDOW"
        f" w AS (PARTITION BY id ORDER BY {_EVERY} ROWS 2 PRECEDING)"
    ),
    "the first ones of each group": (
        "SELECT pk, count(*), sum(amt) FROM (SELECT *, rank() OVER (PARTITION BY id ORDER BY q)"
        " AS r FROM f) WHERE r <= 1 GROUP BY pk"
    ),
    "a computed key": (
        "SELECT id AS a, v AS b, q AS c, count(id) OVER (PARTITION BY id, v, q) FROM"
        " (SELECT DISTINCT id, v, q FROM f)"
    ),
}


@pytest.mark.parametrize("name", _WINDOWS)
def test_windows_by_the_key_are_in_the_workers(star: StarSessions, name: str) -> None:
    differences, plans = star.differences(_WINDOWS[name])
    assert differences == []
    for way in ("one task", "divided"):
        assert plans[way].count("fragment: ") == 1, plans[way]
        assert "Window [" not in plans[way].split("fragment: ")[0]


def test_a_frame_that_may_be_empty_has_no_values_of_another_one(star: StarSessions) -> None:
    near = "OVER (PARTITION BY id ORDER BY d NULLS FIRST RANGE BETWEEN 9 PRECEDING AND 5 PRECEDING)"
    differences, _ = star.differences(f"SELECT *, count(*) {near}, sum(q) {near} FROM f")
    assert differences == []


@pytest.mark.parametrize(
    "call",
    [
        "lead(amt, 2) IGNORE NULLS OVER (PARTITION BY id ORDER BY {every})",
        "lag(amt, 0) IGNORE NULLS OVER (PARTITION BY id ORDER BY {every})",
        "count(*) OVER (PARTITION BY id ORDER BY d RANGE INTERVAL 1 MONTH PRECEDING)",
        "count(*) OVER (PARTITION BY id ORDER BY amt RANGE 4 PRECEDING)",
        "count(*) OVER (PARTITION BY id ORDER BY pk * 5L RANGE 4 PRECEDING)",
        "avg(pk * 4503599627370497L) OVER (PARTITION BY id ORDER BY {every} ROWS 2 PRECEDING)",
    ],
)
def test_other_windows_stay_with_spark(star: StarSessions, call: str) -> None:
    differences, plans = star.differences(f"SELECT *, {call.format(every=_EVERY)} FROM f")
    assert differences == []
    assert "Window [" in plans["divided"]


@pytest.mark.parametrize("most", ["CAST(q + 2147483640 AS INT)", "q + 9223372036854775800L"])
@pytest.mark.parametrize("order", ["{}", "-({}) - 2 DESC"])
def test_a_frame_beyond_the_last_number_is_an_error(
    star: StarSessions, most: str, order: str
) -> None:
    within = f"{order.format(most)} RANGE BETWEEN CURRENT ROW AND 2 FOLLOWING"
    sql = f"SELECT pk, count(*) OVER (PARTITION BY id ORDER BY {within}) FROM f"
    for session in star.ways.values():
        with pytest.raises(ArithmeticException, match="OVERFLOW"):
            star.attempt(session, sql)


@pytest.mark.parametrize("kind", ["INT", "BIGINT"])
def test_an_end_beyond_the_last_number_is_computed_while_rows_are_left(
    spark: SparkSession, namespace: str, kind: str
) -> None:
    most = 2 ** {"INT": 31, "BIGINT": 63}[kind] - 1
    spark.sql(f"CREATE TABLE {namespace}.t (id INT, l {kind}) PARTITIONED BY (bucket(2, id))")
    spark.sql(f"INSERT INTO {namespace}.t VALUES (1, {most - 4}), (1, {most - 1}), (2, 5), (2, 8)")
    count = "count(*) OVER (PARTITION BY id ORDER BY l RANGE BETWEEN CURRENT ROW AND {} FOLLOWING)"
    counted = f"SELECT id, {count} AS n FROM {namespace}.t"
    query = f"SELECT id, n, count(*) AS rows FROM ({counted}) GROUP BY id, n"
    with conf(spark, ONE_TASK):
        beyond = execute(spark, query.format(4))
        within = execute(spark, query.format(1))
    groups = [(1, 1), (1, 2), (2, 1), (2, 2)]
    assert sorted(beyond.rows) == [f"Row(id={key}, n={n}, rows=1)" for key, n in groups]
    assert sorted(within.rows) == ["Row(id=1, n=1, rows=2)", "Row(id=2, n=1, rows=2)"]
    assert "Window [" in beyond.plan
    assert "Window [" not in within.plan


def test_each_worker_has_its_own_ties(star: StarSessions) -> None:
    """A side whose rows are chosen by ties is evaluated once, so no worker does it for itself."""
    first = "(SELECT *, row_number() OVER (PARTITION BY rk ORDER BY 1 + rk) AS n FROM c)"
    sql = f"SELECT f.q, c.s FROM f JOIN {first} c ON f.ck = c.ck WHERE c.n = 1"
    _, plan = star.attempt(star.ways["divided"], sql)
    assert "Window [" in plan
    same = sql.replace("row_number()", "rank()").replace("1 + rk", "s")
    differences, plans = star.differences(same)
    assert differences == []
    assert plans["divided"].count("fragment: ") == 1
