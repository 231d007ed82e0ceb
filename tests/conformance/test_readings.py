"""Readings of places where the specification is silent, where no other test holds them."""

from __future__ import annotations

import datetime as dt
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from tests.manifest import handmade
from tests.transaction import lake

from pennon.errors import InvalidPartitionFieldName
from pennon.grouping.key_grouping import report
from pennon.manifest import LeafChange, Snapshot, commit_leaves, create, leaf_name
from pennon.planning import plan_scan
from pennon.spec import NamespaceSchema, PartitionSpec, spec_of
from pennon.spec.column_names import text_of_value
from pennon.spec.evolution import add_field
from pennon.spec.functions import layout_of
from pennon.transaction import Committed, Transaction
from pennon.transforms.registry import TransformCall, from_sql

DAY = dt.date(2025, 12, 10)


def written(location: str) -> lance.LanceDataset:
    return lance.dataset(f"{location}/__manifest")


def planned(location: str, predicate: str | None) -> dict[str, str | None]:
    plan = plan_scan(Snapshot.open(location), predicate)
    return {partition.object_id: partition.residual for partition in plan.partitions}


def call(function: str, column: str) -> TransformCall:
    return from_sql(function, [{"column": [column]}])


@pytest.mark.spec("reading 5")
def test_table_version_rows_may_have_the_values_of_their_table(tmp_path: Path) -> None:
    made = handmade.appendix_c(tmp_path)
    values = {"partition_field_event_date": "DATE '2025-12-10'"}
    condition = f"object_type = 'table_version' AND object_id LIKE '{handmade.SALES_EARLY}%'"
    written(made.location).update(values, where=condition)
    table = Snapshot.open(made.location).leaves().table
    found = zip(table["object_id"].to_pylist(), table["read_version"].to_pylist(), strict=True)
    assert dict(found) == made.read_versions


@pytest.mark.spec("reading 6")
def test_every_version_of_a_leaf_stays_recorded_and_readable(tmp_path: Path) -> None:
    snapshots = [lake.append(lake.make(tmp_path), {1: "eu"})]
    snapshots.append(lake.append(snapshots[-1], {2: "eu", 3: "us"}))
    overwriting = Transaction(snapshots[-1])
    overwriting.replace(lake.stage(snapshots[-1], {4: "eu"}))
    overwritten = overwriting.commit()
    assert isinstance(overwritten, Committed)
    again = Transaction(overwritten.snapshot)
    again.replace(lake.stage(overwritten.snapshot, {5: "eu", 6: "us"}))
    replaced = again.commit()
    assert isinstance(replaced, Committed)
    snapshots += [overwritten.snapshot, replaced.snapshot]
    rows = written(replaced.snapshot.location).to_table(filter="object_type = 'table_version'")
    recorded = set(rows["read_version"].to_pylist())
    read_by_any: set[int] = set()
    for snapshot, ids in zip(snapshots, ([1], [1, 2, 3], [3, 4], [5, 6]), strict=True):
        then = Snapshot.open(snapshot.location, snapshot.version)
        assert sorted(row["id"] for row in lake.read(then)) == ids
        read_by_any |= set(then.leaves().table["read_version"].to_pylist())
    assert recorded == read_by_any


@pytest.mark.spec("reading 15")
def test_gaps_between_spec_versions_are_read(tmp_path: Path) -> None:
    made = handmade.appendix_c(tmp_path)
    later = {**handmade.METADATA["partition_spec_v2"], "id": 7}
    written(made.location).update_metadata({"partition_spec_v7": json.dumps(later)})
    snapshot = Snapshot.open(made.location)
    assert sorted(snapshot.specs) == [1, 2, 7]
    assert snapshot.current_spec.spec_version == 7
    assert set(planned(made.location, None)) == set(made.rows)


@pytest.mark.spec("reading 19")
def test_a_field_id_that_differs_in_case_only_is_refused() -> None:
    schema = NamespaceSchema.with_fresh_ids(pa.schema({"a": pa.string(), "b": pa.string()}))
    (own,) = spec_of(schema, [call("identity", "a")]).fields
    foreign = PartitionSpec(1, (replace(own, field_id="Region"),))
    with pytest.raises(InvalidPartitionFieldName, match="has or had it"):
        add_field({1: foreign}, schema, call("identity", "b"), "region")


@pytest.mark.spec("reading 30")
def test_hours_of_a_date_that_another_writer_recorded_are_read(tmp_path: Path) -> None:
    made = handmade.appendix_c(tmp_path)
    spec: dict[str, Any] = json.loads(json.dumps(handmade.METADATA["partition_spec_v2"]))
    spec["fields"][0]["transform"] = {"type": "hour"}
    dataset = written(made.location)
    dataset.update_metadata({"partition_spec_v2": json.dumps(spec)})
    dataset.update({"partition_field_event_year": "0"}, where="object_id LIKE 'v2$%'")
    assert set(planned(made.location, None)) == set(made.rows)
    assert handmade.US in planned(made.location, "event_date = DATE '2025-12-10'")
    snapshot = Snapshot.open(made.location)
    plan = plan_scan(snapshot, None)
    assert report(snapshot, plan, [("event_date",)]) is None
    spec_of_v3 = add_field(snapshot.specs, snapshot.schema, call("identity", "id"))
    assert [field.field_id for field in spec_of_v3.fields] == ["event_year", "country", "id"]


@pytest.mark.spec("reading 31")
def test_the_day_of_the_month_says_nothing_about_the_month() -> None:
    schema = NamespaceSchema.with_fresh_ids(pa.schema({"d": pa.date32()}))
    alone = {
        version: PartitionSpec(version, spec_of(schema, [call(function, "d")]).fields)
        for version, function in ((1, "day"), (2, "month"))
    }
    leaves = pa.table({"object_id": ["v1$a$dataset", "v2$b$dataset"]})
    assert layout_of(alone, schema, leaves).functions == ()


@pytest.mark.spec("reading 32")
def test_a_level_that_a_version_does_not_have_is_not_the_null_partition(tmp_path: Path) -> None:
    found = planned(handmade.appendix_c(tmp_path).location, "country IS NULL")
    assert set(found) == {handmade.SALES_EARLY, handmade.SALES_LATE, handmade.NOWHERE}
    assert found[handmade.NOWHERE] is None
    assert found[handmade.SALES_EARLY] is not None


@pytest.mark.spec("reading 33")
def test_two_leaves_with_one_tuple_are_both_read(tmp_path: Path) -> None:
    made = handmade.appendix_c(tmp_path)
    values = {"partition_field_event_date": "DATE '2025-12-10'"}
    written(made.location).update(values, where="object_id LIKE 'v1$w1x2y3z4a5b6c7d8%'")
    found = planned(made.location, "event_date = DATE '2025-12-10'")
    assert {handmade.SALES_EARLY, handmade.SALES_LATE} <= set(found)


@pytest.mark.spec("reading 36")
@pytest.mark.parametrize(
    ("value", "text"),
    [
        (pa.scalar(DAY), "2025-12-10"),
        (pa.scalar(1, pa.timestamp("s", "America/New_York")), "1970-01-01T00:00:01Z"),
        (pa.scalar(1, pa.timestamp("s")), "1970-01-01T00:00:01"),
        (pa.scalar("a$b"), "a$b"),
        (pa.scalar(-7), "-7"),
    ],
)
def test_values_have_arrows_text_in_properties(value: pa.Scalar, text: str) -> None:
    assert text_of_value(value) == text


@pytest.mark.spec("reading 37")
def test_metadata_without_anything_is_written_as_braces_and_read_as_null(tmp_path: Path) -> None:
    schema = NamespaceSchema.with_fresh_ids(pa.schema({"region": pa.string()}))
    snapshot = create(str(tmp_path / "ours"), schema, spec_of(schema, [call("identity", "region")]))
    value = pa.scalar("US")
    name = leaf_name(snapshot.salt, 1, [value])
    commit_leaves(
        snapshot, [LeafChange(name.object_id, name.directory, {"region": value}, 2**63, 1)]
    )
    rows = written(snapshot.location).to_table().to_pylist()
    assert {row["metadata"] for row in rows if row["object_type"] == "namespace"} == {"{}"}

    made = handmade.appendix_c(tmp_path)
    written(made.location).update({"metadata": "NULL"})
    assert set(planned(made.location, None)) == set(made.rows)
