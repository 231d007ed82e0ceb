"""Which partitions the condition of a procedure chooses."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from tests.transaction.lake import append, make

import pennon
from pennon.errors import PredicateNotEvaluable
from pennon.maintenance.compact import compact
from pennon.maintenance.leaves.chosen_leaves import chosen_leaves
from pennon.maintenance.rewrite_partitions import rewrite_partitions
from pennon.maintenance.statistics import analyze
from pennon.manifest import Snapshot


@pytest.mark.parametrize(
    "where",
    [
        "region",
        "id",
        "1",
        "nope(region) = 1",
        "sum(id) > 1",
        "rand() < 0.5",
        "id = (SELECT 1)",
        "region IN (SELECT 'eu')",
        "region = 'eu' AND nope(id) = 1",
    ],
)
def test_what_is_no_condition_on_rows_chooses_no_partition(tmp_path: Path, where: str) -> None:
    snapshot = make(tmp_path)
    for number in range(2):
        snapshot = append(snapshot, {number: "eu"})
    version = pennon.open(snapshot.location).add_partition_field("bucket(2, id)")
    for run in (compact, rewrite_partitions, analyze):
        with pytest.raises(PredicateNotEvaluable):
            run(snapshot.location, where=where)
    assert Snapshot.open(snapshot.location).version == version


def test_a_condition_that_partition_values_decide_chooses_by_any_function(tmp_path: Path) -> None:
    schema = pa.schema({"t": pa.timestamp("us")})
    table = pennon.create(str(tmp_path / "days"), schema, ["days(t)"])
    for month in (1, 2, 1, 2):
        table.append(pa.table({"t": [datetime(2024, month, 3)]}, schema))  # noqa: DTZ001
    done = compact(table.location, where="date_format(t, 'yyyy-MM') = '2024-02'", dry_run=True)
    assert (done.leaves, done.num_rows) == (1, 2)


@pytest.mark.parametrize(
    ("where", "first", "last"),
    [
        ("t >= TIMESTAMP '2026-01-02 00:00:00'", 32, 47),
        ("t >= '2026-1-2'", 32, 47),
        ("t >= DATE '2026-01-02'", 32, 47),
        ("TIMESTAMP '2026-01-01T02:00' > t", 0, 9),
        ("t BETWEEN TIMESTAMP '2026-01-01 09:59:59.5' AND TIMESTAMP '2026-01-01 12:00:00'", 18, 20),
        ("t IN (TIMESTAMP '2026-01-01 10:00:00', '1999')", 18, 18),
        ("t <=> TIMESTAMP '2026-01-01 10:00:00Z'", 10, 10),
        ("NOT t < TIMESTAMP_NTZ '2026-01-02 00:00:00'", 32, 47),
        ("t >= CAST('2026-01-02' AS TIMESTAMP)", 32, 47),
        ("local >= TIMESTAMP '2026-01-02 00:00:00'", 24, 47),
        ("date(t) = DATE '2026-01-01'", 8, 31),
        ("to_date(t) > '2026-1-1'", 32, 47),
        ("DATE '2026-01-01' > CAST(t AS DATE)", 0, 7),
        ("date(t) <= DATE '2026-01-01'", 0, 31),
        ("NOT date(t) BETWEEN DATE '2025-12-01' AND DATE '2026-01-01'", 32, 47),
        ("NOT date(t) <> DATE '2026-01-01'", 8, 31),
        ("date(t) IN (DATE '2026-01-02', DATE '2026-01-01')", 8, 47),
        ("date(local) = DATE '2026-01-02'", 24, 47),
        ("hour(t) = 5", 0, 47),
        ("date(t) = DATE '2026-01-01' AND hour(t) = 5", 8, 31),
    ],
)
def test_times_of_a_condition_are_those_of_the_session(
    tmp_path: Path, where: str, first: int, last: int
) -> None:
    """They were read in UTC, where the same WHERE of a query has the session's zone."""
    schema = pa.schema({"t": pa.timestamp("us", "UTC"), "local": pa.timestamp("us")})
    table = pennon.create(str(tmp_path / "hours"), schema, ["hours(t)"])
    moments = [datetime(2026, 1, 1, tzinfo=UTC) + timedelta(hours=hour) for hour in range(48)]
    bare = [moment.replace(tzinfo=None) for moment in moments]
    table.append(pa.table({"t": moments, "local": bare}, schema))
    chosen = set(chosen_leaves(table.snapshot, where, "America/Los_Angeles"))
    leaves = table.snapshot.leaves().table
    hours = [leaf["object_id"] in chosen for leaf in _by_hour(leaves)]
    assert [hour for hour, is_chosen in enumerate(hours) if is_chosen] == [*range(first, last + 1)]


def test_a_condition_in_a_zone_that_nobody_knows_is_refused(tmp_path: Path) -> None:
    schema = pa.schema({"t": pa.timestamp("us", "UTC"), "id": pa.int64()})
    table = pennon.create(str(tmp_path / "days"), schema, ["days(t)"])
    assert chosen_leaves(table.snapshot, "id = 1", "Mars/Olympus") == []
    with pytest.raises(PredicateNotEvaluable, match="time zone Mars/Olympus is not known"):
        chosen_leaves(table.snapshot, "t > TIMESTAMP '2026-01-01'", "Mars/Olympus")


def _by_hour(leaves: pa.Table) -> list[dict[str, object]]:
    names = [name for name in leaves.column_names if name.startswith("partition_field_")]
    return sorted(leaves.to_pylist(), key=lambda leaf: [leaf[name] for name in names])
