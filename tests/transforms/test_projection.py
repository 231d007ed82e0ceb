"""Projected conditions against rows: none with a true comparison is lost, strict ones are sure.

The oracle compares Python values row by row; conditions are evaluated by DataFusion over the
partition values of ``apply``, and by Lance's filters for floats.
"""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import TYPE_CHECKING

import datafusion
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlglot import column

from pennon.predicate.comparison import Comparison, Operator
from pennon.predicate.dialect import DataFusion
from pennon.transforms.bucket import Bucket, MultiBucket
from pennon.transforms.calendar import Day, Hour, Month, Year
from pennon.transforms.epoch import Epoch, EpochUnit
from pennon.transforms.expression import Expression
from pennon.transforms.identity import Identity
from pennon.transforms.truncate import Truncate

if TYPE_CHECKING:
    from pennon.transforms.transform import Transform

_COLUMN = column("p")
_ZONE = dt.UTC
_moments = st.datetimes(dt.datetime(1969, 1, 1), dt.datetime(1971, 3, 1)) | st.sampled_from(  # noqa: DTZ001
    [
        dt.datetime(1970, 1, 1),
        dt.datetime(1969, 12, 31, 23, 59, 59, 999999),
        dt.datetime(1971, 1, 1),
    ]
)
_VALUES: dict[pa.DataType, st.SearchStrategy[object]] = {
    pa.int8(): st.sampled_from([-128, 127]) | st.integers(-25, 25),
    pa.int64(): st.sampled_from([-(2**63), 2**63 - 1]) | st.integers(-25, 25),
    pa.uint64(): st.integers(0, 25) | st.just(2**64 - 1),
    pa.decimal128(5, 2): st.decimals(-25, 25, places=2) | st.sampled_from([Decimal("-999.99")]),
    pa.decimal128(30, 2): st.decimals(-25, 25, places=2),
    pa.string(): st.text("ab😀é", max_size=4),
    pa.binary(): st.binary(max_size=2),
    pa.date32(): st.dates(dt.date(1969, 12, 1), dt.date(1971, 2, 1)) | st.just(dt.date(1970, 1, 1)),
    pa.timestamp("us"): _moments,
    pa.timestamp("us", "UTC"): _moments.map(lambda moment: moment.replace(tzinfo=_ZONE)),
    pa.float64(): st.sampled_from([0.0, -0.0, 1.5, -1.5, math.nan, math.inf, -math.inf, 5e-324]),
    pa.bool_(): st.booleans(),
}
_NUMBERS = [pa.int8(), pa.int64(), pa.decimal128(5, 2), pa.decimal128(30, 2), pa.uint64()]
_TIMES = [pa.date32(), pa.timestamp("us"), pa.timestamp("us", "UTC")]
_CASES: list[tuple[Transform, pa.DataType]] = [
    *((Identity(), kind) for kind in _VALUES),
    *((Truncate(width), kind) for width in (1, 3, 10, 1000) for kind in _NUMBERS),
    *((Truncate(width), pa.string()) for width in (1, 2, 3)),
    *((t, kind) for t in (Year(), Month(), Day()) for kind in _TIMES),
    *((Epoch(unit), kind) for unit in (EpochUnit.MONTHS, EpochUnit.DAYS) for kind in _TIMES),
    *((t, kind) for t in (Hour(), Epoch(EpochUnit.HOURS)) for kind in _TIMES[1:]),
    *((Bucket(3), kind) for kind in _VALUES if kind != pa.float64()),
]


def _rank(value: object) -> tuple[object, ...]:
    """Order values as Spark does: NaN last, zeros equal, text by code points."""
    if isinstance(value, float):
        return (1, 0.0) if math.isnan(value) else (0, value + 0.0)
    return (value.encode(),) if isinstance(value, str) else (value,)


def _holds(comparison: Comparison, value: object) -> bool | None:
    operator = comparison.operator
    if operator.is_unary:
        return (value is None) is (operator is Operator.IS_NULL)
    if value is None:
        return None
    literals, own = [_rank(v) for v in comparison.values], _rank(value)
    match operator:
        case Operator.IN | Operator.EQUAL:
            return own in literals
        case Operator.NOT_IN | Operator.NOT_EQUAL:
            return own not in literals
        case Operator.LESS:
            return own < literals[0]
        case Operator.LESS_OR_EQUAL:
            return own <= literals[0]
        case Operator.GREATER:
            return own > literals[0]
        case Operator.GREATER_OR_EQUAL:
            return own >= literals[0]
        case _:
            starts = value.startswith(comparison.values[0])  # type: ignore[attr-defined]
            return bool(starts) is (operator is Operator.STARTS_WITH)


def _decided(condition: str, values: pa.Array) -> list[bool]:
    context = datafusion.SessionContext(
        datafusion.SessionConfig().set("datafusion.execution.target_partitions", "1")
    )
    batch = pa.record_batch({"p": values, "n": pa.array(range(len(values)))})
    context.register_record_batches("t", [[batch]])
    kept = context.sql(f"SELECT n FROM t WHERE {condition}").to_pydict().get("n", [])
    return [number in set(kept) for number in range(len(values))]


@st.composite
def _comparisons(draw: st.DrawFn, kind: pa.DataType, rows: list[object]) -> Comparison:
    prefixes = (Operator.STARTS_WITH, Operator.NOT_STARTS_WITH)
    known = [op for op in Operator if kind == pa.string() or op not in prefixes]
    operator = draw(st.sampled_from(known))
    if operator.is_unary:
        return Comparison(operator)
    present = [value for value in rows if value is not None]
    literal = st.sampled_from(present) | _VALUES[kind] if present else _VALUES[kind]
    count = draw(st.integers(1, 3)) if operator.is_list else 1
    return Comparison(operator, tuple(pa.scalar(draw(literal), kind) for _ in range(count)))


@pytest.mark.parametrize(("transform", "kind"), _CASES, ids=str)
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_no_row_is_lost_and_sure_partitions_are_sure(
    transform: Transform, kind: pa.DataType, data: st.DataObject
) -> None:
    rows = data.draw(st.lists(st.none() | _VALUES[kind], min_size=1, max_size=30))
    comparison = data.draw(_comparisons(kind, rows))
    values = transform.apply([pa.array(rows, kind)])
    assert values.type == transform.result_type([kind])
    inclusive = transform.project_inclusive(comparison, _COLUMN, kind)
    strict = transform.project_strict(comparison, _COLUMN, kind)
    truths = [_holds(comparison, value) for value in rows]
    if inclusive is not None:
        sql = inclusive.sql(dialect=DataFusion)
        for row, truth, kept in zip(rows, truths, _decided(sql, values), strict=True):
            assert kept or truth is not True, f"{comparison} loses {row!r} by {sql}"
    if strict is not None:
        sql = strict.sql(dialect=DataFusion)
        for row, truth, sure in zip(rows, truths, _decided(sql, values), strict=True):
            assert truth is True or not sure, f"{comparison} is not true for {row!r}, yet {sql}"
    if isinstance(transform, Identity):
        assert inclusive is not None
        kept = _decided(inclusive.sql(dialect=DataFusion), values)
        assert kept == [truth is True for truth in truths]


def _bound(low: int, high: int) -> list[bool]:
    values = pa.array(range(4))
    scalars = (pa.scalar(low, pa.int32()), pa.scalar(high, pa.int32()))
    found = Bucket(4).project_range(*scalars, _COLUMN, pa.int32())
    return [] if found is None else _decided(found.sql(dialect=DataFusion), values)


def test_small_ranges_of_integers_are_listed() -> None:
    expected = set(Bucket(4).apply([pa.array([7, 8, 9])]).to_pylist())
    assert _bound(7, 9) == [number in expected for number in range(4)]
    assert _bound(9, 7) == [False] * 4
    assert _bound(0, 1000) == []


def test_bound_columns_of_a_multi_bucket_are_listed() -> None:
    kinds = [pa.int32(), pa.string()]
    choices = [
        [pa.scalar(1, pa.int32()), pa.scalar(None, pa.int32())],
        [pa.scalar(None, pa.string())],
    ]
    found = MultiBucket(1000).project_bound(choices, _COLUMN, kinds)
    assert found is not None
    bucket = (
        MultiBucket(1000).apply([pa.array([1], kinds[0]), pa.array([None], kinds[1])])[0].as_py()
    )
    assert found.sql(dialect=DataFusion) == f"(`p` = {bucket} OR `p` IS NULL)"
    many = [[pa.scalar(n, pa.int32()) for n in range(1001)], choices[1]]
    assert MultiBucket(4).project_bound(many, _COLUMN, kinds) is None


def test_an_expression_is_asked_for_null_too() -> None:
    found = Expression("coalesce(col0, 'x')").project_bound(
        [[pa.scalar(None, pa.string())]], _COLUMN, [pa.string()]
    )
    assert found is not None
    assert found.sql(dialect=DataFusion) == "`p` = 'x'"
