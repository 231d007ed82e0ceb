# ruff: noqa: DTZ001, RUF001 - zone-less times and letters outside the basic plane are cases
"""For every value of a small type: the partitions kept are exactly those that can match.

A partition can match where *some* value that the transform puts there satisfies the comparison,
and is decided where *all* of them do. Both are found by trying all values; the transform computes
the partition values, Python compares.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Sequence

import pyarrow as pa
import pytest
from tests.planning.exhaustive import Exhaustive, exhaustive
from tests.strategies.predicates import MICRO, compared, sql_literal

from pennon.planning.binding.bind import bind
from pennon.planning.binding.source_columns import source_columns
from pennon.planning.projection.inclusive_projection import spec_projection
from pennon.predicate.dialect import DataFusion
from pennon.predicate.parse import parse_predicate
from pennon.spec.partition_spec import PartitionField, PartitionSpec
from pennon.spec.schema import NamespaceSchema
from pennon.transforms.bucket import Bucket, MultiBucket
from pennon.transforms.calendar import Day, Hour, Month, Year
from pennon.transforms.expression import Expression
from pennon.transforms.identity import Identity
from pennon.transforms.transform import Transform
from pennon.transforms.truncate import Truncate

_OPERATORS = ("=", "<>", "<", "<=", ">", ">=")


def _exhaustive(values: list[object], transforms: Sequence[Transform]) -> Exhaustive:
    first = values[-1]
    kinds = {str: pa.string(), int: pa.int8(), dt.date: pa.date32()}
    is_zoned = isinstance(first, dt.datetime)
    return exhaustive(
        values, transforms, pa.timestamp("us", "UTC") if is_zoned else kinds[type(first)]
    )


_BYTES: list[object] = list(range(-128, 128))
_TEXTS: list[object] = [a + b + c for a in "aé𝒳" for b in ("", "b", "z") for c in ("", "c")]
_DAYS: list[object] = [dt.date(2011, 12, 1) + dt.timedelta(days=n) for n in range(460)]
_HOURS: list[object] = [
    moment + step
    for start in (
        dt.datetime(2012, 12, 30, tzinfo=dt.UTC),
        dt.datetime(1969, 12, 31, tzinfo=dt.UTC),
    )
    for moment in (start + dt.timedelta(hours=n) for n in range(50))
    for step in (-MICRO, dt.timedelta(0), MICRO)
]


def _check_comparisons(space: Exhaustive, literals: Sequence[object]) -> None:
    for literal in literals:
        for operator in _OPERATORS:
            sql = f"c {operator} {sql_literal(literal)}"
            space.check(sql, lambda value, o=operator, v=literal: compared(value, o, v))  # type: ignore[misc]
    space.check("c IS NULL", lambda value: value is None)
    space.check("c IS NOT NULL", lambda value: value is not None)


@pytest.mark.spec("Partition Pruning 2", "reading 28", "reading 38")
@pytest.mark.parametrize("transform", [Identity(), Truncate(10), Truncate(1), Truncate(100)])
def test_integers_are_kept_exactly(transform: Transform) -> None:
    space = _exhaustive(_BYTES, [transform])
    _check_comparisons(space, [-128, -127, -101, -10, -9, -1, 0, 1, 9, 10, 11, 99, 100, 126, 127])
    space.check("c IN (3, 17, -55)", lambda value: None if value is None else value in (3, 17, -55))
    space.check("c = 5.5", lambda _: False)
    space.check("c < 3000000000", lambda value: value is not None)
    space.check("c > -9.5", lambda value: compared(value, ">=", -9))
    space.check("CAST(c AS BIGINT) >= 500", lambda _: False)
    space.check(
        "c BETWEEN -15 AND 15",
        lambda value: None if value is None else -15 <= int(str(value)) <= 15,
    )


@pytest.mark.spec("Partition Pruning 2", "reading 38")
@pytest.mark.parametrize("transform", [Identity(), Truncate(1), Truncate(2)])
def test_texts_are_kept_exactly(transform: Transform) -> None:
    space = _exhaustive(_TEXTS, [transform])
    for prefix in ("a", "ab", "abc", "é", "𝒳z", "q"):
        sql = f"startswith(c, '{prefix}')"
        space.check(sql, lambda v, p=prefix: None if v is None else str(v).startswith(p))  # type: ignore[misc]
    for literal in ("a", "ab", "é", "𝒳zc"):
        space.check(f"c = '{literal}'", lambda value, v=literal: compared(value, "=", v))  # type: ignore[misc]


@pytest.mark.spec("Partition Pruning 2", "reading 38")
@pytest.mark.parametrize(
    "levels",
    [
        [Identity()],
        [Year()],
        [Year(), Month()],
        [Day(), Month(), Year()],
        [Month(), Identity(), Year()],
    ],
)
def test_dates_are_kept_exactly(levels: list[Transform]) -> None:
    space = _exhaustive(_DAYS, levels)
    literals = [
        dt.date(2012, 1, 1),
        dt.date(2012, 2, 29),
        dt.date(2011, 12, 31),
        dt.date(2012, 7, 14),
    ]
    _check_comparisons(space, literals)
    for operator in _OPERATORS:
        space.check(
            f"year(c) {operator} 2012",
            lambda v, o=operator: None if v is None else compared(v.year, o, 2012),  # type: ignore[misc, attr-defined]
        )
        space.check(
            f"CAST(c AS TIMESTAMP) {operator} TIMESTAMP '2012-03-01 12:00:00'",
            lambda v, o=operator: (  # type: ignore[misc]
                None
                if v is None
                else compared(dt.datetime(v.year, v.month, v.day), o, dt.datetime(2012, 3, 1, 12))  # type: ignore[attr-defined]
            ),
        )


@pytest.mark.spec("Partition Pruning 2", "reading 38")
@pytest.mark.parametrize(
    "levels", [[Year(), Month()], [Year(), Month(), Day()], [Hour(), Day(), Month(), Year()]]
)
def test_timestamps_are_kept_exactly(levels: list[Transform]) -> None:
    space = _exhaustive(_HOURS, levels)
    first = dt.datetime(2013, 1, 1, tzinfo=dt.UTC)
    _check_comparisons(space, [first, first - MICRO, first + MICRO, first - dt.timedelta(hours=7)])
    day = dt.date(2012, 12, 31)
    for operator in _OPERATORS:
        space.check(
            f"CAST(c AS DATE) {operator} DATE '2012-12-31'",
            lambda v, o=operator: None if v is None else compared(v.date(), o, day),  # type: ignore[misc, attr-defined]
        )
        space.check(
            f"date_trunc('month', c) {operator} TIMESTAMP '2013-01-01 00:00:00.000001+00:00'",
            lambda v, o=operator: (  # type: ignore[misc]
                None
                if v is None
                else compared(
                    (v.year, v.month),
                    str({"<=": "<=", "<": "<=", ">=": ">", ">": ">"}.get(o, o)),
                    (2013, 1),
                )  # type: ignore[attr-defined]
                if o not in ("=", "<>")
                else o == "<>"
            ),
        )


@pytest.mark.spec("Partition Pruning 2")
@pytest.mark.parametrize(
    "transform", [Bucket(16), MultiBucket(16), Expression("coalesce(CAST(col0 AS INT) * 2, 0)")]
)
def test_bound_columns_are_evaluated_exactly(transform: Transform) -> None:
    space = _exhaustive(_BYTES, [transform])
    values = {repr(value): index for index, value in enumerate(space.values)}
    assert values

    def check(sql: str, wanted: set[int | None]) -> None:
        space.check(sql, lambda value: value in wanted, decides=False)

    check("c = 5", {5})
    check("c IN (5, -7, 100)", {5, -7, 100})
    check("c BETWEEN 5 AND 9", set(range(5, 10)))
    check("c > 5 AND c < 8", {6, 7})
    check("c IN (1, 2) AND c IN (2, 3)", {2})
    check("c = 5 OR c IS NULL", {5, None})
    check("c > 5 AND c < 5", set())
    check("c IS NULL", {None})


def test_bound_floats_are_evaluated_exactly() -> None:
    values = [0.0, -0.0, 1.5, -1.5, math.inf, -math.inf, math.nan]
    for sql in ("col0 > 0", "1 / col0 > 0"):
        space = exhaustive(values, [Expression(sql)], pa.float64())

        def among(*wanted: float) -> Callable[[object], bool]:
            return lambda v: any(compared(v, "=", value) is True for value in wanted)

        nan = "double('NaN')"
        space.check(f"c = {nan} AND c IN ({nan}, 1.5D)", among(math.nan), decides=False)
        either = among(math.nan, 0.0)
        listed = f"c IN (0D, {nan}, 1.5D) AND (c = {nan} OR c = -0.0D OR c = 9D)"
        space.check(listed, either, decides=False)


def test_a_column_promoted_since_is_compared_in_its_present_type() -> None:
    field = PartitionField("f", (0,), Identity(), None, pa.int32())
    schema = pa.schema([pa.field("c", pa.int64(), metadata={"lance:field_id": "0"})])
    projection = spec_projection(
        PartitionSpec(1, (field,)),
        source_columns(NamespaceSchema(schema), [0, 7]),
        {"f": pa.int32()},
    )
    bound = bind(parse_predicate("c <= 3000000000"), schema)
    condition = projection.inclusive(bound).sql(dialect=DataFusion)
    assert condition == "CAST(`partition_field_f` AS BIGINT) <= 3000000000"


@pytest.mark.spec("Partition Expression 7", "reading 21")
def test_a_field_whose_column_was_dropped_prunes_nothing() -> None:
    fields = (
        PartitionField("f", (0,), Identity(), None, pa.int64()),
        PartitionField("g", (0, 7), MultiBucket(4), None, pa.int32()),
    )
    schema = pa.schema([pa.field("c", pa.int64(), metadata={"lance:field_id": "0"})])
    projection = spec_projection(
        PartitionSpec(1, fields), source_columns(NamespaceSchema(schema), [0, 7]), {}
    )
    bound = bind(parse_predicate("c = 5"), schema)
    assert projection.inclusive(bound).sql(dialect=DataFusion) == "`partition_field_f` = 5"
