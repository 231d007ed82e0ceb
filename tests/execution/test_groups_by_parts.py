"""Groups that the pool does not hold are computed part by part, and are the same groups."""

from __future__ import annotations

import logging
import tempfile
from pathlib import Path

import lance
import pyarrow as pa
import pytest

from pennon.execution import LeafRead, Query, Relation
from pennon.execution.engine import run_query
from pennon.execution.grouped_parts import DividedRows, division_of
from pennon.spec.schema import NamespaceSchema
from pennon.transforms.murmur3 import murmur3

COLUMNS = {"id": pa.int64(), "name": pa.utf8(), "part": pa.float64()}
WANTED = NamespaceSchema.with_fresh_ids(pa.schema(COLUMNS)).arrow
COUNT = 200_000
ROWS = "(SELECT `id` AS `c1`, `name` AS `c2`, `part` AS `c3` FROM `r0`) AS `t1`"
GROUPED = f"SELECT `c1` AS `k`, `c2` AS `m`, count(*) AS `n` FROM {ROWS} GROUP BY `c1`, `c2`"
BY_FLOAT = f"SELECT `c3` AS `k`, count(*) AS `n` FROM {ROWS} GROUP BY `c3`"
LONGEST = f"SELECT `k`, `n` FROM ({GROUPED}) AS `t2` ORDER BY `n` DESC, `k` NULLS FIRST LIMIT 7"
SEVERAL = f"SELECT `k` FROM ({GROUPED}) AS `t2` WHERE `n` > 1"
NUMBER = f"SELECT count(*) AS `n`, count(`k`) AS `k` FROM ({GROUPED}) AS `t2`"


@pytest.fixture
def relation(tmp_path: Path) -> Relation:
    """Rows in pairs of equal keys, of which some are NULL; each is a group but for its twin."""
    ids = [None if at % 1000 == 0 else at // 2 for at in range(COUNT)]
    names = [None if at % 700 < 2 else f"a rather long name {at // 2}" for at in range(COUNT)]
    parts = [at // 2 / 4 for at in range(COUNT)]
    parts[:4] = [0.0, -0.0, float("nan"), float("nan")]
    rows = pa.table({"id": ids, "name": names, "part": parts}, pa.schema(COLUMNS))
    lance.write_dataset(rows, tmp_path / "leaf", max_rows_per_file=COUNT // 3)
    return Relation(str(tmp_path), (LeafRead("leaf", 1, num_rows=COUNT),), WANTED, WANTED)


def rows_of(relation: Relation, sql: str, *columns: str, threads: int = 1) -> list[tuple]:
    kinds = {"k": pa.int64(), "m": pa.utf8(), "n": pa.int64(), "f": pa.float64()}
    schema = pa.schema([(name[0], kinds[name[-1]]) for name in columns])
    stream = run_query((relation,), Query(sql, schema), num_threads=threads)
    return [tuple(row.values()) for row in stream.to_arrow().to_pylist()]


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    ("sql", "columns"),
    [
        (GROUPED, ("k", "m", "n")),
        (LONGEST, ("k", "n")),
        (SEVERAL, ("k",)),
        (NUMBER, ("n", "kn")),
    ],
)
def test_the_groups_of_the_parts_are_those_of_all_rows(
    relation: Relation,
    *,
    sql: str,
    columns: tuple[str, ...],
    threads: int,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setenv("PENNON_MEMORY", "1g")
    expected = rows_of(relation, sql, *columns, threads=threads)
    assert expected
    monkeypatch.setenv("PENNON_MEMORY", "4m")
    monkeypatch.setattr(tempfile, "tempdir", relation.namespace)
    with caplog.at_level(logging.INFO, "pennon.execution"):
        found = rows_of(relation, sql, *columns, threads=threads)
    assert "groups beyond the memory" in caplog.text
    assert sorted(map(repr, found)) == sorted(map(repr, expected))
    if "ORDER" in sql:
        assert found == expected
    assert [path.name for path in Path(relation.namespace).iterdir()] == ["leaf"]


def test_floats_that_are_equal_and_do_not_look_it_are_not_divided(
    relation: Relation, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("PENNON_MEMORY", "1g")
    expected = rows_of(relation, BY_FLOAT, "kf", "n")
    monkeypatch.setenv("PENNON_MEMORY", "2m")
    with caplog.at_level(logging.INFO, "pennon.execution"):
        found = rows_of(relation, BY_FLOAT, "kf", "n")
    assert "groups beyond the memory" not in caplog.text
    assert sorted(map(repr, found)) == sorted(map(repr, expected))


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT `k` FROM (SELECT `k` FROM `r0`) AS `t` GROUP BY GROUPING SETS ((`k`), ())",
        "SELECT `k` FROM (SELECT `k` FROM `r0`) AS `t` GROUP BY `k` + 1",
        "SELECT `k` FROM (SELECT `k` FROM `r0`) AS `t` GROUP BY `k` HAVING count(*) > 1",
        "SELECT `k` FROM (SELECT `k` FROM `r0`) AS `t` JOIN `r1` ON TRUE GROUP BY `k`",
        "SELECT `k` FROM (SELECT `k` FROM `r0` GROUP BY `k`) AS `t` JOIN `r1` ON TRUE",
        "SELECT `k`, sum(count(*)) OVER () FROM (SELECT `k` FROM `r0`) AS `t` GROUP BY `k`",
        "SELECT `k`, (SELECT max(`k`) FROM `r1`) FROM (SELECT `k` FROM `r0`) AS `t` GROUP BY `k`",
        "SELECT (SELECT 1 FROM `r1`) FROM (SELECT `k` FROM (SELECT 1 AS `k`) AS `t` GROUP BY `k`)",
        "SELECT `k` FROM `r1` UNION ALL SELECT `k` FROM (SELECT `k` FROM `r0`) AS `t` GROUP BY `k`",
    ],
)
def test_a_query_whose_steps_are_not_its_whole_is_not_divided(sql: str) -> None:
    assert division_of(sql) is None


def test_a_query_that_is_too_deep_to_be_read_runs_as_it_stands() -> None:
    rows = "SELECT `k` FROM `r0`"
    for level in range(100):
        rows = f"SELECT `k` FROM ({rows}) AS `t{level}`"
    assert division_of(f"SELECT `k` FROM ({rows}) AS `t` GROUP BY `k`") is None


def test_the_rows_of_one_bucket_are_divided_as_evenly_as_others() -> None:
    numbers = pa.array(range(64_000), pa.int64())
    last_bits = pa.compute.bit_wise_and(murmur3(numbers), 15)
    bucket = numbers.filter(pa.compute.equal(last_bits, 3))
    rows = pa.record_batch({"k": bucket})
    with DividedRows(rows.schema, ["k"], num_parts=16, load_bytes=1) as divided:
        divided.add(rows)
        sizes = []
        for file in divided.parts():
            with pa.OSFile(str(file)) as source:
                sizes.append(pa.ipc.open_file(source).read_all().num_rows)
    assert (len(sizes), sum(sizes)) == (16, len(bucket))
    assert max(sizes) < 2 * min(sizes)


def test_other_queries_spill_behind_one_that_was_divided(
    relation: Relation, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("PENNON_MEMORY", "6m")
    with caplog.at_level(logging.INFO, "pennon.execution"):
        rows_of(relation, GROUPED, "k", "m", "n")
    assert "groups beyond the memory" in caplog.text
    sorted_rows = f"SELECT `c1` AS `k`, `c2` AS `m` FROM {ROWS} ORDER BY `c2`, `c1`"
    assert len(rows_of(relation, sorted_rows, "k", "m")) == COUNT
