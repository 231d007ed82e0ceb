"""Searches by vectors over many partitions, beside bare Lance and one unpartitioned dataset.

    make bench-search ARGS="--rows 100000"

Vectors are drawn around centers, as embeddings lie. Recall is beside NumPy, which compares every
vector. CPU is what counts on a busy machine: the share of others stands below each table.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from statistics import median
from typing import TypeAlias

import lance
import numpy as np
import numpy.typing as npt
import pyarrow as pa
from benchmarks.side_by_side import OtherLoad, print_table

import pennon

K = 10
Vectors: TypeAlias = npt.NDArray[np.float32]
Found: TypeAlias = list[int]


def drawn(num_rows: int, dimension: int, num_queries: int) -> tuple[Vectors, Vectors]:
    """Draw vectors around centers, and queries near some of them."""
    generator = np.random.default_rng(1)
    centers = generator.normal(size=(200, dimension)).astype(np.float32)
    vectors = centers[generator.integers(0, 200, num_rows)]
    vectors += 0.7 * generator.normal(size=vectors.shape).astype(np.float32)
    queries = vectors[generator.integers(0, num_rows, num_queries)]
    return vectors, queries + 0.3 * generator.normal(size=queries.shape).astype(np.float32)


def rows(vectors: Vectors, tenants: int) -> pa.Table:
    """Give the vectors to tenants by turns."""
    number, dimension = vectors.shape
    return pa.table(
        {
            "id": range(number),
            "tenant": pa.array(np.arange(number) % tenants, pa.int32()),
            "v": pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), dimension),
        }
    )


def nearest(vectors: Vectors, query: Vectors, ids: npt.NDArray[np.int64]) -> Found:
    """Compare every vector."""
    far = ((vectors[ids] - query) ** 2).sum(axis=1)
    return list(ids[np.argsort(far, kind="stable")[:K]].tolist())


def measured(
    name: str,
    search: Callable[[Vectors], Found],
    queries: Sequence[Vectors],
    expected: Iterable[Found],
) -> list[object]:
    """Search by each query: median time and mean CPU in milliseconds, and recall."""
    for query in queries[:3]:
        search(query)
    seconds, answers, cpu = [], [], time.process_time()
    for query in queries:
        start = time.perf_counter()
        answers.append(search(query))
        seconds.append(time.perf_counter() - start)
    used = (time.process_time() - cpu) / len(queries)
    shares = [len({*one} & {*other}) / K for one, other in zip(answers, expected, strict=True)]
    return [name, 1e3 * median(seconds), 1e3 * used, sum(shares) / len(shares)]


def of_lance(dataset: lance.LanceDataset, **options: object) -> Callable[[Vectors], Found]:
    """Search one dataset."""
    where = options.pop("where", None)

    def search(query: Vectors) -> Found:
        found = dataset.scanner(
            columns=["id"],
            nearest={"column": "v", "q": query, "k": K, **options},
            filter=where,
            prefilter=True,
            disable_scoring_autoprojection=True,
        )
        return list(found.to_table()["id"].to_pylist())

    return search


def of_leaves(datasets: Sequence[lance.LanceDataset]) -> Callable[[Vectors], Found]:
    """Search each of some datasets by itself: what no search of all can be below of."""
    pool = ThreadPoolExecutor(8)

    def one(asked: tuple[lance.LanceDataset, Vectors]) -> pa.Table:
        dataset, query = asked
        columns = ["id", "_distance"]
        return dataset.to_table(columns, nearest={"column": "v", "q": query, "k": K})

    def search(query: Vectors) -> Found:
        parts = pool.map(one, ((dataset, query) for dataset in datasets))
        rows_found = pa.concat_tables(parts).sort_by("_distance")
        return list(rows_found["id"][:K].to_pylist())

    return search


def of_pennon(
    table: pennon.PartitionedNamespace, where: str | None = None, *, exact: bool = False
) -> Callable[[Vectors], Found]:
    """Search a partitioned table."""
    return lambda query: list(
        table.search(query, "v", K, where, exact=exact, columns=["id"]).to_arrow()["id"].to_pylist()
    )


def written(folder: str, data: pa.Table) -> tuple[pennon.PartitionedNamespace, lance.LanceDataset]:
    """Write the same rows by tenant, and as one dataset."""
    table = pennon.create(f"{folder}/parts", data.schema, partition_by=["tenant"])
    table.append(data)
    return table, lance.write_dataset(data, f"{folder}/one")


def many_small(num_queries: int) -> None:
    """64 tenants of 3,125 vectors of 64 dimensions: all of them, and one."""
    vectors, queries = drawn(64 * 3_125, 64, num_queries)
    data = rows(vectors, 64)
    every, own = np.arange(len(vectors)), np.arange(7, len(vectors), 64)
    load = OtherLoad.start()
    with tempfile.TemporaryDirectory() as folder:
        table, single = written(folder, data)
        single.create_index("v", "IVF_PQ", num_partitions=64, num_sub_vectors=16)
        leaves = [
            lance.dataset(f"{folder}/parts/{leaf.location}", version=leaf.version)
            for leaf in table.scan().plan().partitions
        ]
        of_all = [nearest(vectors, query, every) for query in queries]
        of_one = [nearest(vectors, query, own) for query in queries]
        one = "tenant = 7"
        filtered = of_lance(single, where=one, nprobes=16, refine_factor=4)
        result = [
            measured("64 bare scanners", of_leaves(leaves), [*queries], of_all),
            measured("all partitions", of_pennon(table), [*queries], of_all),
            measured(
                "one dataset, no index", of_lance(single, use_index=False), [*queries], of_all
            ),
            measured("one partition", of_pennon(table, one), [*queries], of_one),
            measured("one dataset, IVF_PQ, prefilter", filtered, [*queries], of_one),
        ]
        start = time.perf_counter()
        table.search(queries[:50], "v", K, columns=["id"]).to_arrow()
        batch = 1e3 * (time.perf_counter() - start)
    title = f"64 x 3,125 x 64, {len(queries)} queries; all of them in one search: {batch:.0f} ms"
    print_table(title, ["", "ms", "CPU ms", "recall"], result)
    print(f"  {load.cores():.1f} cores were used by others")


def few_large(num_rows: int, num_queries: int) -> None:
    """8 leaves of many vectors of 128 dimensions with an index, beside one dataset of all."""
    vectors, queries = drawn(8 * num_rows, 128, num_queries)
    load = OtherLoad.start()
    with tempfile.TemporaryDirectory() as folder:
        table, single = written(folder, rows(vectors, 8))
        start, cpu = time.perf_counter(), time.process_time()
        table.create_index("v", "IVF_RQ")
        built = f"{time.perf_counter() - start:.0f} s ({time.process_time() - cpu:.0f} CPU)"
        single.create_index("v", "IVF_RQ", num_partitions=int(len(vectors) ** 0.5 / 2))
        expected = [nearest(vectors, query, np.arange(len(vectors))) for query in queries]
        alone = of_lance(single, refine_factor=4)
        result = [
            measured("all partitions, IVF_RQ", of_pennon(table), [*queries], expected),
            measured("all partitions, exact", of_pennon(table, exact=True), [*queries], expected),
            measured("one dataset, IVF_RQ, refine 4", alone, [*queries], expected),
        ]
    title = f"8 x {num_rows:,} x 128, built in {built}"
    print_table(title, ["", "ms", "CPU ms", "recall"], result)
    print(f"  {load.cores():.1f} cores were used by others")


def main() -> None:
    """Measure both."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000, help="of each of the large leaves")
    parser.add_argument("--queries", type=int, default=50)
    options = parser.parse_args()
    many_small(options.queries)
    few_large(options.rows, options.queries)


if __name__ == "__main__":
    main()
