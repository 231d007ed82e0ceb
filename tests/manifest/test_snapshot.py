"""Snapshots: what is read of a namespace that Pennon did not make, and what is refused."""

from __future__ import annotations

import json
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import lance
import lance_namespace
import pyarrow as pa
import pytest
from lance_namespace import CreateNamespaceRequest
from sqlglot import exp, parse_one
from tests.manifest.handmade import NOWHERE, SALES_EARLY, SALES_LATE, US, Handmade, appendix_c
from tests.transaction.lake import append, make

from pennon.errors import (
    CorruptJson,
    InvalidPartitionSpec,
    ManifestColumnsLost,
    ManifestColumnType,
    ManifestMetadataLost,
    NamespaceHasNoManifest,
    NamespaceSchemaMissing,
    NotPartitionedNamespace,
    SnapshotNotFound,
)
from pennon.maintenance.expire import expire
from pennon.manifest import Snapshot, runtime_properties
from pennon.manifest.dataset.storage import listed_versions, open_manifest

GOLDEN = Path(__file__).parent.parent / "golden"


@pytest.fixture
def handmade(tmp_path: Path) -> Handmade:
    return appendix_c(tmp_path)


def time_of(version: lance.Version) -> datetime:
    time = version["timestamp"]
    assert isinstance(time, datetime)
    return time


def _versions(snapshot: Snapshot, condition: exp.Expression | None = None) -> dict[str, int | None]:
    table = snapshot.leaves(condition).table
    return dict(zip(table["object_id"].to_pylist(), table["read_version"].to_pylist(), strict=True))


@pytest.mark.spec(
    "Appendix C 1",
    "Appendix C 2",
    "Multi-Partition Transaction (Strong) 1",
    "Multi-Partition Transaction (Strong) 3",
    "Read Behavior 2",
    "Read Behavior 3",
    "Manifest Table Schema 7",
    "reading 1",
    "reading 3",
    "reading 4",
)
def test_every_leaf_of_appendix_c_is_read_at_its_version(handmade: Handmade) -> None:
    snapshot = Snapshot.open(handmade.location)

    assert _versions(snapshot) == handmade.read_versions
    table = snapshot.leaves().table
    for leaf, location, version in zip(
        *(table[name].to_pylist() for name in ("object_id", "location", "read_version")),
        strict=True,
    ):
        dataset = lance.dataset(f"{handmade.location}/{location}", version=version)
        assert dataset.to_table().to_pylist() == handmade.rows[leaf]


@pytest.mark.spec("Multi-Partition Transaction (Weak) 4", "Manifest Table Schema 7", "reading 8")
def test_without_the_column_read_version_every_leaf_is_latest_of_main(tmp_path: Path) -> None:
    made = appendix_c(tmp_path, with_read_version=False)
    snapshot = Snapshot.open(made.location)

    assert not snapshot.is_strong
    assert _versions(snapshot) == dict.fromkeys(made.rows)
    assert snapshot.leaves().table.schema.field("read_version").type == pa.uint64()


@pytest.mark.spec("reading 2")
def test_the_table_row_wins_over_its_newest_table_version_row(handmade: Handmade) -> None:
    # A rollback looks like this: the table row points back.
    manifest = lance.dataset(f"{handmade.location}/__manifest")
    manifest.update({"read_version": "1"}, where=f"object_id = '{US}'")

    assert _versions(Snapshot.open(handmade.location))[US] == 1


def test_opening_and_asking_for_leaves_opens_no_leaf(handmade: Handmade) -> None:
    for leaf in handmade.rows:
        shutil.rmtree(Path(handmade.location) / f"b4a3c2d1_{leaf}")

    assert set(_versions(Snapshot.open(handmade.location))) == set(handmade.rows)


@pytest.mark.spec("Appendix D 1", "Partition Pruning 3")
def test_appendix_d_finds_its_two_leaves_and_the_sql_has_its_shape(handmade: Handmade) -> None:
    statement = parse_one((GOLDEN / "appendix_d.sql").read_text(encoding="utf-8"), dialect="spark")
    where = statement.find(exp.Where)
    assert where is not None
    kind, condition = where.this.left, where.this.right

    found = Snapshot.open(handmade.location).leaves(condition.unnest())

    assert set(found.table["object_id"].to_pylist()) == {SALES_EARLY, US}
    ran = parse_one(found.sql, dialect="spark", into=exp.Select)
    ran_where = ran.find(exp.Where)
    assert ran_where is not None
    assert ran_where.this.left.sql("spark").replace("`", "") == kind.sql("spark")
    assert [name.name for name in ran.selects][:3] == ["object_id", "location", "read_version"]
    assert found.sql.startswith("SELECT `object_id`, `location`, `read_version`")


def test_flags_are_evaluated_per_leaf_and_null_stays_null(handmade: Handmade) -> None:
    flag = parse_one("partition_field_country = 'US'")
    table = Snapshot.open(handmade.location).leaves(None, [flag, exp.true()]).table

    flags = dict(zip(table["object_id"].to_pylist(), table["flag_0"].to_pylist(), strict=True))
    assert flags == {SALES_EARLY: None, SALES_LATE: None, US: True, NOWHERE: None}
    assert table["flag_1"].to_pylist() == [True] * 4


@pytest.mark.spec(
    "Appendix E 1",
    "Appendix E 2",
    "Runtime Namespace Properties 1",
    "Runtime Namespace Properties 2",
    "Physical Layout and Naming 3",
    "reading 36",
)
def test_runtime_properties_are_those_of_appendix_e(handmade: Handmade) -> None:
    snapshot = Snapshot.open(handmade.location)
    rows = {
        row["object_id"]: row
        for row in lance.dataset(f"{handmade.location}/__manifest").to_table().to_pylist()
    }
    for example in json.loads((GOLDEN / "appendix_e.json").read_text(encoding="utf-8")):
        row = rows["$".join(example["namespace"])]
        values = {
            name.removeprefix("partition_field_"): pa.scalar(value)
            for name, value in row.items()
            if name.startswith("partition_field_")
        }
        found = runtime_properties(snapshot.specs, example["namespace"], values)
        assert found == example["properties"]


@pytest.mark.spec("reading 36")
def test_a_null_value_is_left_out_of_the_properties(handmade: Handmade) -> None:
    specs = Snapshot.open(handmade.location).specs
    null = {"country": pa.scalar(None, pa.utf8())}
    assert runtime_properties(specs, ["v2", "a", "b"], null) == {}


@pytest.mark.spec("Read Behavior 1")
def test_a_time_finds_the_last_version_before_it(handmade: Handmade) -> None:
    manifest = lance.dataset(f"{handmade.location}/__manifest")
    manifest.delete(f"object_id = '{US}'")
    committed = [time_of(row).astimezone(UTC) for row in manifest.versions()]

    before = Snapshot.open(handmade.location, timestamp=committed[-1] - timedelta(microseconds=1))
    after = Snapshot.open(handmade.location, timestamp=committed[-1])

    assert US in _versions(before)
    assert US not in _versions(after)
    assert Snapshot.open(handmade.location, version=before.version).version == before.version


def test_a_version_or_time_that_is_not_there_is_named(handmade: Handmade) -> None:
    with pytest.raises(SnapshotNotFound, match=r"at version 77: its versions are 1 to 2"):
        Snapshot.open(handmade.location, version=77)
    with pytest.raises(SnapshotNotFound, match=r"as of 2001-01-01"):
        Snapshot.open(handmade.location, timestamp=datetime(2001, 1, 1, tzinfo=UTC))


def test_a_time_whose_version_has_expired_is_not_answered_by_an_older_one(tmp_path: Path) -> None:
    snapshot = make(tmp_path)
    for at in range(4):
        snapshot = append(snapshot, {at: "eu"})
    manifest = lance.dataset(f"{snapshot.location}/__manifest")
    times = {row["version"]: time_of(row).astimezone(UTC) for row in manifest.versions()}
    manifest.tags.create("kept", 3)
    expire(snapshot.location, older_than=datetime.now(UTC), retain_last=1)

    for version in (3, 6):
        found = Snapshot.open(snapshot.location, timestamp=times[version])
        assert found.version == version
    for asked in (times[4], times[6] - timedelta(microseconds=1)):
        with pytest.raises(SnapshotNotFound, match=r"have expired, .* are 3 of .* and 6 of"):
            Snapshot.open(snapshot.location, timestamp=asked)
    with pytest.raises(SnapshotNotFound, match=r"version 4: it has expired, .* are 3 and 6 to 7\."):
        Snapshot.open(snapshot.location, version=4)


def test_the_version_in_the_middle_of_a_creation_is_the_empty_table(tmp_path: Path) -> None:
    created = make(tmp_path)
    append(created, {1: "eu"})
    manifest = lance.dataset(f"{created.location}/__manifest")
    first = time_of(manifest.versions()[0]).astimezone(UTC)
    for found in (
        Snapshot.open(created.location, version=1),
        Snapshot.open(created.location, timestamp=first),
    ):
        assert (found.version, found.schema, len(found.leaves().table)) == (2, created.schema, 0)
    with pytest.raises(SnapshotNotFound, match="its first version is of"):
        Snapshot.open(created.location, timestamp=first - timedelta(microseconds=1))
    for number in (0, 4, -1, 10**30):
        with pytest.raises(SnapshotNotFound, match=rf"at version {number}: .* 1 to 3"):
            Snapshot.open(created.location, version=number)


def test_versions_from_before_a_namespace_was_partitioned_are_refused(handmade: Handmade) -> None:
    with pytest.raises(SnapshotNotFound, match="since version 2, and its versions .* 2 to 2"):
        Snapshot.open(handmade.location, version=1)


def _set(handmade: Handmade, **metadata: str | None) -> None:
    lance.dataset(f"{handmade.location}/__manifest").update_metadata(metadata)


@pytest.mark.spec("Metadata Definition 1")
def test_what_is_no_partitioned_namespace_is_refused_by_name(
    handmade: Handmade, tmp_path: Path
) -> None:
    with pytest.raises(NamespaceHasNoManifest, match="no __manifest table"):
        Snapshot.open(str(tmp_path / "nowhere"))
    _set(handmade, schema=None)
    with pytest.raises(NamespaceSchemaMissing, match="partition_spec_v1, partition_spec_v2"):
        Snapshot.open(handmade.location)
    _set(handmade, partition_spec_v1=None, partition_spec_v2=None)
    with pytest.raises(ManifestMetadataLost, match="no key partition_spec_v<N>.*pennon repair"):
        Snapshot.open(handmade.location)
    directory = lance_namespace.connect("dir", {"root": str(tmp_path / "plain")})
    directory.create_namespace(CreateNamespaceRequest(id=["shop"]))
    with pytest.raises(NotPartitionedNamespace, match="partition_spec_v<N>"):
        Snapshot.open(str(tmp_path / "plain"))


@pytest.mark.spec("Metadata Definition 2", "Partition Spec Schema 1")
def test_a_broken_spec_is_named_with_key_and_position(handmade: Handmade) -> None:
    _set(handmade, partition_spec_v2='{"id": 2,\n "fields": [,]}')
    with pytest.raises(CorruptJson, match=r"partition_spec_v2 .* line 2, column 13"):
        Snapshot.open(handmade.location)
    _set(handmade, partition_spec_v2='{"id": 3, "fields": []}')
    with pytest.raises(InvalidPartitionSpec, match=r"partition_spec_v2: id has 3"):
        Snapshot.open(handmade.location)


def test_leaves_of_a_spec_that_is_not_there_are_not_left_out_silently(handmade: Handmade) -> None:
    _set(handmade, partition_spec_v2=None)
    with pytest.raises(ManifestMetadataLost, match="partition_spec_v2"):
        Snapshot.open(handmade.location).leaves()


@pytest.mark.spec("Manifest Table Schema 1")
def test_lost_partition_columns_name_the_repair(handmade: Handmade) -> None:
    manifest = lance.dataset(f"{handmade.location}/__manifest")
    manifest.drop_columns(["partition_field_country"])
    with pytest.raises(ManifestColumnsLost, match=r"partition_field_country.*pennon repair"):
        Snapshot.open(handmade.location)
    # The version before the loss still opens.
    assert Snapshot.open(handmade.location, version=manifest.version - 1).specs


@pytest.mark.spec("Manifest Table Schema 2")
def test_a_partition_column_of_another_kind_is_refused(handmade: Handmade) -> None:
    manifest = lance.dataset(f"{handmade.location}/__manifest")
    manifest.drop_columns(["partition_field_country"])
    manifest.add_columns(pa.field("partition_field_country", pa.float64()))
    with pytest.raises(ManifestColumnType, match="country.*double.*string"):
        Snapshot.open(handmade.location)


def test_a_version_that_expires_while_versions_are_listed_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lance lists the files of versions, then reads each."""
    manifest = open_manifest(make(tmp_path).location)
    listed = lance.LanceDataset.versions
    failures = iter([ValueError("Not found: /t/_versions/7.manifest")])

    def versions(dataset: lance.LanceDataset) -> object:
        for failure in failures:
            raise failure
        return listed(dataset)

    monkeypatch.setattr(lance.LanceDataset, "versions", versions)
    assert [row["version"] for row in listed_versions(manifest)] == [1, 2]
