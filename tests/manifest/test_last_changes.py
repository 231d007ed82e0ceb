"""When each partition changed last, against a comparison of all leaves of all versions."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pyarrow as pa

import pennon
from pennon.manifest import Snapshot
from pennon.manifest.versions.history import last_changes

if TYPE_CHECKING:
    from pathlib import Path

SCHEMA = pa.schema([("k", pa.int32()), ("v", pa.int64())])


def states(snapshot: Snapshot) -> dict[str, tuple[str, int]]:
    rows = snapshot.leaves().table.select(["object_id", "location", "read_version"]).to_pylist()
    return {row["object_id"]: (row["location"], row["read_version"]) for row in rows}


def by_comparison(latest: Snapshot) -> dict[str, int]:
    """Go back from the newest version for as long as a leaf is what it is."""
    now = states(latest)
    found = dict.fromkeys(now, latest.version)
    going = set(now)
    for version in range(latest.version - 1, 0, -1):
        before = states(latest.at_version(version))
        going = {leaf for leaf in going if before.get(leaf) == now[leaf]}
        found.update(dict.fromkeys(going, version))
    return found


def test_each_leaf_changed_last_where_it_became_what_it_is(tmp_path: Path) -> None:
    place = str(tmp_path / "n")
    table = pennon.create(place, SCHEMA, ["k"])
    for step in range(12):  # more than a commit that merges the manifest's fragments takes
        keys = [None, step % 3, step % 4]
        table.append(pa.table({"k": keys, "v": [step] * 3}, SCHEMA))
    table.delete("k = 2 AND v < 5")
    table.delete("k = 3")
    table.append(pa.table({"k": [3, 9], "v": [0, 0]}, SCHEMA))
    for version in (None, 9):
        snapshot = Snapshot.open(place, version)
        expected = by_comparison(snapshot)
        assert len(set(expected.values())) > 1
        assert last_changes(snapshot) == expected


def test_what_has_expired_is_not_told(tmp_path: Path) -> None:
    place = str(tmp_path / "n")
    table = pennon.create(place, SCHEMA, ["k"])
    for step in range(4):
        table.append(pa.table({"k": [step, 7], "v": [0, 0]}, SCHEMA))
    known = last_changes(Snapshot.open(place))
    table.maintenance.expire_snapshots(datetime.now(UTC) + timedelta(minutes=1), retain_last=2)
    latest = Snapshot.open(place)
    left = last_changes(latest)
    assert 0 < len(left) < len(known) == 5
    assert left.items() <= known.items()


def test_what_a_rollback_put_back_was_changed_by_it(tmp_path: Path) -> None:
    place = str(tmp_path / "n")
    table = pennon.create(place, SCHEMA, ["k"])
    table.append(pa.table({"k": [1, 2], "v": [0, 0]}, SCHEMA))
    before = Snapshot.open(place)
    table.append(pa.table({"k": [1], "v": [1]}, SCHEMA))
    table.maintenance.rollback(before.version)
    latest = Snapshot.open(place)
    assert states(latest) == states(before)
    assert sorted(last_changes(latest).values()) == [before.version, latest.version]
    metadata = pennon.open(place).metadata("partitions").to_pylist()
    told = {row["partition"]["k"]: row["last_updated_snapshot_id"] for row in metadata}
    assert told == {1: latest.version, 2: before.version}
