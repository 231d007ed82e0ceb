"""Lists of many values: read without the parser, and meaning what short lists mean."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import pennon
from pennon.planning import explain
from pennon.predicate.dialect import DataFusion
from pennon.predicate.parse import parse_predicate

if TYPE_CHECKING:
    from collections.abc import Callable

ROWS: list[dict[str, Any]] = [
    {"id": at, "k": None if at % 7 == 0 else at % 40, "s": None if at % 5 == 0 else f"t{at % 9}"}
    for at in range(-60, 120)
]
SCHEMA = pa.schema([("id", pa.int64()), ("k", pa.int16()), ("s", pa.string())])
NUMBERS = [*range(-30, 90, 2), 100_000, -(1 << 40), *range(-30, 90, 2)]
TEXTS = [f"t{at}" for at in range(3, 60)]
IN_NUMBERS = f"IN ({', '.join(map(str, NUMBERS))})"
OTHERS = [*range(-30, 90, 3)] * 2
IN_OTHERS = f"IN ({', '.join(map(str, OTHERS))})"
IN_TEXTS = "in ( " + " ,".join(f"'{text}'" for text in TEXTS) + ")"


@pytest.fixture(scope="module")
def namespace(tmp_path_factory: pytest.TempPathFactory) -> pennon.PartitionedNamespace:
    place = tmp_path_factory.mktemp("lists") / "n"
    made = pennon.create(str(place), SCHEMA, ["k", "bucket(4, id)", "truncate(s, 1)"])
    made.append(pa.Table.from_pylist(ROWS, SCHEMA))
    return pennon.open(str(place))


CASES: dict[str, Callable[[dict], bool | None]] = {
    f"id {IN_NUMBERS}": lambda row: row["id"] in NUMBERS,
    f"id NOT {IN_NUMBERS}": lambda row: row["id"] not in NUMBERS,
    f"k {IN_NUMBERS}": lambda row: row["k"] in NUMBERS,
    f"NOT (k {IN_NUMBERS})": lambda row: row["k"] is not None and row["k"] not in NUMBERS,
    f"k {IN_NUMBERS[:-1]}, NULL)": lambda row: row["k"] in NUMBERS,
    f"k NOT {IN_NUMBERS[:-1]}, NULL)": lambda row: row is None,
    f"s {IN_TEXTS} AND id {IN_NUMBERS}": lambda row: row["s"] in TEXTS and row["id"] in NUMBERS,
    f"s NOT {IN_TEXTS} OR k {IN_NUMBERS}": lambda row: (
        (row["s"] is not None and row["s"] not in TEXTS) or row["k"] in NUMBERS
    ),
    f"k {IN_NUMBERS} AND k NOT {IN_OTHERS}": lambda row: (
        row["k"] in NUMBERS and row["k"] not in OTHERS
    ),
    f"k % 50 {IN_NUMBERS}": lambda row: row["k"] is not None and row["k"] in NUMBERS,
    f"lower(s) {IN_TEXTS}": lambda row: row["s"] in TEXTS,
    f"s = 'k {IN_NUMBERS}'": lambda row: row is None,
    f"s <> 'it''s k {IN_NUMBERS}' AND k {IN_NUMBERS}": lambda row: (
        row["s"] is not None and row["k"] in NUMBERS
    ),
}


@pytest.mark.parametrize("longest", [2, 2_000], ids=["cut", "whole"])
@pytest.mark.parametrize("predicate", CASES, ids=lambda text: text[:12])
def test_a_long_list_keeps_the_rows_that_plain_python_keeps(
    namespace: pennon.PartitionedNamespace,
    predicate: str,
    longest: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("pennon.manifest.leaves.leaf_rows._LONG", longest)
    expected = sorted(row["id"] for row in ROWS if CASES[predicate](row))
    found = namespace.scan(where=predicate).to_arrow()["id"].to_pylist()
    assert sorted(found) == expected


def test_partitions_are_those_of_as_many_short_lists(
    namespace: pennon.PartitionedNamespace,
) -> None:
    few = [number for number in range(0, 400, 8) for _ in range(2)]
    short = " OR ".join(
        f"k IN ({', '.join(map(str, few[at : at + 10]))})" for at in range(0, len(few), 10)
    )
    chosen = namespace.scan(where=f"k IN ({', '.join(map(str, few))})").plan()
    by_short = namespace.scan(where=short).plan()
    assert 0 < chosen.table.num_rows < chosen.partitions_total
    assert sorted(chosen.table["location"].to_pylist()) == sorted(
        by_short.table["location"].to_pylist()
    )


def test_a_list_of_100_000_values_is_read_in_a_second_of_cpu() -> None:
    text = f"id IN ({', '.join(map(str, range(100_000)))})"
    begun = time.process_time()
    written = parse_predicate(text).sql(dialect=DataFusion)
    assert time.process_time() - begun < 2
    assert written == text.replace("id", "`id`")


def test_explain_shows_the_first_values_of_a_long_list(
    namespace: pennon.PartitionedNamespace,
) -> None:
    plan = namespace.scan(f"id {IN_NUMBERS} AND s {IN_TEXTS} AND k IN (1, 2)").plan()
    text = explain(plan)
    assert len(text) < 3_000
    assert "… 54 more)" in text
    assert "`k` IN (1, 2)" in text
