"""The one commit: all leaves or none, concurrent changes, rows of foreign writers."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from tests.manifest.handmade import NOWHERE, SALES_EARLY, US, appendix_c

from pennon.errors import InternalError, StorageFailure
from pennon.manifest import (
    ConcurrentChange,
    LeafChange,
    ManifestCommitted,
    ManifestOutcome,
    Snapshot,
    commit_leaves,
    create,
    leaf_name,
)
from pennon.spec import NamespaceSchema, PartitionSpec, spec_of
from pennon.transforms.registry import from_sql

SCHEMA = NamespaceSchema.with_fresh_ids(pa.schema({"id": pa.int64(), "region": pa.utf8()}))
DETACHED = 1 << 63


def spec() -> PartitionSpec:
    calls = [
        from_sql("identity", [{"column": ["region"]}]),
        from_sql("bucket", [{"literal": 4}, {"column": ["id"]}]),
    ]
    return spec_of(SCHEMA, calls)


@pytest.fixture
def snapshot(tmp_path: Path) -> Snapshot:
    return create(str(tmp_path / "orders"), SCHEMA, spec())


def change(
    snapshot: Snapshot, region: str | None, bucket: int, version: int, rows: int = 1
) -> LeafChange:
    values = [pa.scalar(region, pa.utf8()), pa.scalar(bucket, pa.int32())]
    name = leaf_name(snapshot.salt, 1, values)
    return LeafChange(
        name.object_id,
        name.directory,
        {"region": values[0], "id_bucket": values[1]},
        DETACHED | version,
        num_rows=rows,
        num_bytes=rows * 8,
        num_fragments=1,
    )


def rows_of(location: str) -> dict[str, dict[str, Any]]:
    """Read the manifest with pylance alone."""
    rows = lance.dataset(f"{location}/__manifest").to_table().to_pylist()
    found = {row["object_id"]: row for row in rows}
    assert len(found) == len(rows), "a primary key is there twice"
    return found


@pytest.mark.spec(
    "Appendix C 5",
    "Manifest Table Schema 8",
    "Manifest Table Schema 9",
    "Partition Namespace Naming 4",
    "reading 1",
    "reading 5",
)
def test_a_commit_writes_the_rows_that_appendix_c_shows(snapshot: Snapshot) -> None:
    one = change(snapshot, "US", 1, 7, rows=3)
    assert commit_leaves(snapshot, [one]) == ManifestCommitted(snapshot.version + 1)

    rows = rows_of(snapshot.location)
    above, level, _ = one.object_id.rsplit("$", 2)
    shown = [
        (
            name,
            row["object_type"],
            row["read_version"],
            row["partition_field_region"],
            row["partition_field_id_bucket"],
        )
        for name, row in sorted(rows.items())
    ]
    assert shown == [
        ("v1", "namespace", None, None, None),
        (above, "namespace", None, "US", None),
        (f"{above}${level}", "namespace", None, "US", 1),
        (one.object_id, "table", DETACHED | 7, "US", 1),
        (f"{one.object_id}$1", "table_version", DETACHED | 7, None, None),
    ]
    table = rows[one.object_id]
    assert table["location"] == one.location
    assert json.loads(str(table["metadata"])) == {
        "num_rows": "3",
        "num_bytes": "24",
        "num_fragments": "1",
        "counted_version": str(DETACHED | 7),
    }


@pytest.mark.spec("Multi-Partition Transaction (Strong) 4", "Read Behavior 1", "reading 3")
def test_further_commits_move_the_version_and_count_table_versions(snapshot: Snapshot) -> None:
    for version in range(1, 12):
        latest = Snapshot.open(snapshot.location)
        assert isinstance(
            commit_leaves(latest, [change(latest, "US", 1, version, rows=version)]),
            ManifestCommitted,
        )

    rows = rows_of(snapshot.location)
    leaf = change(snapshot, "US", 1, 0).object_id
    recorded = {
        int(name.rsplit("$", 1)[1]): row["read_version"]
        for name, row in rows.items()
        if row["object_type"] == "table_version"
    }
    assert recorded == {number: DETACHED | number for number in range(1, 12)}
    assert rows[leaf]["read_version"] == DETACHED | 11
    assert Snapshot.open(snapshot.location).leaves().table["num_rows"].to_pylist() == [11]
    # Readers of an earlier snapshot stay on it.
    early = Snapshot.open(snapshot.location, version=snapshot.version + 3)
    assert early.leaves().table["read_version"].to_pylist() == [DETACHED | 3]


@pytest.mark.spec("Multi-Partition Transaction (Strong) 5", "Commit Behavior 3")
def test_two_writers_of_one_leaf_or_of_one_new_leaf_do_not_both_win(snapshot: Snapshot) -> None:
    first = commit_leaves(snapshot, [change(snapshot, "US", 1, 1), change(snapshot, "FR", 1, 1)])
    second = commit_leaves(snapshot, [change(snapshot, "US", 1, 2), change(snapshot, "DE", 1, 2)])
    assert first == ManifestCommitted(snapshot.version + 1)
    assert second == ConcurrentChange()

    regions = {row["partition_field_region"] for row in rows_of(snapshot.location).values()}
    assert regions == {None, "US", "FR"}, "half of the refused commit is visible"

    base = Snapshot.open(snapshot.location)
    assert isinstance(commit_leaves(base, [change(base, "US", 1, 3)]), ManifestCommitted)
    assert isinstance(commit_leaves(base, [change(base, "US", 1, 4)]), ConcurrentChange)


@pytest.mark.spec("Conflict Resolution 4")
def test_racing_writers_that_retry_lose_nothing(snapshot: Snapshot) -> None:
    won: list[tuple[int, int]] = []
    lock = threading.Lock()

    def write(writer: int) -> None:
        for round_number in range(4):
            outcome: ManifestOutcome | None = None
            while not isinstance(outcome, ManifestCommitted):
                base = Snapshot.open(snapshot.location)
                mine = DETACHED | (writer * 100 + round_number)
                changes = [
                    change(base, "shared", 0, mine ^ DETACHED),
                    change(base, f"own {writer}", round_number, mine ^ DETACHED),
                ]
                outcome = commit_leaves(base, changes)
            with lock:
                won.append((outcome.version, mine))

    threads = [threading.Thread(target=write, args=(writer,)) for writer in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    rows = rows_of(snapshot.location)
    shared = change(snapshot, "shared", 0, 0).object_id
    recorded = [
        row["read_version"]
        for name, row in rows.items()
        if row["object_type"] == "table_version" and name.startswith(f"{shared}$")
    ]
    assert sorted(recorded) == sorted(version for _, version in won)
    assert rows[shared]["read_version"] == max(won)[1]
    assert sum(row["object_type"] == "table" for row in rows.values()) == 1 + 16


def test_removed_leaves_go_with_their_versions_and_in_the_same_commit(snapshot: Snapshot) -> None:
    gone, stays = change(snapshot, "US", 1, 1), change(snapshot, "FR", 1, 1)
    commit_leaves(snapshot, [gone, stays])
    base = Snapshot.open(snapshot.location)
    new = change(base, "DE", 1, 1)
    outcome = commit_leaves(base, [new], removed=[gone.object_id])

    assert outcome == ManifestCommitted(base.version + 1)
    leaves = set(Snapshot.open(snapshot.location).leaves().table["object_id"].to_pylist())
    assert leaves == {stays.object_id, new.object_id}
    assert not any(name.startswith(f"{gone.object_id}$") for name in rows_of(snapshot.location))
    # A writer that still has the leaf in view does not bring it back.
    assert isinstance(commit_leaves(base, [change(base, "US", 1, 2)]), ConcurrentChange)


@pytest.mark.spec("reading 4", "reading 35")
def test_foreign_rows_columns_and_names_survive_a_commit(tmp_path: Path) -> None:
    made = appendix_c(tmp_path)
    before = rows_of(made.location)
    snapshot = Snapshot.open(made.location)
    values: dict[str, pa.Scalar] = {
        "event_year": pa.scalar(2025, pa.int32()),
        "country": pa.scalar("US"),
    }
    changes = [
        LeafChange(US, "ignored: it has its place", values, 77, num_rows=5),
        LeafChange(SALES_EARLY, "", {"event_date": pa.scalar(None, pa.date32())}, 78),
    ]
    assert isinstance(commit_leaves(snapshot, changes), ManifestCommitted)

    after = rows_of(made.location)
    text = '{"num_rows":"5","counted_version":"77"}'
    assert after[US] == before[US] | {"read_version": 77, "metadata": text}
    assert after[SALES_EARLY] == before[SALES_EARLY] | {"read_version": 78}
    assert after.keys() - before.keys() == {f"{US}$2", f"{SALES_EARLY}$11"}
    unchanged = before.keys() - {US, SALES_EARLY}
    assert {name: after[name] for name in unchanged} == {name: before[name] for name in unchanged}
    assert after["v1$k7m2n9p4q8r5s3t6$view"]["foreign_note"] == "kept"


@pytest.mark.spec("reading 8")
def test_a_weak_namespace_records_statistics_and_no_versions(tmp_path: Path) -> None:
    made = appendix_c(tmp_path, with_read_version=False)
    snapshot = Snapshot.open(made.location)
    values: dict[str, pa.Scalar] = {
        "event_year": pa.scalar(2025, pa.int32()),
        "country": pa.scalar(None, pa.utf8()),
    }
    outcome = commit_leaves(snapshot, [LeafChange(NOWHERE, "", values, None, num_rows=2)])
    assert isinstance(outcome, ManifestCommitted)
    rows = rows_of(made.location)
    assert not any(row["object_type"] == "table_version" for row in rows.values())
    assert rows[NOWHERE]["metadata"] == '{"num_rows":"2"}'


def test_one_leaf_twice_in_a_commit_is_our_bug(snapshot: Snapshot) -> None:
    with pytest.raises(InternalError, match="twice"):
        commit_leaves(snapshot, [change(snapshot, "US", 1, 1), change(snapshot, "US", 1, 2)])


def test_nothing_to_commit_makes_no_version(snapshot: Snapshot) -> None:
    assert commit_leaves(snapshot, []) == ManifestCommitted(snapshot.version)
    assert Snapshot.open(snapshot.location).version == snapshot.version


@pytest.mark.spec("Commit Behavior 4", "Multi-Partition Transaction (Strong) 5")
def test_thousands_of_leaves_are_one_version(snapshot: Snapshot) -> None:
    changes = [change(snapshot, f"region {number}", number % 4, number) for number in range(2500)]
    assert commit_leaves(snapshot, changes) == ManifestCommitted(snapshot.version + 1)
    base = Snapshot.open(snapshot.location)
    assert base.leaves().table.num_rows == 2500
    assert isinstance(commit_leaves(base, changes), ManifestCommitted)
    moved = Snapshot.open(snapshot.location)
    assert moved.leaves().table.num_rows == 2500
    assert len(rows_of(snapshot.location)) == 1 + 2500 * (2 + 1 + 2)


def test_storage_that_refuses_is_named_without_options(snapshot: Snapshot) -> None:
    versions = Path(snapshot.location) / "__manifest" / "data"
    moved = versions.with_name("data.moved")
    versions.rename(moved)
    versions.write_text("a file where a directory was")
    try:
        with pytest.raises(StorageFailure, match=r"Cannot commit to .*orders"):
            commit_leaves(snapshot, [change(snapshot, "US", 1, 1)])
    finally:
        versions.unlink()
        moved.rename(versions)
