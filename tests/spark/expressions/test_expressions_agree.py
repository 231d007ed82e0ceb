"""Expressions that the workers compute: Spark's own values over rows of edge values."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyspark
import pytest
from tests.spark.assert_join import conf
from tests.spark.expressions.expression_rows import VALUES, Expressions, edge_rows
from tests.spark.expressions.random_rows import random_rows

from pennon.execution.engine_failures import VALUE_FAILURES
from pennon.predicate.expressions import Semantics

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

GOLDEN = Path(__file__).parents[2] / "golden" / "expressions"
DECLINED = "-- declined: "
SEMANTICS = Semantics(ansi=True, is_utc=True)
# Before 4.3 a DOUBLE beyond BIGINT is no error of floor and ceil, which are left to Spark then.
WHOLE_NUMBERS = ("floor(", "ceil(", "ceiling(") if pyspark.__version__ < "4.3" else ()


@pytest.fixture(scope="module")
def expressions(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Expressions:
    with conf(spark, {"spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED"}):
        return Expressions.over(spark, edge_rows(), tmp_path_factory.mktemp("edges"))


@pytest.mark.parametrize(
    "subject", ["arithmetic", "casts", "casts_compared", "operand_order", "texts", "times"]
)
@pytest.mark.parametrize("ansi", [True, False])
def test_expressions_give_the_values_of_spark(
    spark: SparkSession, expressions: Expressions, subject: str, *, ansi: bool
) -> None:
    lines = (GOLDEN / f"{subject}.sql").read_text(encoding="utf-8").splitlines()
    wanted = [line for line in lines if line and not line.startswith("--")]
    left = [line.removeprefix(DECLINED) for line in lines if line.startswith(DECLINED)]
    session = {"spark.sql.ansi.enabled": str(ansi).lower(), "spark.sql.session.timeZone": "UTC"}
    with conf(spark, session):
        semantics = Semantics(ansi=ansi, is_utc=True, in_fragments=True)
        compared = expressions.compare([*wanted, *left], semantics)
    assert compared.different == {}
    if ansi:
        differing = set(compared.declined) ^ set(left)
        assert {text for text in differing if not text.startswith(WHOLE_NUMBERS)} == set()


def far_rows(days: list[int]) -> pa.Table:
    micros = [day * 86_400_000_000 + at * 3_723_456_789 for at, day in enumerate(days)]
    rows = edge_rows(len(days) + 1)
    for name, values in (("d", days), ("ntz", micros), ("ts", micros)):
        kind = pa.int32() if name == "d" else pa.int64()
        far = pa.array([*values, None], kind).cast(VALUES[name][0])
        rows = rows.set_column(rows.column_names.index(name), name, far)
    return rows


def test_far_years_are_those_of_spark_or_refused_beyond_the_calendar(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Never another value: a part of a day beyond is NULL to DataFusion."""
    lines = (GOLDEN / "times.sql").read_text(encoding="utf-8").splitlines()
    wanted = [line for line in lines if line and not line.startswith("--")]
    wanted += ["CAST(d AS STRING)", "CAST(CAST(ntz AS DATE) AS STRING)", "CAST(ts AS DATE)"]
    session = {"spark.sql.ansi.enabled": "true", "spark.sql.session.timeZone": "UTC"}
    with conf(spark, session | {"spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED"}):
        near = far_rows([90_000_001, 94_900_000, -90_000_001, -94_900_000])
        compared = Expressions.over(spark, near, tmp_path / "near").compare(wanted, SEMANTICS)
        assert compared.different == {}
        assert compared.declined == {}
        far = far_rows([104_000_123, -104_000_123])
        compared = Expressions.over(spark, far, tmp_path / "far").compare(wanted, SEMANTICS)
    others = {
        text: bad for text, bad in compared.different.items() if "FragmentCalendar" not in str(bad)
    }
    assert others == {}
    assert len(compared.different) > len(wanted) // 3


# What is an error in Spark under ANSI: the expression, and a row for which it is one.
ERRORS: list[tuple[str, dict[str, Any]]] = [
    ("i32 + 1", {"i32": 2**31 - 1}),
    ("i32 * i32", {"i32": 2**16}),
    ("i64 - 1", {"i64": -(2**63)}),
    ("-i32", {"i32": -(2**31)}),
    ("abs(i8)", {"i8": -128}),
    ("CAST(i32 AS TINYINT)", {"i32": 128}),
    ("CAST(dec AS SMALLINT)", {"dec": Decimal("32768.00")}),
    ("CAST(dec AS DECIMAL(4, 1))", {"dec": Decimal("999.95")}),
    ("CAST(f64 AS INT)", {"f64": 2147483648.0}),
    ("CAST(f64 AS INT)", {"f64": float("nan")}),
    ("CAST(f64 AS BIGINT)", {"f64": float("nan")}),
    ("CAST(f64 AS BIGINT)", {"f64": -9.3e18}),
    ("floor(f64)", {"f64": 9.3e18}),
    ("ceil(f64)", {"f64": float("-inf")}),
    ("CAST(s AS INT)", {"s": "12.5"}),
    ("CAST(s AS BIGINT) > 3", {"s": ""}),
    ("CAST(s AS DATE)", {"s": "2021-02-29"}),
    ("CAST(s AS BOOLEAN)", {"s": "maybe"}),
    ("to_date(s, 'yyyy-MM-dd')", {"s": "2021-1-1"}),
    ("to_date(s, 'yyyy-MM-dd')", {"s": "2021-02-30"}),
    ("split(s, ':')[2]", {"s": "a:b"}),
    ("wide * wide", {"wide": Decimal("12345678901234567890.0")}),
    ("i32 / i8", {"i32": 1, "i8": 0}),
    ("f64 / nf", {"f64": 1.0, "nf": -0.0}),
    ("f64 % nf", {"f64": 1.0, "nf": 0.0}),
    ("dec / dec2", {"dec": Decimal("1.00"), "dec2": Decimal("0.00")}),
    ("dec % dec2", {"dec": Decimal("1.00"), "dec2": Decimal("0.00")}),
    ("i32 % n32", {"i32": 1, "n32": 0}),
    ("i32 div n32", {"i32": 1, "n32": 0}),
    ("i64 div n64", {"i64": -(2**63), "n64": -1}),
    ("ntz + INTERVAL '1' DAY", {"ntz": 2**63 - 1}),
]


def test_what_is_an_error_in_spark_is_an_error_or_left_to_spark(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Never another value; and no error for a NULL, nor without ANSI."""
    errors = [error for error in ERRORS if not error[0].startswith(WHOLE_NUMBERS)]
    for at, (expression, values) in enumerate(errors):
        rows = pa.table(
            {name: pa.array([values.get(name)], kind) for name, (kind, _) in VALUES.items()}
        )
        nothing = pa.table({name: pa.nulls(1, kind) for name, (kind, _) in VALUES.items()})
        failing = Expressions.over(spark, rows, tmp_path / f"failing{at}")
        with conf(spark, {"spark.sql.ansi.enabled": "true"}):
            assert failing.is_error_in_spark(expression), expression
            with pytest.raises(VALUE_FAILURES):
                failing.compute(expression, SEMANTICS)
            empty = Expressions.over(spark, nothing, tmp_path / f"empty{at}")
            assert empty.compute(expression, SEMANTICS) == [None]


def test_doubles_beyond_a_type_are_its_ends_without_ansi(
    spark: SparkSession, expressions: Expressions
) -> None:
    calls = [f"{name}({of})" for name in ("floor", "ceil") for of in ("f64", "f64 * 1E19D", "nf")]
    calls += [f"CAST({of} AS {kind})" for of in ("f64", "i64 * 9D") for kind in ("INT", "BIGINT")]
    with conf(spark, {"spark.sql.ansi.enabled": "false"}):
        compared = expressions.compare(calls, Semantics(ansi=False, is_utc=True))
    assert compared.different == {}
    assert compared.declined == {}


def test_numbers_that_do_not_fit_wrap_or_are_null_without_ansi(
    spark: SparkSession, tmp_path: Path
) -> None:
    calls = [f"{name} {sign} {name}" for name in ("i8", "i16", "i32", "i64") for sign in "+-*"]
    calls += [f"{sign}{name})" for name in ("i8", "i32", "i64") for sign in ("-(", "abs(")]
    calls += [f"CAST({of} AS {kind})" for of in ("i64", "i32") for kind in ("SMALLINT", "TINYINT")]
    calls += ["CAST(i64 AS INT)", "CAST(i16 AS TINYINT) = -1", "i64 DIV n64", "i64 * n64 + i32"]
    calls += ["i32 * n32 > 5", "CAST(i64 AS INT) + 1 < 7", "CAST(i64 AS DECIMAL(10, 2))"]
    calls += ["wide * wide", "wide * wide IS NULL", "wide * wide + wide", "wide / dec"]
    calls += ["CAST(wide AS DECIMAL(12, 3))", "CAST(dec AS DECIMAL(4, 1)) > 7"]
    zone = "spark.sql.session.timeZone"
    with conf(spark, {"spark.sql.ansi.enabled": "false", zone: "UTC"}):
        rows = Expressions.over(spark, random_rows(7, 600), tmp_path)
        compared = rows.compare(calls, Semantics(ansi=False, is_utc=True))
    assert compared.different == {}
    assert compared.declined == {}


@pytest.mark.skipif(pyspark.__version__ < "4.2", reason="an older Unicode, of fewer letters")
def test_every_character_has_one_upper_and_one_lower_case(
    spark: SparkSession, tmp_path: Path
) -> None:
    characters = [chr(code) for code in range(1, 0x110000) if not 0xD800 <= code <= 0xDFFF]
    # A space between two keeps either from being the other's context.
    lines = [" ".join(characters[at : at + 256]) for at in range(0, len(characters), 256)]
    final_sigmas = ["ΑΣ", "ΑΣ.", "ΑΣΑ", "Σ", "aΣ b", "Σα", "a'Σ", "ΑΣ\u0301", "İi", "i\u0307"]
    rows = pa.table({"s": [*lines, *final_sigmas]})
    compared = Expressions.over(spark, rows, tmp_path).compare(["upper(s)", "lower(s)"], SEMANTICS)
    assert compared.declined == {}
    assert compared.different == {}
