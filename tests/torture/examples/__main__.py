"""Spark's own examples of its functions, with columns and other literals in them.

The literals of an example become columns, one or all of them, and literals of other examples; each
expression is computed over one table by workers and by Spark. Run it with
``make torture-examples N=5000``; a seed repeats it. An example is drawn no more once its variations
are left to Spark. Of the variations of an example that differ the first one is printed, and any
shorter one.
"""

from __future__ import annotations

import argparse
import logging
import random
import shlex
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from tests.spark.assert_join import ONE_TASK
from tests.torture.examples.comparison import SESSIONS, Comparison, Difference
from tests.torture.examples.example_rows import example_rows, make_table
from tests.torture.examples.literals import Example, examples_of_spark
from tests.torture.examples.variations import Variations
from tests.torture_session import NOT_COMPILED, torture_session

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import SparkSession

_PORTION: Final = 60
# So many variations that are left to Spark say that workers do not take a function.
_TRIES: Final = 6


@dataclass(slots=True)
class Tally:
    """What came out so far, and by example the shortest expression that differs."""

    seed: int
    compared: int = 0
    left: int = 0
    unplanned: int = 0
    differing: int = 0
    fragments: set[str] = field(default_factory=set)
    shortest: dict[str, Difference] = field(default_factory=dict)

    def add(self, example: Example, difference: Difference) -> None:
        self.differing += 1
        known = self.shortest.get(example.text)
        if known is None or len(difference.expression) < len(known.expression):
            self.shortest[example.text] = difference
            text = shlex.quote(difference.expression.removeprefix("WHERE "))
            again = f"{sys.executable} -m tests.torture.examples --seed {self.seed} --only {text}"
            print(f"{difference}\n  again: {again}", flush=True)

    def __str__(self) -> str:
        return (
            f"{self.compared} expressions compared as fragments, {self.left} left to Spark, "
            f"{self.unplanned} no expressions; {self.differing} differ, of "
            f"{len(self.shortest)} examples"
        )


class Draws:
    """The variations of examples, of one after the other, while workers take any of them."""

    def __init__(self, examples: Sequence[Example], rng: random.Random) -> None:
        variations = Variations(examples, rng)
        self._made = {example: variations.of(example) for example in examples}
        self._refused: Counter[str] = Counter()
        self._order = self._endless(rng.sample(examples, len(examples)))

    def portion(self, count: int) -> dict[str, Example]:
        """Draw the next expressions, and say which example each is of."""
        drawn: dict[str, Example] = {}
        for text, example in self._order:
            drawn.setdefault(text, example)
            if len(drawn) == count:
                break
        return drawn

    def count(self, example: Example, *, is_fragment: bool) -> None:
        """Remember what became of a variation."""
        self._refused[example.scope] += -3 * _TRIES if is_fragment else 1

    def _endless(self, examples: list[Example]) -> Iterator[tuple[str, Example]]:
        while examples:
            for example in list(examples):
                text = next(self._made[example], None)
                if text is None or self._refused[example.scope] >= _TRIES:
                    examples.remove(example)
                else:
                    yield text, example


def run(
    spark: SparkSession,
    table: str,
    seed: int,
    queries: int,
    *,
    part: str = "",
    only: str | None = None,
) -> Tally:
    """Compare as many expressions as are asked for, or the only one in every session.

    Args:
        spark: The session.
        table: The name of a table of Pennon that is made here.
        seed: What repeats it.
        queries: How many variations are drawn.
        part: Signs that an example has to have, as a function's name.
        only: An expression over the columns of the seed's table.
    """
    rng = random.Random(seed)  # noqa: S311 - rows, not secrets
    examples = examples_of_spark(spark)
    rows = example_rows(examples, rng)
    make_table(spark, table, rows)
    comparison, tally = Comparison(spark, table, rows), Tally(seed)
    if only is not None:
        for session in SESSIONS:
            compare(tally, comparison, {only: Example(only, "", ())}, session)
        return tally
    drawn_from = [example for example in examples if part in example.text]
    draws, started = Draws(drawn_from, rng), time.monotonic()
    for first in range(0, queries, _PORTION):
        drawn = draws.portion(min(_PORTION, queries - first))
        fragments = compare(tally, comparison, drawn, rng.choice(SESSIONS))
        for text, example in drawn.items():
            draws.count(example, is_fragment=text in fragments)
        if first // _PORTION % 10 == 9:
            print(f"{time.monotonic() - started:.0f} s: {tally}", flush=True)
    return tally


def compare(
    tally: Tally, comparison: Comparison, drawn: dict[str, Example], session: tuple[bool, str]
) -> set[str]:
    """Compare expressions in a session, and give those that workers computed."""
    ansi, zone = session
    outcome = comparison.compare(list(drawn), ansi=ansi, zone=zone)
    tally.compared += len(outcome.fragments)
    tally.left += len(outcome.left)
    tally.unplanned += len(drawn) - len(outcome.fragments) - len(outcome.left)
    for difference in outcome.differences:
        tally.add(drawn[difference.expression.removeprefix("WHERE ")], difference)
    return outcome.fragments


def main() -> int:
    """Compare what the command line asks for."""
    parser = argparse.ArgumentParser(prog="make torture-examples ARGS=…")
    parser.add_argument("--queries", type=int, default=5_000, help="how many expressions are drawn")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--part", default="", help="draw from examples with these signs, as instr(")
    parser.add_argument("--only", help="run just this expression, in every session")
    options = parser.parse_args()
    with torture_session({**NOT_COMPILED, **ONE_TASK}) as (spark, _):
        # Half of what is compared are queries that fail: nobody has to read of them.
        logging.getLogger("SQLQueryContextLogger").disabled = True
        spark.sparkContext.setLogLevel("OFF")
        spark.sql("CREATE NAMESPACE lance.torture")
        chosen = {"part": options.part, "only": options.only}
        tally = run(spark, "lance.torture.examples", options.seed, options.queries, **chosen)
    print(f"seed {options.seed}: {tally}")
    return 1 if tally.differing else 0


if __name__ == "__main__":
    sys.exit(main())
