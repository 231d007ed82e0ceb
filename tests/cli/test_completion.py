"""What Tab completes at the prompt of ``pennon sql``, and what a pager shows."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import pennon
from pennon.cli.output import pager_of
from pennon.cli.prompt import LakeNames, completions
from pennon.namespace.lake import Lake


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> LakeNames:
    lake = pennon.connect(tmp_path_factory.mktemp("lake"))
    lake.create_namespace("shop")
    orders = pa.schema({"order_id": pa.int64(), "ordered_at": pa.date32(), "a b": pa.utf8()})
    lake.create_table("shop.orders", orders)
    lake.create_table("shop.people", pa.schema({"person_id": pa.int64()}))
    return LakeNames("lance", lambda: lake)


@pytest.mark.parametrize(
    ("before", "behind", "expected"),
    [
        ("SELECT * FROM lance.shop.o", "", ["lance.shop.orders"]),
        ("INSERT INTO la", "", ["lance.shop.orders", "lance.shop.people"]),
        ("SELECT ord", " FROM lance.shop.orders", ["order_id", "ordered_at", "orders", "ORDER"]),
        ("SELECT pe", " FROM lance.shop.orders o, x JOIN lance.shop.people p", ["person_id"]),
        ("SELECT o.a", " FROM lance.shop.orders AS o", ["o.`a b`"]),
        ("SELECT o.`a", " FROM lance.shop.orders o", ["o.`a b`"]),
        ("SELECT q.o", " FROM lance.shop.orders o", []),
        (
            "CALL lance.system.roll",
            "",
            ["lance.system.rollback(", "lance.system.rollback_to_timestamp("],
        ),
        ("SELECT order_id FROM lance.shop.orders WH", "", ["WHERE", "WHEN"]),
    ],
)
def test_what_can_stand_there_is_completed(
    names: LakeNames, before: str, behind: str, expected: list[str]
) -> None:
    found = completions(before + behind, before, names)
    assert sorted(text for text, _ in found) == sorted(expected)
    typed = before.rpartition(" ")[2]
    assert all(taken == len(typed) for _, taken in found)


def test_a_lake_that_cannot_be_listed_completes_keywords_and_is_not_asked_for_each_key(
    tmp_path: Path,
) -> None:
    asked: list[int] = []

    def lake() -> Lake:
        asked.append(1)
        return pennon.connect(tmp_path / "file" / "lake")

    (tmp_path / "file").write_text("no folder")
    names = LakeNames("lance", lake)
    assert [text for text, _ in completions("SELECT * FROM SEL", "SELECT * FROM SEL", names)] == [
        "SELECT"
    ]
    completions("DELETE FROM l", "DELETE FROM l", names)
    assert len(asked) == 1


def test_a_pager_shows_what_is_larger_than_the_terminal_and_folds_no_line() -> None:
    assert pager_of(["a"] * 22, (80, 24), {"TERM": "xterm"}) == []
    assert pager_of(["a"] * 23, (80, 24), {"TERM": "dumb"}) == []
    assert pager_of(["a"] * 23, (80, 24), {"TERM": "xterm", "PAGER": ""}) == []
    assert pager_of(["a"] * 23, (80, 24), {"TERM": "xterm", "PAGER": "no-such-pager"}) == []
    assert pager_of(["東" * 41], (80, 24), {"TERM": "xterm", "PAGER": "cat -u"}) == ["cat", "-u"]
