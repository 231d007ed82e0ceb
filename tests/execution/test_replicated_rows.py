"""Parts that every task of a query wants as a whole."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pyarrow as pa
import pytest

from pennon.errors import FragmentFailed
from pennon.execution import BatchStream, Query, ReplicatedPart
from pennon.execution.leaf_table import ReplicatedParts

SCHEMA = pa.schema([("c1", pa.int64())])


def part(key: str) -> ReplicatedPart:
    return ReplicatedPart(key, (), Query("SELECT 1", SCHEMA))


class Evaluations:
    """Counts how often a part is evaluated."""

    def __init__(self, rows: int = 1000, batches: int = 4) -> None:
        self.count = 0
        self.rows, self.batches = rows, batches

    def __call__(self, wanted: ReplicatedPart) -> BatchStream:
        self.count += 1

        def batches() -> Iterator[pa.RecordBatch]:
            for at in range(self.batches):
                numbers = pa.array(range(at * self.rows, (at + 1) * self.rows), pa.int64())
                yield pa.RecordBatch.from_arrays([numbers], schema=SCHEMA)

        return BatchStream(SCHEMA, batches())


def test_tasks_at_once_evaluate_a_part_once() -> None:
    parts, evaluations = ReplicatedParts(1 << 30), Evaluations()
    found: list[int] = []

    def task() -> None:
        rows = parts.rows_of(part("a"), evaluations)
        found.append(sum(batch.num_rows for batch in rows.batches))

    tasks = [threading.Thread(target=task) for _ in range(8)]
    for task_ in tasks:
        task_.start()
    for thread in tasks:
        thread.join()
    assert (evaluations.count, found) == (1, [4000] * 8)
    parts.rows_of(part("b"), evaluations)
    assert evaluations.count == 2


def test_what_does_not_fit_lies_in_a_file_and_has_the_same_rows() -> None:
    parts, evaluations = ReplicatedParts(10_000), Evaluations()
    rows = parts.rows_of(part("a"), evaluations)
    assert parts.held_bytes() == 0
    numbers = pa.Table.from_batches(rows.batches, SCHEMA)["c1"].to_pylist()
    assert numbers == list(range(4000))


def test_parts_are_dropped_when_idle_and_when_others_need_the_room() -> None:
    parts, evaluations = ReplicatedParts(80_000), Evaluations()
    for key in ("a", "b", "c"):
        parts.rows_of(part(key), evaluations)
        assert parts.held_bytes() <= 80_000
    assert parts.held_bytes() > 0
    idle = ReplicatedParts(1 << 20, idle_seconds=0.0)
    idle.rows_of(part("a"), evaluations)
    idle.drop_idle()
    assert idle.held_bytes() == 0


def test_a_part_that_failed_is_tried_again() -> None:
    parts, evaluations = ReplicatedParts(1 << 20), Evaluations()

    def fail(wanted: ReplicatedPart) -> BatchStream:
        raise FragmentFailed(why="once")

    with pytest.raises(FragmentFailed):
        parts.rows_of(part("a"), fail)
    assert parts.rows_of(part("a"), evaluations).batches
