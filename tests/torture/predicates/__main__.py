"""Random conditions on random tables that have evolved, beside Spark's own filter of the same rows.

Run it with ``make torture-predicates N=2000``. A difference prints the seed of its table, its
statements and the query; ``--seed`` repeats it. Each condition is asked of the newest version or of
an older one, in a time zone, with and without ANSI, for rows or for aggregates, which the manifest
may answer, also where a subquery prunes partitions while the query runs. What a condition means
Spark says: it evaluates all of them as columns over a Parquet copy, where nothing is pushed down
and nothing pruned.
"""

from __future__ import annotations

import argparse
import logging
import sys
import time
import traceback
from collections import Counter
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Any, Final

from pyspark.errors import PySparkException
from tests.spark.assert_join import EXECUTION, conf
from tests.strategies.random_conditions import Conditions
from tests.torture.predicates.evolving_table import EvolvingTable, Version
from tests.torture.predicates.kept_partitions import OneField, some_field
from tests.torture_session import NOT_COMPILED, torture_session

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

_PER_TABLE: Final = 120
_AT_ONCE: Final = 20
_ZONES: Final = (
    "UTC", "America/New_York", "Asia/Kolkata", "Europe/Berlin", "Pacific/Apia",
    "Australia/Lord_Howe", "America/Sao_Paulo", "Asia/Kathmandu", "Africa/Monrovia", "+14:00",
)  # fmt: skip
_MOST_COLUMNS: Final = 3
_SUBQUERIES: Final = 4
_PER_FIELD: Final = 25
_FIELDS_PER_TABLE: Final = 2
_SETTINGS: Final = {
    **NOT_COMPILED,
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.adaptive.enabled": "false",
    # Parquet's bounds leave NaN out, and Spark's filters on them lose its rows.
    "spark.sql.parquet.filterPushdown": "false",
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
}


@dataclass(slots=True)
class Tally:
    """What came out so far."""

    conditions: int = 0
    failing: int = 0
    differ: int = 0
    counted: int = 0


def main() -> int:
    """Ask as many conditions as the command line says."""
    parser = argparse.ArgumentParser(prog="make torture-predicates ARGS=…", description=__doc__)
    parser.add_argument("--conditions", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=1e9, help="begin no table after so many")
    options = parser.parse_args()
    tally, started = Tally(), time.monotonic()
    with torture_session(_SETTINGS) as (spark, folder):
        spark.sparkContext.setLogLevel("OFF")
        # Python's side of Spark writes each failure of a query, and many fail as they should.
        logging.getLogger("SQLQueryContextLogger").disabled = True
        spark.sql("CREATE NAMESPACE lance.torture")
        seed = options.seed
        while tally.conditions < options.conditions:
            if time.monotonic() - started > options.seconds:
                break
            run_table(spark, folder, seed, min(_PER_TABLE, options.conditions), tally)
            for at in range(_FIELDS_PER_TABLE):
                run_field(spark, folder, seed * _FIELDS_PER_TABLE + at, tally)
            seed += 1
            print(
                f"{tally.conditions} conditions, {tally.failing} fail in Spark, too,"
                f" {tally.counted} counted by partitions, {tally.differ} differ",
                flush=True,
            )
    return tally.differ


def run_table(spark: SparkSession, folder: Path, seed: int, count: int, tally: Tally) -> None:
    """Make the table of a seed, and ask conditions of it."""
    random = Random(seed)  # noqa: S311 - to be repeated
    table = EvolvingTable(spark, f"lance.torture.t{seed}", folder, random)
    told = f"--seed {seed} --conditions {count}"
    try:
        table.make(steps=random.choice((0, 1, 2, 2)), counted=random.choice((32, 32, 0, 4)))
    except Exception:  # noqa: BLE001 - whatever it is, the seed has to be told
        print("\n".join([told, *table.ran, traceback.format_exc()[-3000:]]), flush=True)
        tally.differ += 1
        return
    for _ in range(-(-count // _AT_ONCE)):
        version = random.choice([*table.versions, table.versions[-1]])
        conditions = Conditions(random, version.columns, version.sources)
        asked = [conditions.tree() for _ in range(_AT_ONCE)]
        settings = {
            "spark.sql.session.timeZone": random.choice(_ZONES),
            "spark.sql.ansi.enabled": random.choice(("true", "false")),
            EXECUTION: random.choice(("worker", "worker", "spark")),
            # With broadcasts, and adaptive or not, partitions are pruned by what a subquery finds.
            "spark.sql.autoBroadcastJoinThreshold": random.choice(("10m", "10m", "-1")),
            "spark.sql.adaptive.enabled": random.choice(("true", "false")),
        }
        with conf(spark, settings):
            for difference in _differences(spark, version, asked, random, tally):
                tally.differ += 1
                said = [f"{key}={value}" for key, value in settings.items()]
                print("\n".join([told, *table.ran, *said, difference, ""]), flush=True)
        tally.conditions += len(asked)
    spark.sql(f"DROP TABLE {table.name}")


def run_field(spark: SparkSession, folder: Path, seed: int, tally: Tally) -> None:
    """Count the partitions that conditions on one field keep."""
    random = Random(seed)  # noqa: S311 - to be repeated
    kind, field_ = some_field(random)
    of_field = OneField(spark, random, f"lance.torture.f{seed}", kind, field_)
    zone = random.choice(("UTC", "UTC", "Asia/Kolkata"))
    with conf(spark, {"spark.sql.session.timeZone": zone}):
        try:
            of_field.make(folder)
            found = list(of_field.misses(_PER_FIELD))
        except Exception:  # noqa: BLE001 - whatever it is, the seed has to be told
            found = [traceback.format_exc()[-2000:]]
    for miss in found:
        print(f"field {seed}: {field_}, c {kind}, {zone}\n{miss}\n", flush=True)
    tally.differ += len(found)
    tally.counted += _PER_FIELD
    spark.sql(f"DROP TABLE IF EXISTS {of_field.name}")


def _differences(
    spark: SparkSession, version: Version, asked: list[str], random: Random, tally: Tally
) -> Iterator[str]:
    meant = _meant(spark, version, asked)
    tally.failing += sum(ids is None for ids in meant.values())
    asked = [condition for condition in meant if meant[condition] is not None]
    found: dict[str, Counter[Any] | str] = _rows_by_condition(spark, version, asked)
    for condition in asked:
        if found[condition] != meant[condition]:
            ours, theirs = found[condition], meant[condition]
            if isinstance(ours, Counter) and isinstance(theirs, Counter):
                ours = (
                    f"too many: {sorted(ours - theirs)[:9]}, missing: {sorted(theirs - ours)[:9]}"
                )
            yield f"SELECT id FROM {version.table} WHERE {condition}\n{ours}"
    names = random.sample(list(version.columns), _MOST_COLUMNS)
    grouped = random.choice([*version.sources, *version.columns])
    conditions = Conditions(random, version.columns, version.sources)
    below = [conditions.subquery(version.view) for _ in range(_SUBQUERIES)]
    yield from _same(
        spark, version, [f"SELECT t.id FROM {{}} AS t WHERE {condition}" for condition in below]
    )
    chosen = random.sample(asked, min(2, len(asked)))
    # Those of a subquery choose partitions while the query runs, when the manifest has answered.
    yield from _aggregates(spark, version, [*chosen, *below[:2], "TRUE"], names, grouped)


def _meant(
    spark: SparkSession, version: Version, asked: list[str]
) -> dict[str, Counter[Any] | None]:
    """The rows that satisfy each condition as Spark computes it; None where it fails."""
    columns = ", ".join(f"({condition}) IS TRUE AS c{at}" for at, condition in enumerate(asked))
    try:
        rows = spark.sql(f"SELECT id, {columns} FROM {version.view}").collect()
    except PySparkException:
        if len(asked) == 1:
            return {asked[0]: None}
        half = len(asked) // 2
        return _meant(spark, version, asked[:half]) | _meant(spark, version, asked[half:])
    return {
        condition: Counter(row[0] for row in rows if row[at + 1])
        for at, condition in enumerate(asked)
    }


def _rows_by_condition(
    spark: SparkSession, version: Version, asked: list[str]
) -> dict[str, Counter[Any] | str]:
    """The rows that the table gives for each condition, or why it fails."""
    if not asked:
        return {}
    query = " UNION ALL ".join(
        f"SELECT {at} AS at, id FROM {version.table} WHERE {condition}"
        for at, condition in enumerate(asked)
    )
    try:
        rows = spark.sql(query).collect()
    except Exception as failure:  # noqa: BLE001 - whatever it is, the condition has to be told
        if len(asked) == 1:
            return {asked[0]: _failure(spark, version, asked[0], failure)}
        half = len(asked) // 2
        first = _rows_by_condition(spark, version, asked[:half])
        return first | _rows_by_condition(spark, version, asked[half:])
    counted: dict[int, Counter[object]] = {at: Counter() for at in range(len(asked))}
    for at, number in rows:
        counted[at][number] += 1
    return {condition: counted[at] for at, condition in enumerate(asked)}


def _failure(
    spark: SparkSession, version: Version, condition: str, failure: Exception
) -> Counter[object] | str:
    """Tell why a condition fails; where Spark's own filter does, too, count what it means."""
    try:
        spark.sql(f"SELECT id FROM {version.view} WHERE {condition}").collect()
    except PySparkException:
        return _meant(spark, version, [condition])[condition] or Counter()
    return f"{type(failure).__name__}: {str(failure)[:1500]}"


def _aggregates(
    spark: SparkSession, version: Version, asked: list[str], names: list[str], grouped: str
) -> Iterator[str]:
    """Aggregates, which the manifest may answer, beside the same of the Parquet copy."""
    listed = ", ".join(
        f"count({name}), {_text(f'min({name})', kind)}, {_text(f'max({name})', kind)}"
        for name in names
        if (kind := version.columns[name])
    )
    key = _text(grouped, version.columns[grouped])
    yield from _same(
        spark,
        version,
        [
            query
            for condition in asked
            for query in (
                f"SELECT count(*), {listed} FROM {{}} AS t WHERE {condition}",
                f"SELECT {key}, count(*) FROM {{}} AS t WHERE {condition} GROUP BY {grouped}",
                f"SELECT DISTINCT {key} FROM {{}} AS t WHERE {condition}",
            )
        ],
    )


def _same(spark: SparkSession, version: Version, queries: list[str]) -> Iterator[str]:
    """Run queries of the table beside the same of its Parquet copy; yield those that differ."""
    for query in queries:
        try:
            theirs = Counter(map(str, spark.sql(query.format(version.view)).collect()))
        except PySparkException:
            continue
        try:
            ours = Counter(map(str, spark.sql(query.format(version.table)).collect()))
        except Exception as failure:  # noqa: BLE001 - whatever it is, it has to be told
            yield f"{query.format(version.table)}\n{type(failure).__name__}: {failure}"[:1500]
            continue
        if ours != theirs:
            said = f"too many: {ours - theirs}, missing: {theirs - ours}"
            yield f"{query.format(version.table)}\n{said}"


def _text(expression: str, kind: str) -> str:
    """As text, since dates of year 1 and NaN do not compare in Python; the zeros are one."""
    if kind in ("FLOAT", "DOUBLE"):
        return f"CAST({expression} + CAST(0.0 AS {kind}) AS STRING)"
    return f"hex({expression})" if kind == "BINARY" else f"CAST({expression} AS STRING)"


if __name__ == "__main__":
    sys.exit(1 if main() else 0)
