"""A fragment against a filter of the same rows in memory."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import lance
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from pennon.errors import LeafMissing
from pennon.execution import Fragment, LeafRead, Relation, run
from pennon.spec.schema import NamespaceSchema
from pennon.spec.write_properties import OrderColumn

ROWS = pa.table({"a": pa.array(range(1000), pa.int32()), "s": [f"s{at}" for at in range(1000)]})
SCHEMA = NamespaceSchema.with_fresh_ids(
    pa.schema({"a": pa.int64(), "s": pa.utf8(), "later": pa.float64()})
).arrow


def fragment(
    root: Path, *leaves: LeafRead, columns: tuple[str, ...] = ("s", "a", "later")
) -> Fragment:
    wanted = pa.schema([SCHEMA.field(name) for name in columns])
    return Fragment((Relation(str(root), leaves, wanted, SCHEMA),))


def test_leaves_come_one_after_the_other_each_with_its_filter(tmp_path: Path) -> None:
    lance.write_dataset(ROWS.slice(0, 500), str(tmp_path / "one"))
    lance.write_dataset(ROWS.slice(500), str(tmp_path / "two"))
    stream = run(fragment(tmp_path, LeafRead("one", 1), LeafRead("two", 1, "a < 510")))
    found = pa.Table.from_batches(stream.batches, stream.schema)
    kept = ROWS.filter(pc.less(ROWS["a"], 510))
    assert found["s"].to_pylist() == kept["s"].to_pylist()
    assert (found.schema.field("a").type, found["later"].null_count) == (pa.int64(), 510)


def test_a_filter_may_name_a_column_that_is_not_read(tmp_path: Path) -> None:
    lance.write_dataset(ROWS, str(tmp_path / "one"))
    stream = run(fragment(tmp_path, LeafRead("one", 1, "a = 7"), columns=("s",)))
    assert [batch.to_pylist() for batch in stream.batches] == [[{"s": "s7"}]]


def test_a_missing_leaf_is_an_error_before_the_first_batch(tmp_path: Path) -> None:
    lance.write_dataset(ROWS, str(tmp_path / "one"))
    with pytest.raises(LeafMissing, match="two"):
        run(fragment(tmp_path, LeafRead("one", 1), LeafRead("two", 1)))


def test_closing_the_stream_closes_the_scan(tmp_path: Path) -> None:
    lance.write_dataset(ROWS, str(tmp_path / "one"))
    stream = run(fragment(tmp_path, LeafRead("one", 1)))
    next(stream.batches)
    stream.batches.close()  # type: ignore[attr-defined]
    assert list(stream.batches) == []


def test_files_that_are_each_sorted_come_as_one_sorted_stream(tmp_path: Path) -> None:
    plain = pa.table({"a": pa.array(range(0, 1000, 2), pa.int32()), "s": ["x"] * 500})
    lance.write_dataset(plain, str(tmp_path / "one"), max_rows_per_file=100)
    lance.write_dataset(ROWS.slice(100, 300), str(tmp_path / "one"), mode="append")
    lance.write_dataset(ROWS.slice(0, 50), str(tmp_path / "two"))
    leaves = (LeafRead("one", 2, "a < 700"), LeafRead("two", 1), LeafRead("one", 2, None, (1, 3)))
    (relation,) = fragment(tmp_path, *leaves).relations
    stream = run(Fragment((replace(relation, order=(OrderColumn("a"),)),)))
    found = pa.Table.from_batches(stream.batches, stream.schema)["a"].to_pylist()
    wanted = [*range(0, 700, 2), *range(100, 400), *range(50), *range(200, 600, 2)]
    assert found == sorted(wanted)


def test_rows_of_many_small_leaves_come_in_few_batches_and_in_their_order(tmp_path: Path) -> None:
    for at in range(0, 1000, 20):
        lance.write_dataset(ROWS.slice(at, 20), str(tmp_path / str(at)))
    stream = run(fragment(tmp_path, *(LeafRead(str(at), 1) for at in range(0, 1000, 20))))
    batches = list(stream.batches)
    assert batches[0].num_rows == 20, "whoever wants few rows does not wait for more leaves"
    assert len(batches) < 10
    assert pa.Table.from_batches(batches)["s"].to_pylist() == ROWS["s"].to_pylist()
