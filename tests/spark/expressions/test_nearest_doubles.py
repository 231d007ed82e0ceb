"""DOUBLEs at and beside what is rounded up, and decimals of many digits, as Spark has them."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from tests.spark.expressions.expression_rows import Expressions

from pennon.predicate.expressions import Semantics

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

ROWS = 20_000
SEMANTICS = Semantics(ansi=True, is_utc=True)


def halves(rng: np.random.Generator, digits: int) -> pa.Array:
    """Give DOUBLEs at a half of the last digit that is kept, next to one, and anywhere."""
    kept = np.floor(10 ** rng.uniform(0, 17, ROWS))
    exact = np.array([float(f"{int(number)}5e-{digits + 1}") for number in kept])
    ends = rng.choice([-np.inf, np.inf], ROWS)
    values = np.where(rng.random(ROWS) < 0.5, exact, np.nextafter(exact, ends))
    anywhere = 10 ** rng.uniform(-digits - 2, 18 - digits, ROWS)
    values = np.where(rng.random(ROWS) < 0.2, anywhere, values)
    return pa.array(values * rng.choice([-1, 1], ROWS))


def decimals(rng: np.random.Generator, precision: int, scale: int) -> pa.Array:
    texts = [
        "".join(map(str, rng.integers(0, 10, count)))
        for count in rng.integers(1, precision + 1, ROWS)
    ]
    return pa.array(
        [Decimal(text).scaleb(-scale) for text in texts], pa.decimal128(precision, scale)
    )


def test_doubles_are_rounded_by_their_texts(spark: SparkSession, tmp_path: Path) -> None:
    rng = np.random.default_rng(11)
    rows = pa.table({f"h{digits}": halves(rng, digits) for digits in (0, 1, 2, 4, 6, 12)})
    calls = [f"round({name}, {name[1:]})" for name in rows.column_names]
    calls += ["round(h6, 5)", "round(h2, 3)", "round(h12, 0)"]
    compared = Expressions.over(spark, rows, tmp_path).compare(calls, SEMANTICS)
    assert compared.declined == {}
    assert compared.different == {}


def test_a_decimal_is_the_nearest_double(spark: SparkSession, tmp_path: Path) -> None:
    rng = np.random.default_rng(12)
    sizes = [(16, 2), (22, 2), (20, 18), (38, 0), (38, 10), (38, 30)]
    columns = {f"d{at}": decimals(rng, *size) for at, size in enumerate(sizes)}
    calls = [f"CAST({name} AS DOUBLE)" for name in columns]
    compared = Expressions.over(spark, pa.table(columns), tmp_path).compare(calls, SEMANTICS)
    assert compared.declined == {}
    assert compared.different == {}
