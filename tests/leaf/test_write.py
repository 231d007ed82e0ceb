"""Writers split rows by partition, check them, and leave nothing behind when they fail."""

from __future__ import annotations

import threading
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING

import lance
import pyarrow as pa
import pytest
from lance.fragment import write_fragments
from tests.present import present

from pennon.errors import (
    NotNullViolated,
    StoreSettingInvalid,
    WriteColumnUnknown,
    WriteTypeMismatch,
)
from pennon.leaf import StagedPartition, WriteTarget, write_partitions
from pennon.leaf.write import partition_writer
from pennon.manifest import create
from pennon.spec import NamespaceSchema, PartitionField, PartitionSpec
from pennon.transforms.bucket import Bucket
from pennon.transforms.identity import Identity
from pennon.transforms.transform import Transform

if TYPE_CHECKING:
    from pathlib import Path

SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("region", pa.utf8()),
        pa.field("score", pa.float64()),
        pa.field("more", pa.struct([pa.field("n", pa.int32(), nullable=False)])),
    ]
)


def target_of(tmp_path: Path, *fields: tuple[str, Transform, pa.DataType]) -> WriteTarget:
    schema = NamespaceSchema.with_fresh_ids(SCHEMA)
    spec = PartitionSpec(
        1,
        tuple(
            PartitionField(
                f"p{at}", (present(schema.field_by_path([name])).id,), transform, None, kind
            )
            for at, (name, transform, kind) in enumerate(fields)
        ),
    )
    snapshot = create(str(tmp_path / "ns"), schema, spec)
    return WriteTarget(snapshot.location, snapshot.version, 1)


def by_region(tmp_path: Path) -> WriteTarget:
    return target_of(tmp_path, ("region", Identity(), pa.utf8()))


def read_back(target: WriteTarget, part: StagedPartition) -> list[dict]:
    """The rows of the fragments, read by Lance alone."""
    fragments = [lance.FragmentMetadata.from_json(fragment) for fragment in part.fragments]
    uri = f"{target.location}/{part.location}"
    schema = lance.schema.LanceSchema.from_pyarrow(SCHEMA)
    lance.LanceDataset.commit(uri, lance.LanceOperation.Overwrite(schema, fragments))
    return lance.dataset(uri).to_table().to_pylist()


def files_below(target: WriteTarget) -> list[str]:
    from pathlib import Path

    return [str(path) for path in Path(target.location).glob("*_v1*/data/*")]


def batch(regions: list[str | None], start: int = 0) -> pa.RecordBatch:
    count = len(regions)
    return pa.record_batch({"id": pa.array(range(start, start + count)), "region": regions})


@pytest.mark.spec("Partition Spec 1")
def test_unsorted_rows_reach_the_partition_of_their_tuple(tmp_path):
    target = by_region(tmp_path)
    regions = ["eu", None, "us", "eu", "", None]
    staged = write_partitions([batch(regions), batch(regions, 100)], target)
    found = {
        part.values.column(0)[0].as_py(): sorted(row["id"] for row in read_back(target, part))
        for part in staged
    }
    assert found == {"eu": [0, 3, 100, 103], None: [1, 5, 101, 105], "us": [2, 102], "": [4, 104]}
    assert sum(part.num_rows for part in staged) == 12


@pytest.mark.spec("reading 40")
def test_nan_and_negative_zero_are_one_partition_each(tmp_path):
    target = target_of(tmp_path, ("score", Identity(), pa.float64()))
    scores = [0.0, float("nan"), -0.0, -float("nan"), None]
    rows = pa.record_batch({"id": pa.array(range(5)), "score": pa.array(scores, pa.float64())})
    assert sorted(part.num_rows for part in write_partitions([rows, rows], target)) == [2, 4, 4]


def test_one_sorted_partition_over_many_batches_is_one_fragment(tmp_path):
    staged = write_partitions([batch(["eu"] * 50, at) for at in range(20)], by_region(tmp_path))
    assert [(len(part.fragments), part.num_rows) for part in staged] == [(1, 1000)]


def test_rows_are_pulled_not_collected(tmp_path):
    """A writer that collects would ask for the last batch before the first partition is done."""
    target = by_region(tmp_path)
    seen: list[int] = []

    def batches():
        for at in range(30):
            seen.append(len(files_below(target)))
            yield batch([f"r{at:02}"])

    write_partitions(batches(), target)
    assert seen[0] == 0
    assert all(files >= at - 2 for at, files in enumerate(seen))


def test_report_survives_its_text_for_every_type_of_value():
    values = pa.record_batch(
        {
            "partition_field_a": pa.array([Decimal("-1.50")], pa.decimal128(9, 2)),
            "partition_field_b": pa.array([None], pa.timestamp("us", "UTC")),
            "partition_field_c": pa.array(["$/=%..\U0001f600" * 1000]),
            "partition_field_d": pa.array([b"\x00\xff"]),
        }
    )
    part = StagedPartition(3, "v3$x$dataset", "ab_v3$x$dataset", values, ("{}",), "[]", 1, 2)
    assert StagedPartition.from_json(part.to_json()) == part


def test_a_target_never_shows_its_options():
    target = WriteTarget("/lake/ns", 4, 1, {"secret_access_key": "hush"})
    assert "hush" not in repr(target)


@pytest.mark.spec("reading 11")
@pytest.mark.parametrize(
    ("rows", "column"),
    [
        ({"id": pa.array([1, None])}, "id"),
        ({"region": ["eu"]}, "id"),
        ({"id": [1], "more": pa.array([{"n": None}], pa.struct([("n", pa.int32())]))}, "more.n"),
    ],
)
def test_null_in_a_required_column_names_it(tmp_path, rows, column):
    with pytest.raises(NotNullViolated, match=f"column {column} of"):
        write_partitions([pa.record_batch(rows)], by_region(tmp_path))


def test_null_struct_with_required_field_is_no_violation(tmp_path):
    kind = pa.struct([("n", pa.int32())])
    rows = pa.record_batch({"id": [1, 2], "more": pa.array([None, {"n": 1}], kind)})
    (part,) = write_partitions([rows], by_region(tmp_path))
    assert part.num_rows == 2


@pytest.mark.spec("Schema 2")
def test_extra_column_and_value_out_of_range_are_refused(tmp_path):
    target = by_region(tmp_path)
    with pytest.raises(WriteColumnUnknown, match="column other .*id, region, score, more"):
        write_partitions([pa.record_batch({"id": [1], "other": [1]})], target)
    with pytest.raises(WriteTypeMismatch, match="column id"):
        write_partitions([pa.record_batch({"id": ["x"]})], target)


def test_failing_writer_removes_its_files_and_raises_the_callers_own_error(tmp_path):
    target = by_region(tmp_path)

    def batches():
        for at in range(5):
            yield batch([f"r{at}"] * 10)
        assert files_below(target)
        raise KeyError("the query failed")

    with pytest.raises(KeyError, match="the query failed"):
        write_partitions(batches(), target)
    assert files_below(target) == []


def test_bad_row_after_good_partitions_removes_their_files(tmp_path):
    target = by_region(tmp_path)
    bad = pa.record_batch({"id": pa.array([None], pa.int64()), "region": ["c"]})
    with pytest.raises(NotNullViolated):
        write_partitions([batch(["a"]), batch(["b"]), bad], target)
    assert files_below(target) == []


def test_no_rows_stage_nothing(tmp_path):
    assert write_partitions([], by_region(tmp_path)) == []
    assert write_partitions([batch([])], by_region(tmp_path / "again")) == []


@pytest.mark.spec("reading 33")
def test_two_tasks_agree_on_the_leaf_of_a_new_tuple(tmp_path):
    target = target_of(tmp_path, ("id", Bucket(4), pa.int32()), ("region", Identity(), pa.utf8()))
    first, second = (
        {part.object_id for part in write_partitions([batch(["x"] * 40)], target)} for _ in range(2)
    )
    assert first == second
    assert len(first) == 4


def as_store(target: WriteTarget) -> WriteTarget:
    """The same place by an address with a scheme, as stores have them."""
    return replace(target, location=f"file://{target.location}")


class WatchedWriter:
    """Lance's writer, which counts how many threads are in it, and may wait for others or fail."""

    def __init__(self, monkeypatch, *, together: int = 1, fails_at: int | None = None) -> None:
        self._lock = threading.Lock()
        self._write = write_fragments
        self._meeting = threading.Barrier(together)
        self._together, self._fails_at = together, fails_at
        self.calls = self.inside = self.most = 0
        monkeypatch.setattr(partition_writer, "write_fragments", self)

    def __call__(self, *arguments, **named):
        with self._lock:
            call, self.calls, self.inside = self.calls, self.calls + 1, self.inside + 1
            self.most = max(self.most, self.inside)
        try:
            if call < self._together:
                self._meeting.wait(timeout=60)  # breaks where so many are never written at once
            if call == self._fails_at:
                raise OSError("the store refused")
            return self._write(*arguments, **named)
        finally:
            with self._lock:
                self.inside -= 1


def test_partitions_on_a_store_are_written_side_by_side_and_reported_as_on_a_disk(
    tmp_path, monkeypatch
):
    target = by_region(tmp_path)
    batches = [batch([f"r{at % 20:02}" for at in range(50)], start) for start in (0, 50, 100)]
    on_disk = write_partitions(batches, target)
    writer = WatchedWriter(monkeypatch, together=16)
    on_store = write_partitions(batches, as_store(target))
    assert 16 <= writer.most <= 32

    def told(part: StagedPartition) -> tuple:
        return part.object_id, part.num_rows, len(part.fragments), part.statistics, part.layout

    assert [told(part) for part in on_store] == [told(part) for part in on_disk]
    ids = [row["id"] for row in read_back(target, on_store[3])]
    assert ids == [3, 23, 43, 53, 73, 93, 103, 123, 143]


def test_a_failure_among_partitions_written_side_by_side_removes_the_files_of_all(
    tmp_path, monkeypatch
):
    target = as_store(by_region(tmp_path))
    WatchedWriter(monkeypatch, together=4, fails_at=2)
    with pytest.raises(OSError, match="the store refused"):
        write_partitions([batch([f"r{at}" for at in range(60)])], target)
    assert files_below(by_path := replace(target, location=target.location[7:])) == []
    monkeypatch.undo()
    bad = pa.record_batch({"id": pa.array([None], pa.int64()), "region": ["c"]})
    with pytest.raises(NotNullViolated):
        write_partitions([batch(["a", "b"]), bad], target)
    assert files_below(by_path) == []


def test_rows_that_wait_for_a_store_are_bounded(tmp_path, monkeypatch):
    target = as_store(by_region(tmp_path))
    rows = [batch([f"r{at:02}" for at in range(20)], start) for start in (0, 20)]
    monkeypatch.setattr(partition_writer, "_ALL_HELD_BYTES", 0)
    writer = WatchedWriter(monkeypatch)
    assert len(write_partitions(rows, target)) == 20
    assert writer.most == 1
    monkeypatch.setattr(partition_writer, "_ALL_HELD_BYTES", 1 << 20)
    monkeypatch.setenv("PENNON_STORE_LEAVES", "3")
    writer = WatchedWriter(monkeypatch)
    assert len(write_partitions(rows, target)) == 20
    assert writer.most <= 3


def test_a_partition_too_large_to_be_held_is_one_fragment_on_a_store(tmp_path, monkeypatch):
    target = by_region(tmp_path)
    monkeypatch.setattr(partition_writer, "_HELD_BYTES", 1000)
    rows = [batch(["eu"] * 50, at * 50) for at in range(20)]
    (part,) = write_partitions(rows, as_store(target))
    assert len(part.fragments) == 1
    assert [row["id"] for row in read_back(target, part)] == list(range(1000))


@pytest.mark.parametrize("stated", ["0", "many", "-1", "1.5"])
def test_a_number_of_partitions_at_a_time_that_is_none_is_refused(tmp_path, monkeypatch, stated):
    monkeypatch.setenv("PENNON_STORE_LEAVES", stated)
    with pytest.raises(StoreSettingInvalid, match=f"PENNON_STORE_LEAVES = {stated}"):
        write_partitions([batch(["eu"])], as_store(by_region(tmp_path)))
