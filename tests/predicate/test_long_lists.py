"""Long lists of a text: one leaf of the tree, and the same text when it is written again."""

from __future__ import annotations

from datetime import date, timedelta

import pyarrow as pa
import pytest
from sqlglot import column, exp

from pennon.execution.engine import rows_over
from pennon.planning.binding.bind import bind
from pennon.planning.binding.bound_predicate import Compared
from pennon.predicate.condition import Comparison, Operator, condition
from pennon.predicate.dialect import DataFusion, read_condition
from pennon.predicate.parse import parse_predicate
from pennon.predicate.values.literals import LiteralList
from pennon.predicate.values.long_lists import with_short_lists, without_long_lists

NUMBERS = ", ".join(map(str, range(60)))
DAYS = [date(2023, 12, 30) + timedelta(days=number) for number in range(90)]
LISTED_DAYS = ", ".join(f"DATE '{day}'" for day in DAYS)


@pytest.mark.parametrize(
    "values",
    [
        pa.array([*range(-40, 40), 1 << 40], pa.int64()),
        pa.array([f"é{number}, (" for number in range(60)]),
        pa.array(DAYS, pa.date32()),
        # The first and the last day that Python has.
        pa.array([*range(-719_162, -719_100), *range(2_932_850, 2_932_897)], pa.date32()),
    ],
    ids=str,
)
def test_what_the_dialect_wrote_is_read_as_one_leaf(values: pa.Array) -> None:
    written = condition(Comparison(Operator.IN, tuple(values)), column("k"))
    text = f"`a` > 5 AND NOT ({written.sql(dialect=DataFusion)})"
    tree = read_condition(text)
    listed = tree.find(LiteralList)
    assert listed is not None
    assert [value.as_py() for value in listed.literals.scalars] == values.to_pylist()
    assert tree.sql(dialect=DataFusion) == text
    assert tree.transform(lambda node: node).sql(dialect=DataFusion) == text


@pytest.mark.parametrize(
    "text",
    [
        f"`s` = 'k IN ({NUMBERS})'",
        # A backslash is a sign as others: the second text begins behind `AND`.
        rf"`s` = 'a\' AND `t` = 'k IN ({NUMBERS})'",
        f"`s` = 'it''s' AND `k IN ({NUMBERS})` = 1",
        "`k` IN ('it''s', " + ", ".join(f"'{number}'" for number in range(60)) + ")",
    ],
    ids=["text", "backslash", "name", "quote"],
)
def test_what_is_no_list_is_read_as_it_stands(text: str) -> None:
    tree = read_condition(text)
    assert tree.find(LiteralList) is None
    assert tree.sql(dialect=DataFusion) == text


def test_days_are_bound_as_one_by_one() -> None:
    schema = pa.schema([("d", pa.date32()), ("t", pa.timestamp("us"))])
    for name in ("d", "t"):
        members = bind(parse_predicate(f"{name} IN ({LISTED_DAYS})"), schema)
        one = bind(parse_predicate(f"{name} IN (DATE '{DAYS[0]}', DATE '{DAYS[1]}')"), schema)
        assert isinstance(members, Compared)
        assert isinstance(one, Compared)
        assert members.comparison.literals[:2] == one.comparison.literals
        assert len(members.comparison.literals) == len(DAYS)
    assert with_short_lists(f"d IN ({LISTED_DAYS})").count("DATE") == 3


def test_days_that_python_has_not_are_no_error() -> None:
    far = pa.array([*range(-719_200, -719_140), *range(2_932_860, 2_932_900)], pa.date32())
    written = condition(Comparison(Operator.IN, tuple(far)), column("d")).sql(dialect=DataFusion)
    assert written.count("arrow_cast") == 38 + 3
    found = rows_over(f"SELECT d FROM t WHERE {written}", {"t": pa.table({"d": far})})
    assert found["d"].combine_chunks() == far
    first = ", ".join(f"DATE '0000-{day:%m-%d}'" for day in DAYS)
    assert "-719528, 'Date32'" in read_condition(f"`d` IN ({first})").sql(dialect=DataFusion)


def test_a_day_that_no_calendar_has_is_left_to_the_parser() -> None:
    text = f"d IN ({LISTED_DAYS}, DATE '2024-02-30')"
    assert without_long_lists(text) == (text, [])
    tree = read_condition(text)
    assert isinstance(tree, exp.In)
    assert len(tree.expressions) == len(DAYS) + 1
