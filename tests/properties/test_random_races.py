"""A portion of ``make torture-races``: what raced left what some serial order leaves."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.torture.races.race import Contenders, problems
from tests.torture.races.random_race import random_race


@pytest.fixture(scope="module")
def contenders() -> Iterator[Contenders]:
    with Contenders(3) as processes:
        yield processes


@pytest.mark.parametrize("is_plain", [False, True], ids=["partitioned", "plain"])
def test_statements_that_race_leave_the_rows_of_a_serial_order(
    tmp_path: Path, contenders: Contenders, *, is_plain: bool
) -> None:
    for seed in range(8):
        choose = random.Random(seed)  # noqa: S311 - to be repeated
        root = tmp_path / str(seed)
        root.mkdir()
        race = random_race(choose, root, is_plain=is_plain)
        ended = contenders.run(race, root, choose)
        assert problems(race, ended, root) == [], (seed, race.statements, ended.log)
