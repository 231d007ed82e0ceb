"""Regular expressions at random: what workers match and replace is what Spark does."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pyarrow as pa
from tests.spark.assert_join import conf
from tests.spark.expressions.expression_rows import Expressions, edge_rows

from pennon.predicate.condition import Declined
from pennon.predicate.expressions import Semantics
from pennon.predicate.expressions.parsed_texts import JavaPattern

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

SIGNS = [
    "a",
    "b",
    "1",
    " ",
    "_",
    "%",
    "\\",
    "\r",
    "\n",
    "\r\n",
    "\u2028",
    "\x85",
    "é",
    "-",
    "😀",
    "٣",
]
ATOMS = ["a", "b", "1", "_", "%", " ", "é", ".", r"\d", r"\w", r"\s", r"\S", r"\D", r"\W", r"\."]
ATOMS += ["[ab]", "[^a]", "[^/b]", "[a-z_]", "[0-9-]", "[%é]", "😀", "-"]
TIMES = ["", "", "", "", "*", "+", "?", "{2}", "{1,2}", "*?", "+?", "??"]
PATTERNS = 90


def sequence(rng: random.Random, depth: int) -> str:
    return "".join(atom(rng, depth) + rng.choice(TIMES) for _ in range(rng.choice([1, 2, 2, 3])))


def atom(rng: random.Random, depth: int) -> str:
    if not depth or rng.random() < 0.7:
        return rng.choice(ATOMS)
    inner = "|".join(sequence(rng, depth - 1) for _ in range(rng.choice([1, 1, 2, 3])))
    return f"{rng.choice(['(', '(', '(?:'])}{inner})"


def calls(rng: random.Random) -> list[str]:
    """Write calls of those random patterns that are taken."""
    found: list[str] = []
    while len(found) < PATTERNS:
        body = "|".join(sequence(rng, 2) for _ in range(rng.choice([1, 1, 1, 2])))
        text = f"{rng.choice(['', '', '^'])}{body}{rng.choice(['', '', '$'])}"
        literal = text.replace("\\", "\\\\")
        try:
            pattern = JavaPattern(text)
            found.append(f"s RLIKE '{literal}'")
            for group in range(pattern.groups + 1):
                pattern.extraction(group)
                found.append(f"regexp_extract(s, '{literal}', {group})")
            for replacement in ("<$0>", "$1-"):
                pattern.replacement(replacement)
                found.append(f"regexp_replace(s, '{literal}', '{replacement}')")
        except Declined:
            continue
    return found


def test_random_patterns_match_as_in_spark(spark: SparkSession, tmp_path: Path) -> None:
    rng = random.Random(14)  # noqa: S311 - patterns, not secrets
    texts = ["".join(rng.choice(SIGNS) for _ in range(rng.randrange(7))) for _ in range(400)]
    rows = edge_rows(len(texts))
    rows = rows.set_column(rows.column_names.index("s"), "s", pa.array(texts))
    session = {"spark.sql.ansi.enabled": "true", "spark.sql.session.timeZone": "UTC"}
    with conf(spark, session | {"spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED"}):
        over = Expressions.over(spark, rows, tmp_path)
        compared = over.compare(calls(rng), Semantics(ansi=True, is_utc=True))
    assert compared.different == {}
    assert compared.declined == {}
