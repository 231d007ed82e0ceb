"""The upkeep of plain datasets, by Lance's own functions; a dry run says what they will do."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from tests.present import present

from pennon.catalog.configured_catalog import Catalog
from pennon.catalog.layouts.plain_snapshot import open_plain
from pennon.errors import PlainDatasetRefused, TableVersionNotFound
from pennon.maintenance import plain_upkeep
from pennon.maintenance.compact import compact
from pennon.maintenance.expire import expire
from pennon.maintenance.procedures import call
from pennon.maintenance.rollback import rollback
from pennon.maintenance.vacuum import vacuum
from pennon.manifest.versions.tags import expiring, tags_of


@pytest.fixture
def path(tmp_path: Path) -> str:
    """A dataset of six files and seven versions, one row deleted."""
    path = str(tmp_path / "plain.lance")
    for number in range(6):
        rows = pa.table({"id": [number, number + 10]})
        lance.write_dataset(rows, path, mode="append" if number else "create")
    lance.dataset(path).delete("id = 2")
    return path


def later() -> datetime:
    return datetime.now(UTC) + timedelta(minutes=1)


def ids(path: str, version: int | None = None) -> list[int]:
    return sorted(lance.dataset(path, version=version).to_table()["id"].to_pylist())


def stored(path: str) -> set[str]:
    return {str(file.relative_to(path)) for file in Path(path).rglob("*") if file.is_file()}


def test_small_files_are_put_together_once(path: str) -> None:
    rows = ids(path)
    planned = compact(path, dry_run=True)
    assert lance.dataset(path).version == 7
    done = compact(path)
    assert (planned.leaves, planned.files_before, planned.num_rows) == (1, 6, 11)
    assert (done.leaves, done.files_before, done.files_after, done.num_rows) == (1, 6, 1, 11)
    assert (len(lance.dataset(path).get_fragments()), ids(path)) == (1, rows)
    assert done.version == lance.dataset(path).version
    assert compact(path).leaves == 0
    assert compact(path, where="1 = 0").leaves == 0
    assert compact(path, strategy="sort").notes


@pytest.mark.usefixtures("without_grace")
def test_what_a_dry_run_of_an_expiry_lists_is_what_goes(path: str) -> None:
    compact(path)
    lance.dataset(path).tags.create("kept", 3)
    before = stored(path)
    assert expire(path).versions == []
    listed = expire(path, older_than=later(), dry_run=True)
    assert stored(path) == before
    done = expire(path, older_than=later())
    assert done == listed
    assert before - stored(path) == set(done.files)
    assert any(file.startswith("data/") for file in done.files)
    assert ids(path, 3) == [0, 1, 2, 10, 11, 12]
    assert len(ids(path)) == 11


@pytest.mark.usefixtures("without_grace")
def test_an_expiry_takes_what_another_has_removed_since_it_looked_for_gone(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked = present(open_plain(path, None, None, {}))
    listed = list(looked.manifest.versions())
    expire(path, older_than=later(), retain_last=1)
    monkeypatch.setattr(plain_upkeep, "listed_versions", lambda _: listed)
    leaf = plain_upkeep.files_of_dataset(looked)
    assert plain_upkeep.files_of_versions_alone(leaf, [1, 2, 3]) == []
    with expiring(looked.manifest, 4, table=path):
        assert [tag.version for tag in tags_of(looked.manifest).values()] == [7]
        plain_upkeep.remove_versions(looked, [1, 2, 3])
    assert ids(path) == [0, 1, 3, 4, 5, 10, 11, 12, 13, 14, 15]


def test_what_no_version_needs_is_removed(path: str) -> None:
    before = stored(path)
    rows = pa.table({"id": [99]})
    lance.fragment.write_fragments(rows, path, schema=rows.schema, mode="append")
    detached = lance.LanceDataset.commit(
        path,
        lance.LanceOperation.Append(
            lance.fragment.write_fragments(rows, path, schema=rows.schema, mode="append")
        ),
        read_version=7,
        detached=True,
    )
    assert vacuum(path).files == []
    listed = vacuum(path, older_than=later(), dry_run=True)
    done = vacuum(path, older_than=later())
    assert listed.files == done.files
    assert len(done.files) == 1
    assert before < stored(path)
    assert len(ids(path)) == 11
    assert lance.dataset(path, version=detached.version).count_rows() == 12


def test_an_older_version_is_brought_back(path: str) -> None:
    assert rollback(path, 7) == 7
    assert (rollback(path, 2), ids(path)) == (8, [0, 1, 10, 11])
    assert rollback(path, timestamp=later()) == 8
    for version in (0, 99):
        with pytest.raises(TableVersionNotFound, match=f"version {version}"):
            rollback(path, version)


@pytest.mark.parametrize(
    ("procedure", "arguments"),
    [
        ("check", {}),
        ("repair", {}),
        ("analyze", {}),
        ("rewrite_partitions", {}),
        ("set_transaction_mode", {"mode": "weak"}),
        ("adopt", {"path": "/nowhere"}),
    ],
)
def test_what_needs_a_manifest_says_so(
    path: str, procedure: str, arguments: dict[str, object]
) -> None:
    catalog = Catalog("lance", str(Path(path).parent))
    with pytest.raises(PlainDatasetRefused, match=f"{procedure} on lance.plain: .* AS SELECT"):
        call(catalog, procedure, {"table": "plain", **arguments})
    rows = call(catalog, "compact", {"table": "plain"}).rows
    assert rows[0][0] == 1
