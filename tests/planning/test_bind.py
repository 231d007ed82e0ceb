"""What a predicate is once columns and types are known, and what it is not."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from operator import eq, ge, gt, le, lt, ne
from random import Random
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest

import pennon
from pennon.errors import PennonError, PredicateSyntaxError, UnknownColumn
from pennon.execution.engine import rows_over
from pennon.planning.binding import bound_predicate
from pennon.planning.binding.bind import bind
from pennon.planning.binding.bound_predicate import ComputedCondition, all_of, conjuncts
from pennon.planning.manifest_query import row_condition
from pennon.predicate.dialect import DataFusion
from pennon.predicate.parse import parse_predicate

if TYPE_CHECKING:
    from pathlib import Path

_SCHEMA = pa.schema(
    [
        ("i", pa.int32()),
        ("l", pa.int64()),
        ("s", pa.string()),
        ("d", pa.date32()),
        ("ts", pa.timestamp("us", "UTC")),
        ("n", pa.timestamp("us")),
        ("f", pa.float64()),
        ("g", pa.float32()),
        ("m", pa.decimal128(4, 1)),
        ("o", pa.bool_()),
        ("Top", pa.struct([("Inner", pa.int32())])),
    ]
)


def _bound(sql: str, time_zone: str = "UTC") -> str:
    bound = bind(parse_predicate(sql), _SCHEMA, time_zone)
    return str(row_condition(bound).sql(dialect=DataFusion))


def is_exact(predicate: str, schema: pa.Schema) -> bool:
    """Whether Spark need not evaluate a condition again."""
    try:
        return bound_predicate.is_exact(bind(parse_predicate(predicate), schema))
    except PennonError:
        return False


@pytest.mark.parametrize(
    ("predicate", "filter_sql"),
    [
        ("i = 5.5", "FALSE"),
        ("i <> 5.5", "NOT `i` IS NULL"),
        ("i < 5.5 AND I > -5.5", "`i` <= 5 AND `i` > -6"),
        ("i > 3000000000", "FALSE"),
        ("i IN (1, 2.5, 3000000000, NULL)", "`i` = 1"),
        ("i NOT IN (1, 2.5)", "NOT `i` IS NULL AND `i` <> 1"),
        ("CAST(i AS DOUBLE) = CAST('7' AS DOUBLE)", "`i` = 7"),
        ("CAST(i AS DECIMAL(12,1)) < 0.5", "`i` <= 0"),
        ("l = CAST('NaN' AS DOUBLE) OR l < CAST('Infinity' AS DOUBLE)", "NOT `l` IS NULL"),
        ("m >= 99.95", "`m` > CAST('99.9' AS DECIMAL(4, 1))"),
        ("m < 1000", "NOT `m` IS NULL"),
        ("d = '2025-12-10'", "`d` = DATE '2025-12-10'"),
        ("NOT o", "`o` = FALSE"),
        ("top.inner <=> 3", "`Top`.`Inner` = 3"),
        ("year(d) = 2012", "`d` >= DATE '2012-01-01' AND `d` < DATE '2013-01-01'"),
        ("CAST(ts AS DATE) <= DATE '1969-12-31'", _bound("ts < TIMESTAMP '1970-01-01 00:00:00'")),
        ("date_trunc('QUARTER', n) > TIMESTAMP_NTZ '2012-02-01 00:00:00'",
         _bound("n >= TIMESTAMP_NTZ '2012-04-01 00:00:00'")),
        ("trunc(d, 'week') = DATE '2025-12-08'",
         "`d` >= DATE '2025-12-08' AND `d` < DATE '2025-12-15'"),
        ("trunc(d, 'week') = DATE '2025-12-09'", "FALSE"),
        ("s LIKE 'a\\\\_b_%'", "starts_with(`s`, 'a_b') AND `s` LIKE 'a\\_b_%'"),
    ],
)  # fmt: skip
def test_a_predicate_is_bound_to_the_types_of_its_columns(predicate: str, filter_sql: str) -> None:
    assert _bound(predicate) == filter_sql


@pytest.mark.parametrize(
    ("predicate", "same"),
    [
        ("((i)) > (5)", "i > 5"),
        ("(i) IN ((1), (2))", "i IN (1, 2)"),
        ("(CAST((i) AS DOUBLE)) = (7)", "i = 7"),
        ("(year((d))) = (2012)", "d BETWEEN DATE '2012-01-01' AND DATE '2012-12-31'"),
        ("(ts + INTERVAL 1 DAY) > TIMESTAMP '2020-01-02 00:00:00'",
         "ts > TIMESTAMP '2020-01-01 00:00:00'"),
        ("TIMESTAMP '2020-01-02 00:00:00' <= (((ts)) - INTERVAL 2 HOURS)",
         "ts >= TIMESTAMP '2020-01-02 02:00:00'"),
        ("(date_trunc('MONTH', (n))) = TIMESTAMP_NTZ '2012-02-01 00:00:00'",
         "n >= TIMESTAMP_NTZ '2012-02-01 00:00:00' AND n < TIMESTAMP_NTZ '2012-03-01 00:00:00'"),
        ("(top).inner = 3", "top.inner = 3"),
        ("(i + 1) > 5", "i + 1 > 5"),
    ],
)  # fmt: skip
def test_parentheses_around_an_operand_change_nothing(predicate: str, same: str) -> None:
    """The rows are the same, and what is a range without them is one with them."""
    times = [datetime(2019, 12, 31, tzinfo=UTC) + timedelta(hours=hour) for hour in range(60)]
    days = [datetime(2011, 12, 1, tzinfo=UTC) + timedelta(days=day) for day in range(420)]
    count = max(len(times), len(days))
    rows = {
        "i": pa.array([*range(-3, 12), *[None] * (count - 15)], pa.int32()),
        "d": pa.array([day.date() for day in days], pa.date32()),
        "ts": pa.array([*times, *[None] * (count - len(times))], pa.timestamp("us", "UTC")),
        "n": pa.array([day.replace(tzinfo=None) for day in days], pa.timestamp("us")),
        "Top": pa.array(
            [{"Inner": number % 5} for number in range(count)], _SCHEMA.field("Top").type
        ),
        "at": pa.array(range(count)),
    }
    kept = [
        rows_over(f"SELECT `at` FROM `t` WHERE {_bound(sql)} ORDER BY 1", {"t": pa.table(rows)})[
            "at"
        ]
        for sql in (predicate, same)
    ]
    assert kept[0].to_pylist() == kept[1].to_pylist() != []
    is_computed = {
        "greatest" in _bound(sql) or "date_part" in _bound(sql) for sql in (predicate, same)
    }
    assert len(is_computed) == 1


def test_float_literals_that_spark_compares_inexactly_stay_as_they_are() -> None:
    huge = "CAST('9007199254740993' AS DOUBLE)"
    assert "`l` =" not in _bound(f"CAST(l AS DOUBLE) = {huge}")
    assert _bound("g = CAST('0.1' AS DOUBLE)") == "FALSE"


def test_zoned_times_turn_into_dates_in_utc_only() -> None:
    assert "date_part" in _bound("year(ts) = 2012", "Asia/Tokyo")
    assert "date_part" not in _bound("year(n) = 2012", "Asia/Tokyo")


@pytest.mark.parametrize(
    ("function", "width", "is_cut"),
    [
        ("unix_seconds(ts)", 1_000_000, False),
        ("unix_millis(ts)", 1_000, False),
        ("unix_micros(ts)", 1, False),
        ("CAST(ts AS BIGINT)", 1_000_000, False),
        ("unix_timestamp(ts, 'yyyy-MM-dd HH:mm:ss')", 1_000_000, True),
        ("to_unix_timestamp(ts)", 1_000_000, True),
    ],
)
def test_numbers_since_1970_are_ranges_in_every_zone(
    function: str, width: int, *, is_cut: bool
) -> None:
    times = [whole * width + part for whole in range(-3, 4) for part in (0, 1, width - 1)]
    table = pa.table({"ts": pa.array([*times, None], pa.timestamp("us", "UTC"))})
    compare = {"=": eq, "<>": ne, "<": lt, "<=": le, ">": gt, ">=": ge}
    for sql, operator in compare.items():
        for number in range(-3, 4):
            condition = _bound(f"{function} {sql} {number}", "Asia/Tokyo")
            assert "unix" not in condition
            rows = rows_over(f"SELECT `ts` FROM `t` WHERE {condition}", {"t": table})
            values = {
                time: math.trunc(Fraction(time, width)) if is_cut else time // width
                for time in times
            }
            expected = [time for time in times if operator(values[time], number)]
            assert rows["ts"].cast(pa.int64()).to_pylist() == expected, (sql, number)


@pytest.mark.slow
def test_in_other_zones_a_range_around_has_every_time_that_a_function_finds() -> None:
    random = Random(7)  # noqa: S311 - the same times in every run
    first, width = datetime(2011, 1, 1, tzinfo=UTC), 4 * 366 * 86_400
    kept = total = 0
    for zone in ("Pacific/Apia", "Pacific/Kiritimati", "America/New_York", "Etc/GMT+12"):
        clock = ZoneInfo(zone)
        for _ in range(40):
            moment = first + timedelta(seconds=random.randrange(width))
            local = moment.astimezone(clock)
            month = local.replace(day=1, hour=0, minute=0, second=0)
            literal = f"TIMESTAMP '{month.astimezone(UTC):%Y-%m-%d %H:%M:%S}+00:00'"
            week = local.date() - timedelta(days=local.weekday())
            for predicate in (
                f"year(ts) = {local.year}",
                f"NOT (year(ts) <> {local.year})",
                f"year(ts) IN ({local.year}, 1999)",
                f"year(ts) >= {local.year}",
                f"month(ts) IN ({local.month}, {local.month % 12 + 1})",
                f"month(ts) = {local.month} AND year(ts) = {local.year}",
                f"date_trunc('MONTH', ts) = {literal}",
                f"date_trunc('MONTH', ts) >= {literal}",
                f"date_trunc('MONTH', ts) <= {literal}",
                f"CAST(ts AS DATE) = DATE '{local.date()}'",
                f"trunc(ts, 'WEEK') = DATE '{week}'",
            ):
                bound = bind(parse_predicate(predicate), _SCHEMA, zone)
                parts = [part for part in conjuncts(bound) if isinstance(part, ComputedCondition)]
                assert len(parts) == len(conjuncts(bound)), predicate
                ranges = [part.implied for part in parts if part.implied is not None]
                condition = row_condition(all_of(ranges)).sql(dialect=DataFusion)
                times = [moment, moment + timedelta(days=800), moment - timedelta(days=800)]
                table = pa.table({"ts": pa.array(times, pa.timestamp("us", "UTC"))})
                rows = rows_over(f"SELECT `ts` FROM `t` WHERE {condition}", {"t": table})
                assert moment in rows["ts"].to_pylist(), (zone, predicate, moment)
                kept, total = kept + len(rows), total + 3
    assert kept < total / 2


def test_an_unknown_column_is_named_with_those_near_it() -> None:
    with pytest.raises(UnknownColumn, match=r"column top.iner: the table has Top.Inner, .*\bd\b"):
        bind(parse_predicate("top.iner = 5"), _SCHEMA)


@pytest.mark.parametrize(
    ("predicate", "exact"),
    [
        ("i = 5 AND (s LIKE 'a%' OR d IN (DATE '2025-12-10'))", True),
        ("NOT (endswith(s, 'x') OR m > 1.5)", True),
        ("contains(s, 'x') AND ts <= TIMESTAMP '2025-12-10 00:00:00+00:00'", True),
        ("l IS NULL AND o", True),
        ("FALSE", True),
        ("f = CAST('1.5' AS DOUBLE)", False),
        ("f IS NOT NULL", True),
        ("i + 1 = 5", False),
        ("i = 5 OR i + 1 = 5", False),
        ("CAST(i AS DOUBLE) = CAST('7' AS DOUBLE)", False),
        ("year(d) = 2012", False),
        ("CAST(ts AS DATE) = DATE '2025-12-10'", False),
        ("ts > DATE '2025-12-10'", False),
        ("s = 5", False),
        ("s LIKE 'a_c%'", False),
        ("unknown = 5", False),
        ("i = = 5", False),
    ],
)
def test_only_what_the_leaf_decides_as_spark_is_exact(predicate: str, exact: bool) -> None:  # noqa: FBT001
    assert is_exact(predicate, _SCHEMA) is exact


def test_a_field_of_the_elements_of_a_list_is_left_to_spark() -> None:
    """Spark names it as it names the field of a struct: ``array_contains(items.x, 3)``."""
    items = pa.list_(pa.struct([("x", pa.int32())]))
    schema = pa.schema([("i", pa.int32()), ("items", items), ("top", pa.struct([("in", items)]))])
    for predicate in ("array_contains(`items`.`x`, 3)", "size(top.In.x) = 1", "items.x IS NULL"):
        bound = bind(parse_predicate(f"i = 5 AND ({predicate})"), schema)
        assert not is_exact(predicate, schema)
        assert "`i` = 5" in row_condition(bound).sql(dialect=DataFusion)
    with pytest.raises(UnknownColumn, match=r"items\.y"):
        bind(parse_predicate("size(items.y) = 1"), schema)


def test_what_means_another_without_ansi_is_decided_by_no_partition_value() -> None:
    """Zero with eight fractional digits is 0E-8 there, and 0.00000000 under ANSI."""
    schema = pa.schema([("small", pa.decimal128(20, 8)), ("m", pa.decimal128(12, 2))])
    small, plain = (
        bind(parse_predicate(f"CAST({name} AS STRING) = '0E-8'"), schema) for name in ("small", "m")
    )
    assert isinstance(small, ComputedCondition)
    assert isinstance(plain, ComputedCondition)
    assert (small.can_fail, plain.can_fail) == (True, False)


def test_the_hour_of_a_date_is_not_that_of_its_time() -> None:
    assert _bound("hour(n) = 3") != _bound("hour(to_date(n)) = 3")


@pytest.mark.parametrize("call", ["makedecimal(l)", "PARTITION_TRANSFORM()"])
def test_a_call_without_its_arguments_is_no_failure(call: str) -> None:
    assert not is_exact(f"{call} = 1", _SCHEMA)


def test_messages_are_in_the_words_of_who_asks(tmp_path: Path) -> None:
    with pytest.raises(PredicateSyntaxError, match="a value is missing at line 1") as missing:
        parse_predicate("d >=")
    assert "sqlglot" not in str(missing.value)
    table = pennon.create(str(tmp_path / "t"), _SCHEMA, ["i"])
    with pytest.raises(PennonError, match=r"find column Top.Inner: the table has Top, which is"):
        table.scan(columns=["Top.Inner"]).to_arrow()
