"""Windows in the workers: numbers, peers and frames, beside plain Parquet."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
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
