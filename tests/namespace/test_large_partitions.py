"""What the documents promise, on partitions of 50 MB: they are read by Lance, and not held."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from datafusion import SessionContext, col, lit
from datafusion import functions as f

import pennon

if TYPE_CHECKING:
    from pathlib import Path

ROWS = 1_200_000
IDS = pa.schema({"id": pa.int64(), "k": pa.string()})
NUMBERS = [f"x{at}" for at in range(5)]


def rows(k: str) -> pa.Table:
    """Random numbers, which no encoding makes smaller."""
    drawn = np.random.default_rng(ord(k))
    columns = {name: drawn.random(ROWS) for name in NUMBERS}
    return pa.table({"id": np.arange(ROWS), "k": [k] * ROWS, **columns})


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> pennon.PartitionedNamespace:
    schema = pa.schema([*IDS, *(pa.field(name, pa.float64()) for name in NUMBERS)])
    place = tmp_path_factory.mktemp("large") / "t"
    made = pennon.create(place, schema, ["k"], properties={"write.compaction.enabled": "false"})
    made.append(rows("a"))
    made.append(rows("b").to_reader())
    assert sum(part.num_bytes or 0 for part in made.scan().plan().partitions) > 95e6
    return made


def test_a_frame_outlives_its_scan_and_its_session(table: pennon.PartitionedNamespace) -> None:
    """Lance holds the session weakly, and no frame holds it."""
    session = SessionContext()
    frames = [table.scan("id % 2 = 0").to_datafusion(given) for given in (None, session)]
    small = table.scan("id < 1000", columns=["id", "x0"]).to_datafusion()
    small = small.with_column_renamed("id", "other").filter(col("x0") >= lit(0.0))
    derived = [
        frame.filter(col("x1") < lit(2.0))
        .select("id", "k", "x2")
        .join(small, left_on="id", right_on="other", how="inner")
        for frame in frames
    ]
    sums = [frame.aggregate([col("k")], [f.count(col("x2"))]).sort(col("k")) for frame in derived]
    del frames, session, small, derived
    gc.collect()
    for frame in sums:
        assert [list(row.values()) for row in frame.to_pylist()] == [["a", 1000], ["b", 1000]]
        assert pa.RecordBatchReader.from_stream(frame).read_all().num_rows == 2


def test_all_readers_give_the_rows(table: pennon.PartitionedNamespace) -> None:
    scan = table.scan("x0 < 0.5 OR id IS NOT NULL", columns=["id", "x1"])
    assert scan.count_rows() == scan.to_arrow().num_rows == 2 * ROWS
    assert sum(batch.num_rows for batch in scan.to_batches()) == 2 * ROWS
    assert scan.to_reader().read_all().num_rows == len(scan.to_pandas()) == 2 * ROWS
    (counted,) = duckdb.sql("SELECT count(*), max(id) FROM scan").fetchall()
    assert counted == (2 * ROWS, ROWS - 1)


def test_every_change_is_made_and_every_version_is_kept(tmp_path: Path) -> None:
    schema = pa.schema([*IDS, *(pa.field(name, pa.float64()) for name in NUMBERS)])
    table = pennon.create(tmp_path / "t", schema, ["k"])
    table.append(rows("a"))
    before = table.append(rows("b"))
    table.delete("id % 1000 = 1")
    table.update({"x0": 2.0}, where="id % 1000 = 2")
    source = pa.table({"id": range(0, 2 * ROWS, 1000), "k": ["a"] * (2 * ROWS // 1000)})
    table.merge(source, on="id").when_matched_delete().when_not_matched_insert_all().execute()
    changed = table.changes(before).group_by("_change_type").aggregate([([], "count_all")])
    many = ROWS // 1000
    told = [list(row.values()) for row in changed.sort_by("_change_type").to_pylist()]
    assert told == [["delete", 6 * many], ["insert", 3 * many]]
    table.add_column("more", pa.int32(), default=7)
    table.alter_column("more", type=pa.int64())
    table.overwrite(rows("b").slice(0, ROWS // 2), where="k = 'b'")
    table.add_partition_field("truncate(1000000, id)")
    table.append(rows("b").slice(0, 10))
    table.maintenance.compact()
    table.maintenance.rewrite_partitions()
    left = ROWS - 2 * many + many + ROWS // 2 + 10
    assert table.scan("more = 7").count_rows() == table.scan().to_datafusion().count() == left
    assert table.scan("x0 < 1.5 AND x0 >= 0", version=before).count_rows() == 2 * ROWS
    assert table.maintenance.check().is_valid
    assert table.maintenance.rollback(before) > before
    assert table.scan("id >= 0").count_rows() == 2 * ROWS
