"""Random steps on a table with indexes, between random searches: each answer beside NumPy's.

    make torture-search N=1000

Exact answers have to be NumPy's; approximate ones eight of ten, and whole. Conditions on indexed
columns find what a look at all rows finds, and so do searches of texts. A failure prints the seed
that repeats it.
"""

from __future__ import annotations

import argparse
import random
import secrets
import tempfile
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
import pytest

import pennon
from pennon.namespace import PartitionedNamespace

DIMENSION = 8
SCHEMA = pa.schema(
    {
        "id": pa.int64(),
        "tenant": pa.string(),
        "n": pa.int32(),
        "text": pa.string(),
        "tags": pa.list_(pa.string()),
        "v": pa.list_(pa.float32(), DIMENSION),
    }
)
STEPS = (
    *("append", "append", "delete", "update", "merge", "compact", "refresh", "refresh"),
    *("rollback", "overwrite", "evolve", "expire", "vacuum", "index", "race", "race"),
)


def rows(drawn: random.Random, count: int, first: int) -> pa.Table:
    vectors = np.array(
        [[drawn.gauss(at % 5, 1) for _ in range(DIMENSION)] for at in range(count)], np.float32
    )
    return pa.table(
        {
            "id": range(first, first + count),
            "tenant": [drawn.choice("ab") for _ in range(count)],
            "n": [drawn.choice([None, *range(100)]) for _ in range(count)],
            "text": [f"word {drawn.randrange(20)}" for _ in range(count)],
            "tags": [drawn.choice([None, [], ["a"], ["b", "a"], [None]]) for _ in range(count)],
            "v": pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), DIMENSION),
        },
        schema=SCHEMA,
    )


def made(path: Path, drawn: random.Random, layout: str = "strong") -> PartitionedNamespace:
    if layout == "plain":
        lance.write_dataset(rows(drawn, 1_000, 0), str(path / "t"))
        return pennon.open(path / "t")
    properties = {"transaction": layout, "write.compaction.enabled": "false"}
    table = pennon.create(path / "t", SCHEMA, partition_by=["tenant"], properties=properties)
    table.append(rows(drawn, 1_000, 0))
    return table


def nearest(table: PartitionedNamespace, query: list[float], *, exact: bool) -> list[float]:
    found = table.search(query, "v", 10, exact=exact, columns=["id"]).to_arrow()
    assert len(set(found["id"].to_pylist())) == found.num_rows
    return list(found["_distance"].to_pylist())


def check_answers(table: PartitionedNamespace, drawn: random.Random) -> None:
    """Compare searches with NumPy, and conditions with rows that are all read."""
    live = table.scan().to_arrow().to_pylist()
    query = [drawn.gauss(2, 2) for _ in range(DIMENSION)]
    far = sorted(float(((np.array(row["v"]) - query) ** 2).sum()) for row in live)[:10]
    assert nearest(table, query, exact=True) == pytest.approx(far, rel=1e-4)
    approximate = nearest(table, query, exact=False)
    assert len(approximate) == len(far)
    known = sum(any(abs(one - other) < 1e-3 for other in far) for one in approximate)
    assert known >= 0.8 * len(far)
    number, word = drawn.randrange(100), f"word {drawn.randrange(20)}"
    holds = {
        f"n = {number}": {row["id"] for row in live if row["n"] == number},
        f"n > {number}": {row["id"] for row in live if (row["n"] or 0) > number},
        "n IS NULL": {row["id"] for row in live if row["n"] is None},
        f"text = '{word}'": {row["id"] for row in live if row["text"] == word},
    }
    for where, ids in holds.items():
        assert set(table.scan(where, columns=["id"]).to_arrow()["id"].to_pylist()) == ids
    having = holds[f"text = '{word}'"]
    scored = table.search_text(word.removeprefix("word "), "text", 10_000, columns=["id"])
    score = np.log1p((len(live) - len(having) + 0.5) / (len(having) + 0.5))  # of two words each
    found = scored.to_arrow()
    assert (set(found["id"].to_pylist()), found.num_rows) == (having, len(having))
    assert found["_score"].to_pylist() == pytest.approx([score] * len(having), rel=1e-6)


def take_steps(path: Path, drawn: random.Random, count: int) -> None:
    """Do random things to a new table, and search it after each."""
    table = made(path, drawn)
    table.create_index("v", drawn.choice(["IVF_RQ", "IVF_SQ", "IVF_FLAT"]), "v_idx", min_bytes=0)
    table.create_index("n", "BTREE", min_bytes=0)
    table.create_index("text", "INVERTED")
    versions = [table.version]
    for number in range(1, count + 1):
        step = drawn.choice(STEPS)
        take_step(table, step, drawn, 1_000 * number, versions)
        versions.append(table.version)
        try:
            check_answers(table, drawn)
            check_answers(pennon.open(path / "t"), drawn)
        except AssertionError as error:
            error.add_note(f"after step {number}, {step}")
            raise
    assert table.maintenance.check().is_valid


def take_step(
    table: PartitionedNamespace, step: str, drawn: random.Random, first: int, versions: list[int]
) -> None:
    """Do one thing to a table."""
    match step:
        case "append":
            table.append(rows(drawn, drawn.randrange(1, 300), first))
        case "delete":
            table.delete(f"id % 11 = {drawn.randrange(11)}")
        case "update":
            table.update({"n": drawn.randrange(100)}, where=f"n < {drawn.randrange(40)}")
        case "merge":
            mine = rows(drawn, 150, drawn.randrange(first))
            merge = table.merge(mine, on="id").when_matched_update_all()
            merge.when_not_matched_insert_all().execute()
        case "compact":
            table.maintenance.compact()
        case "refresh":
            table.refresh_indexes(where=drawn.choice([None, "tenant = 'a'"]))
        case "rollback":
            table.maintenance.rollback(drawn.choice(versions[-3:]))
        case "overwrite":
            table.overwrite(rows(drawn, 700, first))
        case "evolve":
            table.rename_column("text", "other")
            table.append(rows(drawn, 40, first).rename_columns({"text": "other"}))
            table.rename_column("other", "text")
        case "expire":
            table.maintenance.expire_snapshots(older_than=datetime.now(UTC), retain_last=4)
        case "vacuum":
            table.maintenance.vacuum(older_than=datetime.now(UTC) + timedelta(hours=1))
        case "race":
            other = pennon.open(table.snapshot.location)
            with ThreadPoolExecutor(1) as pool:
                refreshed = pool.submit(other.refresh_indexes)
                for number in range(3):
                    beside = drawn.choice(("append", "delete", "rollback", "compact"))
                    take_step(table, beside, drawn, first + 300 * number, versions)
                    versions.append(table.version)
                refreshed.result()
        case "index":
            table.drop_index("v_idx")
            table.create_index("v", drawn.choice(["IVF_RQ", "IVF_SQ"]), "v_idx", min_bytes=0)


def main() -> None:
    """Take so many steps, on a new table after each 25."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=None)
    options = parser.parse_args()
    for run in range(-(-options.steps // 25)):
        seed = secrets.randbelow(1 << 32) if options.seed is None else options.seed + run
        print(f"run {run + 1}, --seed {seed}", flush=True)
        with tempfile.TemporaryDirectory() as folder:
            take_steps(Path(folder), random.Random(seed), 25)  # noqa: S311 - test data
    print(f"{options.steps} steps, no answer wrong")


if __name__ == "__main__":
    main()
