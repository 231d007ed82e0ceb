"""Leaves that are read at once and leaves that DataFusion reads give the same rows."""

from __future__ import annotations

import shutil
from dataclasses import replace
from typing import TYPE_CHECKING

import lance
import pyarrow as pa
import pytest
from datafusion import SessionContext

from pennon.errors import LeafMissing
from pennon.execution import Fragment, LeafRead, Query, Relation, leaf_table, run, small_leaves
from pennon.execution.batches import StreamWork
from pennon.execution.fragment import RareFirst
from pennon.execution.small_leaves import take_small_leaves
from pennon.leaf import forget_leaves
from pennon.spec.schema import NamespaceSchema

if TYPE_CHECKING:
    from pathlib import Path

COLUMNS = {"id": pa.int64(), "name": pa.utf8(), "price": pa.decimal128(12, 2)}
WANTED = NamespaceSchema.with_fresh_ids(pa.schema(COLUMNS)).arrow
SUMS = Query(
    "SELECT `name`, count(*) AS `n`, max(`price`) AS `m` FROM `r0` GROUP BY `name`",
    pa.schema([("name", pa.utf8()), ("n", pa.int64()), ("m", pa.decimal128(12, 2))]),
)
TOTALS = Query(
    "SELECT max(`id`) AS `i`, min(`name`) AS `a` FROM `r0`",
    pa.schema([("i", pa.int64()), ("a", pa.utf8())]),
)


@pytest.fixture
def table(tmp_path: Path) -> Relation:
    """Two large leaves and twenty small ones; odd ones store less or narrower columns."""
    leaves = []
    for number in range(22):
        count = 30_000 if number < 2 else 50
        kind = pa.int64() if number % 2 == 0 else pa.int32()
        columns = {
            "id": pa.array(range(number, number + count), kind),
            "name": [f"{row % 7} of {number % 3}" for row in range(count)],
            "price": pa.array(range(count), pa.int32()).cast(pa.decimal128(12, 2)),
        }
        if number % 5 == 4:
            del columns["price"]
        lance.write_dataset(pa.table(columns), tmp_path / f"leaf{number}")
        residual = (None, "id > 20", "name <> '3 of 1'", "id < 0")[number % 4]
        leaves.append(LeafRead(f"leaf{number}", 1, residual))
    return Relation(str(tmp_path), tuple(leaves), WANTED, WANTED)


def rows_of(query: Query, table: Relation) -> list[str]:
    stream = run(Fragment((table,), query))
    rows = pa.Table.from_batches(stream.batches, stream.schema).to_pylist()
    stored = [lance.dataset(f"{table.namespace}/{leaf.location}") for leaf in table.leaves]
    assert stream.work.rows_scanned == sum(leaf.count_rows() for leaf in stored)
    assert stream.work.bytes_scanned > 0
    return sorted(map(str, rows))


def answer(query: Query, table: Relation) -> list[str]:
    stream = run(Fragment((table,), query))
    return sorted(map(str, pa.Table.from_batches(stream.batches, stream.schema).to_pylist()))


def scan(table: Relation) -> list[dict[str, object]]:
    stream = run(Fragment((table,)))
    rows: list[dict[str, object]] = pa.Table.from_batches(stream.batches, stream.schema).to_pylist()
    return rows


@pytest.mark.parametrize("query", [SUMS, TOTALS])
def test_the_rows_do_not_depend_on_how_a_leaf_is_read(
    table: Relation, query: Query, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []
    bounds = (
        (0, 0, 0),
        (64 << 20, 4 << 20, 0),
        (64 << 20, 4 << 20, 4 << 20),
        (100_000, 10_000, 5_000),
        (64 << 20, 0, 0),
    )
    for held, small, tiny in bounds:
        monkeypatch.setattr(small_leaves, "HELD_BYTES", held)
        monkeypatch.setattr(small_leaves, "SMALL_BYTES", small)
        monkeypatch.setattr(small_leaves, "TINY_BYTES", tiny)
        found.append(rows_of(query, table))
    assert len(found[0]) == (21 if query is SUMS else 1)
    assert found == [found[0]] * len(bounds)


@pytest.mark.parametrize("query", [SUMS, TOTALS])
@pytest.mark.parametrize("rest", ["name <> '3 of 1'", "price < 500 OR price IS NULL", "id > 50000"])
def test_a_filter_in_two_steps_leaves_the_same_rows(
    table: Relation, query: Query, rest: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of leaves that store narrower columns, or lack one, as of the others."""
    rare = "id IN (25, 30, 29000)"
    steps = RareFirst(rare, rest)
    leaves = tuple(replace(leaf, residual=f"({rest}) AND ({rare})") for leaf in table.leaves)
    at_once = replace(table, leaves=leaves)
    stepwise = replace(table, leaves=tuple(replace(leaf, steps=steps) for leaf in leaves))
    monkeypatch.setattr(small_leaves, "TINY_BYTES", 0)
    found = []
    for held, small in ((0, 0), (64 << 20, 4 << 20), (64 << 20, 0), (500, 0)):
        monkeypatch.setattr(small_leaves, "HELD_BYTES", held)
        monkeypatch.setattr(small_leaves, "SMALL_BYTES", small)
        found += [answer(query, at_once), answer(query, stepwise)]
    assert found == [found[0]] * len(found)
    assert ("None" in str(found[0])) == (query is TOTALS and rest == "id > 50000")


@pytest.mark.parametrize("query", [SUMS, TOTALS])
@pytest.mark.parametrize("rest", ["name <> '3 of 1'", "price < 500 OR price IS NULL", "id < 0"])
def test_a_leaf_whose_columns_are_read_before_its_filter_gives_the_same_rows(
    table: Relation, query: Query, rest: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Read so, its filter stands above the limit that no filter is pushed below."""
    monkeypatch.setattr(small_leaves, "HELD_BYTES", 0)
    lance.dataset(tmp_path / "leaf0").delete("id % 3 = 0")
    leaves = (replace(table.leaves[0], version=2), *table.leaves[1:])
    filtered = replace(table, leaves=tuple(replace(leaf, residual=rest) for leaf in leaves))
    found = []
    for columns, is_above in ((False, True), (["name"], False), (None, False)):
        monkeypatch.setattr(leaf_table, "late_columns", lambda *_, late=columns: late)
        found.append(answer(query, filtered))
        context = SessionContext()
        leaf_table.register_relation(context, "r0", filtered, StreamWork())
        plan = context.sql(query.sql).execution_plan().display_indent()
        assert ("FilterExec" in plan) == is_above
    assert found == [found[0]] * 3


@pytest.mark.parametrize("rest", [None, "btrim(name, '\0 ') <> '3 of 1'", "name <> '3 of 1'"])
def test_a_text_with_the_character_0_is_no_filter_of_lance(
    table: Relation, rest: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As an argument of a function it panics on its way there; casts of texts trim it."""
    leaves = tuple(replace(leaf, residual=rest) for leaf in table.leaves)
    filtered = replace(table, leaves=leaves)
    trimmed = replace(SUMS, sql=f"{SUMS.sql} HAVING btrim(`name`, '\0 ') > '2'")
    found = []
    for held in (64 << 20, 0):
        monkeypatch.setattr(small_leaves, "HELD_BYTES", held)
        found += [answer(trimmed, filtered)]
    assert found[0] == found[1]
    assert found[0]


def test_a_filter_shows_how_many_rows_it_keeps(
    table: Relation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(small_leaves, "SMALL_BYTES", 0)
    for residual, held, keeps_many in (
        ("name <> '3 of 1'", 64 << 20, True),
        ("id < 100", 64 << 20, False),
        ("name <> '3 of 1'", 500_000, True),  # more than that, of a leaf of 1.3 MB
        ("name = '3 of 1'", 100, False),
    ):
        monkeypatch.setattr(small_leaves, "HELD_BYTES", held)
        leaves = tuple(replace(leaf, residual=residual) for leaf in table.leaves[:2])
        taken = take_small_leaves(replace(table, leaves=leaves), StreamWork())
        assert taken.keeps_many is keeps_many


def test_what_is_held_stays_within_its_bound(
    table: Relation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(small_leaves, "HELD_BYTES", 20_000)
    taken = take_small_leaves(table, StreamWork())
    held = [batch for rows in taken.held for batch in rows.batches]
    assert 0 < sum(batch.nbytes for batch in held) <= 20_000
    assert {"leaf0", "leaf1"} <= {leaf.location for leaf in taken.others.leaves}
    none = take_small_leaves(Relation(table.namespace, (), WANTED, WANTED), StreamWork())
    assert list(none.held) == []
    assert none.others.leaves == ()


def test_a_filter_may_name_columns_that_the_query_does_not_want(table: Relation) -> None:
    """Also one that some of the leaves lack; a bare name means the column as it is written."""
    schema = pa.schema([WANTED.field("name")])
    residual = "price < 10 AND NOT `id` IS NULL"
    leaves = tuple(LeafRead(leaf.location, 1, residual) for leaf in table.leaves)
    counted = Query("SELECT count(*) AS `n` FROM `r0`", pa.schema([("n", pa.int64())]))
    narrow = Relation(table.namespace, leaves, schema, WANTED)
    assert rows_of(counted, narrow) == [str({"n": 18 * 10})]


def test_rows_that_were_read_are_kept_for_the_next_query(table: Relation, tmp_path: Path) -> None:
    """The files go in between: of kept columns they are not wanted, of all others they are."""
    leaves = table.leaves[2::2]
    narrow = pa.schema([WANTED.field("id"), WANTED.field("name")])
    unnamed = replace(table, leaves=leaves, schema=narrow)
    named = replace(unnamed, identity="1f00")
    scanned = replace(named, leaves=(replace(leaves[0], residual=None),))
    first, rows = answer(TOTALS, named), scan(scanned)
    assert answer(TOTALS, unnamed) == first
    assert len(rows) == 50
    for leaf in leaves:
        shutil.rmtree(tmp_path / leaf.location / "data")
    assert rows_of(TOTALS, named) == first
    assert scan(scanned) == rows
    turned = replace(scanned, schema=pa.schema([WANTED.field("name"), WANTED.field("id")]))
    assert scan(turned) == rows
    assert list(scan(turned)[0]) == ["name", "id"]
    # without a column the batches still count the rows
    counted = run(Fragment((replace(scanned, schema=pa.schema([])),))).batches
    assert sum(batch.num_rows for batch in counted) == 50
    for unread, query in (
        (replace(named, schema=WANTED), SUMS),
        (replace(named, storage_options={"key": "another"}), TOTALS),
        (unnamed, TOTALS),
    ):
        with pytest.raises(LeafMissing):
            answer(query, unread)
    forget_leaves()
    with pytest.raises(LeafMissing):
        answer(TOTALS, named)


def test_kept_rows_are_not_taken_for_others(table: Relation, tmp_path: Path) -> None:
    """Of a later version, other fragments, another filter, a table made anew at the place."""
    leaf = replace(table.leaves[4], residual=None)
    first = replace(table, leaves=(leaf,), identity="1f00")
    assert answer(TOTALS, first) == [str({"i": 53, "a": "0 of 1"})]
    place = tmp_path / leaf.location
    lance.write_dataset(pa.table({"id": [900], "name": ["new"]}), place, mode="append")
    for read, rows in (
        (replace(leaf, version=2), {"i": 900, "a": "0 of 1"}),
        (replace(leaf, version=2, fragments=(1, 2)), {"i": 900, "a": "new"}),
        (replace(leaf, residual="id < 6"), {"i": 5, "a": "0 of 1"}),
        (leaf, {"i": 53, "a": "0 of 1"}),
    ):
        assert answer(TOTALS, replace(first, leaves=(read,))) == [str(rows)]
    shutil.rmtree(place)
    lance.write_dataset(pa.table({"id": [7], "name": ["x"]}), place)
    assert answer(TOTALS, replace(first, identity="7a21")) == [str({"i": 7, "a": "x"})]
