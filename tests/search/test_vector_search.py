"""Searches beside NumPy, which compares every vector of the whole table."""

from __future__ import annotations

import pickle
import random
import shutil
from pathlib import Path

import lance
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import pennon
from pennon.errors import (
    IndexFilesMissing,
    LeafMissing,
    NotVectorColumn,
    PredicateNotEvaluable,
    QueryDimensionMismatch,
    QueryVectorRefused,
    SearchOptionRefused,
    UnknownColumn,
)
from pennon.leaf import forget_leaves
from pennon.namespace import PartitionedNamespace
from pennon.search import nearest_rows

DIMENSION = 6
QUERY = [1.0, 2.0, 0.0, 1.0, 3.0, 1.0]


def schema(element: pa.DataType) -> pa.Schema:
    return pa.schema(
        {
            "id": pa.int64(),
            "tenant": pa.string(),
            "n": pa.int32(),
            "v": pa.list_(element, DIMENSION),
            "note": pa.struct({"text": pa.string()}),
        }
    )


def rows(
    drawn: random.Random, count: int, element: pa.DataType, first: int = 0
) -> list[dict[str, object]]:
    """Rows with few distinct vectors, so that many are as far away, and with every odd one."""

    def vector() -> list[float | None] | None:
        odd = drawn.random()
        if odd < 0.05:
            return None
        values: list[float | None] = [float(drawn.randrange(4)) for _ in range(DIMENSION)]
        if odd < 0.15:
            values[2] = None
        elif odd < 0.2 and pa.types.is_floating(element):
            values[1] = float("nan")
        elif odd < 0.25:
            values = [0.0] * DIMENSION
        return values

    return [
        {
            "id": first + at,
            "tenant": drawn.choice(["a", "b", "it's", None]),
            "n": drawn.choice([None, *range(5)]),
            "v": vector(),
            "note": {"text": f"row {first + at}"},
        }
        for at in range(count)
    ]


def made(
    path: Path, layout: str, given: list[list[dict[str, object]]], columns: pa.Schema
) -> PartitionedNamespace:
    """A table with deleted rows and several fragments in each leaf."""
    if layout == "plain":
        lance.write_dataset(pa.Table.from_pylist(given[0], columns), str(path / "t"))
        table = pennon.open(path / "t")
        for more in given[1:]:
            table.append(pa.Table.from_pylist(more, columns))
    else:
        transaction = "weak" if layout == "weak" else "strong"
        by = [] if layout == "none" else ["tenant"]
        table = pennon.create(
            path / "t", columns, partition_by=by, properties={"transaction": transaction}
        )
        for more in given:
            table.append(pa.Table.from_pylist(more, columns))
    table.delete("id % 7 = 3")
    return table


def expected_distances(
    metric: str, query: npt.ArrayLike, live: list[dict[str, object]]
) -> list[float]:
    """The distances of all rows that qualify, in order."""
    one = np.asarray(query, np.float64)
    far = []
    for row in live:
        vector = row["v"]
        if not isinstance(vector, list) or None in vector:
            continue
        many = np.array(vector, np.float64)
        with np.errstate(all="ignore"):
            match metric:
                case "l2":
                    distance = ((one - many) ** 2).sum()
                case "dot":
                    distance = 1 - one @ many
                case "cosine":
                    distance = 1 - one @ many / np.linalg.norm(one) / np.linalg.norm(many)
                case _:
                    pairs = zip(vector, one.astype(int), strict=True)
                    distance = sum((int(a) ^ int(b)).bit_count() for a, b in pairs)
        if not np.isnan(distance):
            far.append(float(distance))
    return sorted(far)


ELEMENTS = {
    "float": (pa.float32(), ["l2", "cosine", "dot"]),
    "double": (pa.float64(), ["l2", "cosine", "dot"]),
    "half": (pa.float16(), ["l2", "cosine", "dot"]),
    "byte": (pa.uint8(), ["hamming", "l2", "cosine"]),
    "signed": (pa.int8(), ["l2", "dot"]),
}


@pytest.mark.parametrize("layout", ["tenant", "none", "weak", "plain"])
@pytest.mark.parametrize("kind", ELEMENTS)
def test_search_finds_what_a_comparison_of_all_rows_finds(
    tmp_path: Path, layout: str, kind: str
) -> None:
    element, metrics = ELEMENTS[kind]
    drawn = random.Random(f"{layout} {kind}")  # noqa: S311
    given = [rows(drawn, 60, element, first) for first in (0, 60, 120)]
    table = made(tmp_path, layout, given, schema(element))
    live = table.scan().to_arrow().to_pylist()
    assert len(live) == sum(at % 7 != 3 for at in range(180))
    conditions = {
        None: lambda _: True,
        "tenant = 'a'": lambda row: row["tenant"] == "a",
        "n > 2 AND tenant <> 'b'": lambda row: (
            (row["n"] or 0) > 2 and row["tenant"] not in (None, "b")
        ),
        "CASE WHEN n = 1 THEN id ELSE n END > 2": lambda row: (
            (row["id"] if row["n"] == 1 else row["n"] or 0) > 2
        ),
    }
    for metric in metrics:
        for where, holds in conditions.items():
            kept = [row for row in live if holds(row)]
            for k in (1, 7, 500):
                found = table.search(QUERY, "v", k, where, metric=metric).to_arrow().to_pylist()
                far = expected_distances(metric, QUERY, kept)[:k]
                assert [row["_distance"] for row in found] == pytest.approx(far, abs=1e-3)
                assert len({row["id"] for row in found}) == len(found)
                by_id = {row["id"]: row for row in kept}
                for row in found:
                    own = by_id[row["id"]]
                    assert {name: row[name] for name in own} == own


def test_each_query_of_several_has_its_own_rows(tmp_path: Path) -> None:
    drawn = random.Random(2)  # noqa: S311
    given = [rows(drawn, 90, pa.float32(), first) for first in (0, 90)]
    table = made(tmp_path, "tenant", given, schema(pa.float32()))
    queries = np.array([[float(drawn.randrange(4)) for _ in range(DIMENSION)] for _ in range(9)])
    for where in (None, "n = 2"):
        together = table.search(queries, k=5, where=where, columns=["id"]).to_arrow()
        assert together.schema.names == ["query_index", "id", "_distance"]
        apart = [
            {"query_index": number, **row}
            for number, query in enumerate(queries)
            for row in table.search(list(query), k=5, where=where, columns=["id"])
            .to_arrow()
            .to_pylist()
        ]
        assert together.to_pylist() == apart


def test_rows_as_far_away_come_in_one_order(tmp_path: Path) -> None:
    """Of the same vector in many rows of many leaves the first k rows come, by leaf and id."""
    columns = schema(pa.float32())
    table = pennon.create(tmp_path / "t", columns, partition_by=["tenant"])
    for first in range(0, 400, 100):
        table.append(
            [
                {"id": at, "tenant": f"t{at % 3}", "v": [float(at % 10 == 9)] * DIMENSION}
                for at in range(first, first + 100)
            ]
        )
    leaves = sorted(table.scan().plan().partitions, key=lambda partition: partition.object_id)
    tenants = [partition.values[table.spec.fields[0].field_id] for partition in leaves]
    in_order = [
        at for tenant in tenants for at in range(400) if f"t{at % 3}" == tenant and at % 10 != 9
    ]
    for k in (1, 5, 130, 200, 300):
        found = table.search([0.0] * DIMENSION, k=k, columns=["id"]).to_arrow()
        assert found["id"].to_pylist() == in_order[:k]


def test_partitions_are_pruned_and_the_filter_comes_before_k(tmp_path: Path) -> None:
    columns = schema(pa.float32())
    table = pennon.create(tmp_path / "t", columns, partition_by=["tenant"])
    table.append(
        [
            {"id": at, "tenant": f"t{at % 4}", "n": at // 100, "v": [float(at)] * DIMENSION}
            for at in range(400)
        ]
    )
    plan = table.search([0.0] * DIMENSION, where="tenant = 't1'").plan()
    assert (len(plan.leaves), plan.partitions_total) == (1, 4)
    far = table.search([0.0] * DIMENSION, k=3, where="tenant = 't1' AND n = 3", columns=["id"])
    assert far.to_arrow()["id"].to_pylist() == [301, 305, 309]
    few = table.search([0.0] * DIMENSION, k=50, where="id >= 395", columns=["id"])
    assert sorted(few.to_arrow()["id"].to_pylist()) == [395, 396, 397, 398, 399]


def test_a_column_is_searched_by_its_name_at_the_version(tmp_path: Path) -> None:
    """Of another name in the leaves, or dropped: what the table says at a version holds."""
    columns = schema(pa.float32())
    table = pennon.create(tmp_path / "t", columns, partition_by=["tenant"])
    old = [{"id": at, "tenant": "a", "v": [float(at)] * DIMENSION} for at in range(9)]
    first = table.append(old)
    table.rename_column("v", "w")
    assert table.search([2.2] * DIMENSION, k=1).to_arrow()["id"].to_pylist() == [2]
    table.append([{"id": 50, "tenant": "a", "w": [2.0] * DIMENSION}])
    assert table.search([2.2] * DIMENSION, k=2).to_arrow()["id"].to_pylist() == [2, 50]
    table.drop_column("w")
    with pytest.raises(NotVectorColumn, match="of which it has none"):
        table.search([2.2] * DIMENSION).to_arrow()
    assert table.search([2.2] * DIMENSION, k=3, version=first).to_arrow()["id"].to_pylist() == [
        2,
        3,
        1,
    ]


def test_what_cannot_be_searched_is_told_in_one_sentence(tmp_path: Path) -> None:
    columns = schema(pa.float32()).append(pa.field("l", pa.list_(pa.float32())))
    table = pennon.create(tmp_path / "t", columns, partition_by=["tenant"])
    table.append([{"id": 1, "tenant": "a", "v": QUERY, "l": QUERY}])
    with pytest.raises(QueryDimensionMismatch, match=r"has 2 elements, .* have 6"):
        table.search([1.0, 2.0]).to_arrow()
    with pytest.raises(QueryDimensionMismatch, match="has 5 elements"):
        table.search([QUERY, QUERY[:5]]).to_arrow()
    with pytest.raises(NotVectorColumn, match=r"'l\.arrow\.fixed-size-list\.size'"):
        table.search(QUERY, "l").to_arrow()
    with pytest.raises(NotVectorColumn, match="Name one of v"):
        table.search(QUERY, "note.text").to_arrow()
    with pytest.raises(UnknownColumn):
        table.search(QUERY, "w").to_arrow()
    for k in (0, -1):
        with pytest.raises(SearchOptionRefused, match=f"k = {k}"):
            table.search(QUERY, k=k).to_arrow()
    with pytest.raises(SearchOptionRefused, match="Give l2, cosine, dot"):
        table.search(QUERY, metric="hamming").to_arrow()
    with pytest.raises(SearchOptionRefused, match="nprobes"):
        table.search(QUERY, nprobes=0).to_arrow()
    for wrong in (
        None,
        [None] * 6,
        [float("nan")] * 6,
        [],
        "abc",
        [["a"] * 6],
        [[[QUERY] * 6] * 6],
        1e300,
    ):
        with pytest.raises(QueryVectorRefused):
            table.search(wrong).to_arrow()
    with pytest.raises(QueryVectorRefused):
        table.search([1e300] * 6).to_arrow()
    with pytest.raises(PredicateNotEvaluable):
        table.search(QUERY, where="sum(n) > 1").to_arrow()


def test_a_leaf_that_fails_fails_the_search(tmp_path: Path) -> None:
    columns = schema(pa.float32())
    table = pennon.create(tmp_path / "t", columns, partition_by=["tenant"])
    table.append([{"id": at, "tenant": f"t{at}", "v": QUERY} for at in range(3)])
    leaf = table.scan().plan().partitions[1].location
    for file in (tmp_path / "t" / leaf / "data").iterdir():
        file.unlink()
    with pytest.raises(LeafMissing):
        pennon.open(tmp_path / "t").search(QUERY, k=1).to_arrow()


def test_tasks_elsewhere_find_the_rows_of_one_search(tmp_path: Path) -> None:
    """A plan goes to other processes; each searches some leaves, and the nearest are merged."""
    drawn = random.Random(3)  # noqa: S311 - test data
    given = [rows(drawn, 90, pa.float32(), first) for first in (0, 90)]
    table = made(tmp_path, "tenant", given, schema(pa.float32()))
    search = table.search([QUERY, QUERY[::-1]], k=5, where="n < 4")
    plan = pickle.loads(pickle.dumps(search.plan()))  # noqa: S301 - of this test
    whole = search.to_arrow()
    of_tasks = [nearest_rows(plan, [leaf]) for leaf in plan.leaves]
    assert len(of_tasks) == 4
    columns = ["query_index", "_distance"]
    together = (
        pa.concat_tables(of_tasks)
        .select(columns)
        .sort_by([(name, "ascending") for name in columns])
    )
    first = [together.filter(pc.equal(together["query_index"], one)).slice(0, 5) for one in (0, 1)]
    assert pa.concat_tables(first).to_pylist() == whole.select(columns).to_pylist()
    assert sum(part.num_rows for part in of_tasks) > whole.num_rows


@pytest.mark.parametrize(
    ("kind", "metric"),
    [("IVF_RQ", "l2"), ("IVF_SQ", "cosine"), ("IVF_PQ", "l2"), ("IVF_HNSW_SQ", "cosine")],
)
def test_an_index_keeps_the_rules_of_a_search(tmp_path: Path, kind: str, metric: str) -> None:
    """As many rows as there are up to k, filtered first, of exact distances, in one order."""
    drawn = random.Random(f"{kind} {metric}")  # noqa: S311
    columns = schema(pa.float32()).set(3, pa.field("v", pa.list_(pa.float32(), 8)))

    def given(count: int, first: int) -> pa.Table:
        made = rows(drawn, count, pa.float32(), first)
        for row in made:
            if isinstance(row["v"], list):
                row["v"] += [drawn.gauss(1, 1), drawn.gauss(1, 1)]
        return pa.Table.from_pylist(made, columns)

    table = pennon.create(tmp_path / "t", columns, partition_by=["tenant"])
    table.append(given(1_400, 0))
    options = {"min_bytes": 0, "num_partitions": 3}
    options |= {"num_sub_vectors": 4} if kind == "IVF_PQ" else {}
    table.create_index("v", kind, metric=metric, **options)  # type: ignore[arg-type]
    table.append(given(60, 2_000))
    table.delete("id % 7 = 3")
    assert set(table.metadata("indexes")["rows_not_indexed"].to_pylist()) != {0}
    live = table.scan().to_arrow().to_pylist()
    query = [*QUERY, 0.5, 1.5]
    for where, holds in {
        None: lambda _: True,
        "n = 3": lambda row: row["n"] == 3,
        "id BETWEEN 700 AND 709 OR id = 2001": lambda row: (
            700 <= row["id"] <= 709 or row["id"] == 2001
        ),
    }.items():
        kept = [row for row in live if holds(row)]
        far = expected_distances(metric, query, kept)
        by_id = {row["id"]: row for row in kept}
        for k in (5, 3_000):
            search = table.search(query, k=k, where=where, nprobes=1, refine_factor=1)
            found = search.to_arrow().to_pylist()
            assert len({row["id"] for row in found}) == len(found) == min(k, len(far))
            own = [expected_distances(metric, query, [by_id[row["id"]]]) for row in found]
            assert [[row["_distance"]] for row in found] == [
                pytest.approx(at, abs=1e-3) for at in own
            ]
            assert [row["_distance"] for row in found] == sorted(row["_distance"] for row in found)
            assert search.to_arrow().to_pylist() == found


def test_an_exact_search_asks_no_index(tmp_path: Path) -> None:
    drawn = random.Random(5)  # noqa: S311
    table = made(tmp_path, "tenant", [rows(drawn, 90, pa.float32())], schema(pa.float32()))
    before = table.search(QUERY, k=7, exact=True).to_arrow()
    table.create_index("v", "IVF_FLAT", min_bytes=0)
    for files in tmp_path.glob("t/*/_indices"):
        shutil.rmtree(files)
    forget_leaves()
    assert pennon.open(tmp_path / "t").search(QUERY, k=7, exact=True).to_arrow() == before
    with pytest.raises(IndexFilesMissing):
        pennon.open(tmp_path / "t").search(QUERY, k=7).to_arrow()
