"""Which leaves are read under which key: packed, divided, left out, or left to a shuffle."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.present import present

from pennon.grouping.resolve.resolved_join import derive_keys
from pennon.grouping.tasks import Assignment, TaskTarget, assign
from pennon.plan import (
    Group,
    Join,
    JoinType,
    Opaque,
    PlanNode,
    Scan,
    Window,
)
from pennon.spec.functions import GroupingFunction, Layout, LayoutFunction, SpecFunction
from pennon.transforms.expression import Expression
from pennon.transforms.identity import Identity

MIB = 1 << 20
Row = tuple[tuple[int, int], object]
BY_K = GroupingFunction(Identity(), (pa.int64(),))
K = 0


def scan(attribute: int) -> Scan:
    """Make a scan of column 0, whose leaves are partitioned by it."""
    layout = Layout(
        (LayoutFunction(BY_K, (K,)),), {1: (SpecFunction(BY_K, (K,), ("partition_field_k",)),)}
    )
    return Scan(layout=layout, attributes={K: frozenset({attribute})})


def leaves(*chosen: tuple[int, int, int]) -> pa.Table:
    """Make the chosen partitions of a scan: value, bytes and fragments of each."""
    values, sizes, fragments = zip(*chosen, strict=True) if chosen else ((), (), ())
    return pa.table(
        {
            "object_id": [f"v1${at}$dataset" for at in range(len(chosen))],
            "partition_field_k": pa.array(values, pa.int64()),
            "num_bytes": pa.array(sizes, pa.int64()),
            "num_fragments": pa.array(fragments, pa.int64()),
        }
    )


def read_by(assigned: Assignment, scan: int) -> dict[int, list[tuple[int | None, int | None]]]:
    """List leaf and first fragment that each task reads of a scan."""
    tasks: dict[int, list[tuple[int | None, int | None]]] = {}
    for row in assigned.rows.to_pylist():
        if row["scan"] == scan:
            tasks.setdefault(row["key"], []).append((row["leaf"], row["first_fragment"]))
    return tasks


def join(kind: JoinType = JoinType.INNER) -> list[PlanNode]:
    return [scan(10), scan(20), Join(0, 1, kind, equated=((10, 20),))]


def test_many_small_keys_share_few_tasks_the_same_in_all_scans() -> None:
    nodes = join(JoinType.FULL)
    chosen = {
        0: leaves(*((k, 1_000, 1) for k in range(100))),
        1: leaves(*((k, 1_000, 1) for k in range(50, 150))),
    }
    assigned = assign(derive_keys(nodes), nodes, chosen, TaskTarget(4, 128 * MIB))
    left, right = read_by(assigned, 0), read_by(assigned, 1)
    assert set(left) | set(right) == set(range(8))
    task_of_left = {leaf: task for task, read in left.items() for leaf, _ in read}
    task_of_right = {
        leaf + 50: task for task, read in right.items() for leaf, _ in read if leaf is not None
    }
    assert all(task_of_left[k] == task_of_right[k] for k in range(50, 100))
    sizes = Counter(row["key"] for row in assigned.rows.to_pylist())
    assert max(sizes.values()) - min(sizes.values()) <= 2
    assert assigned.notes == {0: "150 groups in 8 tasks", 1: "150 groups in 8 tasks"}


def test_large_keys_keep_a_task_of_their_own() -> None:
    nodes = join()
    sizes = [(k, 40 * MIB, 1) for k in range(40)]
    chosen = {0: leaves(*sizes), 1: leaves(*((k, 1_000, 1) for k in range(40)))}
    assigned = assign(derive_keys(nodes), nodes, chosen, TaskTarget(4, 128 * MIB))
    assert len(read_by(assigned, 0)) == 40
    assert assigned.notes[0] == "40 groups"


@pytest.mark.parametrize(
    ("kind", "left", "right"),
    [
        (JoinType.INNER, {1}, {1}),
        (JoinType.SEMI, {1}, {1}),
        (JoinType.LEFT, {0, 1}, {1}),
        (JoinType.ANTI, {0, 1}, {1}),
        (JoinType.RIGHT, {1}, {1, 2}),
        (JoinType.FULL, {0, 1}, {1, 2}),
    ],
)
def test_a_leaf_without_the_partner_that_it_needs_is_not_read(
    kind: JoinType, left: set[int], right: set[int]
) -> None:
    nodes = join(kind)
    chosen = {0: leaves((0, 1, 1), (1, 1, 1)), 1: leaves((1, 1, 1), (2, 1, 1))}
    assigned = assign(derive_keys(nodes), nodes, chosen, TaskTarget(4, 128 * MIB))

    def read(position: int) -> set[int]:
        values = chosen[position]["partition_field_k"].to_pylist()
        reads = read_by(assigned, position).values()
        return {values[present(leaf)] for of in reads for leaf, _ in of}

    assert (read(0), read(1)) == (left, right)
    is_unread = "1 partitions without partner are not read" in assigned.notes[0]
    assert is_unread == (left == {1})


def test_a_large_key_is_divided_by_leaves_and_fragments_beside_its_whole_partner() -> None:
    nodes = join()
    chosen = {
        0: leaves((0, 600 * MIB, 6), (0, 200 * MIB, 2), (1, MIB, 1)),
        1: leaves((0, MIB, 1), (1, MIB, 1)),
    }
    assigned = assign(derive_keys(nodes), nodes, chosen, TaskTarget(4, 128 * MIB))
    left, right = read_by(assigned, 0), read_by(assigned, 1)
    divided = {task for task, read in right.items() if read == [(0, None)]}
    assert len(divided) == 8
    parts = [part for task in divided for part in left[task]]
    assert sorted(parts) == [(0, at) for at in range(6)] + [(1, 0), (1, 1)]
    assert assigned.notes[0] == "2 groups in 9 tasks; 1 of them large: divided here"
    assert assigned.notes[1].endswith("divided in another table, repeated here")
    assert "1 of 2 groups large and divided" in assigned.keys.verdicts[2].common


@pytest.mark.parametrize("kind", [JoinType.RIGHT, JoinType.FULL])
def test_a_large_side_beside_a_preserved_one_is_not_divided(kind: JoinType) -> None:
    nodes = join(kind)
    chosen = {0: leaves((0, 800 * MIB, 8), (1, MIB, 1)), 1: leaves((0, MIB, 1), (1, MIB, 1))}
    assigned = assign(derive_keys(nodes), nodes, chosen, TaskTarget(2, 128 * MIB))
    assert sorted(map(len, read_by(assigned, 0).values())) == [1, 1]


@pytest.mark.parametrize(
    "operator", [Group(2, frozenset({10}), ((10, 10),)), Window(2, frozenset({10}))]
)
def test_what_an_aggregate_or_window_needs_together_is_not_divided(operator: PlanNode) -> None:
    nodes = [*join(), operator]
    chosen = {0: leaves((0, 800 * MIB, 8), (1, MIB, 1)), 1: leaves((0, MIB, 1), (1, MIB, 1))}
    assigned = assign(derive_keys(nodes), nodes, chosen, TaskTarget(2, 128 * MIB))
    assert assigned.keys.served == {2, 3}
    assert sorted(map(len, read_by(assigned, 0).values())) == [1, 1]


def test_few_large_groups_that_cannot_be_divided_are_left_to_a_shuffle() -> None:
    nodes = join(JoinType.FULL)
    chosen = {0: leaves((0, 900 * MIB, 9), (1, 900 * MIB, 9)), 1: leaves((0, MIB, 1))}
    keys = derive_keys(nodes)
    assigned = assign(keys, nodes, chosen, TaskTarget(8, 128 * MIB))
    assert assigned.keys.served == frozenset()
    assert assigned.declined == {0, 1}
    assert assigned.rows.num_rows == 0
    verdict = assigned.keys.verdicts[2]
    assert "its 2 groups of 1.8 GiB" in verdict.reason
    assert "more buckets" in verdict.remedy
    few = assign(keys, nodes, chosen, TaskTarget(2, 128 * MIB))
    assert few.keys.served == {2}


def test_a_window_that_spark_serves_gets_a_key_only_to_run_in_fewer_tasks() -> None:
    reporting = scan(10)
    nodes: list[PlanNode] = [
        replace(reporting, reported=present(reporting.layout).functions),
        Window(0, frozenset({10})),
    ]
    keys = derive_keys(nodes)
    few = assign(keys, nodes, {0: leaves((0, 1, 1), (1, 1, 1))}, TaskTarget(4, 128 * MIB))
    assert few.keys.served == frozenset()
    many = {0: leaves(*((k, 1_000, 1) for k in range(100)))}
    assigned = assign(keys, nodes, many, TaskTarget(4, 128 * MIB))
    assert assigned.keys.served == {1}
    assert assigned.notes == {0: "100 groups in 8 tasks"}


def test_small_data_in_few_groups_is_never_left_to_a_shuffle() -> None:
    nodes = join(JoinType.FULL)
    chosen = {0: leaves((0, 60 * MIB, 1)), 1: leaves((0, MIB, 1))}
    assigned = assign(derive_keys(nodes), nodes, chosen, TaskTarget(16, 128 * MIB))
    assert assigned.keys.served == {2}


PARTS = st.lists(
    st.tuples(st.integers(0, 3), st.integers(1, 400), st.integers(1, 3)), min_size=0, max_size=6
)


@st.composite
def trees(draw: st.DrawFn) -> list[PlanNode]:
    """Draw joins of two to four scans, all on the same column."""
    nodes: list[PlanNode] = [scan(10)]
    visible, root = 10, 0
    for number in range(draw(st.integers(1, 3))):
        attribute = 20 + 10 * number
        nodes.append(scan(attribute))
        kind = draw(st.sampled_from([kind for kind in JoinType if kind is not JoinType.EXISTENCE]))
        is_left = draw(st.booleans())
        left, right = (root, len(nodes) - 1) if is_left else (len(nodes) - 1, root)
        pair = (visible, attribute) if is_left else (attribute, visible)
        nodes.append(Join(left, right, kind, equated=(pair,)))
        root = len(nodes) - 1
        kept = pair[0] if kind.keeps_left else pair[1] if kind.keeps_right else None
        if kept is None:
            break
        visible = kept
    return nodes


def row(scan: int, leaf: int, k: int, part: int) -> Row:
    """Make the one row of a fragment; joins compare more than the column of the partitioning."""
    return (k, (leaf + part) % 2), (scan, leaf, part)


def result(nodes: list[PlanNode], position: int, rows: dict[int, list[Row]]) -> list[Row]:
    """Join by nested loops: rows of key and content."""
    node = nodes[position]
    if not isinstance(node, Join):
        return rows[position]
    left, right = (result(nodes, side, rows) for side in (node.left, node.right))
    kind = node.join_type
    matched: list[Row] = [
        (key, (mine, theirs)) for key, mine in left for other, theirs in right if key == other
    ]
    right_keys, left_keys = {key for key, _ in right}, {key for key, _ in left}
    match kind:
        case JoinType.SEMI:
            return [row for row in left if row[0] in right_keys]
        case JoinType.ANTI:
            return [row for row in left if row[0] not in right_keys]
    if kind in (JoinType.LEFT, JoinType.FULL):
        matched += [(key, (mine, None)) for key, mine in left if key not in right_keys]
    if kind in (JoinType.RIGHT, JoinType.FULL):
        matched += [(key, (None, theirs)) for key, theirs in right if key not in left_keys]
    return matched


@settings(max_examples=300, deadline=None)
@given(trees(), st.data(), st.integers(1, 8), st.sampled_from([40, 200, 4_000]))
def test_the_tasks_of_a_tree_have_together_the_rows_of_the_tree(
    nodes: list[PlanNode], data: st.DataObject, parallelism: int, max_bytes: int
) -> None:
    scans = [at for at, node in enumerate(nodes) if isinstance(node, Scan)]
    chosen = {at: data.draw(PARTS) for at in scans}
    everything = {
        at: [row(at, leaf, k, part) for leaf, (k, _, n) in enumerate(of) for part in range(n)]
        for at, of in chosen.items()
    }
    keys = derive_keys(nodes)
    tables = {at: leaves(*of) for at, of in chosen.items()}
    assigned = assign(keys, nodes, tables, TaskTarget(parallelism, max_bytes))
    if not assigned.keys.served:
        assert assigned.declined
        return
    tasks: dict[int, dict[int, list[Row]]] = {}
    for row_ in assigned.rows.to_pylist():
        at, leaf, first = row_["scan"], row_["leaf"], row_["first_fragment"]
        k, _, count = chosen[at][leaf]
        parts = range(count) if first is None else range(first, row_["end_fragment"])
        of_task = tasks.setdefault(row_["key"], {at: [] for at in scans})
        of_task[at] += [row(at, leaf, k, part) for part in parts]
    root = len(nodes) - 1
    together = [row for rows in tasks.values() for row in result(nodes, root, rows)]
    assert Counter(together) == Counter(result(nodes, root, everything))


def test_scans_beside_a_shuffled_side_have_all_keys_of_their_group() -> None:
    nodes: list[PlanNode] = [
        scan(10),
        Opaque(),
        Join(0, 1, JoinType.RIGHT, equated=((10, 60),)),
        scan(30),
        Join(2, 3, JoinType.LEFT, equated=((60, 30),)),
    ]
    chosen = {0: leaves((1, MIB, 1), (3, MIB, 1)), 3: leaves((2, MIB, 1), (3, MIB, 1))}
    assigned = assign(derive_keys(nodes), nodes, chosen, TaskTarget(2, 128 * MIB))
    read = {scan_: read_by(assigned, scan_) for scan_ in (0, 3)}
    assert read[0].keys() == read[3].keys()
    assert len(read[0]) == 3
    assert sorted(map(str, read[0].values())) == ["[(0, None)]", "[(1, None)]", "[(None, None)]"]


def test_a_group_without_computable_keys_is_left_out_alone() -> None:
    """One side has texts as they are, the other their numbers; a text is no number."""
    texts = GroupingFunction(Identity(), (pa.string(),))
    numbers = GroupingFunction(Expression("CAST(col0 AS BIGINT)", pa.int64()), (pa.string(),))

    def of(function: GroupingFunction, attribute: int) -> Scan:
        stored = SpecFunction(function, (K,), ("partition_field_k",))
        layout = Layout((LayoutFunction(function, (K,)),), {1: (stored,)})
        return Scan(layout=layout, attributes={K: frozenset({attribute})})

    nodes: list[PlanNode] = [
        of(texts, 10),
        of(numbers, 20),
        Join(0, 1, JoinType.INNER, equated=((10, 20),)),
        scan(30),
        scan(40),
        Join(3, 4, JoinType.INNER, equated=((30, 40),)),
    ]

    def assigned(text: str) -> Assignment:
        stored = leaves((1, MIB, 1), (3, MIB, 1))
        of_texts = stored.set_column(1, "partition_field_k", pa.array(["3", text]))
        chosen = {0: of_texts, 1: stored, 3: stored, 4: stored}
        return assign(derive_keys(nodes), nodes, chosen, TaskTarget(2, 128 * MIB))

    assert assigned("4").keys.served == {2, 5}
    left_out = assigned("x").keys
    assert left_out.served == {5}
    assert left_out.scans.keys() == {3, 4}
    assert "CAST(col0 AS BIGINT) fails for a partition" in left_out.verdicts[2].reason
