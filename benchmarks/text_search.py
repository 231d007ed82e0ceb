"""Searches of texts in one large partition and in many small ones, with an index and without.

    make bench-search

Words are drawn as they are in texts: a few are in most rows, most are in few. One dataset of all
rows with Lance's index stands beside.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from functools import partial
from statistics import median

import lance
import numpy as np
import pyarrow as pa
from benchmarks.side_by_side import OtherLoad, print_table

import pennon

QUERIES = ("w17 w900", "w3 w55000", "w0 w1", "w40 w41 w42", "w7000")


def rows(num_rows: int, partitions: int) -> pa.Table:
    """Texts of 5 to 40 words."""
    generator = np.random.default_rng(1)
    numbers = np.minimum((generator.pareto(0.8, size=num_rows * 40) * 3).astype(int), 60_000)
    words = np.array([f"w{number}" for number in range(60_001)])[numbers].tolist()
    sizes = generator.integers(5, 40, num_rows).tolist()
    texts = [" ".join(words[at * 40 : at * 40 + size]) for at, size in enumerate(sizes)]
    parts = pa.array(np.arange(num_rows) % partitions, pa.int32())
    return pa.table({"id": range(num_rows), "part": parts, "body": texts})


def measured(name: str, search: Callable[[str], pa.Table]) -> list[object]:
    """Give milliseconds of the first query, and the median and mean CPU of others."""
    seconds, cpu = [], []
    for query in QUERIES * 4:
        clock, used = time.perf_counter(), time.process_time()
        search(query)
        seconds.append(1e3 * (time.perf_counter() - clock))
        cpu.append(1e3 * (time.process_time() - used))
    return [name, seconds[0], cpu[0], median(seconds[1:]), sum(cpu[1:]) / len(cpu[1:])]


def main() -> None:
    """Measure both tables, with an index and without, and Lance over one dataset."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=200_000)
    options = parser.parse_args()
    load, lines = OtherLoad.start(), []
    with tempfile.TemporaryDirectory() as folder:
        for partitions in (1, 64):
            given = rows(options.rows, partitions)
            for kind in ("no index", "INVERTED"):
                place = f"{folder}/{partitions} {kind}"
                table = pennon.create(place, given.schema, partition_by=["part"])
                table.append(given)
                if kind == "INVERTED":
                    table.create_index("body", kind, stem=False, remove_stop_words=False)

                def search(query: str, table: pennon.PartitionedNamespace = table) -> pa.Table:
                    return table.search_text(query, "body", 10, columns=["id"]).to_arrow()

                lines.append(measured(f"{partitions} partitions, {kind}", search))
        whole = lance.write_dataset(given, f"{folder}/whole")
        whole.create_scalar_index("body", "INVERTED", stem=False, remove_stop_words=False)
        of_lance = partial(whole.to_table, ["id"], limit=10)
        lines.append(
            measured("one dataset of Lance", lambda query: of_lance(full_text_query=query))
        )
    header = ("", "first ms", "CPU", "median ms", "CPU")
    print_table(f"top 10 of {options.rows:,} texts", header, lines)
    print(f"Others used {load.cores():.1f} cores meanwhile.")


if __name__ == "__main__":
    main()
