"""Tables as the published specification has them, whose leaves lack the columns they are cut by."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path

import lance
import pytest
from tests.manifest import handmade

import pennon
from pennon.errors import PartitionValueUnknown, PropertiesInSchema
from pennon.maintenance.checks.check_manifest import check
from pennon.maintenance.checks.findings import Severity
from pennon.maintenance.repair import repair
from pennon.namespace import PartitionedNamespace

COUNTRIES = {1: "US", 2: "DE", 3: "FR", 4: None}


def countries(table: PartitionedNamespace, where: str | None = None) -> dict[int, str | None]:
    rows = table.scan(where).to_arrow().sort_by("id")
    return dict(zip(rows["id"].to_pylist(), rows["country"].to_pylist(), strict=True))


@pytest.fixture(params=["strong", "weak"])
def table(tmp_path: Path, request: pytest.FixtureRequest) -> PartitionedNamespace:
    return pennon.open(handmade.published(tmp_path, strong=request.param == "strong"))


@pytest.mark.parametrize(
    ("where", "ids"),
    [
        (None, {1, 2, 3, 4}),
        ("country = 'US'", {1}),
        ("country IS NULL", {4}),
        ("country <> 'DE'", {1, 3}),
        ("id > 1 AND upper(country) = 'FR'", {3}),
        ("id = 2 OR country LIKE 'U%'", {1, 2}),
    ],
)
def test_a_column_that_leaves_lack_has_the_partition_s_value(
    table: PartitionedNamespace, where: str | None, ids: set[int]
) -> None:
    assert countries(table, where) == {number: COUNTRIES[number] for number in ids}


def test_rows_that_were_there_keep_the_value_when_others_come_and_change(tmp_path: Path) -> None:
    table = pennon.open(handmade.published(tmp_path, strong=False))
    table.append([{"id": number, "country": country} for number, country in ((5, "US"), (6, "X"))])
    every = {**COUNTRIES, 5: "US", 6: "X"}
    assert countries(table) == every
    table.update({"id": "id + 100"}, "country = 'US' AND id = 1")
    table.delete("country = 'DE'")
    merged = table.merge(
        [{"id": 3, "country": "FR"}, {"id": 7, "country": "FR"}], ["id", "country"]
    )
    merged.when_not_matched_insert_all().execute()
    del every[1], every[2]
    every |= {101: "US", 7: "FR"}
    assert countries(table) == every
    table.maintenance.compact()
    assert countries(table) == every
    assert countries(table, "country = 'FR'") == {3: "FR", 7: "FR"}


def test_a_leaf_that_is_gone_by_now_is_still_known_in_the_older_version(tmp_path: Path) -> None:
    location = handmade.published(tmp_path, strong=False)
    before = pennon.open(location)
    lance.dataset(f"{location}/__manifest").delete("partition_field_country = 'FR'")
    assert countries(pennon.open(location)) == {1: "US", 2: "DE", 4: None}
    assert countries(before, "country = 'FR'") == {3: "FR"}


def test_check_tells_of_the_columns_that_leaves_lack(table: PartitionedNamespace) -> None:
    report = check(table.location)
    told = [found for found in report.findings if "as the partition's value" in found.problem]
    assert [found.severity for found in told] == [Severity.WARNING] * 3
    assert told[0].problem.endswith("column country; it reads as the partition's value US")
    assert not [found for found in report.violations if "Naming" not in found.section]


def test_properties_beside_the_columns_are_refused_by_name_until_they_are_copied(
    tmp_path: Path,
) -> None:
    location = handmade.published(tmp_path, in_schema=True)
    with pytest.raises(PropertiesInSchema, match="pennon repair"):
        pennon.open(location)
    assert "pennon repair" in str(check(location).violations[0])
    assert repair(location).keys == ("partition_spec_v1", "schema")
    assert countries(pennon.open(location)) == COUNTRIES


def test_version_rows_name_the_file_of_the_version_for_other_readers(tmp_path: Path) -> None:
    table = pennon.open(handmade.published(tmp_path))
    table.append([{"id": 8, "country": "FR"}, {"id": 9, "country": "CN"}])
    rows = lance.dataset(f"{table.location}/__manifest").to_table().to_pylist()
    places = {row["object_id"]: row["location"] for row in rows if row["object_type"] == "table"}
    told = {
        row["object_id"].rsplit("$", 1)[0]: (json.loads(row["metadata"]), row["read_version"])
        for row in rows
        if row["object_type"] == "table_version"
    }
    assert len(told) == 2
    for leaf, (metadata, version) in told.items():
        assert (Path(table.location) / places[leaf] / metadata["manifest_path"]).is_file()
        other = lance.dataset(f"{table.location}/{places[leaf]}", version=version)
        assert "country" in other.schema.names


def test_a_value_that_no_version_has_any_more_is_not_read_as_null(tmp_path: Path) -> None:
    location = handmade.published(tmp_path, strong=False)
    before = pennon.open(location)
    manifest = lance.dataset(f"{location}/__manifest")
    manifest.delete("partition_field_country = 'FR'")
    manifest.cleanup_old_versions(dt.timedelta(0))
    with pytest.raises(PartitionValueUnknown, match="b4a3c2d1_v1"):
        countries(before, "id = 3")
