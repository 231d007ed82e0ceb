# ruff: noqa: DTZ001, RUF001 - zone-less times and odd letters are cases
"""Every type with every transform that takes it: exactly the partitions that can match are kept.

The values of each case hold a witness for all that its literals ask for, on either side of each
boundary: a partition that is kept without a matching value is one too many.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import partial

import pyarrow as pa
import pytest
from tests.planning.exhaustive import Exhaustive, exhaustive
from tests.strategies.predicates import MICRO, compared, sql_literal

from pennon.transforms.bucket import Bucket, MultiBucket
from pennon.transforms.calendar import Day, Hour, Month, Year
from pennon.transforms.expression import Expression
from pennon.transforms.identity import Identity
from pennon.transforms.transform import Transform
from pennon.transforms.truncate import Truncate

_OPERATORS = ("=", "<>", "<", "<=", ">", ">=")
_BOUND = (Bucket, MultiBucket, Expression)


@dataclass(frozen=True)
class Case:
    """A type, values of it, and literals that are among them; the first two make a range."""

    kind: pa.DataType
    values: Sequence[object]
    literals: Sequence[object]
    transforms: Sequence[Sequence[Transform]]
    is_ordered: bool = True


def _integers(kind: pa.DataType) -> Case:
    values = {-128, 127, -(2 ** (kind.bit_width - 1)), 2 ** (kind.bit_width - 1) - 1}
    hashed = [
        [transform]
        for transform in (Bucket(16), MultiBucket(16), Expression("CAST(col0 AS INT) % 5"))
    ]
    small = sorted({*range(-30, 31), *(values if kind.bit_width <= 32 else {-128, 127})})
    return Case(kind, small, [-9, 11, 0, 5, 9, -10], [[Identity()], [Truncate(10)], *hashed])


def _days() -> list[object]:
    """All days of 1581 to 1583, around 1970, and the first and last month of the calendar."""
    found = [dt.date(1581, 12, 20) + dt.timedelta(days=n) for n in range(430)]
    found += [dt.date(1969, 12, 1) + dt.timedelta(days=n) for n in range(62)]
    found += [dt.date(1, 1, 1) + dt.timedelta(days=n) for n in range(31)]
    return [*found, *(dt.date(9999, 12, 31) - dt.timedelta(days=n) for n in range(31))]


def _moments(zone: dt.tzinfo | None) -> list[object]:
    """Both sides of every hour around the ends of a day, a month and a year."""
    starts = [(1582, 10, 4), (1969, 12, 31), (2012, 12, 31), (2013, 2, 28), (2013, 4, 30)]
    return [
        (dt.datetime(*start, 20) + dt.timedelta(hours=hour) + step).replace(tzinfo=zone)
        for start in starts
        for hour in (range(32) if start == starts[2] else (0, 3, 4, 5, 27, 28, 29))
        for step in (-MICRO, dt.timedelta(0), MICRO)
    ]


_LEVELS: list[list[Transform]] = [
    [Identity()],
    [Year()],
    [Year(), Month()],
    [Day(), Year(), Month()],
    [Bucket(16)],
]


def _timestamps(kind: pa.DataType, zone: dt.tzinfo | None) -> Case:
    first = dt.datetime(2013, 1, 1)
    literals = [first, first + dt.timedelta(hours=5), first - MICRO, first + MICRO]
    literals += [dt.datetime(1970, 1, 1), dt.datetime(1582, 10, 5)]
    asked = [literal.replace(tzinfo=zone) for literal in literals]
    return Case(kind, _moments(zone), asked, [*_LEVELS, [Year(), Month(), Day(), Hour()]])


_TEXTS = [a + b + c for a in ("a", "é", "𝒳", "\uffff", "'") for b in ("", "b", "\\") for c in "$%z"]
_DECIMALS = [Decimal(n) / 100 for n in range(-1100, 1100)]
_CASES = {
    **{str(kind): _integers(kind) for kind in (pa.int8(), pa.int16(), pa.int32(), pa.int64())},
    "decimal": Case(
        pa.decimal128(10, 2),
        _DECIMALS,
        [Decimal("-9.94"), Decimal("10.00"), Decimal("-10.00"), Decimal("0.00")],
        [[Identity()], [Truncate(10)], [Bucket(16)]],
    ),
    **{
        str(kind): Case(
            kind,
            [0.0, -0.0, 1.5, -1.5, 2.0, math.inf, -math.inf, math.nan],
            [-1.5, 1.5, 0.0, -0.0, math.nan, -math.inf],
            [[Identity()]],
        )
        for kind in (pa.float32(), pa.float64())
    },
    "boolean": Case(pa.bool_(), [True, False], [True, False], [[Identity()], [Bucket(16)]], False),
    "binary": Case(
        pa.binary(), [b"", b"\x00", b"\x00\xff", b"ab"], [b"", b"ab"], [[Identity()], [Bucket(9)]]
    ),
    "string": Case(
        pa.string(), _TEXTS, ["aa$", "é\\%", "𝒳b$", "\uffff%", "'\\z"][1:], [[Identity()]]
    ),
    "date": Case(
        pa.date32(),
        _days(),
        [dt.date(1582, 10, 4), dt.date(1582, 10, 15), dt.date(1970, 1, 1), dt.date(1969, 12, 31)],
        _LEVELS,
    ),
    "zoned": _timestamps(pa.timestamp("us", "UTC"), dt.UTC),
    "zone-less": _timestamps(pa.timestamp("us"), None),
}


def _asked(case: Case, *, all_kinds: bool) -> Iterator[tuple[str, Callable[[object], bool | None]]]:
    """Predicates and what they mean; those of order and of NOT only where they project."""
    texts = ", ".join(map(sql_literal, case.literals))
    found = [
        (
            f"c IN ({texts})",
            lambda v: _or([compared(v, "=", literal) for literal in case.literals]),
        ),
        ("c <=> NULL", lambda v: v is None),
        ("c = NULL", lambda _: None),
        ("c IS NULL AND c IS NOT NULL", lambda _: False),
        (f"c IN ({texts}) AND c IS NULL", lambda _: False),
    ]
    if all_kinds:
        found.append(
            (
                f"c NOT IN ({texts})",
                lambda v: _not(_or([compared(v, "=", e) for e in case.literals])),
            )
        )
        found.append(("NOT (c <=> NULL)", lambda v: v is not None))
    yield from found
    for literal in case.literals:
        text = sql_literal(literal)
        operators = _OPERATORS if all_kinds and case.is_ordered else ("=",)
        for operator in operators:
            yield f"c {operator} {text}", _comparison(operator, literal)
        yield f"{text} = c", _comparison("=", literal)
        yield f"c <=> {text}", _null_safe(literal)
        yield f"c = {text} OR c IS NULL", _or_null(literal)
    low, high = case.literals[0], case.literals[1]
    if all_kinds and case.is_ordered:
        yield f"c BETWEEN {sql_literal(low)} AND {sql_literal(high)}", _between(low, high)
        yield f"c BETWEEN {sql_literal(high)} AND {sql_literal(low)}", _between(high, low)
        yield (
            f"c NOT BETWEEN {sql_literal(low)} AND {sql_literal(high)}",
            lambda v: _not(_between(low, high)(v)),
        )


def _or(found: Sequence[bool | None]) -> bool | None:
    return True if True in found else (None if None in found else False)


def _not(found: bool | None) -> bool | None:  # noqa: FBT001 - SQL's truth values
    return None if found is None else not found


def _comparison(operator: str, literal: object) -> Callable[[object], bool | None]:
    return lambda value: compared(value, operator, literal)


def _null_safe(literal: object) -> Callable[[object], bool | None]:
    return lambda value: bool(compared(value, "=", literal))


def _or_null(literal: object) -> Callable[[object], bool | None]:
    return lambda value: value is None or bool(compared(value, "=", literal))


def _between(low: object, high: object) -> Callable[[object], bool | None]:
    return lambda value: (
        None if value is None else bool(compared(value, ">=", low) and compared(value, "<=", high))
    )


@pytest.mark.spec("Partition Pruning 2", "reading 38")
@pytest.mark.parametrize("name", _CASES)
def test_every_comparison_keeps_exactly_what_can_match(name: str) -> None:
    case = _CASES[name]
    for transforms in case.transforms:
        space = exhaustive(case.values, transforms, case.kind)
        is_bound = any(isinstance(transform, _BOUND) for transform in transforms)
        for sql, matches in _asked(case, all_kinds=not is_bound):
            space.check(sql, matches, decides=False)


@pytest.mark.spec("Partition Pruning 2")
@pytest.mark.parametrize("zone", [dt.UTC, None], ids=["zoned", "zone-less"])
@pytest.mark.parametrize(
    ("unit", "start"),
    [
        ("year", lambda v: dt.datetime(v.year, 1, 1)),
        ("quarter", lambda v: dt.datetime(v.year, (v.month - 1) // 3 * 3 + 1, 1)),
        ("month", lambda v: dt.datetime(v.year, v.month, 1)),
        ("day", lambda v: dt.datetime(v.year, v.month, v.day)),
        ("hour", lambda v: dt.datetime(v.year, v.month, v.day, v.hour)),
    ],
)
def test_date_trunc_keeps_exactly_what_can_match(
    unit: str, start: Callable[[dt.datetime], dt.datetime], zone: dt.tzinfo | None
) -> None:
    kind = pa.timestamp("us", "UTC" if zone else None)
    for levels in ([Year(), Month()], [Year(), Month(), Day(), Hour()]):
        space = exhaustive(_moments(zone), levels, kind)
        for moment in (dt.datetime(2013, 1, 1), dt.datetime(2013, 1, 1, 0, 0, 0, 1)):
            literal = moment.replace(tzinfo=zone)
            for operator in _OPERATORS:
                space.check(
                    f"date_trunc('{unit}', c) {operator} {sql_literal(literal)}",
                    lambda v, o=operator, m=moment: (
                        compared(v and start(v), o, m)  # type: ignore[misc]
                        if v is None
                        else compared(start(v.replace(tzinfo=None)), o, m)
                    ),
                    decides=False,
                )


@pytest.mark.spec("Partition Pruning 2")
@pytest.mark.parametrize("levels", [[Year()], [Year(), Month()], [Day(), Month(), Year()]])
def test_calendar_functions_keep_exactly_what_can_match(levels: list[Transform]) -> None:
    space = exhaustive(_days(), levels, pa.date32())
    first, last = dt.date(1582, 10, 1), dt.date(1582, 11, 1)
    asked: list[tuple[str, Callable[[dt.date], bool]]] = [
        ("year(c) IN (1582, 1970)", lambda v: v.year in (1582, 1970)),
        ("year(c) NOT IN (1582, 1970)", lambda v: v.year not in (1582, 1970)),
        ("year(c) BETWEEN 1582 AND 1969", lambda v: 1582 <= v.year <= 1969),
        ("1582 = year(c)", lambda v: v.year == 1582),
        ("trunc(c, 'YEAR') >= DATE '1970-01-01'", lambda v: v.year >= 1970),
        ("c >= DATE '1582-10-01' AND c < DATE '1582-11-01'", lambda v: first <= v < last),
        ("c < '1582-10-01'", lambda v: v < first),
        ("CAST(c AS TIMESTAMP_NTZ) < TIMESTAMP_NTZ '1582-10-01 00:00:00'", lambda v: v < first),
        ("c = TIMESTAMP '1582-10-01 00:00:01+00:00'", lambda _: False),
        ("c > TIMESTAMP '1582-10-31 00:00:01+00:00'", lambda v: v >= last),
    ]
    if len(levels) > 1:
        asked += [
            ("month(c) IN (1, 12)", lambda v: v.month in (1, 12)),
            ("year(c) = 1582 AND month(c) = 10", lambda v: first <= v < last),
            (
                "date_trunc('month', c) = TIMESTAMP '1582-10-01 00:00:00+00:00'",
                lambda v: first <= v < last,
            ),
            ("trunc(c, 'MM') = DATE '1582-10-01'", lambda v: first <= v < last),
        ]
    if len(levels) > 2:
        asked += [
            ("dayofmonth(c) < 5", lambda v: v.day < 5),
            ("day(c) = 31", lambda v: v.day == 31),
        ]
    for sql, matches in asked:
        space.check(sql, lambda v, m=matches: None if v is None else m(v), decides=False)  # type: ignore[misc]


def _numbered(transform: Transform, values: Sequence[int]) -> Exhaustive:
    return exhaustive(values, [transform], pa.int32())


@pytest.mark.spec("Partition Pruning 2")
@pytest.mark.parametrize(("low", "high"), [(0, 999), (-500, 499), (7, 7), (9, 5)])
def test_a_thousand_values_of_a_range_are_hashed(low: int, high: int) -> None:
    inside = range(low, high + 1)
    space = _numbered(Bucket(100_000), range(-2_000, 2_000))
    for sql in (
        f"c BETWEEN {low} AND {high}",
        f"c > {low - 1} AND c < {high + 1}",
        f"c >= {low} AND c <= {high} AND c IS NOT NULL",
    ):
        space.check(sql, lambda v: None if v is None else v in inside, decides=False)


@pytest.mark.spec("Partition Pruning 2")
@pytest.mark.parametrize("transform", [Identity(), Truncate(10), Bucket(100_000)])
def test_five_thousand_values_of_a_list_are_kept_exactly(transform: Transform) -> None:
    space = _numbered(transform, range(-8_000, 8_000, 3))
    listed = set(range(-7_400, 7_600, 3))
    assert len(listed) == 5_000
    text = ", ".join(map(str, sorted(listed)))
    space.check(f"c IN ({text})", lambda v: None if v is None else v in listed, decides=False)
    if isinstance(transform, Identity):
        space.check(f"c NOT IN ({text})", lambda v: None if v is None else v not in listed)


def starts_with(prefix: str, value: str | None) -> bool | None:
    return None if value is None else value.startswith(prefix)


@pytest.mark.spec("Partition Pruning 2")
def test_patterns_keep_every_match_and_startswith_exactly_the_matches() -> None:
    texts = [a + b + c + d for a in "aé𝒳" for b in "_b" for c in ("", "c") for d in ("", "z", "%")]
    for transform in (Identity(), Truncate(1), Truncate(2)):
        space = exhaustive(texts, [transform], pa.string())
        for prefix in ("a", "𝒳", "ab", "é_", "𝒳bc", "q"):
            for sql in (
                f"startswith(c, '{prefix}')",
                f"c LIKE '{prefix.replace('_', chr(92) * 2 + '_')}%'",
            ):
                space.check(sql, partial(starts_with, prefix), decides=False)  # type: ignore[attr-defined]
    by_text = exhaustive(texts, [Identity()], pa.string())
    by_text.check("c NOT LIKE 'ab%'", lambda v: None if v is None else not v.startswith("ab"))  # type: ignore[attr-defined]
