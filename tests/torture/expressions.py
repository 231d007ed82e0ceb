"""Expressions that workers compute, beside Spark's values and errors, on random rows.

Run it with ``make torture-expressions N=100000``: all expressions that have golden values, with
ANSI and without, in UTC and in zones with gaps. A portion of rows has a seed of its own, which is
printed and repeats it.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from tests.pushdown.spark_answers import golden_lines
from tests.spark.assert_join import conf
from tests.spark.expressions.golden import UTC, ZONES
from tests.spark.expressions.spark_expressions import Expressions, settings_of, zone_offsets_of
from tests.strategies.edge_texts import pattern_calls
from tests.strategies.edge_values import random_rows
from tests.torture_session import torture_session

from pennon.predicate.expressions import Semantics

_PORTION: Final = 5_000


def main() -> int:
    """Compare the rows that the command line asks for."""
    parser = argparse.ArgumentParser(prog="make torture-expressions ARGS=…")
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    options = parser.parse_args()
    failed = 0
    with torture_session({}) as (spark, folder):
        for number in range(-(-options.rows // _PORTION)):
            seed, count = options.seed + number, min(_PORTION, options.rows - number * _PORTION)
            lines = [*golden_lines(), *pattern_calls(random.Random(seed), 100)]  # noqa: S311
            for ansi, zone in (*UTC, *ZONES):
                started = time.monotonic()
                place = Path(tempfile.mkdtemp(dir=folder))
                with conf(spark, settings_of(ansi=ansi, zone=zone)):
                    over = Expressions.over(spark, random_rows(seed, count), place)
                    offsets = () if zone == "UTC" else zone_offsets_of(spark, zone)
                    semantics = Semantics(
                        ansi, zone == "UTC", zone_offsets=offsets, in_fragments=True
                    )
                    compared = over.compare(lines, semantics)
                seconds = time.monotonic() - started
                print(f"{count} rows, ANSI {ansi}, {zone}, in {seconds:.0f} s", flush=True)
                for expression, rows in compared.different.items():
                    print(f"--seed {seed} --rows {count}: {expression}: {rows!a}", flush=True)
                failed += len(compared.different)
    print(f"seed {options.seed}: {failed} expressions differ")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
