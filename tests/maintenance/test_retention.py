"""The properties that say how long versions are kept: by default for ever, else as they say."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import lance
import pytest
from tests.transaction.lake import SCHEMA, append, latest, make, regions

import pennon
from pennon.errors import InvalidRetention, SnapshotNotFound
from pennon.maintenance import background as behind_commits
from pennon.maintenance.background import expire_old_versions
from pennon.maintenance.checks.check_manifest import check
from pennon.maintenance.expire import expire
from pennon.manifest import Snapshot
from pennon.manifest.dataset.storage import open_manifest, version_numbers

AGE, KEPT = "history.expire.max-snapshot-age-ms", "history.expire.min-snapshots-to-keep"


def num_versions(location: str) -> int:
    return len(version_numbers(open_manifest(location)))


def test_versions_expire_behind_commits_only_where_the_table_says_how_long_they_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshot = append(make(tmp_path), {0: "eu"})
    past = {}
    for number in range(1, 50):
        snapshot = append(snapshot, {number: f"r{number % 2}"})
        past[snapshot.version] = regions(snapshot)
    location, before = snapshot.location, num_versions(snapshot.location)
    assert expire_old_versions(location, {}) == 0
    table = pennon.open(location)
    table.set_properties({KEPT: "10"})
    assert expire_old_versions(location, {}) == 0, "how many are kept tells nothing of an age"
    tagged = sorted(past)[20]
    table.create_tag("kept", tagged)
    table.set_properties({AGE: "0"})
    expired: list[int] = []
    done = threading.Event()

    def told(*arguments: Any) -> int:
        expired.append(expire_old_versions(*arguments))
        done.set()
        return expired[0]

    monkeypatch.setattr(behind_commits, "expire_old_versions", told)
    table.append([{"id": 99, "region": "eu"}])  # the first that this process tells its upkeep
    assert done.wait(60)
    assert expired[0] > before // 2
    kept = set(version_numbers(open_manifest(location)))
    assert len(kept) <= 24, "ten, the tagged one, and merges and changes of properties"
    readable = kept & set(past)
    assert tagged in readable
    assert len(readable) > 5
    assert {version: regions(Snapshot.open(location, version)) for version in readable} == {
        version: past[version] for version in readable
    }
    with pytest.raises(SnapshotNotFound):
        Snapshot.open(location, min(past))
    assert check(location).is_valid
    expire(location)
    assert num_versions(location) <= 24, "what is called keeps as many as the property says"
    assert tagged in {row["version"] for row in lance.dataset(f"{location}/__manifest").versions()}
    assert regions(latest(snapshot))["eu"] == [0, 99]


@pytest.mark.parametrize(("name", "value"), [(AGE, "5 days"), (AGE, "-1"), (KEPT, "0")])
def test_a_number_that_it_cannot_be_is_refused_where_it_is_set(
    tmp_path: Path, name: str, value: str
) -> None:
    table = pennon.create(str(tmp_path / "table"), SCHEMA, partition_by=["region"])
    with pytest.raises(InvalidRetention, match=name):
        table.set_properties({name: value})
    assert name not in table.properties


def test_what_another_writer_set_matters_only_to_who_asks_for_it(tmp_path: Path) -> None:
    location = append(append(make(tmp_path), {1: "eu"}), {2: "eu"}).location
    manifest = lance.dataset(f"{location}/__manifest")
    manifest.update_metadata({f"pennon.property.{AGE}": "5 days"})
    later = datetime.now(UTC) + timedelta(minutes=1)
    with pytest.raises(InvalidRetention, match=AGE):
        expire(location, retain_last=1)
    expire(location, older_than=later)
    assert num_versions(location) <= 2, "the newest, and the one that forgot records of the others"


def test_no_version_is_counted_where_none_can_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    location = append(append(make(tmp_path), {1: "eu"}), {2: "eu"}).location

    def counted(*_: Any) -> None:
        raise AssertionError

    monkeypatch.setattr(lance.LanceDataset, "read_transaction", counted)
    past, later = (datetime.now(UTC) + timedelta(hours=hours) for hours in (-1, 1))
    assert expire(location, older_than=past, retain_last=1).versions == []
    assert expire(location, older_than=later, retain_last=1000).versions == []
