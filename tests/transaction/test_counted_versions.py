"""Statistics count for the version that was counted, whoever moved the leaf on since."""

from __future__ import annotations

from pathlib import Path

import lance
import pytest
from tests.transaction.lake import append, make, read

import pennon
from pennon.manifest import Snapshot
from pennon.planning import plan_scan
from pennon.planning.splits import pack


def moved_on(snapshot: Snapshot) -> Snapshot:
    """Another writer adds a row to a leaf and keeps the metadata, which it does not know."""
    leaf = snapshot.leaves().table.to_pylist()[0]
    uri = f"{snapshot.location}/{leaf['location']}"
    dataset = lance.dataset(uri, version=leaf["read_version"])
    rows = dataset.to_table().slice(0, 1)
    fragments = lance.fragment.write_fragments(rows, dataset, mode="append")
    committed = lance.LanceDataset.commit(
        dataset, lance.LanceOperation.Append(fragments), read_version=dataset.version, detached=True
    )
    manifest = lance.dataset(f"{snapshot.location}/__manifest")
    manifest.update(
        {"read_version": str(committed.version)}, where=f"object_id = '{leaf['object_id']}'"
    )
    return Snapshot.open(snapshot.location)


def test_rows_are_counted_though_another_writer_kept_the_statistics(tmp_path: Path) -> None:
    snapshot = append(make(tmp_path), {1: "eu", 2: "us"})
    assert pennon.open(snapshot.location).scan().count_rows() == 2
    snapshot = moved_on(snapshot)
    assert pennon.open(snapshot.location).scan().count_rows() == len(read(snapshot)) == 3


@pytest.mark.parametrize("region", ["eu", "us"])
def test_a_commit_on_top_counts_anew(tmp_path: Path, region: str) -> None:
    snapshot = moved_on(append(make(tmp_path), {1: "eu", 2: "us"}))
    snapshot = append(snapshot, {3: region, 4: region})
    assert pennon.open(snapshot.location).scan().count_rows() == len(read(snapshot)) == 5
    snapshot = append(snapshot, {5: "eu", 6: "us"})
    assert None not in snapshot.leaves().table["num_rows"].to_pylist()
    assert pennon.open(snapshot.location).scan().count_rows() == len(read(snapshot)) == 7


def test_a_leaf_with_more_rows_than_its_statistics_say_is_overwritten_whole(
    tmp_path: Path,
) -> None:
    snapshot = moved_on(append(make(tmp_path), {1: "eu"}))
    table = pennon.open(snapshot.location)
    table.delete("region = 'eu'")
    assert pennon.open(snapshot.location).scan().to_arrow().num_rows == 0


@pytest.mark.parametrize("keeps_version", [True, False])
def test_rows_are_counted_though_the_statistics_name_no_version(
    tmp_path: Path, *, keeps_version: bool
) -> None:
    """A leaf that is read at its newest version, or at one that nobody counted."""
    snapshot = append(make(tmp_path), {1: "eu"})
    leaf = snapshot.leaves().table.to_pylist()[0]
    uri = f"{snapshot.location}/{leaf['location']}"
    written = lance.dataset(uri, version=leaf["read_version"])
    newest = lance.write_dataset(written.to_table(), uri, mode="append")
    newest = lance.write_dataset(written.to_table(), uri, mode="append")
    manifest = lance.dataset(f"{snapshot.location}/__manifest")
    version = str(newest.version) if keeps_version else "NULL"
    stale = """{"num_rows":"1","num_bytes":"99999999","num_fragments":"1"}"""
    where = f"object_id LIKE '{leaf['object_id']}%'"
    manifest.update({"read_version": version, "metadata": f"'{stale}'"}, where=where)
    snapshot = Snapshot.open(snapshot.location)
    assert pennon.open(snapshot.location).scan().count_rows() == 2
    assert pack(plan_scan(snapshot), 8, 1 << 20)["first_fragment"].to_pylist() == [None]
