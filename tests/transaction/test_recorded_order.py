"""What is recorded of the order of a leaf's rows: seen by the writer, bound to one version."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from sqlglot import exp
from tests.transaction.lake import SCHEMA, append, latest, make, stage

from pennon.maintenance.checks.check_manifest import check
from pennon.manifest import LeafChange, Snapshot, change_root, commit_leaves
from pennon.planning import plan_scan
from pennon.planning.scan_plan import known_order, mergeable_scans
from pennon.spec.write_properties import OrderColumn
from pennon.transaction import Committed, Transaction

BY_ID = (OrderColumn("id"),)


def ordered(tmp_path: Path, order: str = "id", **how: Any) -> Snapshot:
    return with_order(make(tmp_path, **how), order)


def with_order(snapshot: Snapshot, order: str) -> Snapshot:
    change_root(latest(snapshot), properties={"write.order": order})
    return latest(snapshot)


def known(snapshot: Snapshot, predicate: str | None = None) -> tuple[OrderColumn, ...]:
    return known_order(plan_scan(snapshot, predicate), ["id", "region"])


def rows(ids: list[int], region: str | None) -> pa.RecordBatch:
    return pa.record_batch([ids, [region] * len(ids)], schema=SCHEMA)


def test_sorted_writes_are_known_through_appends_and_overwrites(tmp_path: Path) -> None:
    snapshot = append(ordered(tmp_path), rows([1, 2, 2], "a"))
    assert known(snapshot) == BY_ID
    snapshot = append(snapshot, rows([0, 7], "a"))  # a file of its own, sorted by itself
    snapshot = append(snapshot, rows([5], None))
    assert known(snapshot) == BY_ID
    transaction = Transaction(snapshot)
    transaction.replace(stage(snapshot, rows([3, 4], "a")))
    assert isinstance(outcome := transaction.commit(), Committed)
    assert known(outcome.snapshot) == BY_ID


def test_rows_that_came_unsorted_end_it_until_they_are_replaced(tmp_path: Path) -> None:
    snapshot = append(ordered(tmp_path), rows([1, 2], "a"))
    snapshot = append(snapshot, rows([1, 2], "b"))
    snapshot = append(snapshot, rows([4, 3], "a"))
    assert known(snapshot) == ()
    assert known(snapshot, "region = 'b'") == BY_ID
    snapshot = append(snapshot, rows([5, 6], "a"))
    assert known(snapshot) == ()
    transaction = Transaction(snapshot)
    transaction.replace(stage(snapshot, rows([3, 4], "a")))
    assert isinstance(outcome := transaction.commit(), Committed)
    assert known(outcome.snapshot) == BY_ID


def test_rows_of_one_task_count_file_by_file(tmp_path: Path) -> None:
    snapshot = ordered(tmp_path)
    mixed = pa.record_batch([[1, 5, 2, 6], ["a", "b", "a", "b"]], schema=SCHEMA)
    snapshot = append(snapshot, mixed)
    assert known(snapshot) == BY_ID


@pytest.mark.parametrize("writer", ["keeps unknown keys", "knows of no order"])
def test_a_version_that_another_writer_made_is_in_no_known_order(
    tmp_path: Path, writer: str
) -> None:
    snapshot = append(ordered(tmp_path), rows([1, 2], "a"))
    (leaf,) = snapshot.leaves().table.to_pylist()
    uri = f"{snapshot.location}/{leaf['location']}"
    foreign = lance.write_dataset(rows([0], "a"), uri, mode="append")
    if writer == "keeps unknown keys":
        manifest = lance.dataset(snapshot.manifest.uri)
        table = manifest.to_table(filter=f"object_id = '{leaf['object_id']}'")
        at = table.column_names.index("read_version")
        moved = table.set_column(at, "read_version", pa.array([foreign.version], pa.uint64()))
        manifest.merge_insert("object_id").when_matched_update_all().execute(moved)
    else:
        values = {"region": pa.scalar("a")}
        change = LeafChange(leaf["object_id"], leaf["location"], values, foreign.version)
        commit_leaves(snapshot, [change])
    moved_on = latest(snapshot)
    assert moved_on.leaves().table["read_version"].to_pylist() == [foreign.version]
    assert known(moved_on) == ()
    assert known(append(moved_on, rows([3], "a"))) == ()


def test_another_order_and_another_type_of_a_column_end_it(tmp_path: Path) -> None:
    snapshot = append(ordered(tmp_path, "id, region"), rows([1, 2], "a"))
    assert known(snapshot) == (OrderColumn("id"), OrderColumn("region"))
    assert known_order(plan_scan(snapshot), ["region"]) == ()
    assert known_order(plan_scan(snapshot), ["id"]) == BY_ID
    assert known(with_order(snapshot, "id DESC")) == ()
    assert known(with_order(snapshot, "region")) == ()
    assert known(with_order(snapshot, "id ASC, region nulls first")) != ()
    assert known(with_order(snapshot, "made up by another writer")) == ()


def test_a_table_without_order_records_none_and_weak_mode_knows_none(tmp_path: Path) -> None:
    snapshot = append(make(tmp_path), rows([1, 2], "a"))
    assert "write_order" not in snapshot.leaves().table.column_names
    assert known(snapshot) == ()
    assert known(with_order(snapshot, "id")) == ()
    weak = append(ordered(tmp_path / "weak", strong=False), rows([1, 2], "a"))
    assert known(weak) == ()


def test_the_record_is_text_that_upstream_can_read(tmp_path: Path) -> None:
    snapshot = append(ordered(tmp_path), rows([1, 2], "a"))
    (leaf,) = snapshot.leaves(exp.column("object_id").neq("")).table.to_pylist()
    metadata = json.loads(
        snapshot.manifest.to_table(filter=f"object_id = '{leaf['object_id']}'")["metadata"][
            0
        ].as_py()
    )
    assert metadata["write_order"] == f"{leaf['read_version']} 0 int64 ASC NULLS FIRST"
    assert all(isinstance(value, str) for value in metadata.values())


@pytest.mark.parametrize(("region", "count"), [("a", 1), ("b", 0)])
def test_a_record_that_is_not_true_is_found_by_the_check(
    tmp_path: Path, region: str, count: int
) -> None:
    snapshot = append(ordered(tmp_path), rows([1, 2], "a"))
    snapshot = append(snapshot, rows([2, 1], "b"))
    assert check(snapshot.location).findings == ()
    leaves = snapshot.leaves().table.to_pylist()
    leaf = next(leaf for leaf in leaves if leaf["partition_field_region"] == region)
    values, descending = {"region": pa.scalar(region)}, "0 int64 DESC NULLS LAST"
    told = LeafChange(
        leaf["object_id"], leaf["location"], values, leaf["read_version"], 2, order=descending
    )
    commit_leaves(snapshot, [told])
    moved = with_order(snapshot, "id DESC")
    found = [str(violation) for violation in check(moved.location).violations]
    assert len(found) == count
    assert all("are not in the recorded order id DESC NULLS LAST" in message for message in found)


def test_more_files_than_a_task_can_merge_are_not_in_order() -> None:
    leaves = {4: pa.table({"num_fragments": [40, 20, 30, None]})}
    assigned = pa.schema(
        {"scan": pa.int32(), "key": pa.int64(), "leaf": pa.int32()}
        | {"first_fragment": pa.int32(), "end_fragment": pa.int32()}
    )

    def mergeable(*rows: tuple[int, int, int | None, int | None]) -> bool:
        lines = [dict(zip(assigned.names, (4, *row), strict=True)) for row in rows]
        return mergeable_scans(pa.Table.from_pylist(lines, assigned), leaves) == [4]

    assert mergeable((1, 0, None, None), (1, 1, None, None), (2, 2, None, None))
    assert not mergeable((1, 0, None, None), (1, 2, None, None))
    assert mergeable((1, 0, 0, 20), (1, 2, None, None))
    assert not mergeable((1, 3, None, None))
