"""The engine: memory, errors, leaves of every kind, and a reader that goes away."""

from __future__ import annotations

import tempfile
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from datafusion import RuntimeEnvBuilder

from pennon.errors import FragmentFailed, FragmentMemory, FragmentText, LeafMissing
from pennon.execution import Fragment, LeafRead, Query, Relation, engine, run
from pennon.execution.engine import result_schema, run_query
from pennon.execution.leaf_table import register_relation
from pennon.execution.memory import pool_bytes
from pennon.execution.small_leaves import rows_at_once
from pennon.spec.schema import NamespaceSchema

WANTED = NamespaceSchema.with_fresh_ids(
    pa.schema(
        {
            "id": pa.int64(),
            "name": pa.utf8(),
            "at": pa.timestamp("us"),
            "added": pa.decimal128(12, 3),
        }
    )
).arrow
EVERYTHING = "SELECT `id`, `name`, `at`, `added` FROM `r0`"


def relation(root: Path, *leaves: LeafRead, columns: tuple[str, ...] = ()) -> Relation:
    schema = pa.schema([WANTED.field(name) for name in columns]) if columns else WANTED
    return Relation(str(root), leaves, schema, WANTED)


def rows_of(sql: str, schema: pa.Schema, *relations: Relation) -> list[dict]:
    stream = run(Fragment(relations, Query(sql, schema)))
    return pa.Table.from_batches(stream.batches, stream.schema).to_pylist()


def evolved(root: Path) -> list[LeafRead]:
    """Write leaves of three ages: renamed and narrow columns, other units, views, all of it."""
    oldest = pa.schema({"number": pa.int16(), "label": pa.large_utf8()})
    lance.write_dataset(pa.table({"number": [1, 2], "label": ["a", None]}, oldest), root / "oldest")
    finer = pa.schema({"id": pa.int32(), "name": pa.utf8(), "at": pa.timestamp("ns")})
    values = {"id": [3, 4], "name": ["x", "y"], "at": [5_000, None]}
    lance.write_dataset(pa.table(values, finer), root / "finer")
    newest = pa.table(
        {"id": [5], "name": ["e"], "at": [7], "added": pa.array([1], pa.decimal128(12, 3))}
    )
    lance.write_dataset(newest.cast(WANTED), root / "newest")
    return [LeafRead("oldest", 1), LeafRead("finer", 1), LeafRead("newest", 1)]


def test_evolved_leaves_are_seen_in_the_wanted_schema(tmp_path: Path) -> None:
    """As a scan of the same leaves, which has its own code for it, sees them."""
    leaves = evolved(tmp_path)
    scanned = run(Fragment((relation(tmp_path, *leaves),)))
    expected = pa.Table.from_batches(scanned.batches, scanned.schema).to_pylist()
    found = rows_of(EVERYTHING, WANTED.remove_metadata(), relation(tmp_path, *leaves))
    assert sorted(found, key=lambda row: row["id"]) == expected
    assert [row["id"] for row in expected] == [1, 2, 3, 4, 5]


def test_residuals_apply_to_the_leaf_that_has_them(tmp_path: Path) -> None:
    first, second, third = evolved(tmp_path)
    leaves = [
        LeafRead(first.location, 1, "id > 1"),
        LeafRead(second.location, 1, "name = 'x'"),
        LeafRead(third.location, 1, "added IS NOT NULL"),
    ]
    found = rows_of(EVERYTHING, WANTED.remove_metadata(), relation(tmp_path, *leaves))
    assert sorted(row["id"] for row in found) == [2, 3, 5]


def test_parts_of_a_leaf_and_no_leaf_at_all(tmp_path: Path) -> None:
    rows = pa.table({"id": pa.array(range(10), pa.int64())})
    lance.write_dataset(rows, tmp_path / "leaf", max_rows_per_file=2)
    part = relation(tmp_path, LeafRead("leaf", 1, "id <> 3", (1, 3)), columns=("id",))
    result = pa.schema([("id", pa.int64())])
    assert rows_of("SELECT `id` FROM `r0`", result, part) == [{"id": 2}, {"id": 4}, {"id": 5}]
    none = relation(tmp_path, columns=("id",))
    assert rows_of("SELECT `id` FROM `r0`", result, none) == []
    counted = pa.schema([("n", pa.int64())])
    both = "SELECT count(*) AS `n` FROM (SELECT 1 FROM `r0` UNION ALL SELECT 1 FROM `r1`)"
    bare = Relation(str(tmp_path), part.leaves, pa.schema([]), WANTED)
    whole = Relation(str(tmp_path), (LeafRead("leaf", 1),), pa.schema([]), WANTED)
    assert rows_of(both, counted, bare, whole) == [{"n": 13}]


def big(root: Path, count: int) -> tuple[Relation, Query]:
    rows = pa.table({"id": pa.array(range(count), pa.int64()), "name": ["x"] * count})
    lance.write_dataset(rows, root / "leaf")
    sql = (
        "SELECT `a`.`id` AS `id`, `a`.`name` AS `name` FROM `r0` AS `a`"
        " FULL JOIN `r1` AS `b` ON `a`.`id` = `b`.`id`"
    )
    kept = pa.schema([("id", pa.int64()), ("name", pa.utf8())])
    return relation(root, LeafRead("leaf", 1), columns=("id", "name")), Query(sql, kept)


def fair_pool(megabytes: int) -> RuntimeEnvBuilder:
    return RuntimeEnvBuilder().with_fair_spill_pool(megabytes << 20).with_disk_manager_os()


def test_groups_that_may_spill_are_computed_in_small_batches(tmp_path: Path) -> None:
    one, joining = big(tmp_path, 1000)
    grouping = Query("SELECT `id`, max(`name`) AS `name` FROM `r0` GROUP BY `id`", joining.schema)
    large, small = 1 << 20, 1 << 16
    sizes = [rows_at_once((one,), grouping, memory) for memory in (large, small)]
    assert sizes[1] < sizes[0] == rows_at_once((one,), joining, small)
    planned = relation(tmp_path, LeafRead("not opened", 1, num_rows=1000), columns=("id", "name"))
    assert [rows_at_once((planned,), grouping, size) for size in (large, small)] == sizes


def test_a_hash_join_beyond_the_pool_runs_again_as_one_that_spills(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, query = big(tmp_path, 3_000_000)
    stream = run_query((one, one), query, fair_pool(32))
    assert sum(batch.num_rows for batch in stream.batches) == 3_000_000
    assert stream.work.spilled_bytes > 1 << 20
    assert stream.work.compute_nanos > 10_000_000  # two sorts of that many rows
    monkeypatch.setattr(engine, "_SPILLING", engine._OPTIONS)
    with pytest.raises(FragmentMemory, match="PENNON_MEMORY"):
        run_query((one, one), query, fair_pool(32))


def test_queries_share_one_pool_and_give_it_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, query = big(tmp_path, 300_000)
    pool = fair_pool(8)
    first = run_query((one, one), query, pool)
    monkeypatch.setattr(engine, "_SPILLING", engine._OPTIONS)
    with pytest.raises(FragmentMemory):
        run_query((one, one), query, pool)
    first.batches.close()  # type: ignore[attr-defined]
    assert next(run_query((one, one), query, pool).batches).num_rows


def test_the_pool_is_what_is_stated_or_a_part_of_the_machine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PENNON_MEMORY", "123456789")
    assert pool_bytes() == 123456789
    monkeypatch.delenv("PENNON_MEMORY")
    assert pool_bytes() >= 64 << 20


def test_a_reader_that_goes_away_ends_the_query(tmp_path: Path) -> None:
    one, query = big(tmp_path, 300_000)
    stream = run(Fragment((one, one), query))
    assert next(stream.batches).num_rows
    stream.batches.close()  # type: ignore[attr-defined]
    assert list(stream.batches) == []


def test_texts_are_never_views(tmp_path: Path) -> None:
    lance.write_dataset(pa.table({"id": [1], "name": ["b"]}), tmp_path / "leaf")
    one = relation(tmp_path, LeafRead("leaf", 1), columns=("name",))
    result = pa.schema([("m", pa.utf8())])
    stream = run(Fragment((one,), Query("SELECT min(`name`) AS `m` FROM `r0`", result)))
    assert [batch.schema for batch in stream.batches] == [result]


def test_a_query_that_datafusion_refuses_is_an_error_of_its_plan(tmp_path: Path) -> None:
    schema = pa.schema([WANTED.field("id")])
    with pytest.raises(FragmentFailed, match="nothing"):
        result_schema([schema], "SELECT `nothing` FROM `r0`")
    with pytest.raises(FragmentText, match="'x'"):
        result_schema([schema], "SELECT CAST('x' AS INT) AS `a` FROM `r0`")
    planned = result_schema([schema], "SELECT `id` + 1 AS `a` FROM `r0`")
    assert planned.types == [pa.int64()]
    lance.write_dataset(pa.table({"id": [1]}), tmp_path / "leaf")
    one = relation(tmp_path, LeafRead("leaf", 1), columns=("id",))
    with pytest.raises(FragmentFailed, match="nothing"):
        rows_of("SELECT `nothing` FROM `r0`", schema, one)
    with pytest.raises(LeafMissing):
        rows_of("SELECT `id` FROM `r0`", schema, relation(tmp_path, LeafRead("gone", 1)))


def test_a_query_that_is_tried_again_has_let_go_of_the_first_try(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alive: list[weakref.ref[object]] = []

    class Made:
        """What the first try holds."""

    def started(*arguments: object, **keywords: object) -> Iterator[pa.RecordBatch]:
        if not alive:
            made = Made()
            alive.append(weakref.ref(made))
            raise FragmentMemory(pool=1, why="the first try")
        assert alive[0]() is None
        return iter(())

    monkeypatch.setattr(engine._QueryRun, "started", started)
    run_query((), Query("SELECT 1", pa.schema([("a", pa.int64())])))
    assert len(alive) == 1


def test_what_cannot_be_planned_for_several_threads_is_computed_by_one(tmp_path: Path) -> None:
    """DataFusion 54 refuses to merge what threads have sorted by such a condition."""
    rows = pa.table({"id": [at % 40 for at in range(40_000)]}, pa.schema([WANTED.field("id")]))
    lance.write_dataset(rows, tmp_path / "leaf")
    mean = "CAST(`s` AS DOUBLE) / `n`"
    sql = (
        f"SELECT `id`, abs({mean}) AS `size`, floor(abs({mean}) * 100) AS `parts`"
        " FROM (SELECT `id`, sum(`id`) AS `s`, count(`id`) AS `n` FROM `r0` GROUP BY `id`)"
        f" ORDER BY CASE WHEN abs({mean}) < 10 AND {mean} < 0 THEN -floor(abs({mean}) * 100)"
        f" WHEN abs({mean}) < 10 THEN floor(abs({mean}) * 100) END NULLS LAST, `id` LIMIT 12"
    )
    schema = pa.schema([("id", pa.int64()), ("size", pa.float64()), ("parts", pa.float64())])
    for threads in (1, 2):
        leaves = relation(tmp_path, LeafRead("leaf", 1), columns=("id",))
        stream = run_query([leaves], Query(sql, schema), num_threads=threads)
        found = pa.Table.from_batches(stream.batches, stream.schema)["id"].to_pylist()
        assert found == list(range(12)), threads


def test_what_one_thread_computes_is_not_planned_for_several_when_it_spills(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    failures = [
        FragmentFailed(why="several threads"),
        FragmentMemory(pool=1, why="one thread"),
    ]
    tried: list[str] = []

    def started(*arguments: object, **keywords: object) -> Iterator[pa.RecordBatch]:
        options = arguments[1]
        assert isinstance(options, dict)
        tried.append(options["datafusion.execution.target_partitions"])
        if failures:
            raise failures.pop(0)
        return iter(())

    monkeypatch.setattr(engine._QueryRun, "started", started)
    run_query((), Query("SELECT 1", pa.schema([("a", pa.int64())])), num_threads=2)
    assert tried == ["2", "1", "1"]


def test_a_range_of_fragments_beyond_the_pool_is_not_held_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    count = 2_000_000
    ids = pa.array(range(count), pa.int64())
    lance.write_dataset(pa.table({"id": ids}), tmp_path / "leaf", max_rows_per_file=count // 2)
    parts = [LeafRead("leaf", 1, fragments=(at, at + 1), num_rows=count) for at in (0, 1)]
    one = relation(tmp_path, *parts, columns=("id",))
    summed = Query("SELECT sum(`id`) AS `s` FROM `r0`", pa.schema([("s", pa.int64())]))
    del ids
    before = pa.total_allocated_bytes()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    held: list[int] = []
    registered = register_relation

    def watched(*arguments: Any, **named: Any) -> None:
        registered(*arguments, **named)
        held.append(len(list(tmp_path.glob("pennon-scanned-*"))))

    monkeypatch.setattr(engine, "register_relation", watched)
    for memory, files in (("1g", 0), ("16m", 2)):
        monkeypatch.setenv("PENNON_MEMORY", memory)
        stream = run_query((one,), summed)
        assert stream.to_arrow().to_pydict() == {"s": [count * (count - 1) // 2]}
        assert held.pop() == files
        assert pa.total_allocated_bytes() - before < count
    del stream
    assert [path.name for path in tmp_path.iterdir()] == ["leaf"]
