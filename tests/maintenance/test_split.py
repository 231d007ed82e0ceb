"""Datasets that hold several partitions: their rows are copied into them, in one commit."""

from __future__ import annotations

from pathlib import Path

import lance
import pyarrow as pa
import pytest
from tests.transaction import lake

from pennon.catalog.configured_catalog import Catalog
from pennon.cli import main
from pennon.errors import AdoptionRefused
from pennon.maintenance.adopt import split_datasets
from pennon.maintenance.checks.check_manifest import check
from pennon.maintenance.procedures import call
from pennon.manifest import Snapshot


@pytest.fixture
def snapshot(tmp_path: Path) -> Snapshot:
    return lake.append(lake.make(tmp_path), {1: "eu"})


def dataset(tmp_path: Path, name: str, rows: dict[str, object]) -> str:
    path = str(tmp_path / name)
    lance.write_dataset(pa.table(rows), path, max_rows_per_file=2)
    return path


def test_rows_go_to_new_and_existing_partitions_in_one_commit(
    snapshot: Snapshot, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # Narrower ids, another order of columns, rows of a partition apart from each other.
    ids = pa.array([2, 3, 4, 5], pa.int32())
    path = dataset(tmp_path, "old/a", {"region": ["us", "eu", None, "us"], "id": ids})
    dataset(tmp_path, "old/b", {"id": [6, 7], "region": ["de", "eu"]})
    before = {path_ for path_ in Path(path).rglob("*") if path_.is_file()}
    assert main(["adopt", str(tmp_path / "old"), "--into", snapshot.location, "--split"]) == 0
    told = capsys.readouterr().out
    assert f"{path}: region=us, 2 rows" in told
    assert "5 partitions written" in told
    after = Snapshot.open(snapshot.location)
    assert after.version == snapshot.version + 1
    assert lake.regions(after) == {"eu": [1, 3, 7], "us": [2, 5], None: [4], "de": [6]}
    assert check(snapshot.location).violations == ()
    assert {path_ for path_ in Path(path).rglob("*") if path_.is_file()} == before
    assert lance.dataset(path).version == 1


def test_the_procedure_splits_and_takes_no_values_then(snapshot: Snapshot, tmp_path: Path) -> None:
    path = dataset(tmp_path, "mixed", {"id": [2, 3], "region": ["us", "de"]})
    catalog = Catalog("lance", snapshot.location)
    arguments = {"table": snapshot.location, "path": path, "split": True}
    rows = call(catalog, "adopt", arguments).rows
    assert sorted(row[3:5] for row in rows) == [("region=de", 1), ("region=us", 1)]
    for more in ({"partition_values": "region=us"}, {"move": True}):
        with pytest.raises(AdoptionRefused, match="cannot be given with split"):
            call(catalog, "adopt", {**arguments, **more})


def test_nothing_is_visible_or_left_where_one_dataset_does_not_fit(
    snapshot: Snapshot, tmp_path: Path
) -> None:
    dataset(tmp_path, "old/a", {"id": [2, 3], "region": ["us", "de"]})
    folder = str(tmp_path / "old")
    dataset(tmp_path, "old/b", {"id": ["x"], "region": ["us"]})
    with pytest.raises(AdoptionRefused, match="column id is string"):
        split_datasets(snapshot, folder)
    dataset(tmp_path, "elsewhere/b", {"id": [4], "region": ["us"]})
    files = {path for path in Path(snapshot.location).rglob("*") if path.is_file()}
    after = lake.append(snapshot, {9: "eu"})
    # Another writer's append does not stand in the way.
    split_datasets(snapshot, str(tmp_path / "elsewhere"))
    assert lake.regions(lake.latest(after)) == {"eu": [1, 9], "us": [4]}
    with pytest.raises(AdoptionRefused, match="there is no Lance dataset"):
        split_datasets(snapshot, str(tmp_path / "nothing"))
    assert files <= {path for path in Path(snapshot.location).rglob("*") if path.is_file()}
