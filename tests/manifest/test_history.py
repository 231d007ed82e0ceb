"""The history: what made each version, who, on which version, spec and schema."""

from __future__ import annotations

import getpass
import shutil
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import lance
import pyarrow as pa
import pytest

import pennon
from pennon.cli import main
from pennon.errors import TableNotFound
from pennon.manifest import change_root
from pennon.manifest.commits.manifest_commit import ConcurrentChange
from pennon.manifest.versions.history import history

if TYPE_CHECKING:
    from pathlib import Path

COLUMNS = pa.schema({"id": pa.int64(), "region": pa.utf8()})


def test_every_statement_leaves_its_record(tmp_path: Path) -> None:
    sales = pennon.create(tmp_path / "sales", COLUMNS, ["region"])
    made = sales.version
    sales.append([{"id": number, "region": "eu"} for number in range(10)])
    sales.update({"id": "id + 100"}, where="id < 2")
    sales.delete("id = 5")
    sales.set_properties({"team": "ops"})
    sales.add_partition_field("bucket(2, id)")
    sales.add_column("price", pa.float64())
    sales.maintenance.compact()
    sales.maintenance.rewrite_partitions()
    before = sales.version
    sales.maintenance.rollback(made + 1)
    told = [entry for entry in history(sales.location) if entry.version > made]
    # The column for the new partition field is a commit of Lance's own.
    silent = [entry.operation for entry in told if entry.record is None]
    assert [operation for operation in silent if operation != "maintenance"] == ["alter"]
    known = [entry.record for entry in told if entry.record is not None]
    assert [record.operation for record in known] == [
        *("append", "update", "delete", "alter", "alter", "alter", "compact"),
        *("rewrite_partitions", "rollback"),
    ]
    assert {record.identity.user for record in known} == {getpass.getuser()}
    assert len({record.identity.id for record in known}) == len(known)
    # Each statement began on the version before, a rollback names what it brought back.
    versions = [entry.version for entry in told if entry.record is not None]
    bases = [record.base_version for record in known]
    assert bases[:4] == [made, *versions[:3]]
    assert bases[-1] == made + 1
    assert before < versions[-1]
    ids = {entry.version: entry.record.schema_id for entry in told if entry.record is not None}
    assert len(set(ids.values())) == 2, "the schema was changed once"
    assert known[-1].schema_id == known[0].schema_id != known[-2].schema_id
    assert [record.spec_version for record in known[-3:]] == [2, 2, 1]


def test_the_metadata_table_shows_it(tmp_path: Path) -> None:
    sales = pennon.create(tmp_path / "sales", COLUMNS, ["region"])
    sales.set_properties({"team": "ops"})
    sales.append([{"id": 1, "region": "eu"}])
    *_, altered, appended = sales.snapshots().to_pylist()
    assert altered["operation"] == "alter"
    assert {"user", "base-version", "schema-id", "commit-id"} <= dict(altered["summary"]).keys()
    assert "changed-partition-count" not in dict(altered["summary"])
    assert dict(appended["summary"])["base-version"] == str(altered["snapshot_id"])
    assert dict(appended["summary"])["schema-id"] == dict(altered["summary"])["schema-id"]


@pytest.mark.parametrize("message", ["nightly job", '{"id": 1}', "[1]", ""])
def test_messages_of_other_writers_are_no_records(tmp_path: Path, message: str) -> None:
    sales = pennon.create(tmp_path / "sales", COLUMNS, ["region"])
    manifest = lance.dataset(f"{sales.location}/__manifest")
    updates = lance.LanceOperation.UpdateMap({"theirs": "1"})
    changed = lance.LanceOperation.UpdateConfig(table_metadata_updates=updates)
    lance.LanceDataset.commit(manifest, changed, manifest.version, commit_message=message)
    newest = history(sales.location)[-1]
    assert (newest.operation, newest.record) == ("alter", None)


def test_of_two_changes_of_one_key_one_is_refused(tmp_path: Path) -> None:
    sales = pennon.create(tmp_path / "sales", COLUMNS, ["region"])
    base = sales.snapshot
    assert not isinstance(change_root(base, properties={"team": "a"}), ConcurrentChange)
    assert isinstance(change_root(base, properties={"team": "b"}), ConcurrentChange)
    assert not isinstance(change_root(base, properties={"other": "b"}), ConcurrentChange)
    change_root(sales.refresh().snapshot, removed_properties=["other"])
    assert dict(sales.refresh().properties) == {"team": "a"}


@pytest.mark.usefixtures("without_grace")
def test_a_plain_dataset_tells_what_lance_recorded(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = str(tmp_path / "plain.lance")
    lance.write_dataset(pa.table({"id": [1, 2]}), place)
    lance.write_dataset(pa.table({"id": [3]}), place, mode="append")
    lance.dataset(place).delete("id = 1")
    lance.dataset(place).optimize.compact_files()
    lance.dataset(place).add_columns({"more": "id + 1"})
    lance.dataset(place).drop_columns(["more"])
    lance.write_dataset(pa.table({"id": [4]}), place, mode="overwrite")
    table = pennon.open(place)
    told = table.history()
    operations = [
        "create",
        "append",
        "delete",
        "maintenance",
        "compact",
        "write",
        "alter",
        "overwrite",
    ]
    assert [entry.operation for entry in told] == operations
    listed = lance.dataset(place).versions()
    assert [entry.version for entry in told] == [entry["version"] for entry in listed]
    assert {entry.committed_at.tzinfo for entry in told} == {UTC}
    assert all(entry.record is None for entry in told)
    assert table.history(limit=2) == told[-2:]
    assert table.snapshots()["operation"].to_pylist() == operations
    table.maintenance.expire_snapshots(retain_last=3, older_than=datetime(2999, 1, 1, tzinfo=UTC))
    assert pennon.open(place).history() == told[-3:]
    assert main(["history", place, "--limit", "1"]) == 0
    assert "overwrite" in capsys.readouterr().out
    shutil.rmtree(place)
    with pytest.raises(TableNotFound, match="it was dropped meanwhile"):
        table.history()
