"""Indexes from CREATE to vacuum: no answer depends on them, and they follow the rows."""

from __future__ import annotations

import random
import struct
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from tests.torture.searches import (
    DIMENSION,
    SCHEMA,
    check_answers,
    made,
    nearest,
    rows,
    take_steps,
)

import pennon
from pennon.errors import (
    IndexAlreadyExists,
    IndexNotFound,
    IndexOptionRefused,
    IndexRefused,
    SearchOptionRefused,
)
from pennon.leaf.write.leaf_commit import files_by_fragment
from pennon.manifest.commits.commit_lookup import rewritten_leaves
from pennon.manifest.commits.root_change import change_root
from pennon.search import define_index
from pennon.search.indexes import build_segment
from pennon.transaction import Committed, Transaction

KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "IVF_FLAT": ("v", {}),
    "IVF_SQ": ("v", {"num_partitions": 2}),
    "IVF_PQ": ("v", {"num_sub_vectors": "4"}),
    "IVF_RQ": ("v", {}),
    "IVF_HNSW_FLAT": ("v", {"m": 8}),
    "IVF_HNSW_SQ": ("v", {}),
    "IVF_HNSW_PQ": ("v", {}),
    "BTREE": ("n", {}),
    "BITMAP": ("text", {}),
    "ZONEMAP": ("n", {"rows_per_zone": 100}),
    "BLOOMFILTER": ("n", {"probability": "0.01", "number_of_items": 1000}),
    "LABEL_LIST": ("tags", {}),
    "NGRAM": ("text", {}),
    "INVERTED": ("text", {"stem": "true", "with_position": False}),
}
CONDITIONS = (
    "n = 7",
    "n > 95",
    "n IS NULL",
    "NOT (n <= 90)",
    "n IN (1, 2, NULL)",
    "text = 'word 3'",
    "text <> 'word 3' AND n < 5",
    "text LIKE '%rd 1%'",
    "text IN ('word 3', NULL)",
)


def scanned(path: Path, where: str) -> set[int]:
    return set(pennon.open(path).scan(where, columns=["id"]).to_arrow()["id"].to_pylist())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("layout", ["strong", "weak", "plain"])
def test_an_index_of_each_kind_changes_no_answer(tmp_path: Path, kind: str, layout: str) -> None:
    drawn = random.Random(kind)  # noqa: S311 - test data
    table = made(tmp_path, drawn, layout)
    query = [drawn.gauss(2, 2) for _ in range(DIMENSION)]
    before = {where: scanned(tmp_path / "t", where) for where in CONDITIONS}
    column, options = KINDS[kind]
    table.create_index(column, kind, "own", min_bytes=0, **options)
    listed = table.metadata("indexes").to_pylist()
    assert [row["rows_not_indexed"] or 0 for row in listed] == [0] * len(listed)
    assert sum(row["rows_indexed"] for row in listed) == 1_000
    assert all(row["size_in_bytes"] for row in listed)
    table.append(rows(drawn, 200, 1_000))
    table.delete("id % 9 = 4")
    after = {where: scanned(tmp_path / "t", where) for where in CONDITIONS}
    kept = {where: {at for at in ids if at % 9 != 4} for where, ids in before.items()}
    assert {where: {at for at in ids if at < 1_000} for where, ids in after.items()} == kept
    exact, approximate = (nearest(table, query, exact=one) for one in (True, False))
    assert len({*map(str, exact)} & {*map(str, approximate)}) >= 9
    table.refresh_indexes()
    assert {where: scanned(tmp_path / "t", where) for where in CONDITIONS} == after
    with pytest.raises(IndexAlreadyExists):
        table.create_index(column, kind, "own")
    table.drop_index("own")
    assert all(row["size_in_bytes"] == 0 for row in table.metadata("indexes").to_pylist())
    with pytest.raises(IndexNotFound, match="it has none"):
        table.drop_index("own")


@pytest.mark.parametrize("seed", range(3))
def test_answers_are_right_whatever_happens_to_a_table_with_indexes(
    tmp_path: Path, seed: int
) -> None:
    take_steps(tmp_path, random.Random(seed), 14)  # noqa: S311 - test data


def test_fragments_of_another_history_are_not_taken_for_those_of_an_index(tmp_path: Path) -> None:
    """Behind a rollback new rows have the numbers of fragments that an index was built of."""
    drawn = random.Random(4)  # noqa: S311 - test data
    table = pennon.create(tmp_path / "t", SCHEMA)
    before = table.append(rows(drawn, 300, 0))
    table.append(rows(drawn, 300, 1_000))
    definition = define_index(table.snapshot, "id", "BTREE", table="t", options={"min_bytes": 0})
    leaf = table.scan().plan().partitions[0]
    dataset = lance.dataset(str(tmp_path / "t" / leaf.location), version=leaf.version)
    column, columns = table.snapshot.schema.arrow.field("id"), table.snapshot.schema.arrow
    segment = build_segment(dataset, definition, column, columns, [0, 1])
    assert segment is not None
    table.maintenance.rollback(before)
    table.append(rows(drawn, 300, 5_000))
    transaction = Transaction(table.snapshot)
    transaction.reindex(leaf.object_id, [segment], [], files_by_fragment(dataset))
    assert isinstance(transaction.commit(), Committed)
    assert scanned(tmp_path / "t", "id = 5001") == {5001}
    assert scanned(tmp_path / "t", "id = 1001") == set()
    assert scanned(tmp_path / "t", "id = 1") == {1}
    # Another segment that covers the number would bring what this one has of other rows.
    for is_refreshed in (False, True):
        if is_refreshed:
            change_root(table.refresh().snapshot, indexes={definition.key: definition.to_json()})
            table.refresh().refresh_indexes()
        covered = table.refresh().metadata("indexes")["rows_indexed"].to_pylist()
        assert covered == ([600] if is_refreshed else [])
        for at, found in ((5001, {5001}), (1001, set()), (1, {1})):
            assert scanned(tmp_path / "t", f"id = {at}") == found


def test_rows_that_a_rollback_brings_back_are_not_taken_for_those_of_an_index(
    tmp_path: Path,
) -> None:
    """Their fragment has the files that the index was built of, and rows that it has not."""
    drawn = random.Random(4)  # noqa: S311 - test data
    table = pennon.create(tmp_path / "t", SCHEMA)
    before = table.append(rows(drawn, 300, 0))
    table.delete("id = 7")
    snapshot = table.snapshot
    leaf = table.scan().plan().partitions[0]
    dataset = lance.dataset(str(tmp_path / "t" / leaf.location), version=leaf.version)
    files, columns = files_by_fragment(dataset), snapshot.schema.arrow
    table.maintenance.rollback(before)
    for column, kind in (("id", "BTREE"), ("text", "INVERTED")):
        definition = define_index(snapshot, column, kind, table="t", options={"min_bytes": 0})
        segment = build_segment(dataset, definition, columns.field(column), columns, [0])
        assert segment is not None
        transaction = Transaction(table.refresh().snapshot)
        transaction.reindex(leaf.object_id, [segment], [], files)
        assert isinstance(transaction.commit(), Committed)
    table = pennon.open(tmp_path / "t")
    assert scanned(tmp_path / "t", "id = 7") == {7}
    check_answers(table, drawn)


def test_writers_go_on_while_an_index_is_made(tmp_path: Path) -> None:
    drawn = random.Random(5)  # noqa: S311 - test data
    made(tmp_path, drawn)

    def append(number: int) -> None:
        mine = random.Random(number)  # noqa: S311 - test data
        pennon.open(tmp_path / "t").append(rows(mine, 20, 10_000 + 100 * number))

    with ThreadPoolExecutor(3) as pool:
        writers = [pool.submit(append, number) for number in range(12)]
        other = pennon.open(tmp_path / "t")
        other.create_index("v", "IVF_RQ", min_bytes=0)
        other.create_index("n", "BTREE", min_bytes=0)
        refreshes = [pool.submit(pennon.open(tmp_path / "t").refresh_indexes) for _ in range(3)]
        for writer in writers:
            writer.result()
        for refresh in refreshes:
            refresh.result()
    table = pennon.open(tmp_path / "t")
    check_answers(table, drawn)
    assert {index.name for index in table.indexes()} == {"v_idx", "n_idx"}
    assert table.maintenance.check().is_valid
    table.refresh_indexes()
    listed = table.metadata("indexes")
    assert set(listed["rows_not_indexed"].to_pylist()) == {0}
    check_answers(table, drawn)


def test_an_index_changes_no_row_for_those_who_follow_changes(tmp_path: Path) -> None:
    table = made(tmp_path, random.Random(6))  # noqa: S311 - test data
    before = table.version
    table.create_index("v", "IVF_RQ", min_bytes=0)
    table.create_index("n", "BTREE", min_bytes=0)
    assert table.changes(before).num_rows == 0
    assert [row.operation for row in table.history(2)] == ["alter", "index"]


def test_an_index_of_rows_that_are_gone_is_no_rewrite(tmp_path: Path) -> None:
    """Others look for what lies between two versions, step by step, and need an end."""
    table = made(tmp_path, random.Random(12))  # noqa: S311 - test data
    before = table.snapshot
    leaf = table.scan().plan().partitions[0]
    transaction = Transaction(before, operation="index")
    transaction.reindex(leaf.object_id, [], [], {})
    assert isinstance(transaction.commit(), Committed)
    assert rewritten_leaves(str(tmp_path / "t")) == {}
    late = Transaction(before)
    late.read([["n = 7"]])
    late.reindex(leaf.object_id, [], [], {})
    assert isinstance(late.commit(), Committed)


def test_vacuum_takes_the_files_of_indexes_that_no_version_has(tmp_path: Path) -> None:
    table = made(tmp_path, random.Random(7))  # noqa: S311 - test data
    table.create_index("v", "IVF_RQ", min_bytes=0)
    files = set(tmp_path.glob("t/*/_indices/*/*"))
    assert files
    table.maintenance.vacuum(older_than=datetime.now(UTC) + timedelta(hours=1))
    assert set(tmp_path.glob("t/*/_indices/*/*")) == files
    table.drop_index("v_idx")
    table.maintenance.expire_snapshots(older_than=datetime.now(UTC), retain_last=1)
    table.maintenance.vacuum(older_than=datetime.now(UTC) + timedelta(hours=1))
    assert not list(tmp_path.glob("t/*/_indices/*/*"))
    check_answers(table, random.Random(7))  # noqa: S311 - test data


def test_any_client_of_lance_uses_the_index_at_the_version_that_the_manifest_names(
    tmp_path: Path,
) -> None:
    table = made(tmp_path, random.Random(8))  # noqa: S311 - test data
    table.create_index("v", "IVF_RQ", min_bytes=0, metric="cosine")
    table.maintenance.compact()
    for leaf in table.scan().plan().partitions:
        dataset = lance.dataset(str(tmp_path / "t" / leaf.location), version=leaf.version)
        query = {"column": "v", "q": [1.0] * DIMENSION, "k": 3}
        assert "ANNSubIndex" in dataset.scanner(nearest=query).explain_plan()
    assert table.search([1.0] * DIMENSION).plan().metric == "cosine"
    lines = table.search([1.0] * DIMENSION, where="tenant = 'a'").explain()
    assert "partitions: 1 of 2" in lines
    assert "by index: 1 leaves" in lines
    assert "by index: 0 leaves" in table.search([1.0] * DIMENSION, exact=True).explain()


def test_small_leaves_and_leaves_that_are_ruled_out_get_no_index(tmp_path: Path) -> None:
    table = made(tmp_path, random.Random(9))  # noqa: S311 - test data
    table.create_index("v", "IVF_RQ")
    assert set(table.metadata("indexes")["rows_indexed"].to_pylist()) == {0}
    table.create_index("n", "BTREE", min_bytes=0, where="tenant = 'a'")
    of_n = [row for row in table.metadata("indexes").to_pylist() if row["index"] == "n_idx"]
    assert sorted(row["rows_indexed"] > 0 for row in of_n) == [False, True]
    table.drop_column("n")
    assert [index.name for index in table.indexes()] == ["v_idx"]
    check = table.maintenance.check()
    assert check.is_valid


def test_an_index_that_cannot_be_is_told_in_one_sentence(tmp_path: Path) -> None:
    table = made(tmp_path, random.Random(10))  # noqa: S311 - test data
    before = table.version
    with pytest.raises(IndexRefused, match="IVF_XX is no kind of index"):
        table.create_index("v", "IVF_XX")
    with pytest.raises(IndexRefused, match="n is of type int32"):
        table.create_index("n", "IVF_RQ")
    with pytest.raises(IndexRefused, match="measures no distances"):
        table.create_index("n", "BTREE", metric="l2")
    with pytest.raises(SearchOptionRefused, match="metric"):
        table.create_index("v", metric="hamming")
    with pytest.raises(IndexOptionRefused, match="no such option"):
        table.create_index("v", num_partition=4)
    with pytest.raises(IndexOptionRefused, match="of type int"):
        table.create_index("v", num_partitions="many")
    with pytest.raises(IndexNotFound, match="it has none"):
        table.refresh_indexes("v_idx")
    assert table.refresh().version == before
    with pytest.raises(IndexRefused, match="divides vectors into 3, and v has 8"):
        table.create_index("v", "IVF_PQ", num_sub_vectors=3)
    with pytest.raises(IndexRefused, match=r"/t: Lance says "):
        table.create_index("text", "INVERTED", language="of nobody")
    assert table.indexes() == []


@pytest.mark.parametrize("kind", ["BTREE", "BITMAP", "ZONEMAP", "BLOOMFILTER"])
def test_an_index_takes_odd_values_for_what_they_are(tmp_path: Path, kind: str) -> None:
    """NaN, both zeros, infinities and NULL, and texts that are patterns, as without an index."""
    drawn = random.Random(11)  # noqa: S311 - test data
    floats = [None, float("nan"), 0.0, -0.0, 1.5, -1.5, float("inf"), float("-inf"), 1e-300]
    texts = [None, "", "a", "A", "a%", "a_b", "ü", "z" * 40]
    schema = pa.schema({"id": pa.int64(), "f": pa.float64(), "s": pa.string()})
    table = pennon.create(tmp_path / "t", schema)
    table.append(
        [{"id": at, "f": drawn.choice(floats), "s": drawn.choice(texts)} for at in range(400)]
    )
    conditions = (
        *("f = 0D", "f = -0D", "f > 1D", "f < 0D", "f = double('NaN')", "f >= double('NaN')"),
        *("NOT (f > 1D)", "f IN (0D, 1.5D)", "f NOT IN (0D)", "f IS NULL", "f <> 1.5D"),
        *("s = 'a'", "s > 'a'", "s LIKE 'a%'", "s = ''", "s IN ('a', 'ü')", "NOT (s LIKE '%a%')"),
        *("s <> 'a' OR s IS NULL", "lower(s) = 'a'", "f = 0D AND s < 'b'"),
    )
    before = {where: scanned(tmp_path / "t", where) for where in conditions}
    table.create_index("f", kind, min_bytes=0)
    table.create_index("s", kind, min_bytes=0)
    assert {where: scanned(tmp_path / "t", where) for where in conditions} == before


def test_an_index_of_geometries_is_for_other_clients_of_lance(tmp_path: Path) -> None:
    table = pennon.create(tmp_path / "t", pa.schema({"id": pa.int64(), "place": pa.binary()}))
    points = [struct.pack("<BIdd", 1, 1, at, at) for at in range(300)]
    table.append([{"id": at, "place": point} for at, point in enumerate([*points, None])])
    conditions = (f"place = X'{points[7].hex()}'", "place IS NULL", f"place < X'{points[9].hex()}'")
    before = {where: scanned(tmp_path / "t", where) for where in conditions}
    table.create_index("place", "RTREE", min_bytes=0)
    assert table.metadata("indexes")["rows_indexed"].to_pylist() == [301]
    assert {where: scanned(tmp_path / "t", where) for where in conditions} == before
    table.append([{"id": 400, "place": b"no geometry"}])
    with pytest.raises(IndexRefused, match="Lance says"):
        table.refresh_indexes()
    assert scanned(tmp_path / "t", "id = 400") == {400}


def test_an_index_that_lance_alone_knows_is_dropped_in_weak_mode(tmp_path: Path) -> None:
    table = made(tmp_path, random.Random(5), "weak")  # noqa: S311 - test data
    (location, *_) = (part.location for part in table.scan().plan().partitions)
    lance.dataset(str(tmp_path / "t" / location)).create_scalar_index("n", "BTREE", name="foreign")
    version = table.version
    assert table.drop_index("foreign") == version
    with pytest.raises(IndexNotFound, match="it has none"):
        table.drop_index("foreign")
