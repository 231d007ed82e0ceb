"""Partition values against DataFusion evaluating the derived expressions."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pennon.errors import (
    InvalidTransform,
    PartitionExpressionFailed,
    TransformOnWrongType,
    UnknownTransform,
)
from pennon.transforms.bucket import Bucket, MultiBucket
from pennon.transforms.calendar import Day, Hour, Month, Year
from pennon.transforms.epoch import Epoch, EpochUnit, epoch_value, unit_of_levels
from pennon.transforms.expression import Expression
from pennon.transforms.identity import Identity
from pennon.transforms.registry import from_json, from_message, from_spark, from_sql
from pennon.transforms.transform import Transform
from pennon.transforms.truncate import Truncate

_moments = st.datetimes(dt.datetime(1700, 1, 1), dt.datetime(2250, 1, 1))  # noqa: DTZ001
_VALUES: dict[pa.DataType, st.SearchStrategy[object]] = {
    pa.int8(): st.integers(-128, 127),
    pa.int32(): st.integers(-(2**31), 2**31 - 1),
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
    pa.decimal128(10, 2): st.decimals(-99999999, 99999999, places=2),
    pa.decimal128(30, 4): st.decimals(-(10**25), 10**25, places=4),
    pa.string(): st.text(max_size=6),
    pa.string_view(): st.text(max_size=6),
    pa.date32(): st.dates(),
    pa.timestamp("us"): _moments,
    pa.timestamp("ms", "UTC"): _moments.map(lambda m: m.replace(microsecond=0)),
    pa.timestamp("us", "America/New_York"): _moments,
    pa.timestamp("ns"): _moments,
}
_TIMES = [kind for kind in _VALUES if pa.types.is_date(kind) or pa.types.is_timestamp(kind)]
_CASES: list[tuple[Transform, pa.DataType]] = [
    *((Identity(), kind) for kind in _VALUES),
    *((Bucket(16), kind) for kind in _VALUES),
    *((Truncate(w), kind) for w in (1, 3, 10) for kind in list(_VALUES)[:7]),
    *((t, kind) for t in (Year(), Month(), Day()) for kind in _TIMES),
    *((Epoch(unit), kind) for unit in list(EpochUnit)[:3] for kind in _TIMES),
    *((t, kind) for t in (Hour(), Epoch(EpochUnit.HOURS)) for kind in _TIMES[1:]),
]


@pytest.mark.spec(
    "Supported Transforms 1",
    "Supported Transforms 2",
    "Supported Transforms 3",
    "Supported Transforms 4",
    "Supported Transforms 5",
    "Supported Transforms 6",
    "Supported Transforms 8",
    "Transform vs Expression 2",
    "reading 29",
)
@pytest.mark.parametrize(("transform", "kind"), _CASES, ids=str)
@settings(max_examples=6, deadline=None)
@given(data=st.data())
def test_values_are_those_of_the_derived_expression(
    transform: Transform, kind: pa.DataType, data: st.DataObject
) -> None:
    rows = pa.array(data.draw(st.lists(st.none() | _VALUES[kind], max_size=20)), kind)
    result_type = transform.result_type([kind])
    derived = Expression(transform.expression([kind]), result_type)
    assert transform.apply([rows]).equals(derived.apply([rows]))
    assert transform.apply([pa.chunked_array([rows, rows])[3:]]).equals(
        pa.concat_arrays([transform.apply([rows]), transform.apply([rows])])[3:]
    )


@pytest.mark.spec("Supported Transforms 7")
@settings(max_examples=30, deadline=None)
@given(
    st.lists(
        st.tuples(st.none() | st.integers(-(2**31), 2**31 - 1), st.none() | st.text()), min_size=1
    )
)
def test_buckets_of_several_columns_are_those_of_the_derived_expression(
    rows: list[tuple[int | None, str | None]],
) -> None:
    numbers, texts = zip(*rows, strict=True)
    sources = [pa.array(numbers, pa.int32()), pa.array(texts, pa.string())]
    kinds = [source.type for source in sources]
    derived = Expression(MultiBucket(16).expression(kinds), pa.int32())
    assert MultiBucket(16).apply(sources).equals(derived.apply(sources))


_days = st.lists(st.none() | _moments, max_size=9)


@given(_days)
def test_levels_compose_to_the_epoch_value(moments: list[dt.datetime | None]) -> None:
    rows = pa.array(moments, pa.timestamp("us"))
    for unit in EpochUnit:
        levels = {level.type: level.apply([rows]) for level in unit.levels}
        assert epoch_value(unit, levels).equals(Epoch(unit).apply([rows]))
        assert unit_of_levels(levels) is unit
    assert unit_of_levels({"month", "day"}) is None


_REDUCIBLE: list[tuple[Transform, Transform, pa.DataType]] = [
    (Bucket(12), Bucket(18), pa.int64()),
    (MultiBucket(8), MultiBucket(12), pa.int64()),
    (Truncate(4), Truncate(6), pa.int32()),
    (Truncate(4), Truncate(10), pa.decimal128(10, 2)),
    (Truncate(4), Truncate(2), pa.string()),
    (Identity(), Bucket(4), pa.string()),
    (Year(), Epoch(EpochUnit.HOURS), pa.timestamp("us")),
    (Day(), Epoch(EpochUnit.HOURS), pa.timestamp("us")),
    *(
        (Epoch(fine), Epoch(coarse), pa.timestamp("us"))
        for fine in EpochUnit
        for coarse in EpochUnit
    ),
]


@pytest.mark.spec("Transform Compatibility 2", "Transform Compatibility 3")
@pytest.mark.parametrize(("first", "second", "kind"), _REDUCIBLE, ids=str)
@settings(max_examples=12, deadline=None)
@given(data=st.data())
def test_both_reduce_to_what_they_have_in_common(
    first: Transform, second: Transform, kind: pa.DataType, data: st.DataObject
) -> None:
    rows = pa.array(data.draw(st.lists(st.none() | _VALUES[kind], max_size=20)), kind)
    common = first.common_reduction(second, kind)
    assert common is not None
    assert common == second.common_reduction(first, kind)
    for transform in (first, second):
        reduced = transform.reduced(transform.apply([rows]), common, kind)
        assert reduced.equals(common.apply([rows]))


@pytest.mark.spec("Transform Compatibility")
def test_what_has_nothing_in_common() -> None:
    for one, other, kind in (
        (Bucket(8), Bucket(9), pa.int64()),
        (Bucket(8), MultiBucket(8), pa.int64()),
        (Bucket(8), Truncate(8), pa.int64()),
        (Truncate(2**31 - 1), Truncate(2**31 - 2), pa.int64()),
        (Month(), Epoch(EpochUnit.YEARS), pa.date32()),
    ):
        assert one.common_reduction(other, kind) is None
        assert other.common_reduction(one, kind) is None


@pytest.mark.parametrize(
    "transform",
    [
        *(Identity(), Year(), Month(), Day(), Hour(), *map(Epoch, EpochUnit)),
        *(Bucket(8), MultiBucket(8), Truncate(3)),
        *(Expression("lower(col0)"), Expression("lower(col0)", pa.utf8())),
    ],
    ids=str,
)
def test_a_transform_comes_back_from_a_message(transform: Transform) -> None:
    message = json.loads(json.dumps(transform.to_message(str)))
    types: dict[object, pa.DataType] = {"string": pa.string()}
    assert from_message(message, types.__getitem__) == transform


def test_expressions_are_the_same_but_for_blanks_comments_and_the_case_of_words() -> None:
    lower = Expression("lower(col0)")
    assert lower.common_reduction(Expression("LOWER( Col0 ) -- of the name"), pa.utf8()) == lower
    for one, other in [("col0 || 'A'", "col0 || 'a'"), ("$$A$$", "$$a$$"), ('"A"', '"a"')]:
        assert Expression(one).common_reduction(Expression(other), pa.utf8()) is None, one


@pytest.mark.spec("reading 40")
def test_equal_floats_are_one_partition() -> None:
    rows = pa.array([0.0, -0.0, float("nan"), -float("nan"), None])
    assert [str(v) for v in Identity().apply([rows]).to_pylist()] == [
        "0.0",
        "0.0",
        "nan",
        "nan",
        "None",
    ]


@pytest.mark.spec("Partition Transform 1")
@pytest.mark.parametrize(
    ("function", "arguments", "spelled"),
    [
        ("identity", [["c"]], "c"),
        ("YEAR", [["c"]], "year(c)"),
        ("days", [["a", "b"]], "days(a.b)"),
        ("bucket", [16, ["c"]], "bucket(16, c)"),
        ("bucket", [["a"], ["b"], 16], "multi_bucket(16, a, b)"),
        ("truncate", [["c"], 4], "truncate(4, c)"),
        ("expression", ["lower(col0)", ["c"]], "expression('lower(col0)', c)"),
    ],
)
def test_sql_calls(function: str, arguments: list[object], spelled: str) -> None:
    objects = [{"column": a} if isinstance(a, list) else {"literal": a} for a in arguments]
    call = from_spark({"function": function, "arguments": objects})
    assert str(call) == spelled
    for transform in call.transforms:
        if not isinstance(transform, Expression):
            assert from_json(transform.to_json()) == transform


def test_plural_times_are_levels() -> None:
    call = from_sql("days", [{"column": ["t"]}])
    assert call.transforms == (Year(), Month(), Day())
    assert call.composed == "days"


@pytest.mark.spec("Transform Schema 3")
@pytest.mark.parametrize(
    ("function", "literals", "error", "words"),
    [
        ("sharded", [], UnknownTransform, "multi_bucket"),
        ("bucket", [0], InvalidTransform, "0 buckets"),
        ("truncate", [-1], InvalidTransform, "width -1"),
        ("bucket", [], InvalidTransform, "no literal"),
        ("year", [5], InvalidTransform, "one column"),
    ],
)
def test_calls_that_cannot_be_are_refused(
    function: str, literals: list[object], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        from_sql(function, [*({"literal": v} for v in literals), {"column": ["c"]}])


@pytest.mark.spec("reading 24", "reading 30")
def test_wrong_sources_and_expressions_are_refused() -> None:
    with pytest.raises(TransformOnWrongType, match="takes timestamps"):
        Hour().result_type([pa.date32()])
    with pytest.raises(TransformOnWrongType, match="strings, integers and decimals"):
        Truncate(4).result_type([pa.float64()])
    with pytest.raises(PartitionExpressionFailed, match="Invalid function"):
        Expression("no_such(col0)").apply([pa.array([1])])
    with pytest.raises(PartitionExpressionFailed, match="Divide by zero"):
        Expression("col0 / 0").apply([pa.array([1])])
    with pytest.raises(PartitionExpressionFailed):
        Expression("murmur3(col0").apply([pa.array([1])])
    with pytest.raises(PartitionExpressionFailed, match="300"):
        Expression("col0", pa.int8()).apply([pa.array([300])])
    with pytest.raises(UnknownTransform, match="truncate"):
        from_json({"type": "zorder"})


@pytest.mark.spec("Supported Transforms 8", "reading 28")
def test_truncation_goes_toward_zero() -> None:
    assert Truncate(10).apply([pa.array([-7, -10, 17])]).to_pylist() == [0, -10, 10]
    decimals = pa.array([Decimal("12.34"), Decimal("-7.00")])
    assert Truncate(10).apply([decimals]).to_pylist() == [Decimal("10.00"), Decimal("0.00")]
    longest = pa.array([Decimal(f"-{'9' * 34}.9999")], pa.decimal128(38, 4))
    assert Truncate(10).apply([longest]).to_pylist() == [Decimal(f"-{'9' * 33}0.0000")]
