"""Which versions a time names once some between have expired: of tables, and of change feeds."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import lance
import pyarrow as pa
import pytest

import pennon
from pennon.catalog.configured_catalog import Catalog
from pennon.catalog.tables.loaded_table import ChangeBounds, find_changes, load
from pennon.errors import ChangeRangeReversed, SnapshotNotFound, TableVersionNotFound
from pennon.maintenance.procedures import call

if TYPE_CHECKING:
    from pathlib import Path


def _micros(moment: Any) -> int:
    return (moment.astimezone(UTC) - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


def _times(dataset: lance.LanceDataset) -> dict[int, int]:
    return {version["version"]: _micros(version["timestamp"]) for version in dataset.versions()}


def test_changes_to_a_time_of_expired_versions_are_refused(tmp_path: Path) -> None:
    """They ended at the tagged version, as if nothing had happened behind it."""
    table = pennon.create(str(tmp_path / "t"), pa.schema([("id", pa.int64())]))
    for number in range(5):
        table.append([{"id": number}])
        if not number:
            table.create_tag("early")
    first, last = table.version - 4, table.version
    times = _times(lance.dataset(f"{table.location}/__manifest"))
    table.maintenance.expire_snapshots(datetime.now(UTC) + timedelta(minutes=1), retain_last=1)
    catalog, name = Catalog("lance", str(tmp_path)), (table.location,)

    def ends(micros: int, *, is_included: bool = True) -> int:
        bounds = ChangeBounds(
            end_micros=micros, includes_end=is_included, start="early", includes_start=False
        )
        return find_changes(catalog, name, bounds)[1].last

    assert ends(times[first]) == first
    assert ends(times[last]) == last
    assert ends(times[last] + 10**15) == table.refresh().version
    for micros, is_included in ((times[first + 2], True), (times[last], False)):
        with pytest.raises(SnapshotNotFound, match="versions of that time have expired"):
            ends(micros, is_included=is_included)


def test_changes_whose_beginning_has_expired_are_refused_by_the_name_of_the_table(
    tmp_path: Path,
) -> None:
    lake = pennon.connect(tmp_path)
    lake.create_namespace("shop")
    table = lake.create_table("shop.orders", pa.schema([("id", pa.int64())]))
    for number in range(3):
        table.append([{"id": number}])
    table.maintenance.expire_snapshots(datetime.now(UTC) + timedelta(minutes=1), retain_last=2)
    catalog, since = Catalog("lance", str(tmp_path)), ChangeBounds(start_micros=0)
    with pytest.raises(SnapshotNotFound, match=r"lance\.shop\.orders at version 3: it has expired"):
        find_changes(catalog, ("shop", "orders"), since)


def test_a_plain_dataset_is_read_as_of_a_time(tmp_path: Path) -> None:
    path = str(tmp_path / "plain.lance")
    for number in range(5):
        lance.write_dataset(pa.table({"id": [number]}), path, mode="append" if number else "create")
    dataset = lance.dataset(path)
    times = _times(dataset)
    catalog = Catalog("lance", str(tmp_path))

    def as_of(micros: int) -> int:
        return load(catalog, (path,), timestamp_micros=micros).snapshot.version

    assert [as_of(micros) for micros in times.values()] == list(times)
    assert as_of(times[2] - 1) == 1
    with pytest.raises(TableVersionNotFound, match="its first version is of"):
        as_of(times[1] - 1)
    dataset.tags.create("kept", 2)
    dataset.cleanup_old_versions(timedelta(0), error_if_tagged_old_versions=False)
    assert (as_of(times[2]), as_of(times[5])) == (2, 5)
    with pytest.raises(TableVersionNotFound, match="have expired"):
        as_of(times[3])


def test_a_version_and_a_time_that_comes_before_it_are_no_range(tmp_path: Path) -> None:
    """Such a range was an empty feed, where one of two versions or two times was refused."""
    table = pennon.create(str(tmp_path / "t"), pa.schema([("id", pa.int64())]))
    for number in range(3):
        table.append([{"id": number}])
    times = _times(lance.dataset(f"{table.location}/__manifest"))
    catalog, name = Catalog("lance", str(tmp_path)), (table.location,)
    first, last = table.version - 1, table.version

    def versions(**bounds: Any) -> tuple[int, int]:
        changes = find_changes(catalog, name, ChangeBounds(**bounds))[1]
        return changes.base, changes.last

    assert versions(start=str(last), end_micros=times[last]) == (first, last)
    assert versions(start_micros=times[first] + 1, end=str(last)) == (first, last)
    assert versions(start="0", end_micros=times[last])[1] == last
    with pytest.raises(ChangeRangeReversed, match=rf"from version {last} to \d{{4}}-"):
        versions(start=str(last), end_micros=times[first])
    with pytest.raises(ChangeRangeReversed, match=rf"from \d{{4}}-.* to version {first}"):
        versions(start_micros=times[last], end=str(first))


@pytest.mark.parametrize("key", ["a b", "`a b`", " `a b` , n", "`n`,`a b`"])
def test_the_columns_of_a_procedure_stand_in_backquotes_or_not(tmp_path: Path, key: str) -> None:
    schema = pa.schema([("a b", pa.int64()), ("n", pa.int64()), ("v", pa.int64())])
    table = pennon.create(str(tmp_path / "t"), schema)
    since = table.append([{"a b": 1, "n": 1, "v": 1}])
    table.update({"v": 2})
    catalog = Catalog("lance", str(tmp_path))
    named = {"table": table.location}
    changes = call(catalog, "changes", {**named, "from_version": since, "key": key}).rows
    assert [change[0] for change in changes] == ["update_preimage", "update_postimage"]
    assert call(catalog, "analyze", {**named, "columns": key}).rows[0][0] == 1


def test_a_version_that_a_plain_dataset_lacks_is_refused_by_the_name_of_the_table(
    tmp_path: Path,
) -> None:
    lance.write_dataset(pa.table({"id": [1]}), str(tmp_path / "plain.lance"))
    catalog = Catalog("lance", str(tmp_path))
    with pytest.raises(TableVersionNotFound, match=r"Cannot read lance\.plain at version 99"):
        load(catalog, ("plain",), "99")
    with pytest.raises(TableVersionNotFound, match=r"Cannot read lance\.plain as of 1970"):
        load(catalog, ("plain",), timestamp_micros=0)
    with pytest.raises(TableVersionNotFound, match=r"Cannot read lance\.plain at version 99"):
        call(catalog, "rollback", {"table": "plain", "version": 99})
