"""Every file of sql-examples/ runs as it stands and returns the rows that its comments state."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import PySparkException

from pennon.cli.query_run import statements_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FILES = sorted((Path(__file__).parent.parent / "sql-examples").glob("*.sql"))


@dataclass(frozen=True)
class Step:
    """One statement with what the comments behind it state."""

    sql: str
    rows: tuple[str, ...]
    condition: str | None


def steps_of(text: str) -> list[Step]:
    """Read statements and expectations; an expectation stands behind its statement's ``;``."""
    steps = []
    pieces = re.split(r";[ \t]*\n", text)
    for place, piece in enumerate(pieces):
        behind = pieces[place + 1].lstrip("\n").splitlines() if place + 1 < len(pieces) else []
        stated = [line for line in behind if line.startswith(("-->", "--!"))]
        conditions = [line[3:].strip() for line in stated if line.startswith("--!")]
        rows = tuple(line[3:].strip() for line in stated if line.startswith("-->"))
        steps += [
            Step(statement.sql, rows, conditions[0] if conditions else None)
            for statement in statements_of(piece)
        ]
    return steps


def printed(row: tuple[object, ...]) -> str:
    shown = ("NULL" if value is None else str(value) for value in row)
    return " | ".join({"True": "true", "False": "false"}.get(text, text) for text in shown)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_example_returns_the_rows_that_it_states(path: Path, spark: SparkSession) -> None:
    """It leaves nothing behind either, so that it may run again."""
    before = spark.sql("SHOW NAMESPACES IN lance").collect()
    for step in steps_of(path.read_text(encoding="utf-8")):
        if step.condition is not None:
            with pytest.raises(PySparkException, match=re.escape(step.condition)):
                spark.sql(step.sql).collect()
            continue
        rows = tuple(printed(row) for row in spark.sql(step.sql).collect())
        if step.rows:
            assert rows == step.rows, step.sql
    assert spark.sql("SHOW NAMESPACES IN lance").collect() == before


def test_examples_state_rows_and_errors() -> None:
    """The reader above sees the expectations: a change of their form must not empty the test."""
    steps = [step for path in FILES for step in steps_of(path.read_text(encoding="utf-8"))]
    assert len(FILES) >= 6
    assert sum(bool(step.rows) for step in steps) >= 15
    assert sum(step.condition is not None for step in steps) >= 3
