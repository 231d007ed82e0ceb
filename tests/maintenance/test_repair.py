"""A manifest that upstream's own client rewrote without our columns, and its repair."""

from __future__ import annotations

import datetime as dt
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
    NamespaceSchemaMissing,
)
from pennon.maintenance.checks.check import check
from pennon.maintenance.repair import repair
from pennon.manifest import Snapshot, change_root
from pennon.manifest.format.properties import WRITER_FLAGS
from pennon.manifest.repair.column_repair import set_guard
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
    lake.append(before, {2: "eu"})
    with pytest.raises(ManifestNotRepairable, match="Run it again"):
        set_guard(before.location, before.version)


def test_partitions_whose_files_upstreams_clean_up_took_are_listed_and_can_be_deleted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    snapshot = lake.append(lake.append(lake.make(tmp_path), {1: "eu", 2: "us"}), {3: "eu"})
    leaves = {row["partition_field_region"]: row for row in snapshot.leaves().table.to_pylist()}
    leaf = lance.dataset(f"{snapshot.location}/{leaves['eu']['location']}")
    leaf.cleanup_old_versions(older_than=dt.timedelta(0), delete_unverified=True)
    assert main(["repair", snapshot.location]) == 1
    told = capsys.readouterr().out
    assert "partition region=eu lacks" in told
    assert "region=us" not in told
    pennon.open(snapshot.location).delete("region = 'eu'")
    assert repair(snapshot.location).lacking == ()
    assert lake.regions(lake.latest(snapshot)) == {"us": [2]}
    assert main(["repair", snapshot.location]) == 0
