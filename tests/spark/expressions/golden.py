"""What Spark answers for the golden expressions, and others at the ends of what is read or rounded.

``make golden`` records it anew: for another version of Spark, another line, or another text of the
shim. ``tests/pushdown/test_recorded_answers.py`` compares workers with it, without Spark.
"""

from __future__ import annotations

import random
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyspark
from tests.pushdown.spark_answers import RECORDED, golden_lines, record
from tests.spark.assert_join import conf
from tests.spark.expressions.spark_expressions import Expressions, settings_of, zone_offsets_of
from tests.strategies import edge_texts
from tests.strategies.edge_values import VALUES, edge_rows, random_rows
from tests.torture_session import torture_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

UTC: Final = ((True, "UTC"), (False, "UTC"))
ZONES: Final = ((True, "America/New_York"), (False, "Europe/Berlin"))
"""ANSI or not, and the session's zone."""
# What reads or makes a timestamp with a zone.
_IN_A_ZONE: Final = re.compile(r"\bts\b|timestamp|unix|date_format", re.IGNORECASE)
_NUMBERS: Final = ("TINYINT", "SMALLINT", "INT", "BIGINT", "DOUBLE")
# Rows for which expressions are an error under ANSI, of which no other row is.
_FAILING: Final[Sequence[Mapping[str, Any]]] = [
    *({"i32": 2**31 - 1}, {"i32": 2**16}, {"i64": -(2**63)}, {"i32": -(2**31)}, {"i8": -128}),
    *({"i32": 128}, {"dec": Decimal("32768.00")}, {"dec": Decimal("999.95")}),
    *({"f64": 2147483648.0}, {"f64": -9.3e18}, {"f64": 9.3e18}, {"s": "12.5"}, {"s": "maybe"}),
    *({"s": "2021-02-29"}, {"s": "2021-1-1"}, {"s": "2021-02-30"}, {"s": "a:b"}),
    *({"wide": Decimal("12345678901234567890.0")}, {"i32": 1, "i8": 0}, {"f64": 1.0, "nf": -0.0}),
    {"dec": Decimal("1.00"), "dec2": Decimal("0.00")},
    *({"i32": 1, "n32": 0}, {"i64": -(2**63), "n64": -1}),
]


@dataclass(frozen=True)
class Recording:
    """Expressions over rows, in some sessions."""

    rows: pa.Table
    lines: Sequence[str]
    sessions: Sequence[tuple[bool, str]] = UTC


def recordings() -> dict[str, Recording]:
    """Give all of them by their names."""
    rng = np.random.default_rng(11)
    rounded = {f"h{digits}": edge_texts.halves(rng, digits, 800) for digits in (0, 1, 2, 4, 6, 12)}
    sizes = [(16, 2), (22, 2), (20, 18), (38, 0), (38, 10), (38, 30)]
    wide = {f"d{at}": edge_texts.decimals(rng, *size, 800) for at, size in enumerate(sizes)}
    calls = [f"round({name}, {name[1:]})" for name in rounded]
    calls += ["round(h6, 5)", "round(h2, 3)", "round(h12, 0)"]
    calls += [f"CAST({name} AS DOUBLE)" for name in wide]
    numbers = edge_texts.scrambled([*edge_texts.NUMBERS, *edge_texts.FRACTIONS], 200)
    dates = edge_texts.scrambled(edge_texts.DATES, 150) + edge_texts.texts_of_patterns(20)
    quoted = (pattern.replace("'", "\\'") for pattern in edge_texts.PATTERNS)
    signs = random.Random(14)  # noqa: S311 - texts, not secrets
    texts = ["".join(signs.choices(edge_texts.SIGNS, k=signs.randrange(7))) for _ in range(120)]
    casts = [f"{cast}(s AS {{}})" for cast in ("CAST", "TRY_CAST")]
    far = ["CAST(d AS STRING)", "CAST(CAST(ntz AS DATE) AS STRING)", "CAST(ts AS DATE)"]
    in_zones = [line for line in golden_lines() if _IN_A_ZONE.search(line)]
    edges = pa.concat_tables([edge_rows(), failing_rows(), random_rows(41, 100)])
    return {
        "edges": Recording(edges, golden_lines()),
        "zones": Recording(edges, in_zones, ZONES),
        "far_years": Recording(
            far_years(90_000_001, 94_900_000), [*golden_lines("times"), *far], UTC[:1]
        ),
        "beyond_years": Recording(
            far_years(95_100_000, 104_000_123), [*golden_lines("times"), *far], UTC[:1]
        ),
        "texts_of_numbers": Recording(
            pa.table({"s": numbers}), [cast.format(kind) for kind in _NUMBERS for cast in casts]
        ),
        "texts_of_dates": Recording(
            pa.table({"s": dates}),
            [cast.format("DATE") for cast in casts]
            + [f"to_timestamp(s, '{pattern}')" for pattern in quoted],
        ),
        "rounding": Recording(pa.table({**rounded, **wide}), calls, UTC[:1]),
        "java_patterns": Recording(
            pa.table({"s": texts}), edge_texts.pattern_calls(signs, 150), UTC[:1]
        ),
    }


def failing_rows() -> pa.Table:
    columns = {
        name: pa.array([row.get(name) for row in _FAILING], kind)
        for name, (kind, _) in VALUES.items()
    }
    return pa.table(columns)


def far_years(*days: int) -> pa.Table:
    """Give rows of days before and after 1970: of years that Python has not."""
    both = [day * sign for day in days for sign in (1, -1)]
    micros = [day * 86_400_000_000 + at * 3_723_456_789 for at, day in enumerate(both)]
    rows = edge_rows(len(both) + 1)
    for name, values in (("d", both), ("ntz", micros), ("ts", micros)):
        kind = pa.int32() if name == "d" else pa.int64()
        far = pa.array([*values, None], kind).cast(VALUES[name][0])
        rows = rows.set_column(rows.column_names.index(name), name, far)
    return rows


def main() -> int:
    """Record everything."""
    folder = RECORDED / pyspark.__version__
    folder.mkdir(parents=True, exist_ok=True)
    with torture_session({}) as (spark, root):
        spark.sql("SHOW NAMESPACES IN lance")
        for name, recording in recordings().items():
            path = folder / f"{name}.arrow.xz"
            answered(spark, recording, Path(root) / name, path)
            print(f"{path.stat().st_size:,} bytes of {name}", flush=True)
    return 0


def answered(spark: SparkSession, recording: Recording, root: Path, path: Path) -> None:
    sessions = {}
    for ansi, zone in recording.sessions:
        with conf(spark, settings_of(ansi=ansi, zone=zone)):
            answers = Expressions.over(spark, recording.rows, root).answers(recording.lines)
        offsets = () if zone == "UTC" else zone_offsets_of(spark, zone)
        stated = {"ansi": ansi, "is_utc": zone == "UTC", "zone_offsets": offsets}
        sessions[f"ANSI {ansi}, {zone}"] = answers, stated
    record(path, sessions)


if __name__ == "__main__":
    sys.exit(main())
