"""Leaves packed into splits: every fragment of every leaf once, in pieces of about one size."""

from __future__ import annotations

from itertools import groupby
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from pennon.planning import splits
from pennon.planning.splits import OPEN_COST_BYTES

if TYPE_CHECKING:
    from pennon.planning import ScanPlan

MIB = 1 << 20


def planned(leaves: list[tuple[int | None, int | None]]) -> ScanPlan:
    sizes, counts = [size for size, _ in leaves], [count for _, count in leaves]
    table = pa.table(
        {"num_bytes": pa.array(sizes, pa.int64()), "num_fragments": pa.array(counts, pa.int64())}
    )
    return cast("ScanPlan", SimpleNamespace(table=table))


def pack(plan: ScanPlan, num_tasks: int, max_bytes: int) -> list[list[Piece]]:
    """What each task reads: leaves, and ranges of their fragments."""
    rows = splits.pack(plan, num_tasks, max_bytes).to_pylist()
    tasks = [list(task) for _, task in groupby(rows, lambda row: row["key"])]
    assert [task[0]["key"] for task in tasks] == list(range(len(tasks)))
    return [[Piece(row["leaf"], fragments_of(row)) for row in task] for task in tasks]


def fragments_of(row: dict[str, Any]) -> tuple[int, int] | None:
    ends = (row["first_fragment"], row["end_fragment"])
    return None if ends == (None, None) else ends


class Piece(NamedTuple):
    leaf: int
    fragments: tuple[int, int] | None


leaf_lists = st.lists(
    st.tuples(st.none() | st.integers(0, 3000 * MIB), st.none() | st.integers(1, 40)),
    max_size=30,
)


@given(leaves=leaf_lists, num_tasks=st.integers(1, 64))
def test_every_fragment_is_read_once(
    leaves: list[tuple[int | None, int | None]], num_tasks: int
) -> None:
    packed = pack(planned(leaves), num_tasks, 128 * MIB)
    read: dict[int, list[tuple[int, int] | None]] = {}
    for piece in (piece for task in packed for piece in task):
        read.setdefault(piece.leaf, []).append(piece.fragments)
    assert sorted(read) == list(range(len(leaves)))
    for leaf, fragments in read.items():
        if fragments != [None]:
            ranges = [fragment for fragment in fragments if fragment is not None]
            covered = [at for first, end in ranges for at in range(first, end)]
            assert covered == list(range(leaves[leaf][1] or 0))
    assert all(packed)


def test_small_leaves_share_a_task_and_a_large_one_is_divided() -> None:
    small = pack(planned([(10_000, 1)] * 64), 2, 128 * MIB)
    assert [len(task) for task in small] == [32, 32]
    large = pack(planned([(1000 * MIB, 10)]), 2, 128 * MIB)
    assert [piece.fragments for (piece,) in large] == [
        (0, 1),
        (1, 2),
        (2, 3),
        (3, 5),
        (5, 6),
        (6, 7),
        (7, 8),
        (8, 10),
    ]


@given(
    leaves=st.lists(st.integers(1, 20 * MIB), min_size=1, max_size=40), num_tasks=st.integers(1, 8)
)
def test_no_task_is_left_for_the_end(leaves: list[int], num_tasks: int) -> None:
    packed = pack(planned([(size, 1) for size in leaves]), num_tasks, 1 << 40)
    assert len(packed) <= num_tasks
    sizes = [sum(leaves[piece.leaf] + OPEN_COST_BYTES for piece in task) for task in packed]
    assert max(sizes) <= sum(sizes) / num_tasks + max(leaves) + OPEN_COST_BYTES
    assert [piece.leaf for task in packed for piece in task] == list(range(len(leaves)))


def test_what_one_task_should_not_read_is_a_multiple_of_what_runs_at_once() -> None:
    packed = pack(planned([(21 * MIB, 3)] * 16), 2, 128 * MIB)
    assert [len(task) for task in packed] == [4] * 4


def test_no_task_reads_more_than_it_should() -> None:
    packed = pack(planned([(100 * MIB, 1)] * 9), 8, 128 * MIB)
    assert [len(task) for task in packed] == [1] * 9
    assert len(pack(planned([(10 * MIB, 5)]), 2, MIB // 2)) == 5
