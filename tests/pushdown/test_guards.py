"""Where DataFusion is not Spark: what Spark 4.3 answers by its documented rules."""

from __future__ import annotations

import itertools
import math
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from tests.pushdown.computed import ANSI, aggregate_of, grouped, value_of
from tests.pushdown.stated_nodes import call_of, output_of

from pennon.errors import FragmentOverflow
from pennon.predicate.condition import Declined
from pennon.predicate.expressions.typed_expression import typed_expression
from pennon.predicate.typed import SparkExpression
from pennon.pushdown import Semantics

NAN, MINUS_NAN = float("nan"), math.copysign(float("nan"), -1.0)
BIG = 2**63 - 1
MOST = Decimal("9" * 38)


def pairs(kind: pa.DataType, *rows: tuple[object, object]) -> pa.Table:
    return pa.table(
        {
            "c1": pa.array([one for one, _ in rows], kind),
            "c2": pa.array([other for _, other in rows], kind),
        }
    )


@pytest.mark.parametrize(
    ("operator", "result"),
    [("+", (38, 9)), ("-", (38, 9)), ("*", (38, 6))],
)
def test_decimals_beyond_38_digits_are_rounded_half_up(
    tmp_path: Path, operator: str, result: tuple[int, int]
) -> None:
    """The type is Spark's adjusted one; the exact result is rounded to it."""
    kind = pa.decimal128(38, 10)
    values = [("12345.0000000005", "1.0000000000"), ("-0.0000010005", "0.5000000000")]
    rows = pairs(kind, *((Decimal(one), Decimal(other)) for one, other in values))
    found = value_of(f"(`c1` {operator} `c2`)", pa.decimal128(*result), rows, tmp_path)
    exact = [
        {"+": Decimal(a) + Decimal(b), "-": Decimal(a) - Decimal(b), "*": Decimal(a) * Decimal(b)}
        for a, b in values
    ]
    step = Decimal(1).scaleb(-result[1])
    assert found == [values[operator].quantize(step, ROUND_HALF_UP) for values in exact]


def test_an_average_of_decimals_is_rounded_half_up_to_four_more_digits(tmp_path: Path) -> None:
    """As Spark ends an average: ``sum / count`` as decimal(p + 4, s + 4); none of nothing."""
    rows = pa.table(
        {
            "c1": pa.array([Decimal("0.05"), Decimal("-0.05"), Decimal("20.00"), None]).cast(
                pa.decimal128(25, 2)
            ),
            "c2": pa.array([40000, 40000, 3, 0], pa.int64()),
        }
    )
    divided = "decimalaverage(`c1`, CAST(`c2` AS DECIMAL(20,0)), 19, 6)"
    text = f"(IF((`c2` = CAST(0 AS BIGINT)), CAST(NULL AS DECIMAL(19,6)), {divided}))"
    exact = [Decimal("0.000001"), Decimal("-0.000001"), Decimal("6.666667"), None]
    assert value_of(text, pa.decimal128(19, 6), rows, tmp_path) == exact
    columns, legacy = {"c1": pa.decimal128(38, 2), "c2": pa.int64()}, Semantics(ansi=False)
    whole = "decimalaverage(`c1`, CAST(`c2` AS DECIMAL(20,0)), 38, {})"
    assert typed_expression(SparkExpression(whole.format(6)), columns, ANSI).can_fail
    assert not typed_expression(SparkExpression(whole.format(6)), columns, legacy).can_fail
    with pytest.raises(Declined):
        typed_expression(SparkExpression(whole.format(20)), columns, legacy)


def test_decimals_that_do_not_fit_are_an_error(tmp_path: Path) -> None:
    rows = pairs(pa.decimal128(38, 0), (MOST, Decimal(10)))
    for at, text in enumerate(("(`c1` + `c2`)", "(`c1` * `c2`)")):
        with pytest.raises(FragmentOverflow):
            value_of(text, pa.decimal128(38, 0), rows, tmp_path / str(at))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("STARTSWITH(`c1`, '10%')", [True, False, None]),
        ("ENDSWITH(`c1`, '_\\\\')", [False, True, None]),
        ("CONTAINS(`c1`, '\\'')", [True, False, None]),
        ("(`c1` < `c2`)", [True, False, None]),
        ("(`c1` = 'x_\\\\')", [False, True, None]),
        ("CONCAT(`c1`, `c2`, '!')", ["10%'xé!", "x_\\X!", None]),
        ("CHAR_LENGTH(CONCAT(`c2`, 'é'))", [2, 2, 1]),
        ("GREATEST(`c1`, `c2`)", ["é", "x_\\", ""]),
    ],
)
def test_texts_are_compared_by_bytes_and_never_as_patterns(
    tmp_path: Path, text: str, expected: list[object]
) -> None:
    rows = pairs(pa.utf8(), ("10%'x", "é"), ("x_\\", "X"), (None, ""))
    kind = typed_expression(SparkExpression(text), {"c1": pa.utf8(), "c2": pa.utf8()}, ANSI).type
    assert value_of(text, kind, rows, tmp_path) == expected


def total(
    kind: pa.DataType,
    values: list[object],
    result: pa.DataType,
    *,
    root: Path,
    semantics: Semantics = ANSI,
) -> list:
    rows = pa.table({"c1": pa.array(values, kind)})
    group = grouped(0, (), (call_of(9, "sum", "`c1`", result),))
    return aggregate_of([], group, rows, root, semantics)["c9"].to_pylist()


def test_sums_that_do_not_fit_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(FragmentOverflow):
        total(pa.int64(), [BIG, 1], pa.int64(), root=tmp_path / "0")
    assert total(pa.int64(), [BIG, 1, -1], pa.int64(), root=tmp_path / "1") == [BIG]
    assert total(pa.int32(), [2**31 - 1, 1], pa.int64(), root=tmp_path / "2") == [2**31]
    wide = pa.decimal128(38, 0)
    with pytest.raises(FragmentOverflow):
        total(wide, [MOST, Decimal(1)], wide, root=tmp_path / "3")
    assert total(wide, [MOST, Decimal(-1)], wide, root=tmp_path / "4") == [Decimal("9" * 37 + "8")]


def test_without_ansi_integers_wrap_and_sums_of_long_decimals_are_null(tmp_path: Path) -> None:
    legacy = Semantics(ansi=False)
    found = total(pa.int64(), [BIG, 1], pa.int64(), root=tmp_path, semantics=legacy)
    assert found == [-BIG - 1]
    wide = pa.decimal128(38, 0)
    sums: list[tuple[list[object], object]] = [
        ([MOST, Decimal(1)], None),
        ([MOST, MOST, MOST.copy_negate()], MOST),
        ([MOST.copy_negate(), Decimal(-1)], None),
    ]
    for at, (values, expected) in enumerate(sums):
        root = tmp_path / str(at)
        assert total(wide, values, wide, root=root, semantics=legacy) == [expected]
    for text, kind in (("(`c1` + `c1`)", pa.int32()), ("(`c1` * `c1`)", wide)):
        assert not typed_expression(SparkExpression(text), {"c1": kind}, legacy).can_fail


def test_floats_group_by_one_zero_and_one_nan(tmp_path: Path) -> None:
    """The keys come out as 0.0 and NaN; MIN and MAX hold NaN for the greatest."""
    rows = pa.table({"c1": [0.0, -0.0, NAN, MINUS_NAN, 1.5, None]})
    calls = (call_of(9, "count", "1", pa.int64()),)
    found = aggregate_of(
        [], grouped(0, (output_of(8, "`c1`", pa.float64()),), calls), rows, tmp_path
    )
    counted = {str(row["c8"]): row["c9"] for row in found.to_pylist()}
    assert counted == {"0.0": 2, "nan": 2, "1.5": 1, "None": 1}
    extremes = tuple(
        call_of(at, name, "`c1`", pa.float64()) for at, name in ((6, "min"), (7, "max"))
    )
    found = aggregate_of([], grouped(0, (), extremes), rows, tmp_path / "extremes")
    assert found["c6"].to_pylist()[0] == 0.0
    assert math.isnan(found["c7"].to_pylist()[0])


@pytest.mark.parametrize("kind", [pa.float32(), pa.float64()])
def test_extremes_of_floats_by_group_are_those_of_sparks_order(
    tmp_path: Path, kind: pa.DataType
) -> None:
    """NaN above all, of groups that have nothing else, infinities, or NULLs beside them."""
    values = [None, NAN, MINUS_NAN, math.inf, -math.inf, 0.0, -1.5, 2.5]
    groups = list(itertools.product(values, repeat=3))
    rows = pa.table(
        {
            "c1": pa.array([at for at in range(len(groups)) for _ in range(3)], pa.int64()),
            "c2": pa.array([value for group in groups for value in group], kind),
        }
    )
    calls = [call_of(at, name, "`c2`", kind) for at, name in ((6, "min"), (7, "max"))]
    found = aggregate_of(
        [], grouped(0, (output_of(8, "`c1`", pa.int64()),), calls), rows, tmp_path
    ).to_pylist()

    def order(value: float) -> tuple[bool, float]:
        return (math.isnan(value), 0.0 if math.isnan(value) else value)

    expected = {}
    for at, group in enumerate(groups):
        known = sorted((value for value in group if value is not None), key=order)
        expected[at] = repr([known[0], known[-1]] if known else [None, None])
    assert {row["c8"]: repr([row["c6"], row["c7"]]) for row in found} == expected


def test_different_values_are_summed_once_each(tmp_path: Path) -> None:
    large = 2**62
    amounts = [Decimal(text) for text in ("1.50", "1.50", "9" * 28 + ".00", "2.00")]
    rows = pa.table(
        {
            "c1": pa.array([large, large, 5, None], pa.int64()),
            "c2": pa.array(amounts, pa.decimal128(30, 2)),
            "c3": pa.array([7, 7, 7, -7], pa.int16()),
        }
    )
    calls = (
        call_of(6, "sum_distinct", "`c1`", pa.int64()),
        call_of(7, "sum_distinct", "`c2`", pa.decimal128(38, 2)),
        call_of(8, "sum_distinct", "`c3`", pa.int64()),
        call_of(9, "sum", "`c3`", pa.int64()),
    )
    found = aggregate_of([], grouped(0, (), calls), rows, tmp_path).to_pylist()
    total = Decimal("1" + "0" * 27 + "2.50")
    assert found == [{"c6": large + 5, "c7": total, "c8": 0, "c9": 14}]


def test_an_aggregate_over_nothing_has_one_row(tmp_path: Path) -> None:
    calls = (
        call_of(7, "count", "1", pa.int64()),
        call_of(8, "sum", "`c1`", pa.int64()),
        call_of(9, "max", "`c2`", pa.utf8()),
    )
    rows = pa.table({"c1": pa.array([], pa.int32()), "c2": pa.array([], pa.utf8())})
    found = aggregate_of([], grouped(0, (), calls), rows, tmp_path)
    assert found.to_pylist() == [{"c7": 0, "c8": None, "c9": None}]
    assert found.schema.field("c9").type == pa.utf8()


@pytest.mark.parametrize(
    "text",
    [
        None,
        "(`c1` / CAST(0 AS INT))",
        "(`c1` % CAST(0 AS INT))",
        "SUBSTRING(`c2`, CAST(0 AS BIGINT), 3)",
        "(`c2` LIKE 'a\\\\bc%')",
        "(`c2` LIKE `c2`)",
        "EXTRACT(HOUR FROM `c4`)",
        "CAST(`c4` AS DATE)",
        "(`c2` = CAST(1 AS BIGINT))",
        "(`unknown` = `c1`)",
        "RAND()",
        "CONCAT(`c2`, `c1`)",
        "TRANSLATE(`c2`, 'ab', 'ba')",
        "TRUNC(`c6`, 'DAY')",
        "(`c6` + INTERVAL '1' HOUR)",
        "not an expression (",
    ],
)
def test_what_is_not_certain_is_left_to_spark(text: str | None) -> None:
    columns = {
        "c1": pa.int32(),
        "c2": pa.utf8(),
        "c3": pa.decimal128(10, 2),
        "c4": pa.timestamp("us", "UTC"),
        "c6": pa.date32(),
    }
    with pytest.raises(Declined):
        typed_expression(SparkExpression(text), columns, ANSI)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("(`c1` = X'6231')", [True, False, None]),
        ("(`c1` > X'62')", [True, False, None]),
        ("(coalesce(`c1`, X'FF') >= X'6231')", [True, False, True]),
        ("(`c1` IN (X'6231', X'', NULL))", [True, True, None]),
        ("(`c1` <=> CAST(NULL AS BINARY))", [False, False, True]),
    ],
)
def test_bytes_are_compared_with_literals(
    tmp_path: Path, text: str, expected: list[bool | None]
) -> None:
    rows = pa.table({"c1": pa.array([b"b1", b"", None], pa.binary())})
    assert value_of(text, pa.bool_(), rows, tmp_path) == expected


def test_a_value_of_bytes_may_be_null(tmp_path: Path) -> None:
    rows = pa.table({"c1": pa.array([b"b1", b"", None], pa.binary())})
    text = "CASE WHEN (`c1` = X'') THEN CAST(NULL AS BINARY) ELSE coalesce(`c1`, X'00') END"
    assert value_of(text, pa.binary(), rows, tmp_path) == [b"b1", None, b"\0"]


def test_what_guards_a_sum_of_products_is_not_written_again_for_each_of_them() -> None:
    """Each asks for NULLs in the sum before it: whole, that would double with every product."""
    columns = {f"c{number}": pa.int32() for number in range(60)}
    text = "(`c0` * `c1`)"
    for number in range(2, 60, 2):
        text = f"({text} + (`c{number}` * `c{number + 1}`))"
    value = typed_expression(SparkExpression(text), columns, ANSI)
    assert value.can_fail
    assert sum(1 for _ in value.tree.walk()) < 20_000
    nested = "`c0`"
    for number in range(1, 16):
        nested = f"((`c{number}` * `c0`) DIV {nested})"
    quotients = "`c0`"
    for number in range(1, 16):
        quotients = f"(CAST(`c{number}` AS DOUBLE) / {quotients})"
    for text in (nested, quotients):
        with pytest.raises(Declined, match="many terms"):
            typed_expression(SparkExpression(text), columns, ANSI)
