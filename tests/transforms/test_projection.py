"""Projected conditions against rows: none with a true comparison is lost, strict ones are sure.

The oracle compares Python values row by row; conditions are evaluated by DataFusion over the
partition values of ``apply``, and by Lance's filters for floats.
"""

from __future__ import annotations

import datetime as dt
import itertools
import math
from collections.abc import Sequence
from decimal import Decimal
from typing import TYPE_CHECKING

import datafusion
import lance
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlglot import column

from pennon.predicate.condition import Comparison, Operator
from pennon.predicate.dialect import DataFusion
from pennon.transforms.bucket import Bucket, MultiBucket
from pennon.transforms.calendar import Day, Hour, Month, Year
from pennon.transforms.epoch import Epoch, EpochUnit
from pennon.transforms.expression import Expression
from pennon.transforms.identity import Identity
from pennon.transforms.truncate import Truncate

if TYPE_CHECKING:
    from pathlib import Path

    from pennon.transforms.transform import Transform

_EDGES = [(1, 1), (6, 30), (12, 31)]
_COLUMN = column("p")
_ZONE = dt.UTC
_moments = st.datetimes(dt.datetime(1969, 1, 1), dt.datetime(1971, 3, 1)) | st.sampled_from(  # noqa: DTZ001
    [
        dt.datetime(1970, 1, 1),  # noqa: DTZ001
        dt.datetime(1969, 12, 31, 23, 59, 59, 999999),  # noqa: DTZ001
        dt.datetime(1971, 1, 1),  # noqa: DTZ001
    ]
)
_VALUES: dict[pa.DataType, st.SearchStrategy[object]] = {
    pa.int8(): st.sampled_from([-128, 127]) | st.integers(-25, 25),
    pa.int64(): st.sampled_from([-(2**63), 2**63 - 1]) | st.integers(-25, 25),
    pa.uint64(): st.integers(0, 25) | st.just(2**64 - 1),
    pa.decimal128(5, 2): st.decimals(-25, 25, places=2) | st.sampled_from([Decimal("-999.99")]),
    pa.decimal128(30, 2): st.decimals(-25, 25, places=2),
    pa.string(): st.text("ab", max_size=4) | st.text("a😀é", max_size=3),
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


_CONTEXT = datafusion.SessionContext(
    datafusion.SessionConfig().set("datafusion.execution.target_partitions", "1")
)


def _decided(conditions: list[str], values: pa.Array) -> list[list[bool]]:
    """Per condition, for which values it is true."""
    batch = pa.record_batch({"p": values})
    _CONTEXT.register_record_batches("t", [[batch]])
    asked = ", ".join(f"({sql}) AS c{number}" for number, sql in enumerate(conditions))
    answers = _CONTEXT.sql(f"SELECT {asked} FROM t").to_pydict()
    _CONTEXT.deregister_table("t")
    return [[v is True for v in answers[f"c{n}"]] for n in range(len(conditions))]


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


@pytest.mark.spec("Partition Pruning 2", "reading 38")
@pytest.mark.parametrize(("transform", "kind"), _CASES, ids=str)
@settings(max_examples=12, deadline=None)
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
    sqls = ["TRUE" if inclusive is None else inclusive.sql(dialect=DataFusion)]
    sqls.append("FALSE" if strict is None else strict.sql(dialect=DataFusion))
    kept, sure = _decided(sqls, values)
    for number, (row, truth) in enumerate(zip(rows, truths, strict=True)):
        assert kept[number] or truth is not True, f"{comparison} loses {row!r} by {sqls[0]}"
        assert truth is True or not sure[number], f"{comparison} is not true for {row!r}: {sqls[1]}"
    if isinstance(transform, Identity):
        assert kept == sure == [truth is True for truth in truths]


_TEXTS = ["".join(letters) for size in range(5) for letters in itertools.product("ab", repeat=size)]
_EXHAUSTIVE: list[tuple[Transform, pa.DataType, Sequence[object]]] = [
    *((Truncate(width), pa.string(), list(_TEXTS)) for width in (1, 2, 3)),
    *((Truncate(width), pa.int32(), list(range(-12, 13))) for width in (1, 3, 5)),
    (Year(), pa.date32(), [dt.date(y, m, d) for y in (1969, 1970, 1971) for m, d in _EDGES]),
]


@pytest.mark.parametrize(("transform", "kind", "rows"), _EXHAUSTIVE, ids=str)
@pytest.mark.parametrize("operator", [o for o in Operator if not o.is_unary], ids=str)
def test_every_literal_near_an_edge(
    transform: Transform, kind: pa.DataType, rows: list[object], operator: Operator
) -> None:
    if "STARTS" in operator and kind != pa.string():
        return
    values = transform.apply([pa.array([*rows, None], kind)])
    comparisons = [Comparison(operator, (pa.scalar(literal, kind),)) for literal in rows]
    inclusive = [transform.project_inclusive(c, _COLUMN, kind) for c in comparisons]
    strict = [transform.project_strict(c, _COLUMN, kind) for c in comparisons]
    sqls = ["TRUE" if found is None else found.sql(dialect=DataFusion) for found in inclusive]
    sqls += ["FALSE" if found is None else found.sql(dialect=DataFusion) for found in strict]
    answers = _decided(sqls, values)
    for number, comparison in enumerate(comparisons):
        truths = [_holds(comparison, row) is True for row in [*rows, None]]
        kept, sure = answers[number], answers[number + len(comparisons)]
        assert all(k for k, truth in zip(kept, truths, strict=True) if truth), sqls[number]
        assert all(truth for s, truth in zip(sure, truths, strict=True) if s), str(comparison)


@pytest.mark.parametrize("operator", [o for o in Operator if "STARTS" not in o], ids=str)
def test_float_values_of_other_writers_are_compared_as_spark_does(
    operator: Operator, tmp_path: Path
) -> None:
    floats = [-math.inf, -1.5, -0.0, 0.0, 1.5, math.inf, math.nan, None]
    values = pa.array(floats, pa.float64())
    leaf = lance.write_dataset(
        pa.table({"p": values, "n": pa.array(range(len(floats)))}), tmp_path / "floats.lance"
    )
    for literal in floats[:-1]:
        literals = () if operator.is_unary else (pa.scalar(literal, pa.float64()),)
        comparison = Comparison(operator, literals)
        for projected in (
            Identity().project_inclusive(comparison, _COLUMN, pa.float64()),
            Identity().project_strict(comparison, _COLUMN, pa.float64()),
        ):
            assert projected is not None
            sql = projected.sql(dialect=DataFusion)
            truths = [_holds(comparison, value) is True for value in floats]
            assert _decided([sql], values) == [truths], sql
            kept = set(leaf.scanner(filter=sql).to_table()["n"].to_pylist())
            assert [number in kept for number in range(len(floats))] == truths, sql


@pytest.mark.spec("Partition Pruning 2", "Supported Transforms 7")
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


@pytest.mark.spec("reading 23")
def test_an_expression_is_asked_for_null_too() -> None:
    found = Expression("coalesce(col0, 'x')").project_bound(
        [[pa.scalar(None, pa.string())]], _COLUMN, [pa.string()]
    )
    assert found is not None
    assert found.sql(dialect=DataFusion) == "`p` = 'x'"
