"""A portion of ``make torture-races``: what raced left what some serial order leaves."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.torture.races.model import SCHEMA, State, Statement, serial_orders
from tests.torture.races.nested_race import nested_race
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


def test_a_statement_that_goes_on_around_two_others_has_its_place_in_a_serial_order(
    tmp_path: Path, contenders: Contenders
) -> None:
    for seed in (111, *range(8)):  # by the first a dynamic overwrite once left a row too many
        choose = random.Random(seed)  # noqa: S311 - to be repeated
        root = tmp_path / str(seed)
        root.mkdir()
        race = nested_race(choose, root)
        ended = contenders.run(race, root, choose)
        assert problems(race, ended, root) == [], (seed, race.statements, ended.log)


def test_only_rows_made_of_the_table_come_before_what_a_finished_statement_saw() -> None:
    appended = {"uid": 1, "part": "a", "half": 0, "v": 4}
    append: Statement = {"kind": "append", "number": 1, "rows": [appended]}
    total: Statement = {"kind": "append", "number": 2, "read": [], "makes": "total", "part": "b"}
    empty = State((), tuple(SCHEMA.names), (), {})
    for part, is_idle in (("b", True), ("a", False)):
        where = [("part", "=", part)]
        update: Statement = {
            "kind": "update",
            "number": 3,
            "column": "v",
            "value": 9,
            "where": where,
        }
        beside_total = serial_orders(empty, [append, total, update], [(0, 2)])
        untouched = [{row["uid"]: row["v"] for row in state.rows} for state in beside_total]
        assert ({1: 4, 2000: 0} in untouched) == is_idle
        alone = serial_orders(empty, [append, update], [(0, 1)])
        assert [row["v"] for state in alone for row in state.rows] == [4 if is_idle else 9]
