"""What a condition on days implies, beside Python's own calendar and time zones."""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from random import Random
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest
from tests.planning.exhaustive import exhaustive

from pennon.execution.engine import rows_over
from pennon.planning.binding.bind import bind
from pennon.planning.binding.bound_predicate import ComputedCondition
from pennon.planning.manifest_query import row_condition
from pennon.predicate.dialect import DataFusion
from pennon.predicate.parse import parse_predicate
from pennon.transforms.calendar import Month, Year
from pennon.transforms.identity import Identity

ZONED = pa.timestamp("us", "UTC")
SCHEMA = pa.schema([("ts", ZONED)])
# Of a day of the years around 2024: the condition, and the most of all days that may be kept.
CASES: list[tuple[str, Callable[[date], bool], float]] = [
    ("year(ts) * 100 + month(ts) >= 202403", lambda d: (d.year, d.month) >= (2024, 3), 0.55),
    ("date_format(ts, 'yyyy-MM') = '2024-03'", lambda d: f"{d:%Y-%m}" == "2024-03", 0.02),
    ("date_format(ts, 'yyyy') <> '2024'", lambda d: d.year != 2024, 0.93),
    ("quarter(ts) = 2", lambda d: 4 <= d.month <= 6, 0.45),
    ("NOT (quarter(ts) IN (2, 3))", lambda d: d.month not in range(4, 10), 0.7),
    ("date_format(ts, 'MM-dd') = '02-29'", lambda d: (d.month, d.day) == (2, 29), 0.04),
    ("weekofyear(ts) = 1", lambda d: d.isocalendar().week == 1, 0.2),
    ("dayofyear(ts) = 60", lambda d: d.timetuple().tm_yday == 60, 0.2),
    ("day(ts) = 31", lambda d: d.day == 31, 0.2),
    ("year(ts) % 5 = 0 AND quarter(ts) = 1", lambda d: d.year % 5 == 0 and d.month < 4, 0.12),
    ("date_add(ts, 30) = DATE '2024-03-01'", lambda d: d == date(2024, 1, 31), 0.01),
    ("datediff(ts, DATE '2024-03-01') BETWEEN -9 AND 9",
     lambda d: abs((d - date(2024, 3, 1)).days) < 10, 0.02),
    ("last_day(ts) = DATE '2024-02-29'", lambda d: (d.year, d.month) == (2024, 2), 0.02),
    ("year(ts + INTERVAL 40 DAY) = 2024", lambda d: (d + timedelta(days=40)).year == 2024, 0.12),
    ("year(ts) < 1700 OR year(ts) = 1 + 2023", lambda d: d.year == 2024, 0.12),
]  # fmt: skip


@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "Pacific/Apia", "Pacific/Kiritimati"])
def test_no_time_of_a_true_day_is_lost_in_any_zone(zone: str) -> None:
    random, clock = Random(zone), ZoneInfo(zone)  # noqa: S311 - the same times in every run
    first = datetime(2019, 1, 1, tzinfo=UTC)
    seconds = [random.randrange(11 * 366 * 86_400) for _ in range(1_500)]
    # The day that Apia skipped is not among these: years later, and clocks change in most of them.
    times = [first + timedelta(seconds=second) for second in seconds]
    midnights = [datetime(2024, month, 1, tzinfo=clock) for month in range(1, 13)]
    times += [(at + timedelta(seconds=by)).astimezone(UTC) for at in midnights for by in (-1, 0)]
    table = pa.table({"ts": pa.array(times, ZONED)})
    for predicate, is_true, most in CASES:
        kept = _implied(predicate, zone, table)
        true = {at for at in times if is_true(at.astimezone(clock).date())}
        assert true <= kept, predicate
        assert len(kept) <= most * len(times), predicate


def _implied(predicate: str, zone: str, table: pa.Table) -> set[datetime]:
    """Give the times that satisfy what each part of a predicate implies."""
    bound = bind(parse_predicate(predicate), SCHEMA, zone)

    def implied(part: Any) -> str:
        parts = getattr(part, "parts", ())
        if parts:
            word = " AND " if type(part).__name__ == "AllOf" else " OR "
            return "(" + word.join(map(implied, parts)) + ")"
        known = part.implied if isinstance(part, ComputedCondition) else part
        return "TRUE" if known is None else f"({row_condition(known).sql(dialect=DataFusion)})"

    return set(
        rows_over(f"SELECT ts FROM t WHERE {implied(bound)}", {"t": table})["ts"].to_pylist()
    )


@pytest.mark.parametrize(
    "predicate",
    [
        "hour(ts) = 3",
        "date_format(ts, 'HH') = '03'",
        "ts + INTERVAL 1 HOUR = ts",
        "CAST(ts AS STRING) = 'x'",
    ],
)
def test_the_time_of_the_day_implies_nothing_of_days(predicate: str) -> None:
    bound = bind(parse_predicate(predicate), SCHEMA, "Asia/Tokyo")
    assert isinstance(bound, ComputedCondition)
    assert bound.implied is None


def _far(year: int, month: int) -> date:
    return date(year, month, monthrange(year, month)[1])


DAYS = [_far(year, month) for year in (1, 1799, 1800, 2023, 2024, 2199, 2200, 9999)
        for month in range(1, 13)] + [date(2024, 2, day) for day in range(1, 30)]  # fmt: skip


@pytest.mark.parametrize(
    ("predicate", "is_true"),
    [
        ("quarter(c) = 2", lambda d: d is not None and 4 <= d.month <= 6),
        ("month(c) = 3", lambda d: d is not None and d.month == 3),
        ("year(c) * 100 + month(c) = 202402", lambda d: d is not None and f"{d:%Y%m}" == "202402"),
        ("coalesce(month(c), 3) = 3", lambda d: d is None or d.month == 3),
        ("date_format(c, 'yyyy-MM') > '2024-06'",
         lambda d: d is not None and f"{d.year:04}-{d.month:02}" > "2024-06"),
    ],
)  # fmt: skip
def test_partitions_of_all_years_are_kept_where_a_value_matches(
    predicate: str, is_true: Callable[[Any], bool]
) -> None:
    for transforms in ([Identity()], [Year(), Month()], [Month()], [Year()]):
        table = exhaustive(DAYS, transforms, pa.date32())
        bound = bind(parse_predicate(predicate), table.schema)
        condition = table.projection.inclusive(bound).sql(dialect=DataFusion)
        decided = table.projection.strict(bound).sql(dialect=DataFusion)
        found = rows_over(
            f"SELECT object_id, {condition} AS kept, {decided} AS whole FROM t",
            {"t": table.partitions},
        ).to_pylist()
        number = {row["object_id"]: row for row in found}
        for at, members in enumerate(table.members):
            row = number[f"v1${at}$dataset"]
            assert row["kept"] or not any(map(is_true, members)), (transforms, members)
            assert not row["whole"] or all(map(is_true, members)), (transforms, members)
            if transforms == [Identity()] and "* 100" not in predicate:
                assert bool(row["whole"]) is all(map(is_true, members)), (predicate, members)
            dates = [member for member in members if isinstance(member, date)]
            in_cycle = all(1800 <= member.year < 2200 for member in dates)
            if transforms == [Year(), Month()] and in_cycle and "coalesce" not in predicate:
                assert bool(row["kept"]) is any(map(is_true, members)), (predicate, members)
