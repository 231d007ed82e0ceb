"""Each kind of damage, done for real: what readers, writers, check and repair say of it."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import lance
import lance_namespace
import pyarrow as pa
import pytest
from lance_namespace import CreateNamespaceRequest
from tests.transaction import lake

import pennon
from pennon.cli import main
from pennon.errors import (
    ManifestColumnsLost,
    ManifestMetadataLost,
    ManifestNotRepairable,
    ManifestRowDoubled,
    NamespaceSchemaMissing,
    PennonError,
)
from pennon.maintenance.checks.check_manifest import check
from pennon.maintenance.checks.findings import Severity
from pennon.maintenance.expire import expire
from pennon.maintenance.repair import repair
from pennon.maintenance.rollback import rollback
from pennon.maintenance.vacuum import vacuum
from pennon.manifest import Snapshot, change_root
from pennon.manifest.commits.root_change import replace_rows, write_keys
from pennon.manifest.dataset.storage import is_conflict
from pennon.manifest.format.properties import WRITER_FLAGS
from pennon.namespace import Scan
from pennon.planning import plan_scan
from pennon.spec import PartitionSpec


def rewritten_by_upstream(snapshot: Snapshot, *, keep_history: bool = True) -> str:
    """Take the guard and the version rows away, then let upstream make a namespace."""
    dataset = lance.dataset(f"{snapshot.location}/__manifest")
    dataset.update_metadata({WRITER_FLAGS: "0"})
    dataset.delete("object_type IN ('table_version', 'pennon_commit')")
    upstream = lance_namespace.connect("dir", {"root": snapshot.location})
    upstream.create_namespace(CreateNamespaceRequest(id=["stranger"]))
    if not keep_history:
        forget_history(snapshot.location)
    with pytest.raises(ManifestColumnsLost, match="pennon repair"):
        Snapshot.open(snapshot.location)
    return snapshot.location


def forget_history(location: str) -> None:
    """Leave nothing of the manifest but its newest version."""
    newest = lance.dataset(f"{location}/__manifest")
    newest.cleanup_old_versions(older_than=dt.timedelta(0), delete_unverified=True)
    assert len(newest.versions()) == 1


def test_columns_come_back_from_an_earlier_version(tmp_path: Path) -> None:
    before = lake.append(lake.append(lake.make(tmp_path), {1: "eu", 2: None}), {3: "eu"})
    location = rewritten_by_upstream(before)
    done = repair(location)
    assert done.columns == ("read_version", "partition_field_region")
    assert (done.from_version is not None, done.leaves_read) == (True, 0)
    after = Snapshot.open(location)
    assert lake.regions(after) == lake.regions(before) == {"eu": [1, 3], None: [2]}
    assert check(location).is_valid
    rows = after.manifest.to_table().to_pylist()
    assert any(row["object_id"] == "stranger" for row in rows)
    assert int(after.metadata[WRITER_FLAGS]) & (1 << 62)
    assert lake.regions(lake.append(after, {4: "eu", 5: "us"}))["eu"] == [1, 3, 4]


def test_without_history_values_and_versions_are_read_back_from_the_leaves(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = lake.append(lake.append(lake.make(tmp_path), {1: "eu", 2: None}), {3: "eu"})
    location = rewritten_by_upstream(before, keep_history=False)
    assert main(["repair", location]) == 0
    told = capsys.readouterr().out
    assert "no earlier version" in told
    assert "the detached version with 2 rows" in told
    assert lake.regions(Snapshot.open(location)) == {"eu": [1, 3], None: [2]}
    assert check(location).is_valid


def test_a_version_that_cannot_be_told_stops_the_repair(tmp_path: Path) -> None:
    before = lake.append(lake.make(tmp_path), {1: "eu"})
    leaf = before.leaves().table.to_pylist()[0]
    uri = f"{before.location}/{leaf['location']}"
    for _ in range(2):  # two commits of the same size on the empty leaf: which one was it?
        main_branch = lance.dataset(uri)
        rows = pa.table({"id": [7], "region": ["eu"]}, schema=main_branch.schema)
        made = lance.fragment.write_fragments(rows, main_branch, mode="append")
        lance.LanceDataset.commit(
            main_branch,
            lance.LanceOperation.Append(made),
            read_version=main_branch.version,
            detached=True,
        )
    location = rewritten_by_upstream(before, keep_history=False)
    with pytest.raises(ManifestNotRepairable, match=r"which version of leaf .* is not known"):
        repair(location)
    with pytest.raises(ManifestColumnsLost):
        Snapshot.open(location)


def test_a_leaf_of_two_tuples_is_named_with_two_of_its_rows(tmp_path: Path) -> None:
    before = lake.append(lake.make(tmp_path, strong=False), {1: "eu"})
    leaf = before.leaves().table.to_pylist()[0]
    lance.dataset(f"{before.location}/{leaf['location']}").insert(
        pa.table({"id": [2], "region": ["us"]})
    )
    location = rewritten_by_upstream(before, keep_history=False)
    with pytest.raises(ManifestNotRepairable) as refused:
        repair(location)
    message = str(refused.value)
    assert str(leaf["location"]) in message
    assert "row 0 (region eu) has region=eu" in message
    assert "row 1 (region us) has region=us" in message


KEYS = ("schema", "partition_spec_v1", "partition_spec_v2", "pennon.salt", "pennon.transaction")


@pytest.mark.parametrize("lost", [*((key,) for key in KEYS), KEYS], ids="+".join)
def test_lost_metadata_comes_back_from_the_versions_that_had_it(
    tmp_path: Path, lost: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    before = lake.append(lake.make(tmp_path), {1: "eu", 2: None})
    spec = PartitionSpec(2, before.specs[1].fields)
    change_root(before, spec=spec, properties={"owner": "ops"})
    before = lake.append(lake.latest(before), {3: "eu"})
    wanted = dict(before.metadata)
    for name in lost:  # one after the other: no single version has them all
        lance.dataset(f"{before.location}/__manifest").update_metadata({name: None})
    if lost not in (("pennon.salt",), ("pennon.transaction",)):
        with pytest.raises((ManifestMetadataLost, NamespaceSchemaMissing), match="pennon repair"):
            plan_scan(Snapshot.open(before.location))
    assert main(["repair", before.location]) == 0
    assert f"restored metadata {', '.join(sorted(lost))} from" in capsys.readouterr().out
    after = Snapshot.open(before.location)
    assert dict(after.metadata) == wanted
    assert sorted(Scan(after).to_arrow()["id"].to_pylist()) == [1, 2, 3]
    assert check(before.location).is_valid


def test_a_manifest_that_was_written_over_gets_keys_and_columns_back(tmp_path: Path) -> None:
    before = lake.append(lake.make(tmp_path), {1: "eu", 2: None})
    uri = f"{before.location}/__manifest"
    rows = lance.dataset(uri).to_table()
    lost = [name for name in rows.column_names if name.startswith(("partition_", "read_"))]
    lance.write_dataset(rows.drop_columns(lost), uri, mode="overwrite")
    lance.dataset(uri).update_metadata(dict.fromkeys(lance.dataset(uri).metadata))
    done = repair(before.location)
    assert (set(done.columns), "schema" in done.keys) == (set(lost), True)
    assert lake.regions(Snapshot.open(before.location)) == lake.regions(before)


def test_what_no_version_ever_had_is_not_made_up(tmp_path: Path) -> None:
    before = lake.append(lake.make(tmp_path), {1: "eu"})
    lance.dataset(f"{before.location}/__manifest").update_metadata({"schema": None})
    forget_history(before.location)
    with pytest.raises(NamespaceSchemaMissing):
        repair(before.location)


def test_a_sound_namespace_is_left_alone(tmp_path: Path) -> None:
    before = lake.append(lake.make(tmp_path), {1: "eu"})
    assert repair(before.location).columns == ()
    assert Snapshot.open(before.location).version == before.version


def test_a_repair_gives_way_to_another_writer(tmp_path: Path) -> None:
    before = lake.append(lake.make(tmp_path), {1: "eu"})
    manifest = lance.dataset(f"{before.location}/__manifest")
    lake.append(before, {2: "eu"})
    rows = manifest.to_table()
    with pytest.raises(ManifestNotRepairable, match="Run it again"):
        replace_rows(manifest, before.location, rows, 1)
    with pytest.raises(ManifestNotRepairable, match="Run it again"):
        write_keys(manifest, before.location, {WRITER_FLAGS: "0"})
    assert lake.regions(lake.latest(before)) == {"eu": [1, 2]}


ROWS = {"eu": [1, 3], "us": [2, 4]}


def clean_up(dataset: lance.LanceDataset) -> None:
    """Remove old versions as Lance does it by default for a dataset that is old enough."""
    dataset.cleanup_old_versions(older_than=dt.timedelta(0), delete_unverified=True)


def manifest(snapshot: Snapshot) -> lance.LanceDataset:
    return lance.dataset(f"{snapshot.location}/__manifest")


def leaf(snapshot: Snapshot, region: str = "eu") -> tuple[lance.LanceDataset, Path]:
    (row,) = [
        row
        for row in snapshot.leaves().table.to_pylist()
        if row["partition_field_region"] == region
    ]
    folder = f"{snapshot.location}/{row['location']}"
    return lance.dataset(folder, version=row["read_version"]), Path(folder)


def data_file(snapshot: Snapshot) -> Path:
    """The data file of the first commit of a partition."""
    dataset, folder = leaf(snapshot)
    return folder / "data" / dataset.get_fragments()[0].metadata.files[0].path


def append_5(snapshot: Snapshot) -> None:
    lake.append(snapshot, {5: "eu"})


def append_three(snapshot: Snapshot) -> None:
    for number in range(6, 9):
        lake.append(lake.latest(snapshot), {number: "eu"})


def double(
    snapshot: Snapshot,
    stalled: Callable[[Snapshot], object] = append_5,
    others: Callable[[Snapshot], object] = append_three,
) -> None:
    """Let a commit stall, others commit and clean up, and the first one go on.

    What the stalled one writes is taken from a commit that is rolled back.
    """
    base = manifest(snapshot)
    stalled(snapshot)
    written = manifest(snapshot).to_table(filter=f"object_id LIKE '{named(snapshot)}%'")
    rollback(snapshot.location, snapshot.version)
    merge = base.merge_insert(["object_id", "object_type"])
    merge = merge.when_matched_update_all().when_not_matched_insert_all()
    transaction, _ = merge.execute_uncommitted(written)
    others(snapshot)
    manifest(snapshot).cleanup_old_versions(older_than=dt.timedelta(0))
    lance.LanceDataset.commit(base, transaction, max_retries=0)


def named(snapshot: Snapshot) -> str:
    rows = snapshot.leaves().table.to_pylist()
    (name,) = [row["object_id"] for row in rows if row["partition_field_region"] == "eu"]
    return str(name)


def double_namespace(snapshot: Snapshot) -> None:
    above = named(snapshot).rpartition("$")[0]
    manifest(snapshot).insert(manifest(snapshot).to_table(filter=f"object_id = '{above}'"))


def delete_data(snapshot: Snapshot) -> None:
    data_file(snapshot).unlink()


def tear_data(snapshot: Snapshot) -> None:
    path = data_file(snapshot)
    path.write_bytes(path.read_bytes()[:100])


def delete_version(snapshot: Snapshot) -> None:
    dataset, folder = leaf(snapshot)
    (folder / f"_versions/d{dataset.version}.manifest").unlink()


def tear_version(snapshot: Snapshot) -> None:
    dataset, folder = leaf(snapshot)
    path = folder / f"_versions/d{dataset.version}.manifest"
    path.write_bytes(path.read_bytes()[:100])


def drop_columns(snapshot: Snapshot) -> None:
    manifest(snapshot).drop_columns(["read_version", "partition_field_region"])


def drop_metadata(snapshot: Snapshot) -> None:
    manifest(snapshot).update_metadata({"schema": None, "pennon.salt": None})


def cut_metadata(snapshot: Snapshot) -> None:
    text = manifest(snapshot).metadata["partition_spec_v1"]
    manifest(snapshot).update_metadata({"partition_spec_v1": text[:-1]})


def clean_up_leaf(snapshot: Snapshot) -> None:
    clean_up(lance.dataset(str(leaf(snapshot)[1])))


def delete_namespace(snapshot: Snapshot) -> None:
    manifest(snapshot).delete("object_type = 'namespace' AND object_id LIKE 'v1$%'")


@dataclass(frozen=True)
class Damage:
    """A damage, and what is said.

    Args:
        make: Does it.
        reader: The condition of a reader's error.
        writer: That of a writer into the partition; None where it does not meet the damage.
        found: By check.
        told: By repair.
        left: The rows afterwards.
    """

    make: Callable[[Snapshot], None]
    reader: str
    writer: str | None
    found: str
    told: str
    left: dict[str, list[int]]


DAMAGES = [
    Damage(
        double,
        "MANIFEST_ROW_DOUBLED",
        "MANIFEST_ROW_DOUBLED",
        "2 rows have this object_id",
        "it gets the 1 rows that version",
        {"eu": [1, 3, 5, 6, 7, 8], "us": [2, 4]},
    ),
    Damage(
        delete_data,
        "LEAF_MISSING",
        "LEAF_MISSING",
        "1 of 2 fragments are broken",
        "set aside, its folder",
        {"us": [2, 4]},
    ),
    Damage(
        tear_data,
        "STORAGE_FAILURE",
        None,
        "has 100 bytes of",
        "set aside, its folder",
        {"us": [2, 4]},
    ),
    Damage(
        delete_version,
        "LEAF_MISSING",
        "LEAF_MISSING",
        "files are not there",
        "the newest that is there, with 1 rows",
        {"eu": [1], "us": [2, 4]},
    ),
    Damage(
        tear_version,
        "STORAGE_FAILURE",
        "STORAGE_FAILURE",
        "file size is too small",
        "the newest that is there, with 1 rows",
        {"eu": [1], "us": [2, 4]},
    ),
    Damage(
        clean_up_leaf,
        "LEAF_MISSING",
        "LEAF_MISSING",
        "2 of 2 fragments are broken",
        "set aside, its folder",
        {"us": [2, 4]},
    ),
    Damage(
        drop_columns,
        "MANIFEST_COLUMNS_LOST",
        "MANIFEST_COLUMNS_LOST",
        "column partition_field_region: it is missing",
        "restore read_version, partition_field_region from",
        ROWS,
    ),
    Damage(
        drop_metadata,
        "NAMESPACE_SCHEMA_MISSING",
        "NAMESPACE_SCHEMA_MISSING",
        "the key is missing",
        "restore metadata pennon.salt, schema from",
        ROWS,
    ),
    Damage(
        cut_metadata,
        "CORRUPT_JSON",
        "CORRUPT_JSON",
        "line 1, column",
        "restore metadata partition_spec_v1 from",
        ROWS,
    ),
]


def condition(work: Callable[[], object]) -> str | None:
    try:
        work()
    except PennonError as error:
        return error.condition
    return None


@pytest.fixture
def snapshot(tmp_path: Path) -> Snapshot:
    snapshot = lake.append(lake.make(tmp_path), {1: "eu", 2: "us"})
    return lake.append(lake.append(snapshot, {3: "eu"}), {4: "us"})


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.make.__name__)
def test_every_damage_is_refused_found_and_mended_and_the_mending_can_be_undone(
    snapshot: Snapshot, damage: Damage, capsys: pytest.CaptureFixture[str]
) -> None:
    location = snapshot.location
    damage.make(snapshot)
    damaged = manifest(snapshot).version
    assert condition(lambda: Scan(Snapshot.open(location)).to_arrow()) == damage.reader
    if damage.writer is not None:
        refused = condition(lambda: lake.append(Snapshot.open(location), {9: "eu"}))
        assert refused == damage.writer
    found = check(location)
    assert not found.is_valid
    assert any(damage.found in str(finding) for finding in found.violations), found

    assert main(["repair", location, "--dry-run"]) == 1
    assert damage.told in capsys.readouterr().out
    assert manifest(snapshot).version == damaged

    assert main(["repair", location]) == 0
    told = capsys.readouterr().out
    assert damage.told.replace("restore ", "restored ") in told
    assert f"rollback --version {damaged}" in told
    mended = lake.latest(snapshot)
    assert mended.version == damaged + 1
    assert lake.regions(mended) == damage.left
    assert [one for one in check(location).findings if one.severity is not Severity.NOTE] == []
    assert not repair(location, dry_run=True).is_any
    after = lake.append(mended, {9: "eu", 10: "us"})
    assert lake.regions(after)["eu"] == [*damage.left.get("eu", []), 9]

    if damage.make is cut_metadata:  # there is no table to go back to
        assert condition(lambda: rollback(location, damaged)) == damage.reader
    else:
        rollback(location, damaged)
        again = check(location)
        assert any(damage.found in str(finding) for finding in again.violations), again
        repair(location)
        assert lake.regions(lake.latest(snapshot)) == damage.left
        assert check(location).is_valid
    soon = dt.datetime.now(dt.UTC) + dt.timedelta(seconds=1)
    expire(location, older_than=soon, retain_last=1)
    vacuum(location, older_than=soon)
    left = lake.regions(lake.latest(snapshot))
    assert {one for rows in left.values() for one in rows} - {9, 10} == {
        one for rows in damage.left.values() for one in rows
    }
    assert check(location).is_valid


def test_what_a_stalled_commit_did_but_append_is_told_and_the_newer_chain_stays(
    snapshot: Snapshot,
) -> None:
    double(snapshot, lambda base: pennon.open(base.location).delete("id = 1"))
    told = "\n".join(repair(snapshot.location).rows)
    assert re.search(r"it gets the 0 rows that .* but not what version \d+ did, Update", told)
    assert lake.regions(lake.latest(snapshot))["eu"] == [1, 3, 6, 7, 8]


def test_an_append_is_kept_where_the_other_chain_was_compacted_and_their_origin_has_expired(
    snapshot: Snapshot,
) -> None:
    def compact_and_forget(base: Snapshot) -> None:
        dataset, folder = leaf(base)
        append_three(base)
        pennon.open(base.location).maintenance.compact()
        (folder / f"_versions/d{dataset.version}.manifest").unlink()

    double(snapshot, others=compact_and_forget)
    told = "\n".join(repair(snapshot.location).rows)
    assert "the 1 rows that version" in told
    assert "its 2 rows from before are taken as" in told
    assert lake.regions(lake.latest(snapshot))["eu"] == [1, 3, 5, 6, 7, 8]


def test_of_two_chains_the_one_that_is_there_stays(snapshot: Snapshot) -> None:
    def forget(base: Snapshot) -> None:
        append_three(base)
        dataset, folder = leaf(lake.latest(base))
        (folder / f"_versions/d{dataset.version}.manifest").unlink()

    double(snapshot, others=forget)
    told = "\n".join(repair(snapshot.location).rows)
    assert re.search(r"of version \d+ nothing can be kept", told)
    assert lake.regions(lake.latest(snapshot))["eu"] == [1, 3, 5]
    assert check(snapshot.location).is_valid


def test_a_commit_that_was_begun_before_a_repair_is_refused_behind_it(snapshot: Snapshot) -> None:
    row = manifest(snapshot).to_table(filter="object_type = 'pennon_commit'").slice(0, 1)
    new = row.set_column(0, row.schema.field(0), pa.array(["pennon$commit$late"]))
    begun = manifest(snapshot)
    merge = begun.merge_insert("object_id").when_not_matched_insert_all()
    transaction, _ = merge.execute_uncommitted(new)
    double_namespace(snapshot)
    repair(snapshot.location)
    with pytest.raises(OSError, match="Incompatible transaction") as refused:
        lance.LanceDataset.commit(begun, transaction, max_retries=0)
    assert is_conflict(refused.value)
    assert check(snapshot.location).is_valid


@pytest.mark.parametrize("damage", [delete_data, tear_data])
def test_whole_files_of_a_broken_partition_can_be_kept(
    snapshot: Snapshot, damage: Callable[[Snapshot], None]
) -> None:
    damage(snapshot)
    offered = repair(snapshot.location, dry_run=True).rows
    assert "keep_whole_files would keep 1 of its rows" in offered[0]
    done = repair(snapshot.location, keep_whole_files=True)
    assert "the 1 other rows stay" in done.rows[0]
    assert lake.regions(lake.latest(snapshot)) == {"eu": [3], "us": [2, 4]}
    assert check(snapshot.location).is_valid


def test_what_lances_clean_up_of_the_manifest_takes_is_history_alone(snapshot: Snapshot) -> None:
    clean_up(manifest(snapshot))
    assert check(snapshot.location).is_valid
    assert not repair(snapshot.location).is_any
    assert lake.regions(lake.latest(snapshot)) == ROWS


def test_a_doubled_namespace_stops_the_writers_below_it(snapshot: Snapshot) -> None:
    double_namespace(snapshot)
    with pytest.raises(ManifestRowDoubled, match="2 rows with the object_id v1"):
        lake.append(lake.latest(snapshot), {5: "eu"})
    repair(snapshot.location)
    assert check(snapshot.location).is_valid
    assert lake.regions(lake.append(lake.latest(snapshot), {5: "eu"}))["eu"] == [1, 3, 5]


def test_missing_namespaces_and_rows_of_no_table_are_mended(snapshot: Snapshot) -> None:
    delete_namespace(snapshot)
    version = f"object_id = '{named(snapshot)}$1'"
    manifest(snapshot).update({"object_id": "'v1$nothing$dataset$7'"}, where=version)
    manifest(snapshot).update({"metadata": "'{'"}, where=f"object_id = '{named(snapshot)}'")
    assert len(check(snapshot.location).violations) >= 4
    repair(snapshot.location)
    assert check(snapshot.location).is_valid
    assert lake.regions(lake.append(lake.latest(snapshot), {5: "eu"}))["eu"] == [1, 3, 5]
