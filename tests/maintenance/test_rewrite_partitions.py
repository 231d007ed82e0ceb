"""Rows of older specs come into partitions of the present one: all of them, once, in one commit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import pennon
from pennon.catalog.configured_catalog import Catalog
from pennon.cli import main
from pennon.maintenance import rewrite_partitions as module
from pennon.maintenance.procedures import call
from pennon.transaction import Transaction

SCHEMA = pa.schema({"id": pa.int64(), "region": pa.utf8(), "kind": pa.utf8()})


def evolved(tmp_path: Path) -> pennon.PartitionedNamespace:
    """A table of two regions, by region at first, then by kind as well."""
    table = pennon.create(str(tmp_path / "orders"), SCHEMA, partition_by=["region"])
    table.append([row(number, region) for number in range(6) for region in ("eu", "us", None)])
    table.add_partition_field("kind")
    table.append([row(100, "eu")])
    return table


def row(number: int, region: str | None) -> dict[str, object]:
    return {"id": number, "region": region, "kind": "ab"[number % 2]}


def ids(table: pennon.PartitionedNamespace) -> list[tuple[int, str | None]]:
    rows = table.scan().to_arrow().to_pylist()
    return sorted(((row_["id"], row_["region"]) for row_ in rows), key=str)


def specs(table: pennon.PartitionedNamespace) -> list[str]:
    leaves = table.refresh().snapshot.leaves().table
    return sorted(name.partition("$")[0] for name in leaves["object_id"].to_pylist())


def test_every_row_is_there_once_and_no_older_partition_stays(tmp_path: Path) -> None:
    table = evolved(tmp_path)
    before, version = ids(table), table.version
    assert table.maintenance.rewrite_partitions(dry_run=True).num_rows == 18
    assert table.version == version
    done = table.maintenance.rewrite_partitions()
    assert (len(done.partitions), done.num_rows, done.spec_version) == (3, 18, 2)
    assert table.version == version + 1
    assert ids(table) == before
    assert specs(table) == ["v2"] * 6
    assert table.scan("kind = 'a' AND region = 'eu'").count_rows() == 4
    assert table.maintenance.check().is_valid
    assert table.maintenance.rewrite_partitions().partitions == []


def test_a_condition_chooses_partitions(tmp_path: Path) -> None:
    table = evolved(tmp_path)
    assert len(table.maintenance.rewrite_partitions("region = 'eu'").partitions) == 1
    assert specs(table) == ["v1", "v1", "v2", "v2"]


def test_a_change_of_a_partition_meanwhile_is_not_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, staging = evolved(tmp_path), module._staged
    before = ids(table)

    def interrupted(*arguments: Any) -> object:
        monkeypatch.setattr(module, "_staged", staging)
        staged = staging(*arguments)
        pennon.open(table.location).delete("id = 3 AND region = 'us'")
        return staged

    monkeypatch.setattr(module, "_staged", interrupted)
    assert table.maintenance.rewrite_partitions().num_rows == 17
    assert ids(table) == [row for row in before if row != (3, "us")]
    assert specs(table) == ["v2"] * 6


def test_a_rollback_to_the_older_spec_leaves_nothing_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, is_done = evolved(tmp_path), module._is_done
    first = next(entry.version for entry in table.history() if entry.operation == "append")

    def behind_a_rollback(*arguments: Any) -> bool:
        pennon.open(table.location).maintenance.rollback(first)
        return is_done(*arguments)

    monkeypatch.setattr(module, "_is_done", behind_a_rollback)
    assert table.maintenance.rewrite_partitions().partitions == []
    assert len(ids(pennon.open(table.location))) == 18


@pytest.mark.parametrize("kind", ["delete", "update", "merge", "overwrite"])
def test_a_statement_that_a_rewrite_came_before_is_made_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """The rows that it has found are in other partitions when it commits."""
    table = evolved(tmp_path)
    ours = pennon.open(table.location)
    commit = Transaction.commit

    def behind_a_rewrite(transaction: Transaction) -> object:
        monkeypatch.setattr(Transaction, "commit", commit)
        assert table.maintenance.rewrite_partitions().num_rows == 18
        return commit(transaction)

    before = ids(table)
    monkeypatch.setattr(Transaction, "commit", behind_a_rewrite)
    gone: list[tuple[int, str | None]] = [(3, "us")]
    come: list[tuple[int, str | None]] = []
    if kind == "delete":
        ours.delete("id = 3 AND region = 'us'")
    elif kind == "update":
        ours.update({"id": 33}, "id = 3 AND region = 'us'")
        come = [(33, "us")]
    elif kind == "merge":
        rows = pa.table({"id": [3, 44], "region": ["us", "us"]})
        merge = ours.merge(rows.to_reader(), on=["id", "region"]).when_matched_delete()
        assert merge.when_not_matched_insert_all().execute().num_deleted_rows == 1
        come = [(44, "us")]
    else:
        ours.overwrite([row(55, "us")], "region = 'us'")
        gone, come = [(id_, "us") for id_ in range(6)], [(55, "us")]
    assert ids(ours) == sorted([row for row in before if row not in gone] + come, key=str)
    assert specs(ours) == ["v2"] * len(specs(ours))


def test_the_command_and_the_procedure_do_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = evolved(tmp_path)
    arguments = {"table": table.location, "where": "region = 'eu'", "dry_run": True}
    catalog = Catalog("lance", str(tmp_path))
    ((count, rows, _, _, listed, _),) = call(catalog, "rewrite_partitions", arguments).rows
    assert (count, rows, listed) == (1, 6, "v1: region=eu")
    assert main(["rewrite-partitions", table.location]) == 0
    assert "3 partitions with 18 rows rewritten into spec 2" in capsys.readouterr().out


def test_a_partition_that_is_read_at_a_branch_is_left_alone(tmp_path: Path) -> None:
    """The main branch has other rows than those that are read."""
    table = evolved(tmp_path)
    leaves = table.snapshot.leaves().table.to_pylist()
    (leaf,) = [
        leaf
        for leaf in leaves
        if leaf["partition_field_region"] == "eu" and leaf["object_id"].startswith("v1$")
    ]
    dataset = lance.dataset(f"{table.location}/{leaf['location']}", leaf["read_version"])
    branch = lance.dataset(f"{table.location}/{leaf['location']}").create_branch("late")
    columns = {field.name: [row(7, "eu")[field.name]] for field in dataset.schema}
    lance.write_dataset(pa.table(columns, schema=dataset.schema), branch.uri, mode="append")
    manifest = lance.dataset(f"{table.location}/__manifest")
    manifest.add_columns([pa.field("read_branch", pa.utf8())])
    manifest.update(
        {"read_branch": "'late'", "read_version": "NULL"},
        where=f"object_id = '{leaf['object_id']}'",
    )
    before = ids(table.refresh())
    assert ("eu", 7) in [(region, number) for number, region in before]
    done = table.maintenance.rewrite_partitions()
    assert (len(done.partitions), len(done.notes)) == (2, 1)
    assert ids(table) == before
