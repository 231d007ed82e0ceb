"""Expressions that workers compute, beside the answers that Spark was recorded to give."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.pushdown.spark_answers import RECORDED, golden_lines, recorded

from pennon.starting_jvm import started_by, starting_jvm

BEYOND = "beyond_years.arrow.xz"
"""Times beyond DataFusion's calendar: what workers do not compute of them is refused."""
FILES = sorted(RECORDED.glob("*/*.arrow.xz"))


def sessions() -> Iterator[object]:
    """Give the files with their sessions: one session of each tells most of what is wrong."""
    for path in FILES:
        for at, session in enumerate(recorded(path)):
            is_quick = not at and path.name not in ("zones.arrow.xz", "far_years.arrow.xz", BEYOND)
            name = f"{path.parent.name} {path.stem}, {session}"
            yield pytest.param(path, session, id=name, marks=() if is_quick else pytest.mark.slow)


SESSIONS = list(sessions())


@pytest.fixture
def answering_spark(path: Path) -> Iterator[None]:
    """Let workers answer as those of the recorded Spark."""
    started_by(replace(starting_jvm(), spark=path.parent.name))
    yield
    started_by(None)


@pytest.mark.usefixtures("answering_spark")
@pytest.mark.parametrize(("path", "session"), SESSIONS)
def test_expressions_give_the_values_and_errors_of_spark(path: Path, session: str) -> None:
    answers, semantics = recorded(path)[session]
    compared = answers.compare(semantics)
    refused = {text for text, why in compared.different.items() if "FragmentCalendar" in str(why)}
    if path.name == BEYOND:
        assert len(refused) > len(answers.answers) // 3
    else:  # a BIGINT may be the seconds of any year
        assert all("from_unixtime(" in text for text in refused)
    assert compared.different.keys() == refused
    if semantics.ansi and semantics.is_utc:
        left = set(golden_lines()) - set(golden_lines(declined=False))
        assert set(compared.declined) == left & set(answers.answers)


@pytest.mark.parametrize("path", [path for path in FILES if path.stem == "edges.arrow"])
def test_every_golden_expression_is_recorded(path: Path) -> None:
    """Else `make golden` records it."""
    for answers, _ in recorded(path).values():
        assert set(golden_lines()) == set(answers.answers)
