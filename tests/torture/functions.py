"""The functions that Spark evaluates, beside the transforms of Python, on random values.

Spark reads the values, computes every transform of their type and the key that it computes for a
side without partitioning, and writes what came out; Python computes the same and compares. Run
it with ``make torture-functions N=1000000``.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from tests.strategies.random_columns import RandomColumns
from tests.torture_session import torture_session

from pennon.grouping.key_grouping import surrogate_of
from pennon.transforms.bucket import Bucket, MultiBucket
from pennon.transforms.calendar import Day, Hour, Month, Year
from pennon.transforms.epoch import Epoch, EpochUnit
from pennon.transforms.truncate import Truncate

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject
    from pyspark.sql import Column, SparkSession

KINDS = [
    *("TINYINT", "SMALLINT", "INT", "BIGINT", "DECIMAL(9,2)", "DECIMAL(18,4)", "DECIMAL(38,10)"),
    *("STRING", "BINARY", "BOOLEAN", "DATE", "TIMESTAMP", "TIMESTAMP_NTZ"),
]
TIMES = ("DATE", "TIMESTAMP", "TIMESTAMP_NTZ")
READ_AS_WRITTEN = {
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
}
_LARGEST = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Agreement:
    """One function: what Spark computes of the columns x and y, and what Python does."""

    name: str
    spark: Column
    python: Callable[[pa.Array, pa.Array], pa.Array]


def agreements(spark: SparkSession, kind: str) -> Iterator[Agreement]:
    """List the functions of a type."""
    from pyspark.sql import functions as sql

    def of(
        transform: Bucket | Truncate | Year | Month | Day | Hour | Epoch, call: str
    ) -> Agreement:
        return Agreement(call, sql.expr(f"lance.{call}"), lambda x, _: transform.apply([x]))

    for count in (1, 7, 16, _LARGEST):
        yield of(Bucket(count), f"bucket({count}, x)")
    for field in (Year(), Month(), Day(), Hour()) if kind in TIMES else ():
        if kind != "DATE" or not isinstance(field, Hour):
            yield of(field, f"{field.type}(x)")
    for unit in EpochUnit if kind in TIMES else ():
        if kind != "DATE" or unit is not EpochUnit.HOURS:
            yield of(Epoch(unit), f"{unit}(x)")
    if kind not in (*TIMES, "BINARY", "BOOLEAN"):
        for width in (1, 3, 10, 1000, 999_999_999):
            yield of(Truncate(width), f"truncate_{width}(x)")
    yield from surrogates(spark, kind)


def _multi_bucket_key(count: int, x: pa.Array, y: pa.Array) -> pa.Array:
    return surrogate_of([MultiBucket(count).apply([x, y])], len(x))


def surrogates(spark: SparkSession, kind: str) -> Iterator[Agreement]:
    """List keys of one and of two functions, as the derived-key rule has Spark compute them."""
    yield Agreement(
        "key of identity(x), bucket(5, y)",
        key(spark, [("identity", 0, ["x"], [kind]), ("bucket", 5, ["y"], ["BIGINT"])]),
        lambda x, y: surrogate_of([x, Bucket(5).apply([y])], len(x)),
    )
    for count in (8, _LARGEST):
        yield Agreement(
            f"key of multi_bucket({count}, x, y)",
            key(spark, [("multi_bucket", count, ["x", "y"], [kind, "BIGINT"])]),
            partial(_multi_bucket_key, count),
        )
    if kind in TIMES:
        yield Agreement(
            "key of months(x), identity(y)",
            key(spark, [("months", 0, ["x"], [kind]), ("identity", 0, ["y"], ["BIGINT"])]),
            lambda x, y: surrogate_of([Epoch(EpochUnit.MONTHS).apply([x]), y], len(x)),
        )


def key(spark: SparkSession, components: list[tuple[str, int, list[str], list[str]]]) -> Column:
    """Make the expression that the rule in the JVM makes."""
    from pyspark.sql import Column

    jvm = spark._jvm
    assert jvm is not None
    parts, arguments = jvm.java.util.ArrayList(), jvm.java.util.ArrayList()
    for name, count, columns, kinds in components:
        types = jvm.java.util.ArrayList()
        for column, kind in zip(columns, kinds, strict=True):
            types.add(jvm.org.apache.spark.sql.types.DataType.fromDDL(kind))
            attribute = jvm.org.apache.spark.sql.catalyst.analysis.UnresolvedAttribute
            arguments.add(attribute.quoted(column))
        parts.add(jvm.dev.pennon.spark.functions.Surrogate.Component(name, count, types))
    surrogate = jvm.dev.pennon.spark.functions.Surrogate(parts)
    expressions = jvm.org.apache.spark.sql.catalyst.expressions
    call = expressions.ApplyFunctionExpression(surrogate, scala_seq(jvm, arguments))
    return Column(jvm.org.apache.spark.sql.classic.ExpressionUtils.column(call))


def scala_seq(jvm: object, items: JavaObject) -> JavaObject:
    converters = jvm.scala.jdk.javaapi.CollectionConverters  # type: ignore[attr-defined]
    return converters.asScala(items).toSeq()


def disagreements(
    spark: SparkSession, folder: Path, kind: str, rows: int, seed: int
) -> tuple[list[str], int]:
    """Compare every function of a type on random values.

    Returns:
        One line per function with a value that differs, and the number of functions.
    """
    columns = RandomColumns(np.random.default_rng([seed, KINDS.index(kind)]), rows)
    table = pa.table(
        {
            "at": pa.array(np.arange(rows)),
            "x": columns.column(kind),
            "y": columns.column("BIGINT"),
        }
    )
    pq.write_table(table, folder / "values.parquet")
    functions = list(agreements(spark, kind))
    frame = spark.read.parquet(str(folder / "values.parquet"))
    found = [function.spark.alias(f"f{number}") for number, function in enumerate(functions)]
    frame.select("at", *found).coalesce(1).write.parquet(str(folder / "computed"))
    computed = pq.read_table(folder / "computed").sort_by("at")
    x, y = (table.column(name).combine_chunks() for name in "xy")
    lines = [
        line
        for number, function in enumerate(functions)
        if (line := difference(function, x, y, computed.column(f"f{number}").combine_chunks()))
    ]
    return [f"{kind}: {line}" for line in lines], len(functions)


def difference(function: Agreement, x: pa.Array, y: pa.Array, of_spark: pa.Array) -> str | None:
    """Say where the two differ first."""
    of_python = function.python(x, y)
    if of_spark.type != of_python.type:
        of_spark = of_spark.cast(of_python.type)
    both_null = pc.and_(pc.is_null(of_spark), pc.is_null(of_python))
    is_same = pc.or_(both_null, pc.fill_null(pc.equal(of_spark, of_python), fill_value=False))
    at = pc.index(is_same, value=False).as_py()
    if at < 0:
        return None
    count = len(x) - pc.sum(is_same.cast(pa.int64())).as_py()
    return (
        f"{function.name} differs in {count} of {len(x)} rows: of x = {x[at].as_py()!r} and "
        f"y = {y[at].as_py()!r} Spark has {of_spark[at].as_py()!r}, "
        f"Python {of_python[at].as_py()!r}"
    )


def main() -> int:
    parser = argparse.ArgumentParser(prog="torture-functions", description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--only", choices=KINDS, help="run just this type")
    options = parser.parse_args()
    failed = 0
    with torture_session(READ_AS_WRITTEN) as (spark, folder):
        for kind in [options.only] if options.only else KINDS:
            started = time.monotonic()
            place = folder / str(KINDS.index(kind))
            place.mkdir()
            lines, count = disagreements(spark, place, kind, options.rows, options.seed)
            seconds = time.monotonic() - started
            print(f"{kind}: {count} functions of {options.rows} values in {seconds:.1f} s")
            for line in lines:
                again = f"--rows {options.rows} --seed {options.seed} --only '{kind}'"
                print(f"{line}\nagain: {sys.executable} -m tests.torture.functions {again}")
            failed += len(lines)
    print(f"seed {options.seed}: {failed} functions differ")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
