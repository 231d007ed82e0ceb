"""Datasets that pylance wrote become partitions; what cannot be one is refused with its reason."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import lance
import lance_namespace
import pyarrow as pa
import pytest
from lance_namespace import DescribeTableRequest
from tests.transaction import lake

from pennon.catalog.configured_catalog import Catalog
from pennon.catalog.directory import Directory
from pennon.cli import main
from pennon.errors import AdoptionRefused, ProcedureArgument, TableNotFound
from pennon.leaf import LeafSource
from pennon.maintenance.adopt import adopt
from pennon.maintenance.checks.check_manifest import check
from pennon.maintenance.checks.findings import Severity
from pennon.maintenance.leaves.chosen_leaves import RowValues
from pennon.maintenance.procedures import call
from pennon.maintenance.recovered_tuple import OneTuple, recovered_tuple
from pennon.manifest import Snapshot, create
from pennon.namespace import Scan
from pennon.planning import plan_scan
from pennon.spec import NamespaceSchema, spec_of
from pennon.transforms.registry import from_sql


@pytest.fixture
def snapshot(tmp_path: Path) -> Snapshot:
    return lake.append(lake.make(tmp_path), {1: "eu"})


def inside(snapshot: Snapshot, name: str, rows: dict[str, list[object]]) -> str:
    path = f"{snapshot.location}/{name}"
    lance.write_dataset(pa.table(rows), path)
    return path


def test_a_dataset_becomes_a_partition_where_it_is(
    snapshot: Snapshot, capsys: pytest.CaptureFixture[str]
) -> None:
    # Other column order, narrower ids, no field ids: columns meet by name.
    rows = pa.table({"region": ["us", "us"], "id": pa.array([7, 8], pa.int32())})
    path = f"{snapshot.location}/region=us/part.lance"
    lance.write_dataset(rows, path)
    assert main(["adopt", path, "--into", snapshot.location]) == 0
    assert "region=us, 2 rows" in capsys.readouterr().out
    after = Snapshot.open(snapshot.location)
    assert sorted(Scan(after, "region = 'us'").to_arrow()["id"].to_pylist()) == [7, 8]
    assert plan_scan(after, "region = 'us'").table.num_rows == 1
    assert check(snapshot.location).violations == ()
    leaf = next(r for r in after.leaves().table.to_pylist() if r["partition_field_region"] == "us")
    assert leaf["location"] == "region=us/part.lance"
    upstream = lance_namespace.connect("dir", {"root": snapshot.location})
    described = upstream.describe_table(DescribeTableRequest(id=leaf["object_id"].split("$")))
    assert lance.dataset(described.location).count_rows() == 2
    assert lake.regions(lake.append(after, {9: "us"}))["us"] == [7, 8, 9]
    renamed = after.schema.arrow.field("id").with_name("number")
    dataset = lance.dataset(path)
    assert [r.to_pydict() for r in LeafSource(dataset).batches(pa.schema([renamed]))] == [
        {"number": [7, 8]}
    ]


def test_several_datasets_below_a_folder_are_one_commit(snapshot: Snapshot) -> None:
    for region in ("us", "de"):
        inside(snapshot, f"old/region={region}/d.lance", {"id": [1], "region": [region]})
    done = adopt(snapshot, f"{snapshot.location}/old")
    assert {partition.values for partition in done} == {"region=us", "region=de"}
    assert len({partition.version for partition in done}) == 1
    assert set(lake.regions(Snapshot.open(snapshot.location))) == {"eu", "us", "de"}


def test_two_rows_of_different_partitions_are_named(snapshot: Snapshot) -> None:
    path = inside(snapshot, "mixed", {"id": [1, 2, 3], "region": ["us", "us", None]})
    with pytest.raises(AdoptionRefused) as refused:
        adopt(snapshot, path)
    assert "row 0 (region us) has region=us" in str(refused.value)
    assert "row 2 (region NULL) has region=NULL" in str(refused.value)
    assert Snapshot.open(snapshot.location).version == snapshot.version


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        ({"id": [1], "region": ["eu"]}, "is the leaf of region=eu already"),
        ({"id": [1], "region": ["us"], "extra": [1]}, "the table has no column extra"),
        ({"id": ["x"], "region": ["us"]}, "id is string, which does not promote to int64"),
        ({"region": ["us"]}, "lacks the NOT NULL column id"),
        ({"id": [None, 1], "region": ["us", "us"]}, "column id has NULLs"),
    ],
)
def test_a_dataset_that_does_not_fit_is_refused(
    snapshot: Snapshot, rows: dict[str, list[object]], reason: str
) -> None:
    path = inside(snapshot, "part", rows)
    before = lance.dataset(path).version
    with pytest.raises(AdoptionRefused, match=reason):
        adopt(snapshot, path)
    assert lance.dataset(path).version == before


def test_given_values_are_checked_and_needed_for_empty_datasets(snapshot: Snapshot) -> None:
    path = inside(snapshot, "us", {"id": [1], "region": ["us"]})
    with pytest.raises(AdoptionRefused, match="its rows have region=us, but region=de"):
        adopt(snapshot, path, {"region": "de"})
    with pytest.raises(AdoptionRefused, match="'nation' is no partition field"):
        adopt(snapshot, path, {"nation": "de"})
    schema = pa.schema({"id": pa.int64(), "region": pa.utf8()})
    empty = f"{snapshot.location}/empty"
    lance.write_dataset(schema.empty_table(), empty)
    with pytest.raises(AdoptionRefused, match="no rows from which to compute region"):
        adopt(snapshot, empty)
    (done,) = adopt(snapshot, empty, {"region": "de"})
    assert (done.values, done.num_rows) == ("region=de", 0)
    named = f"{snapshot.location}/region=a%2Fb/empty"
    lance.write_dataset(schema.empty_table(), named)
    (done,) = adopt(Snapshot.open(snapshot.location), named)
    assert (done.values, done.num_rows) == ("region=a/b", 0)


def test_a_dataset_elsewhere_is_moved_only_on_request(snapshot: Snapshot, tmp_path: Path) -> None:
    path = str(tmp_path / "elsewhere")
    lance.write_dataset(pa.table({"id": [5], "region": ["us"]}), path)
    with pytest.raises(AdoptionRefused, match="outside of the namespace's folder"):
        adopt(snapshot, path)
    (done,) = adopt(snapshot, path, move=True)
    assert not Path(path).exists()
    assert (Path(snapshot.location) / done.location).is_dir()
    assert lake.regions(Snapshot.open(snapshot.location)) == {"eu": [1], "us": [5]}
    assert check(snapshot.location).findings == ()


def test_the_procedure_takes_the_values_as_a_path_has_them(snapshot: Snapshot) -> None:
    path = inside(snapshot, "d", {"id": [5], "region": ["a/b"]})
    catalog = Catalog("lance", snapshot.location)
    arguments = {"table": snapshot.location, "path": path, "partition_values": "region=a%2Fb"}
    answer = call(catalog, "system.adopt", arguments)
    fields: Any = answer.schema["fields"]
    assert [row["name"] for row in fields][:2] == ["dataset", "object_id"]
    assert answer.rows[0][3:5] == ("region=a/b", 1)
    findings = call(catalog, "check", {"table": snapshot.location}).rows
    assert [finding for finding in findings if finding[0] == Severity.VIOLATION] == []
    assert call(catalog, "repair", {"table": snapshot.location}).rows[0][1] == ""
    with pytest.raises(ProcedureArgument, match="path: it is required"):
        call(catalog, "adopt", {"table": snapshot.location})


TIMES = [dt.datetime(2025, 3, 5, 10, minute, tzinfo=dt.UTC) for minute in (1, 30, 59)]


@pytest.mark.parametrize(
    ("transforms", "sources", "wanted"),
    [
        ([("hours", [])], TIMES, {"ts_year": 2025, "ts_month": 3, "ts_day": 5, "ts_hour": 10}),
        ([("month", [])], [TIMES[0], TIMES[0].replace(year=2024)], {"ts_month": 3}),
        ([("day", [])], [TIMES[0], TIMES[0].replace(month=4)], {"ts_day": 5}),
        ([("bucket", [1])], [*TIMES, None], None),
        ([("year", [])], [TIMES[0], TIMES[0].replace(year=2024)], None),
    ],
)
def test_a_tuple_is_recovered_from_the_ends_or_row_by_row(
    tmp_path: Path,
    transforms: list[tuple[str, list[int]]],
    sources: list[dt.datetime | None],
    wanted: dict[str, int] | None,
) -> None:
    arrow = pa.schema({"ts": pa.timestamp("us", "UTC")})
    schema = NamespaceSchema.with_fresh_ids(arrow)
    calls = [
        from_sql(name, [*({"literal": literal} for literal in literals), {"column": ["ts"]}])
        for name, literals in transforms
    ]
    snapshot = create(str(tmp_path / "ns"), schema, spec_of(schema, calls))
    dataset = lance.write_dataset(pa.table({"ts": sources}, schema=arrow), str(tmp_path / "d"))
    spec = snapshot.current_spec
    types = {field.field_id: snapshot.partition_type(field.field_id) for field in spec.fields}
    found = recovered_tuple(dataset, RowValues(spec, schema, types))
    if wanted is None:
        assert not isinstance(found, OneTuple)
        return
    assert isinstance(found, OneTuple)
    assert {name: value.as_py() for name, value in found.values.items()} == wanted


def test_a_table_is_named_as_sql_names_it(tmp_path: Path) -> None:
    catalog = Catalog("lance", str(tmp_path))
    Directory(catalog).create_namespace(("my shop",), {}, if_not_exists=False)
    for name in ("lance.`my shop`.orders", "`my shop`.orders", "my shop.orders"):
        with pytest.raises(TableNotFound, match=r"lance\.`my shop`\.orders"):
            call(catalog, "check", {"table": name})
