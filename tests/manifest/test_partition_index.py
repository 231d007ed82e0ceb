"""Leaves chosen over the index in memory are those that one SQL over ``__manifest`` chooses."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest
from sqlglot import exp
from tests.manifest.handmade import appendix_c
from tests.present import present
from tests.transaction.lake import append, make

from pennon.errors import ManifestMetadataLost
from pennon.manifest import Snapshot, create
from pennon.manifest.leaves import leaf_rows, partition_index
from pennon.planning import plan_scan
from pennon.predicate.dialect import DataFusion
from pennon.spec import NamespaceSchema, PartitionField, PartitionSpec
from pennon.transforms.identity import Identity

CONDITIONS = (
    "object_id LIKE 'v1$%' AND partition_field_{0} = {1}",
    "object_id LIKE 'v1$%' AND (partition_field_{0} < {1} OR partition_field_{0} IS NULL)",
    "object_id LIKE 'v1$%' AND NOT partition_field_{0} IN ({1}, {2})",
    "partition_field_{0} >= {1} AND partition_field_{0} <= {2}",
    "object_id LIKE 'v1$%' AND partition_field_{0} IS NOT DISTINCT FROM NULL",
    "object_id LIKE 'v2$%'",
)


def parsed(text: str) -> exp.Expr:
    condition = DataFusion().parse(text)[0]
    assert condition is not None
    for column in condition.find_all(exp.Column):
        column.this.set("quoted", True)
    return condition


def both(
    snapshot: Snapshot, condition: str, flags: Sequence[str], monkeypatch: pytest.MonkeyPatch
) -> tuple[pa.Table, pa.Table]:
    """Ask over the index, however many it chooses, and by SQL over all rows."""
    asked = parsed(condition), [parsed(flag) for flag in flags]
    monkeypatch.setattr(leaf_rows, "_ONE_OF", 1)
    with monkeypatch.context() as only:
        is_indexed = not any(map(pa.types.is_floating, snapshot.manifest.schema.types))
        if is_indexed and snapshot.num_leaves:
            only.setattr(leaf_rows, "select", None)
        over_index = snapshot.leaves(*asked)
    with monkeypatch.context() as only:
        only.setattr(leaf_rows, "_indexed", lambda *_, **__: None)
        over_all = snapshot.leaves(*asked)
    assert over_index.sql == over_all.sql
    return over_index.table, over_all.table


def check(snapshot: Snapshot, conditions: Sequence[str], monkeypatch: pytest.MonkeyPatch) -> int:
    total = 0
    for condition in conditions:
        over_index, over_all = both(snapshot, condition, conditions[:2], monkeypatch)
        assert repr(over_index.to_pylist()) == repr(over_all.to_pylist()), condition
        total += over_index.num_rows
    return total


def namespace(tmp_path: Path, values: pa.Array, commits: int = 3) -> Snapshot:
    """A namespace by the identity of a column, with leaf rows of these values in some commits."""
    schema = NamespaceSchema.with_fresh_ids(pa.schema([("c", values.type)]))
    column = present(schema.field_by_path(["c"]))
    field = PartitionField("c", (column.id,), Identity(), None, values.type)
    snapshot = create(str(tmp_path / "ns"), schema, PartitionSpec(1, (field,)))
    names = [f"v1$x{at:015}$dataset" for at in range(len(values))]
    table = pa.table(
        {
            "object_id": names,
            "object_type": ["table"] * len(names),
            "location": [f"l{at}" for at in range(len(names))],
            "metadata": [f'{{"num_rows":"{at}"}}' for at in range(len(names))],
            "read_version": pa.array([at + 1 for at in range(len(names))], pa.uint64()),
            "partition_field_c": values,
        }
    )
    arrow = snapshot.manifest.schema
    columns = [
        table[field.name] if field.name in table.column_names else pa.nulls(len(names), field.type)
        for field in arrow
    ]
    rows = pa.table(columns, schema=arrow)
    size = -(-len(names) // commits)
    for first in range(0, len(names), size):
        lance.write_dataset(rows.slice(first, size), snapshot.manifest.uri, mode="append")
    return Snapshot.open(snapshot.location)


NAN = float("nan")
VALUES = {
    "integers": (pa.array([*range(-50, 50), None, 2**63 - 1, -(2**63)], pa.int64()), "-1", "7"),
    "texts": (pa.array(["", "a", "ä", "日本", "\U0001f3b7", "a'b", None, "%", "_"]), "'a'", "'ä'"),
    "floats": (pa.array([NAN, 0.0, -0.0, 1.5, None, float("inf")], pa.float64()), "0.0", "'NaN'"),
    "dates": (
        pa.array([dt.date(1969, 12, 31), dt.date(2024, 2, 29), None, dt.date(1, 1, 1)]),
        "DATE '1969-12-31'",
        "DATE '2024-02-29'",
    ),
    "decimals": (pa.array([1, None, -7], pa.decimal128(20, 2)), "1.00", "-7.00"),
    "booleans": (pa.array([True, False, None]), "TRUE", "FALSE"),
    "bytes": (pa.array([b"", b"\x00\xff", None], pa.binary()), "X'00ff'", "X''"),
}


@pytest.mark.parametrize("kind", VALUES)
def test_every_type_of_value_is_compared_as_sql_over_the_manifest_does(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    values, one, other = VALUES[kind]
    snapshot = namespace(tmp_path, values)
    conditions = [condition.format("c", one, other) for condition in CONDITIONS]
    assert check(snapshot, conditions, monkeypatch) > 0
    assert snapshot.num_leaves == len(values)


@pytest.mark.parametrize("with_read_version", [True, False])
def test_a_foreign_namespace_of_two_specs_is_chosen_from_alike(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, with_read_version: bool
) -> None:
    snapshot = Snapshot.open(appendix_c(tmp_path, with_read_version=with_read_version).location)
    dated = [name.removeprefix("partition_field_") for name in snapshot.partition_columns]
    early = {"event_date": ("DATE '2025-12-10'", "DATE '2025-12-11'")}
    conditions = [
        condition.format(
            name, *early.get(name, ("2025", "2026") if "year" in name else ("'US'", "'x'"))
        )
        for name in dated
        for condition in CONDITIONS
    ]
    assert check(snapshot, conditions, monkeypatch) > 0
    assert snapshot.num_leaves == 4


def test_commits_deletions_and_old_versions_are_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshot = make(tmp_path)
    versions = [snapshot]
    for number in range(6):
        snapshot = append(snapshot, {number: f"r{number % 4}", 10 + number: None})
        versions.append(snapshot)
    manifest = lance.dataset(f"{snapshot.location}/__manifest")
    manifest.delete("partition_field_region = 'r1'")
    versions.append(Snapshot.open(snapshot.location))
    lance.dataset(f"{snapshot.location}/__manifest").optimize.compact_files()
    versions.append(Snapshot.open(snapshot.location))
    conditions = [condition.format("region", "'r1'", "'r2'") for condition in CONDITIONS]
    mixed = [versions[at] for at in np.random.default_rng(5).permutation(len(versions))]
    for order in (versions, versions[::-1], mixed):
        # as a worker that meets these versions first, in this order
        for cache in (partition_index._INDEXES, partition_index._PIECES):
            cache.forget(lambda _: True)
        for snapshot_ in order:
            check(snapshot_, conditions, monkeypatch)
            assert snapshot_.num_leaves == len(snapshot_.leaves().table)


def test_a_commit_reads_its_own_fragments_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshot = namespace(tmp_path, pa.array(range(500), pa.int64()), commits=5)
    assert plan_scan(snapshot, "c = 77").partitions_total == 500
    read: list[int] = []
    scan = partition_index._Assembly._read

    def counted(assembly: partition_index._Assembly, fragments: list) -> dict[int, pa.Table]:
        read.extend(fragment.fragment_id for fragment in fragments)
        return scan(assembly, fragments)

    monkeypatch.setattr(partition_index._Assembly, "_read", counted)
    manifest = lance.dataset(f"{snapshot.location}/__manifest")
    row = manifest.to_table(filter="partition_field_c = 77")
    row = row.set_column(4, "base_objects", row["base_objects"]).set_column(
        row.schema.get_field_index("read_version"), "read_version", pa.array([99], pa.uint64())
    )
    manifest.merge_insert("object_id").when_matched_update_all().execute(row)
    moved = Snapshot.open(snapshot.location)
    plan = plan_scan(moved, "c = 77")
    assert plan.table["read_version"].to_pylist() == [99]
    assert plan.partitions_total == 500
    fragments = [fragment.fragment_id for fragment in moved.manifest.get_fragments()]
    assert read == fragments[-1:]
    assert plan_scan(snapshot, "c = 77").table["read_version"].to_pylist() == [78]


def test_a_leaf_of_a_spec_that_is_not_there_is_not_passed_over(tmp_path: Path) -> None:
    snapshot = namespace(tmp_path, pa.array(range(5), pa.int64()))
    manifest = snapshot.manifest
    row = manifest.to_table(filter="partition_field_c = 3")
    row = row.set_column(0, manifest.schema.field("object_id"), pa.array(["v7$x$dataset"]))
    lance.write_dataset(row, manifest.uri, mode="append")
    damaged = Snapshot.open(snapshot.location)
    with pytest.raises(ManifestMetadataLost):
        _ = damaged.num_leaves
    assert plan_scan(damaged, "c = 2").table.num_rows == 1


def test_places_in_a_plan_are_those_of_the_manifest(tmp_path: Path) -> None:
    shuffled = np.random.default_rng(3).permutation(3000)
    snapshot = namespace(tmp_path, pa.array(shuffled, pa.int64()), commits=7)
    names = snapshot.leaves().table["object_id"].to_pylist()
    assert names == sorted(names)  # the names count the rows as they were written
    few = plan_scan(snapshot, "c < 20").table["object_id"].to_pylist()
    many = plan_scan(snapshot, "c < 2000").table["object_id"].to_pylist()
    assert (len(few), len(many)) == (20, 2000)
    assert few == sorted(few)
    assert many == sorted(many)


@pytest.mark.parametrize("kind", VALUES)
def test_the_leaf_of_a_tuple_is_the_one_that_has_it(tmp_path: Path, kind: str) -> None:
    values = VALUES[kind][0]
    snapshot = namespace(tmp_path, values)
    rows = snapshot.leaves().table
    tuples = [
        pa.record_batch([values.slice(at, 1)], names=["partition_field_c"])
        for at in range(len(values))
    ]
    found = snapshot.leaves_of(1, tuples[::-1])
    if kind == "floats":
        assert found is None
        return
    assert found is not None
    assert [leaves.to_pylist() for leaves in found[::-1]] == [[row] for row in rows.to_pylist()]
    assert [len(found) for found in snapshot.leaves_of(2, tuples) or []] == [0] * len(tuples)
    assert snapshot.leaves_of(1, []) == []


def test_a_write_into_many_partitions_goes_over_no_list_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshot = make(tmp_path)
    for number in range(3):
        snapshot = append(snapshot, {number: f"r{number}"})
    asked: list[object] = []
    leaves = Snapshot.leaves

    def counted(
        self: Snapshot, condition: exp.Expr | None = None, *more: Any, **named: Any
    ) -> object:
        asked.append(condition)
        return leaves(self, condition, *more, **named)

    monkeypatch.setattr(Snapshot, "leaves", counted)
    append(snapshot, {10: "r1", 11: "r9", 12: None})
    assert None not in asked
