"""Expressions that workers compute, beside the answers that Spark was recorded to give."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.pushdown.spark_answers import RECORDED, golden_lines, recorded

from pennon.starting_jvm import started_by, starting_jvm

FILES = sorted(RECORDED.glob("*/*.arrow.xz"))


@pytest.fixture
def answering_spark(path: Path) -> Iterator[None]:
    """Let workers answer as those of the recorded Spark."""
    started_by(replace(starting_jvm(), spark=path.parent.name))
    yield
    started_by(None)


@pytest.mark.usefixtures("answering_spark")
@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name} {path.stem}")
def test_expressions_give_the_values_and_errors_of_spark(path: Path) -> None:
    left = set(golden_lines()) - set(golden_lines(declined=False))
    for session, (answers, semantics) in recorded(path).items():
        compared = answers.compare(semantics)
        assert compared.different == {}, session
        if semantics.ansi and semantics.is_utc:
            assert set(compared.declined) == left & set(answers.answers)


@pytest.mark.parametrize(
    "path", RECORDED.glob("*/edges.arrow.xz"), ids=lambda path: path.parent.name
)
def test_every_golden_expression_is_recorded(path: Path) -> None:
    """Else `make golden` records it."""
    for answers, _ in recorded(path).values():
        assert set(golden_lines()) == set(answers.answers)
