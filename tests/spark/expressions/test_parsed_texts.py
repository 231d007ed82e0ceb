"""Texts that are cast, or read by a pattern: what is a value in Spark is the same one in workers.

Spark's ``try_`` functions say what it reads: where they give NULL, a cast is an error under ANSI.
"""

from __future__ import annotations

import math
import random
import re
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from sqlglot import exp
from tests.spark.assert_join import conf

from pennon.execution.engine import rows_over
from pennon.execution.engine_failures import VALUE_FAILURES
from pennon.predicate.dialect import DataFusion
from pennon.predicate.expressions import Semantics
from pennon.predicate.expressions.typed_expression import typed_expression
from pennon.predicate.typed import SparkExpression

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession

NUMBERS = ["", " ", "+", "-", "+-1", "1-", "12.5", "12.", ".5", "1e2", "1 2", "12a", "12L", "1_0"]
NUMBERS += ["\u00a012", "\u200112", "१२", "\x0012", "12\x1f", "\x7f12 ", "\x8512", "0x1F", "NaN"]
NUMBERS += [str(sign * 2**bits + at) for bits in (7, 31, 63) for at in (-1, 0) for sign in (1, -1)]
NUMBERS += ["0" * 40 + "5", "9" * 20, "-0", "+007", "1,000", "true", "\uff15"]
DATES = ["", "20200105", "2020/01/05", "2020-001-01", "2020-1-5x", "1-1-1", "202-1-1", "2020-"]
DATES += [
    "2020-1",
    "2020-01T",
    "2020-01 ",
    "2020-01-05T",
    "2020-01-05t",
    "2020-02-30",
    "2021-02-29",
]
DATES += ["2020-13-01", "2020-00-10", "2020-10-00", "-0000-01-01", "+2020-01-01", "+12020-01-01"]
DATES += [
    "0000-02-29",
    "-0004-02-29",
    "-0001-12-31",
    "9999999-1-1",
    "5881580-07-11",
    "00002020-1-1",
]
DATES += ["5881580-07-12", "-5877641-06-23", "-5877641-06-22", "2020-01-05\u00a0", "\t2020-01-05\n"]
DATES += [
    "today",
    "epoch",
    "2020-01-05 \n \x7f",
    "\uff12\uff10\uff12\uff10-01-05",
    "2020-01--5",
    "--2020-01-05",
]
DATES += ["+-2020-01-05", "12345-01-01", "-12345-01-01", "+012020-01-01", "2020-01-05T25:61"]


FRACTIONS = [
    "",
    ".",
    "+.5",
    "1.",
    "-1.5e3",
    "1e400",
    "-1e-400",
    "4.9e-324",
    "2.4e-324",
    "1e",
    "1e+",
]
FRACTIONS += ["1.7976931348623157e308", "1.7976931348623159e308", "9007199254740993", "0.1f", "1D"]
FRACTIONS += [
    "0x1p3",
    "-0x.8P-1f",
    "0x1.fffffffffffff8p1023",
    "0x1p1024",
    "0x1p-1075",
    "0x1",
    "0xp1",
]
FRACTIONS += ["NaN", "+NaN", "-NaN", "nan", "-nan", "inf", "+INF", "-Infinity", "infinityx", "i nf"]
FRACTIONS += [
    " 1.5\t",
    "\x001.5\x1f",
    "1.5\x7f",
    "\u00a01.5",
    "१.५",
    "\uff11",
    "1_0",
    "1,5",
    "1e5d ",
]
FRACTIONS += [
    "-0",
    "00012.50",
    "1" * 400,
    "0." + "0" * 400 + "1",
    "1e99999999999",
    "123456789.12345678",
]
FRACTIONS += [
    "1e-99999999999",
    "0e99999999999",
    "5e",
    "1.5ff",
    "--1",
    "0x1p99999999999",
    "1.e2",
    ".e2",
]


def scrambled(texts: Sequence[str], count: int) -> list[str]:
    """Change a sign of a text, leave one out, or repeat one."""
    rng = random.Random(7)  # noqa: S311 - texts, not secrets
    found = list(texts)
    for _ in range(count):
        text = rng.choice(texts)
        at = rng.randrange(len(text) + 1)
        found.append(text[:at] + rng.choice("0123456789-+ T./\t") + text[at + rng.randrange(2) :])
    return found


def read_by_spark(spark: SparkSession, texts: Sequence[str], call: str) -> list[float | None]:
    """Give the values as whole numbers, and None for what is an error."""
    rows = [(at, text) for at, text in enumerate(texts)]
    frame = spark.createDataFrame(rows, "n INT, s STRING").selectExpr("n", f"{call} AS x")
    return [row["x"] for row in frame.orderBy("n").collect()]


def read_by_worker(texts: Sequence[str], expression: str, *, ansi: bool) -> list[float | None]:
    """Do so in DataFusion, text by text: an error is one of its own."""
    semantics = Semantics(ansi=ansi, is_utc=True, in_fragments=True)
    value = typed_expression(SparkExpression(expression), {"s": pa.string()}, semantics)
    sql = f"SELECT {value.tree.sql(dialect=DataFusion)} AS x FROM t"
    found: list[float | None] = []
    for text in texts:
        try:
            column = rows_over(sql, {"t": pa.table({"s": [text]})})["x"]
        except VALUE_FAILURES:
            found.append(None if ansi else 0)
            continue
        kind = pa.int32() if pa.types.is_date(column.type) else pa.int64()
        kind = column.type if pa.types.is_floating(column.type) else kind
        found += column.cast(kind).to_pylist()
    return found


def differing(
    texts: Sequence[str], one: Sequence[object], other: Sequence[object]
) -> list[tuple[str, object, object]]:
    rows = zip(texts, one, other, strict=True)
    return [(repr(text), left, right) for text, left, right in rows if left != right]


def test_texts_of_doubles_are_those_of_spark(spark: SparkSession) -> None:
    texts = scrambled(FRACTIONS, 200)
    with conf(spark, {"spark.sql.ansi.enabled": "true"}):
        expected = read_by_spark(spark, texts, "try_cast(s AS DOUBLE)")
    assert {math.isnan(number) for number in expected if number is not None} == {True, False}
    for ansi in (True, False):
        found = read_by_worker(texts, "CAST(s AS DOUBLE)", ansi=ansi)
        assert differing(texts, list(map(repr, expected)), list(map(repr, found))) == []
        tried = read_by_worker(texts, "TRY_CAST(s AS DOUBLE)", ansi=ansi)
        assert differing(texts, list(map(repr, expected)), list(map(repr, tried))) == []


@pytest.mark.parametrize("kind", ["TINYINT", "SMALLINT", "INT", "BIGINT"])
def test_texts_of_integers_are_those_of_spark(spark: SparkSession, kind: str) -> None:
    texts = scrambled(NUMBERS, 60)
    with conf(spark, {"spark.sql.ansi.enabled": "true"}):
        expected = read_by_spark(spark, texts, f"try_cast(s AS {kind})")
    found = read_by_worker(texts, f"CAST(s AS {kind})", ansi=True)
    assert differing(texts, expected, found) == []
    tried = read_by_worker(texts, f"TRY_CAST(s AS {kind})", ansi=True)
    assert differing(texts, expected, tried) == []


def test_texts_of_dates_are_those_of_spark(spark: SparkSession) -> None:
    texts = scrambled(DATES, 200)
    with conf(spark, {"spark.sql.ansi.enabled": "true"}):
        expected = read_by_spark(spark, texts, "unix_date(try_cast(s AS DATE))")
    for ansi in (True, False):
        found = read_by_worker(texts, "CAST(s AS DATE)", ansi=ansi)
        assert differing(texts, expected, found) == []


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("yyyy-MM-dd", "{y}-{m}-{d}"),
        ("yyyyMMdd", "{y}{m}{d}"),
        ("dd.MM.yyyy", "{d}.{m}.{y}"),
        ("MM/dd/yyyy", "{m}/{d}/{y}"),
        ("yyyy-MM", "{y}-{m}"),
        ("yyyy-MM-dd HH:mm:ss", "{y}-{m}-{d} {h}:{i}:{s}"),
        ("yyyyMMddHHmmss", "{y}{m}{d}{h}{i}{s}"),
        ("yyyy-MM-dd'T'HH:mm", "{y}-{m}-{d}t{h}:{i}"),
    ],
)
def test_texts_of_a_pattern_are_those_of_spark(
    spark: SparkSession, pattern: str, text: str
) -> None:
    rng = random.Random(pattern)  # noqa: S311 - texts, not secrets
    ends = {
        "y": [
            *["2020", "2021"] * 5,
            "0000",
            "-0000",
            "-2020",
            "+2020",
            "+12020",
            "12020",
            "99",
            "0004",
        ],
        "m": [*["01", "02", "12"] * 4, "00", "13", "1"],
        "d": [*["01", "28"] * 6, "29", "30", "31", "00", "7"],
        "h": [*["00", "23"] * 3, "24", "12"],
        "i": [*["00", "59"] * 3, "60"],
        "s": [*["00", "59"] * 3, "60", "5"],
    }
    texts = [
        text.format(**{name: rng.choice(values) for name, values in ends.items()})
        for _ in range(80)
    ]
    # Beyond the years of a timestamp Spark's own function is an error instead of NULL.
    longest = len(pattern) + 1 if pattern.isalpha() else len("12020")
    texts = [text for text in scrambled(texts, 50) if not re.search(rf"\d{{{longest + 1}}}", text)]
    quoted = pattern.replace("'", "\\'")
    call = f"unix_micros(try_to_timestamp(s, '{quoted}'))"
    settings = {"spark.sql.ansi.enabled": "true", "spark.sql.session.timeZone": "UTC"}
    settings["spark.sql.legacy.timeParserPolicy"] = "CORRECTED"
    with conf(spark, settings):
        expected = read_by_spark(spark, texts, call)
    written = exp.Literal.string(pattern).sql()
    found = read_by_worker(texts, f"gettimestamp(s, {written})", ansi=True)
    assert differing(texts, expected, found) == []
    assert sum(value is not None for value in found) > 9
