"""Many small appends without maintenance: what they cost, and how fast the table is read then.

    make bench-appends ARGS="--appends 10000 --writers 2"

Every append is ten rows of one of four partitions, by threads of one process, as several writers
of a service do. Beside it stands a table with the same rows of one write.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa

import pennon

SCHEMA = pa.schema({"id": pa.int64(), "part": pa.int32(), "amount": pa.float64()})
ROWS = 10


def rows(number: int) -> pa.Table:
    """Give the rows of one append."""
    ids = range(number * ROWS, (number + 1) * ROWS)
    columns = {"id": ids, "part": [number % 4] * ROWS, "amount": [id_ / 7 for id_ in ids]}
    return pa.table(columns, schema=SCHEMA)


def read_seconds(table: pennon.PartitionedNamespace) -> float:
    """Give the median time of a read of all rows."""
    times = []
    for _ in range(15):
        start = time.perf_counter()
        table.scan().to_arrow()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def main() -> None:
    """Append, and compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--appends", type=int, default=1000)
    parser.add_argument("--writers", type=int, default=2)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        many = pennon.create(f"{folder}/many", SCHEMA, partition_by=["part"])
        once = pennon.create(f"{folder}/once", SCHEMA, partition_by=["part"])
        once.append(pa.concat_tables([rows(append) for append in range(options.appends)]))

        def write(first: int) -> None:
            table = pennon.open(f"{folder}/many")
            for number in range(first, options.appends, options.writers):
                table.append(rows(number))

        start, cpu = time.perf_counter(), time.process_time()
        with ThreadPoolExecutor(options.writers) as pool:
            list(pool.map(write, range(options.writers)))
        seconds, spent = time.perf_counter() - start, time.process_time() - cpu
        many.refresh()
        found = sorted(many.scan().to_arrow()["id"].to_pylist())
        if found != list(range(options.appends * ROWS)):
            message = "rows are lost or doubled"
            raise SystemExit(message)
        files = sum(many.snapshot.leaves().table["num_fragments"].to_pylist())
        sys.stdout.write(
            f"{options.appends} appends of {ROWS} rows by {options.writers} writers:"
            f" {options.appends / seconds:.0f} a second, {spent / options.appends:.3f} s of CPU"
            f" each; {files} files\n"
            f"read: {read_seconds(many) * 1000:.1f} ms, written at once"
            f" {read_seconds(once) * 1000:.1f} ms\n"
        )


if __name__ == "__main__":
    main()
