"""Leaves that a replicated part rules out: none that has a row with one of its values."""

from __future__ import annotations

import random
from datetime import date, datetime, timedelta
from decimal import Decimal

import pyarrow as pa
import pytest

from pennon.execution import LeafPruning, LeafRead, Relation
from pennon.execution.leaf_table import ReplicatedRows, pruned
from pennon.transforms.bucket import Bucket, MultiBucket
from pennon.transforms.epoch import Epoch, EpochUnit
from pennon.transforms.expression import Expression
from pennon.transforms.identity import Identity
from pennon.transforms.murmur3 import murmur3
from pennon.transforms.transform import Transform
from pennon.transforms.truncate import Truncate

DAY, INSTANT = date(2023, 12, 20), datetime(1969, 12, 31, 22)  # noqa: DTZ001 - without a zone
CASES = [
    (Identity(), pa.int32(), lambda n: n % 40),
    (Identity(), pa.utf8(), lambda n: f"é{n % 40}"),
    (Identity(), pa.decimal128(9, 2), lambda n: Decimal(n % 40) / 4),
    (Bucket(16), pa.int64(), lambda n: n),
    (Truncate(10), pa.int32(), lambda n: n - 200),
    (Truncate(2), pa.utf8(), lambda n: f"{n}"),
    (Epoch(EpochUnit.MONTHS), pa.date32(), lambda n: DAY + timedelta(days=n)),
    (Epoch(EpochUnit.HOURS), pa.timestamp("us"), lambda n: INSTANT + timedelta(minutes=7 * n)),
    (Expression("lower(left(col0, 2))", pa.utf8()), pa.utf8(), lambda n: f"É{n % 40}"),
    (Expression("nullif(col0 % 7, 3)", pa.int64()), pa.int64(), lambda n: n),
]


@pytest.mark.parametrize(
    ("transform", "kind", "value_of"),
    CASES,
    ids=[f"{kind} {transform}" for transform, kind, _ in CASES],
)
def test_a_leaf_with_a_partner_is_kept(transform: Transform, kind: pa.DataType, value_of) -> None:
    rng = random.Random(7)  # noqa: S311 - values, not secrets
    values = [value_of(n) for n in range(400)]
    leaf_of = dict(zip(values, transform.apply([pa.array(values, kind)]).to_pylist(), strict=True))
    leaves = [*dict.fromkeys(leaf_of.values()), None]
    reads = tuple(LeafRead(str(leaf), 1) for leaf in leaves)
    relation = Relation("/lake", reads, pa.schema([]), pa.schema([]))
    keys = murmur3(pa.array(leaves, transform.result_type([kind]))).to_pylist()
    pruning = LeafPruning(0, 0, ("c1",), transform, tuple(keys))
    for count in (0, 1, 3):
        chosen = rng.sample(values, count)
        batch = pa.record_batch(
            {"c0": list(range(count + 1)), "c1": pa.array([*chosen, None], kind)}
        )
        rows = ReplicatedRows(batch.schema, (batch,), 0)
        (kept,) = pruned([relation], [pruning], [rows])
        assert {leaf.location for leaf in kept.leaves} == {
            str(leaf_of[number]) for number in chosen
        }


def test_a_leaf_of_several_columns_is_kept_for_the_values_of_one_row() -> None:
    """Values of one column each, of unlike rows, are in no leaf; nor is what has a NULL."""
    transform = MultiBucket(1000)
    rows = pa.record_batch(
        {
            "c1": pa.array([1, 2, None, 1], pa.int64()),
            "c2": pa.array(["a", "b", "c", None], pa.utf8()),
        }
    )
    pairs = [(a, b) for a in (1, 2, 3, None) for b in ("a", "b", "c", None)]
    leaves = transform.apply(
        [pa.array([a for a, _ in pairs], pa.int64()), pa.array([b for _, b in pairs], pa.utf8())]
    )
    bucket_of = dict(zip(pairs, leaves.to_pylist(), strict=True))
    assert len(set(bucket_of.values())) == len(pairs)
    pruning = LeafPruning(0, 0, ("c1", "c2"), transform, tuple(murmur3(leaves).to_pylist()))
    reads = tuple(LeafRead(str(bucket), 1) for bucket in leaves.to_pylist())
    relation = Relation("/lake", reads, pa.schema([]), pa.schema([]))
    (kept,) = pruned([relation], [pruning], [ReplicatedRows(rows.schema, (rows,), 0)])
    assert {leaf.location for leaf in kept.leaves} == {
        str(bucket_of[1, "a"]),
        str(bucket_of[2, "b"]),
    }


def test_two_columns_are_compared_with_one() -> None:
    transform = MultiBucket(1000)
    numbers = pa.array([1, 2, 3], pa.int64())
    rows = pa.record_batch({"c1": numbers.slice(0, 2)})
    leaves = transform.apply([numbers, numbers])
    pruning = LeafPruning(0, 0, ("c1", "c1"), transform, tuple(murmur3(leaves).to_pylist()))
    reads = tuple(LeafRead(str(bucket), 1) for bucket in leaves.to_pylist())
    relation = Relation("/lake", reads, pa.schema([]), pa.schema([]))
    (kept,) = pruned([relation], [pruning], [ReplicatedRows(rows.schema, (rows,), 0)])
    assert kept.leaves == reads[:2]


def test_an_expression_that_fails_for_a_row_rules_out_nothing() -> None:
    transform = Expression("100 / col0", pa.int64())
    rows = pa.record_batch({"c1": pa.array([0, 5], pa.int64())})
    reads = tuple(LeafRead(str(leaf), 1) for leaf in (20, 50))
    relation = Relation("/lake", reads, pa.schema([]), pa.schema([]))
    keys = tuple(murmur3(pa.array([20, 50], pa.int64())).to_pylist())
    pruning = LeafPruning(0, 0, ("c1",), transform, keys)
    assert pruned([relation], [pruning], [ReplicatedRows(rows.schema, (rows,), 0)]) == [relation]
