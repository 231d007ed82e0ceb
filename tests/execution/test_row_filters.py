"""Rows that a replicated part rules out: none that has one of its values."""

from __future__ import annotations

import random
from datetime import date, timedelta
from decimal import Decimal

import pyarrow as pa
import pytest

from pennon.execution import LeafRead, Relation, RowFilter
from pennon.execution.engine import rows_over
from pennon.execution.leaf_table import ReplicatedRows, filtered

CASES = [
    (pa.int64(), lambda n: n - 2000),
    (pa.int8(), lambda n: n % 100 - 50),
    (pa.date32(), lambda n: date(1969, 10, 1) + timedelta(days=n)),
    (pa.utf8(), lambda n: f"it's é{n}"),
    (pa.decimal128(9, 2), lambda n: Decimal(n - 2000) / 4),
]


def condition(values: pa.Array, chosen_from: int, residual: str | None = None) -> str | None:
    """What is added for a relation of one leaf; FALSE where the leaf is not read."""
    relation = Relation("/lake", (LeafRead("a", 1, residual),), pa.schema([]), pa.schema([]))
    batch = pa.record_batch({"c1": values})
    rows = ReplicatedRows(batch.schema, (batch,), 0)
    (found,) = filtered([relation], [RowFilter(0, "K", 0, "c1", chosen_from)], [rows])
    return found.leaves[0].residual if found.leaves else "FALSE"


@pytest.mark.parametrize(("kind", "value_of"), CASES, ids=[str(kind) for kind, _ in CASES])
def test_rows_with_a_partner_are_kept(kind: pa.DataType, value_of) -> None:
    rng = random.Random(11)  # noqa: S311 - values, not secrets
    known = list(dict.fromkeys(value_of(n) for n in range(4000)))
    stored = pa.table({"K": pa.array([*known, None], kind), "other": range(len(known) + 1)})
    for count in (0, 1, min(400, len(known) // 8)):
        chosen = rng.sample(known, count)
        found = condition(pa.array([*chosen, None], kind), len(known) * 2, "`other` >= 5")
        assert found is not None
        kept = rows_over(f"SELECT * FROM t WHERE {found}", {"t": stored})["K"].to_pylist()
        wanted = [value for at, value in enumerate(known) if value in set(chosen) and at >= 5]
        assert sorted(kept) == sorted(wanted)


def test_few_values_are_asked_for_first() -> None:
    """And a second key beside them; with nothing else to ask there is one step."""
    ids, days = (
        pa.record_batch({"c1": pa.array([1, 2], kind)}) for kind in (pa.int64(), pa.int8())
    )
    rows = [ReplicatedRows(batch.schema, (batch,), 0) for batch in (ids, days)]

    def narrowed(residual: str | None, chosen_from: int) -> LeafRead:
        relation = Relation("/lake", (LeafRead("a", 1, residual),), pa.schema([]), pa.schema([]))
        filters = [RowFilter(0, "K", 0, "c1", chosen_from), RowFilter(0, "L", 1, "c1", 40)]
        return filtered([relation], filters, rows)[0].leaves[0]

    leaf = narrowed("`other` > 5", 64)
    assert leaf.steps is not None
    assert leaf.steps.rest == "`other` > 5"
    assert "`K`" in leaf.steps.rare
    assert "`L`" in leaf.steps.rare
    assert leaf.residual is not None
    assert all(name in leaf.residual for name in ("`other`", "`K`", "`L`"))
    assert narrowed("`other` > 5", 63).steps is None
    assert narrowed(None, 64).steps is None


def test_a_long_list_without_gaps_is_a_range() -> None:
    values = pa.array([*range(-3000, 3000, 2), None], pa.int32())
    found = condition(values, 60_000)
    stored = pa.table({"K": pa.array([-3001, -3000, 7, 2998, 2999, None], pa.int32())})
    kept = rows_over(f"SELECT * FROM t WHERE {found}", {"t": stored})
    assert kept["K"].to_pylist() == [-3000, 7, 2998]
    # Among values far apart others lie, and a list of so many would be slow.
    assert condition(pa.array([*range(3000), 10**9], pa.int64()), 60_000) is None


@pytest.mark.parametrize(("kind", "value_of"), CASES[:3], ids=[str(kind) for kind, _ in CASES[:3]])
def test_values_without_a_gap_are_a_range(kind: pa.DataType, value_of) -> None:
    """As the days of a month: only the list of those with a gap names each."""
    run = [value_of(n) for n in range(60, 90)]
    stored = pa.table({"K": pa.array([*(value_of(n) for n in range(95)), None], kind)})
    for chosen in (run, [*run[:5], *run[6:]], run[:3], run[:1]):
        found = condition(pa.array(reversed(chosen), kind), 10_000)
        assert found is not None
        assert (">=" in found) == (chosen in (run, run[:3]))
        assert (" IN (" in found) == (len(chosen) == 29)
        kept = rows_over(f"SELECT * FROM t WHERE {found}", {"t": stored})["K"].to_pylist()
        assert kept == chosen


def test_rows_are_read_where_most_have_a_partner() -> None:
    assert condition(pa.array(range(100), pa.int64()), 400) is None
    # No key: a condition has left few rows, and perhaps all values.
    assert condition(pa.array([1, 2, 3] * 20, pa.int64()), 10_000) is None
    assert condition(pa.array([1, 2, 3], pa.int64()), 10_000, "`other` = 1") is not None
    assert condition(pa.array([], pa.int64()), 10_000) == "FALSE"
