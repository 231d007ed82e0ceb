"""Casts around the columns of a join: only those that keep the value say anything of partitions."""

from __future__ import annotations

import pytest

from pennon.spec.functions import ColumnComparison, ComparedColumn


@pytest.mark.parametrize(
    ("types", "in_utc", "keeps_value"),
    [
        ("long", False, True),
        ("byte short", False, True),
        ("byte integer long", False, True),
        ("long integer", True, False),
        ("long integer long", True, False),
        ("integer double", True, False),
        ("integer decimal(10,0)", True, False),
        ("decimal(9,2) decimal(18,2)", False, True),
        ("decimal(9,2) decimal(18,4)", True, False),
        ("decimal(18,2) decimal(9,2)", True, False),
        ("date timestamp_ntz", False, True),
        ("date timestamp", True, True),
        ("date timestamp", False, False),
        ("timestamp_ntz timestamp", True, True),
        ("timestamp_ntz timestamp", False, False),
        ("date timestamp_ntz timestamp", True, True),
        ("timestamp date", True, False),
        ("timestamp timestamp_ntz", True, False),
        ("string date", True, False),
        ("integer string", True, False),
    ],
)
def test_only_casts_that_keep_the_value_are_seen_through(
    types: str,
    in_utc: bool,  # noqa: FBT001 - a case of the test
    keeps_value: bool,  # noqa: FBT001
) -> None:
    names = tuple(types.split())
    column, plain = ComparedColumn(names, in_utc), ComparedColumn(names[-1:])
    assert column.keeps_value is keeps_value
    assert ColumnComparison(column, plain).equates is keeps_value
    assert ColumnComparison(plain, column).equates is keeps_value


def test_a_date_and_a_timestamp_are_compared_as_midnights() -> None:
    date = ComparedColumn(("date", "timestamp"))
    moment, other = ComparedColumn(("timestamp",)), ComparedColumn(("timestamp_ntz",))
    assert ColumnComparison(date, moment).is_of_midnights
    assert ColumnComparison(moment, date).is_of_midnights
    assert not ColumnComparison(moment, other).is_of_midnights
    assert not ColumnComparison(date, ComparedColumn(("date",))).is_of_midnights
