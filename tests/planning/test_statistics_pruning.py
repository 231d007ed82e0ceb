"""Leaves that statistics drop, over real writes: the rows are those of a scan of all leaves."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from pathlib import Path

import lance
import pyarrow as pa
import pytest

import pennon
from pennon.manifest.leaves import leaf_rows
from pennon.namespace import PartitionedNamespace
from pennon.namespace.rows import row_scan
from pennon.planning import plan_scan
from pennon.planning.reports.column_summaries import column_summaries

UTC = dt.UTC
SCHEMA = pa.schema(
    {
        "k": pa.int32(),
        "id": pa.int32(),
        "price": pa.decimal128(10, 2),
        "at": pa.timestamp("us", "UTC"),
        "local": pa.timestamp("us"),
        "day": pa.date32(),
        "name": pa.utf8(),
        "size": pa.float64(),
        "place": pa.struct({"x": pa.int64(), "tags": pa.list_(pa.utf8())}),
    }
)
PREFIX = "a name like "
CONDITIONS = (
    "id = 205",
    "id > 395 OR id < 3",
    "id IN (5, 7, 399, 1000)",
    "id NOT IN (1, 2)",
    "name IN ('no', 'such')",
    "price IN (998.50, 999.50)",
    "price BETWEEN 2.50 AND 3.00",
    "at >= TIMESTAMP '2025-03-05 00:00:00Z'",
    "local < TIMESTAMP_NTZ '2025-01-03 00:00:00'",
    "day = DATE '2025-02-07'",
    f"name = '{PREFIX}3 and longer'",
    f"name LIKE '{PREFIX}2%'",
    "name IS NULL",
    "size > 1e9",
    "size = double('nan')",
    "size <= -0.0",
    "place.x = 210",
    "place.x IS NULL",
    "place IS NULL",
    "id < 100 AND place.x > 100",
    "NOT (id < 390)",
)


def _rows(k: int, count: int = 20) -> pa.Table:
    found = []
    for i in range(count):
        moment = dt.datetime(2025, k, i + 1, tzinfo=UTC)
        found.append(
            {
                "k": k,
                "id": k * 100 + i,
                "price": Decimal(k) + Decimal(i) / 20,
                "at": moment,
                "local": moment.replace(tzinfo=None),
                "day": moment.date(),
                "name": None if i == 3 and k == 2 else f"{PREFIX}{k} and longer",
                "size": [float(k), -0.0, 0.0, float("nan")][i % 4] if k == 3 else float(k),
                "place": None if i == 5 and k == 1 else {"x": k * 100 + i, "tags": ["a"]},
            }
        )
    return pa.Table.from_pylist(found, SCHEMA)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> PartitionedNamespace:
    """Four partitions: appended to twice, changed row by row, compacted, and as written."""
    made = pennon.create(str(tmp_path_factory.mktemp("lake") / "t"), SCHEMA, ["k"])
    for k in range(1, 5):
        made.append(_rows(k))
    made.append(_rows(1).slice(2, 3))
    made.delete("id = 205")
    made.update({"id": "id + 5"}, where="id = 395")
    return made


def _all_leaves(table: PartitionedNamespace, where: str) -> pa.Table:
    """Scan without statistics."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            row_scan,
            "plan_scan",
            lambda *given: plan_scan(*given, by_statistics=False),
        )
        return table.scan(where).to_arrow()


def _check(table: PartitionedNamespace, where: str) -> int:
    """Compare the rows with those of all leaves, and give how many leaves statistics dropped.

    Where there are many leaves the rows of the manifest are chosen before they are read: the same.
    """
    found = table.scan(where).to_arrow()
    wanted = _all_leaves(table, where)
    assert sorted(map(str, found.to_pylist())) == sorted(map(str, wanted.to_pylist())), where
    plan = table.scan(where).plan()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(leaf_rows, "_FEW_TEXTS", 0)
        of_many = table.scan(where).plan()
    assert of_many.table.equals(plan.table), where
    assert of_many.num_pruned == plan.num_pruned, where
    return plan.num_pruned


def test_rows_are_those_of_all_leaves(table: PartitionedNamespace) -> None:
    pruned = {where: _check(table, where) for where in CONDITIONS}
    kept_all = {"id NOT IN (1, 2)", "name IS NULL", "place IS NULL", "size = double('nan')"}
    assert {where for where, count in pruned.items() if not count} <= kept_all, pruned
    assert pruned["id = 205"] == 3  # the row went, its bounds hold
    assert pruned["id IN (5, 7, 399, 1000)"] == 4


def test_columns_keep_their_statistics_by_their_ids(tmp_path: Path) -> None:
    made = pennon.create(str(tmp_path / "t"), SCHEMA, ["k"])
    for k in (1, 2):
        made.append(_rows(k))
    made.rename_column("id", "number")
    made.alter_column("number", type=pa.int64())
    assert _check(made, "number > 190") == 1
    made.drop_column("number")
    made.add_column("number", pa.int64())
    assert _check(made, "number = 105") == 0  # another column of an old name
    made.append(_rows(1).drop_columns(["id"]).append_column("number", pa.array(range(20))))
    assert _check(made, "number = 5") == 0


def test_what_another_writer_moved_on_is_kept(tmp_path: Path) -> None:
    made = pennon.create(str(tmp_path / "t"), SCHEMA, ["k"])
    made.append(_rows(1))
    part = made.scan().plan().partitions[0]
    leaf = lance.dataset(f"{made.location}/{part.location}", version=part.version)
    other = lance.write_dataset(leaf.to_table(), f"{made.location}/{part.location}", mode="append")
    manifest = lance.dataset(f"{made.location}/__manifest")
    row = manifest.to_table(filter="object_type = 'table'")
    at = row.schema.get_field_index("read_version")
    row = row.set_column(at, "read_version", pa.array([other.version], pa.uint64()))
    manifest.merge_insert("object_id").when_matched_update_all().execute(row)
    made = pennon.open(made.location)
    assert _check(made, "id = -1") == 0
    made.append(_rows(1))  # what is not known of the rows before stays so
    assert _check(made, "id = -1") == 0
    made.overwrite(_rows(1), where="k = 1")
    assert _check(made, "id = -1") == 1


def test_an_older_version_is_pruned_by_its_own_statistics(tmp_path: Path) -> None:
    made = pennon.create(str(tmp_path / "t"), SCHEMA, ["k"])
    made.append(_rows(1))
    before = made.version
    made.overwrite(_rows(1, 3), where="k = 1")
    assert _check(made, "id = 115") == 1
    assert _check(pennon.open(made.location, version=before), "id = 115") == 0
    made.maintenance.rollback(version=before)
    made.refresh()
    assert made.scan("id = 115").count_rows() == 1


def test_the_property_says_which_columns_are_counted(tmp_path: Path) -> None:
    made = pennon.create(
        str(tmp_path / "t"),
        SCHEMA,
        ["k"],
        properties={"write.statistics.columns": "name, place"},
    )
    made.append(_rows(1))
    assert _check(made, "id = -1") == 0
    assert _check(made, "place.x = -1") == 1


def test_many_leaves_are_read_from_what_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leaf_rows, "_FEW_TEXTS", 0)
    made = pennon.create(str(tmp_path / "t"), SCHEMA, ["k"])
    for k in range(1, 5):
        made.append(_rows(k))
    versions = [made.version]
    made.delete("id = 110")
    versions.append(made.version)
    made.delete("k = 2")
    versions.append(made.version)
    for version in (*reversed(versions), *versions):
        then = pennon.open(made.location, version=version)
        assert _check(then, "id > 205 AND id < 303") >= 2
        assert _check(then, "id = 110") >= 2


def test_a_compaction_counts_what_it_writes_and_keeps_what_it_leaves(tmp_path: Path) -> None:
    properties = {"write.compaction.enabled": "false"}
    made = pennon.create(str(tmp_path / "t"), SCHEMA, ["k"], properties=properties)
    made.append(_rows(1))
    made.append(_rows(1, 3))
    made.delete("id = 119")  # the greatest, which bounds still tell
    assert _check(made, "id = 119") == 0
    made.maintenance.compact()
    assert _check(made, "id = 119") == 1
    made.append(_rows(1, 2))
    made.append(_rows(1).slice(18))
    # All files but the large one of the compaction are put together.
    first = lance.dataset(
        f"{made.location}/{made.scan().plan().partitions[0].location}",
        version=made.scan().plan().partitions[0].version,
    ).get_fragments()[0]
    size = sum(file.file_size_bytes or 0 for file in first.data_files())
    made.maintenance.compact(target_bytes=2 * size - 1)
    assert _check(made, "id = 119") == 0
    assert _check(made, "id = 120") == 1


def test_statistics_that_another_writer_left_behind_are_none(tmp_path: Path) -> None:
    """One that counts rows as we do and knows nothing of columns."""
    made = pennon.create(str(tmp_path / "t"), SCHEMA, ["k"])
    made.append(_rows(1, 3))
    manifest = lance.dataset(f"{made.location}/__manifest")
    row = manifest.to_table(filter="object_type = 'table'")
    before = json.loads(row["metadata"][0].as_py())["column_statistics"]
    made.append(_rows(1).slice(3))
    manifest = lance.dataset(f"{made.location}/__manifest")
    row = manifest.to_table(filter="object_type = 'table'")
    stated = {**json.loads(row["metadata"][0].as_py()), "column_statistics": before}
    at = row.schema.get_field_index("metadata")
    row = row.set_column(at, "metadata", pa.array([json.dumps(stated)]))
    manifest.merge_insert("object_id").when_matched_update_all().execute(row)
    made = pennon.open(made.location)
    assert made.scan("id = 115").count_rows() == 1
    made.append(_rows(1, 1))
    assert made.scan("id = 115").count_rows() == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("key", "stated"),
    [
        ("field_ids", [[1], [2]]),
        ("lower", [None, None]),
        ("lower", ["x", "x"]),
        ("lower", ["900", "zebra"]),
        ("null_counts", [None, None]),
        ("null_counts", [-1, -1]),
        ("truncated", 5),
        ("distinct_counts", 5),
        ("distinct_counts", ["a", "b"]),
    ],
    ids=str,
)
def test_statistics_that_cannot_be_are_none(tmp_path: Path, key: str, stated: object) -> None:
    made = pennon.create(
        str(tmp_path / "t"), SCHEMA, ["k"], properties={"write.statistics.columns": "id, name"}
    )
    made.append(_rows(1, 3))
    manifest = lance.dataset(f"{made.location}/__manifest")
    row = manifest.to_table(filter="object_type = 'table'")
    metadata = json.loads(row["metadata"][0].as_py())
    damaged = {**json.loads(metadata["column_statistics"]), key: stated}
    text = json.dumps({**metadata, "column_statistics": json.dumps(damaged)})
    at = row.schema.get_field_index("metadata")
    row = row.set_column(at, "metadata", pa.array([text]))
    manifest.merge_insert("object_id").when_matched_update_all().execute(row)
    made = pennon.open(made.location)
    for rows in (3, 6):
        for where in ("id = 101", "id IS NOT NULL", f"name LIKE '{PREFIX}%'", "id IS NULL"):
            _check(made, where)
        assert column_summaries(made.scan().plan(), ["id", "name"]) == {}
        assert made.scan("id >= 100").count_rows() == rows
        made.append(_rows(1, 3))
