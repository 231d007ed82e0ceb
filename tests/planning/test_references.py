"""Leaves that a foreign writer has read at a Lance branch or tag."""

from __future__ import annotations

from pathlib import Path

import lance
import lance_namespace as upstream
import pyarrow as pa
import pytest
from lance_namespace import errors as upstream_errors
from tests.transaction.lake import append, make, stage

from pennon.errors import LeafMissing, LeafReadAtReference, ManifestColumnType
from pennon.maintenance.checks.check_manifest import check
from pennon.manifest import Snapshot
from pennon.namespace import Scan, read_plan
from pennon.planning import plan_scan
from pennon.transaction import Committed, Transaction

_ROWS = {1: "eu", 2: "us", 3: None, 4: "br"}


def _elsewhere(tmp_path: Path, *, strong: bool) -> tuple[Snapshot, dict[str | None, str]]:
    """Four leaves: eu is read at a tag, us on a branch, br at a branch's version, NULL as ever."""
    snapshot = append(make(tmp_path, strong=strong), _ROWS)
    leaves = {
        row["partition_field_region"]: (row["object_id"], row["location"], row["read_version"])
        for row in snapshot.leaves().table.to_pylist()
    }
    references: dict[str, tuple[object, object, object]] = {}
    for region, (object_id, location, version) in leaves.items():
        if region is None:
            references[object_id] = (version, None, None)
            continue
        main = lance.dataset(f"{snapshot.location}/{location}")
        branch = main.create_branch("audit/late")
        first = _add(branch, region, 10)
        branch = _add(first, region, 20)
        main.tags.create("approved", ("audit/late", first.version))
        _add(main, region, 99)
        references[object_id] = {
            "eu": (None, None, "approved"),
            "us": (None, "audit/late", None),
            "br": (first.version, "audit/late", None),
        }[region]
    _state(snapshot.location, references, strong=strong)
    return Snapshot.open(snapshot.location), {name: leaves[name][0] for name in leaves}


def _add(dataset: lance.LanceDataset, region: str, number: int) -> lance.LanceDataset:
    rows = pa.table({"id": [number], "region": [region]}, schema=dataset.schema)
    return lance.write_dataset(rows, dataset.uri, mode="append")


def _state(
    location: str, references: dict[str, tuple[object, object, object]], *, strong: bool
) -> None:
    """Give the manifest the columns and values, as another client of the format would."""
    manifest = lance.dataset(f"{location}/__manifest")
    manifest.add_columns([pa.field("read_branch", pa.utf8()), pa.field("read_tag", pa.utf8())])
    rows = manifest.to_table()
    for at, name in enumerate(("read_version", "read_branch", "read_tag")):
        if not strong and name == "read_version":
            continue
        known = rows[name].to_pylist()
        values = [
            references[object_id][at] if object_id in references else before
            for object_id, before in zip(rows["object_id"].to_pylist(), known, strict=True)
        ]
        column = pa.array(values, rows.schema.field(name).type)
        rows = rows.set_column(rows.column_names.index(name), rows.schema.field(name), column)
    merge = manifest.merge_insert("object_id").when_matched_update_all()
    merge.execute(rows)


def _ids(snapshot: Snapshot, predicate: str | None = None) -> dict[str | None, list[int]]:
    rows = Scan(snapshot, predicate).to_arrow().sort_by("id").to_pylist()
    found: dict[str | None, list[int]] = {}
    for row in rows:
        found.setdefault(row["region"], []).append(row["id"])
    return found


def test_a_leaf_is_read_at_the_branch_or_tag_of_its_row(tmp_path: Path) -> None:
    snapshot, _ = _elsewhere(tmp_path, strong=True)
    # Pennon's own rows are detached in strong mode, so that no branch of main has them.
    assert _ids(snapshot) == {"eu": [10], "us": [10, 20], "br": [10], None: [3]}
    assert _ids(snapshot, "region = 'us' AND id > 10") == {"us": [20]}
    counted = plan_scan(snapshot).table
    known = dict(
        zip(
            counted["partition_field_region"].to_pylist(),
            counted["num_rows"].to_pylist(),
            strict=True,
        )
    )
    assert known == {"eu": None, "us": None, "br": None, None: 1}


def test_branches_and_tags_are_honoured_in_weak_mode_too(tmp_path: Path) -> None:
    snapshot, _ = _elsewhere(tmp_path, strong=False)
    assert not snapshot.has_read_version_column
    # Without read_version a branch is read at its newest version.
    expected = {"eu": [1, 10], "us": [2, 10, 20], "br": [4, 10, 20], None: [3]}
    assert _ids(snapshot) == expected


@pytest.mark.parametrize("strong", [True, False])
def test_a_plan_keeps_what_branch_and_tag_meant(tmp_path: Path, *, strong: bool) -> None:
    snapshot, leaves = _elsewhere(tmp_path, strong=strong)
    plan = plan_scan(snapshot)
    before = sorted(read_plan(plan).to_arrow()["id"].to_pylist())
    for row in snapshot.leaves().table.to_pylist():
        if row["object_id"] != leaves[None]:
            main = lance.dataset(f"{snapshot.location}/{row['location']}")
            branch = lance.dataset(f"{main.uri}/tree/audit/late")
            moved = _add(branch, row["partition_field_region"], 30)
            main.tags.update("approved", ("audit/late", moved.version))
    assert sorted(read_plan(plan).to_arrow()["id"].to_pylist()) == before
    assert _ids(snapshot)["eu"][-1] == 30


@pytest.mark.parametrize("strong", [True, False])
@pytest.mark.parametrize(
    ("region", "what"), [("eu", "tag 'approved'"), ("us", "branch 'audit/late'")]
)
def test_writes_to_such_a_leaf_are_refused_and_others_work(
    tmp_path: Path, region: str, what: str, *, strong: bool
) -> None:
    snapshot, leaves = _elsewhere(tmp_path, strong=strong)
    before = _ids(snapshot)
    with pytest.raises(LeafReadAtReference, match=what):
        stage(snapshot, {7: region})
    # Both changes of the manifest came after the rows were written.
    late = Transaction(snapshot)
    late.append(stage(Snapshot.open(snapshot.location, snapshot.version - 2), {7: region}))
    with pytest.raises(LeafReadAtReference, match="clear read_branch and read_tag"):
        late.commit()
    assert _ids(Snapshot.open(snapshot.location)) == before
    assert _ids(append(snapshot, {8: "nz"})) == {**before, "nz": [8]}
    drop = Transaction(Snapshot.open(snapshot.location))
    drop.drop([leaves[region]])
    outcome = drop.commit()
    assert isinstance(outcome, Committed)
    assert region not in _ids(outcome.snapshot)


def test_a_missing_branch_or_tag_is_named(tmp_path: Path) -> None:
    snapshot, leaves = _elsewhere(tmp_path, strong=True)
    lance.dataset(f"{snapshot.location}/__manifest").update(
        {"read_tag": "'gone'"}, where=f"object_id = '{leaves['eu']}'"
    )
    lance.dataset(f"{snapshot.location}/__manifest").update(
        {"read_branch": "'lost'"}, where=f"object_id = '{leaves['us']}'"
    )
    damaged = Snapshot.open(snapshot.location)
    with pytest.raises(LeafMissing, match="at tag 'gone'"):
        plan_scan(damaged, "region = 'eu'")
    with pytest.raises(LeafMissing, match="tree/lost"):
        plan_scan(damaged, "region = 'us'")
    assert _ids(damaged, "region = 'br'") == {"br": [10]}


def test_check_and_lance_namespace_read_them_there_too(tmp_path: Path) -> None:
    snapshot, leaves = _elsewhere(tmp_path, strong=True)
    report = check(snapshot.location)
    assert [finding for finding in report.findings if finding.severity == "violation"] == []
    client = upstream.connect("pennon", {"root": snapshot.location})
    for region, ids in _ids(snapshot).items():
        path = leaves[region].split("$")
        answer = client.describe_table(upstream.DescribeTableRequest(id=path))
        read = lance.dataset(answer.location, version=answer.version).to_table()
        assert sorted(read["id"].to_pylist()) == ids
        counted = client.count_table_rows(upstream.CountTableRowsRequest(id=path))
        assert counted.count == len(ids)
    with pytest.raises(upstream_errors.UnsupportedOperationError, match="tree/audit/late"):
        client.query_table({"id": leaves["eu"].split("$")})


def test_columns_of_another_type_are_refused(tmp_path: Path) -> None:
    snapshot = append(make(tmp_path), _ROWS)
    manifest = lance.dataset(f"{snapshot.location}/__manifest")
    manifest.add_columns([pa.field("read_tag", pa.int64())])
    with pytest.raises(ManifestColumnType, match="read_tag"):
        Snapshot.open(snapshot.location)
