"""Tables on an object store that answers late: Pennon, one plain Lance dataset, and Iceberg.

    make bench-store ARGS="--delay 0.05"

All of them are on one S3 server of this machine, behind a proxy that waits before each request and
counts them. Small rows: what is measured is how many requests follow each other. Iceberg is written
and read by PyIceberg, with a catalog in SQLite, and left out where that cannot be had.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import lance
from benchmarks.fetched import virtual_environment
from benchmarks.partitions_in_bulk import make_namespace
from tests.present import present
from tests.stores.server import BUCKET, Proxy, options, proxied, serving, variables
from tests.stores.statements import SCHEMA, rows
from tests.stores.suite import Folder

import pennon
from pennon.leaf.dataset import forget_opened, leaves_at_once, open_leaf
from pennon.namespace import PartitionedNamespace

PYICEBERG = ("pyiceberg[pyarrow,sql-sqlite]==0.12.0", "pyarrow==26.0.1")
PARTS, MANY, OPENED = 100, 10_000, 1_000
POINT = "k = 3 AND ts >= TIMESTAMP '2020-01-01' AND ts < TIMESTAMP '2020-01-02'"
POINTS = ("a query of one of 10,000 partitions, cold", "the same again")
SCANS = (f"scan of {PARTS} partitions, cold", "scan again")

Cases = Iterator[tuple[str, Callable[[], object]]]


def pennon_cases(place: str, port: int) -> Cases:
    """What a user of Pennon does."""
    lake = pennon.connect(f"{place}/pennon", storage_options=options(port))
    lake.create_namespace("shop")

    def made() -> PartitionedNamespace:
        return lake.create_table("shop.orders", SCHEMA, partition_by=["part"])

    yield "create a table", made
    table = lake.load_table("shop.orders")
    for label, parts in (("new", PARTS), ("existing", PARTS), ("existing", 10), ("existing", 1)):
        yield f"append to {parts} {label} partitions", partial(table.append, rows(parts, size=10))

    def scan(where: str | None = None) -> object:
        return table.scan(where).to_arrow()

    yield "a query of one partition", lambda: scan("part = 3")
    yield "delete of one row", lambda: table.delete("id = 3")

    def merge() -> object:
        merging = table.merge(rows(10, size=10), on=["id", "part"])
        return merging.when_matched_update_all().when_not_matched_insert_all().execute()

    yield "merge into 10 partitions", merge


def lance_cases(place: str, port: int) -> Cases:
    """The same rows in one dataset, which has no partitions."""
    uri, stored = f"{place}/plain.lance", options(port)

    def append(parts: int) -> object:
        return lance.write_dataset(rows(parts, size=10), uri, mode="append", storage_options=stored)

    yield "create a table", lambda: lance.write_dataset([], uri, SCHEMA, storage_options=stored)
    for label, parts in (("new", PARTS), ("existing", PARTS), ("existing", 10), ("existing", 1)):
        yield f"append to {parts} {label} partitions", partial(append, parts)

    def scan(where: str | None = None) -> object:
        return lance.dataset(uri, storage_options=stored).to_table(filter=where)

    yield SCANS[0], scan
    yield SCANS[1], scan
    yield "a query of one partition", lambda: scan("part = 3")
    yield (
        "delete of one row",
        lambda: lance.dataset(uri, storage_options=stored).delete("id = 3"),
    )

    def merge() -> object:
        merging = lance.dataset(uri, storage_options=stored).merge_insert(["id", "part"])
        merging = merging.when_matched_update_all().when_not_matched_insert_all()
        return merging.execute(rows(10, size=10))

    yield "merge into 10 partitions", merge


def opening(place: str, store: int, port: int) -> Cases:
    """Open the datasets of many partitions, as a scan does."""
    direct = pennon.connect(f"{place}/many", storage_options=options(store))
    direct.create_namespace("shop")
    direct.create_table("shop.many", SCHEMA, partition_by=["part"]).append(rows(OPENED))
    lake = pennon.connect(f"{place}/many", storage_options=options(port))
    table = lake.load_table("shop.many")
    columns = table.snapshot.leaves().table.select(["location", "read_version"]).columns
    leaves = list(zip(*(column.to_pylist() for column in columns), strict=True))

    def opened() -> object:
        forget_opened()
        root, stored = table.location, table.snapshot.storage_options
        with ThreadPoolExecutor(leaves_at_once(root, on_disk=1)) as pool:
            return list(pool.map(lambda at: open_leaf(root, at[0], at[1], stored), leaves))

    yield f"opening {OPENED:,} partitions", opened


def first_query(place: str, port: int) -> None:
    """Run in a process of its own: the first query of a session, and the same again."""
    is_bulk = place.endswith("bulk")
    for name in POINTS if is_bulk else SCANS:
        started = time.perf_counter()
        if is_bulk:
            # The partitions share files of 100 rows.
            table = pennon.open(place, storage_options=options(port))
            assert table.scan(POINT).to_arrow().num_rows == 100
        else:
            lake = pennon.connect(f"{place}/pennon", storage_options=options(port))
            lake.load_table("shop.orders").scan().to_arrow()
        print(f"{name}\t{time.perf_counter() - started}", flush=True)
        sys.stdin.readline()


def measured(proxy: Proxy, cases: Cases) -> Iterator[tuple[str, float, int]]:
    """Time each case, and count its requests."""
    for name, case in cases:
        proxy.taken()
        started = time.perf_counter()
        case()
        yield name, time.perf_counter() - started, len(proxy.taken())


def followed(proxy: Proxy, command: list[str]) -> Iterator[tuple[str, float, int]]:
    """Take what a process measures, which waits for a line behind each case."""
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[1],
    )
    proxy.taken()
    for line in present(process.stdout):
        name, seconds = line.split("\t")
        yield name, float(seconds), len(proxy.taken())
        present(process.stdin).write("\n")
        present(process.stdin).flush()
    assert process.wait() == 0


def main() -> None:
    """Run all sides by turns and print one table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--delay", type=float, default=0.05)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--first-query", nargs=2)
    asked = parser.parse_args()
    if asked.first_query:
        first_query(asked.first_query[0], int(asked.first_query[1]))
        return
    seen: dict[str, dict[str, list[tuple[float, int]]]] = {}
    iceberg = virtual_environment("pyiceberg-store", *PYICEBERG)
    with (
        tempfile.TemporaryDirectory() as folder,
        serving(Path(folder, "store")) as store,
        proxied(store) as proxy,
    ):
        os.environ.update(variables(store))
        bulk = f"s3://{BUCKET}/bulk"
        make_namespace(Folder(bulk), MANY)  # type: ignore[arg-type]
        first = [sys.executable, "-m", "benchmarks.store", "--first-query"]
        for run in range(asked.runs):
            place = f"s3://{BUCKET}/run{run}"
            sides = {
                "Pennon": [
                    measured(proxy, pennon_cases(place, proxy.port)),
                    followed(proxy, [*first, place, str(proxy.port)]),
                    followed(proxy, [*first, bulk, str(proxy.port)]),
                    measured(proxy, opening(place, store, proxy.port)),
                ],
                "one Lance dataset": [measured(proxy, lance_cases(place, proxy.port))],
            }
            if iceberg is not None:
                script = str(Path(__file__).with_name("iceberg_store.py"))
                catalog = f"{folder}/catalog{run}.db"
                command = [str(iceberg / "python"), script, place, str(proxy.port), catalog]
                sides["Iceberg"] = [followed(proxy, command)]
            for side, parts in sides.items():
                for part in parts:
                    proxy.delay(0)
                    for name, seconds, requests in _delayed(proxy, part, asked.delay):
                        seen.setdefault(name, {}).setdefault(side, []).append((seconds, requests))
    print(f"{'':45}" + "".join(f"{side:>28}" for side in sides))
    for name, by_side in seen.items():
        cells = [_cell(by_side.get(side, [])) for side in sides]
        print(f"{name:45}" + "".join(f"{cell:>28}" for cell in cells))


def _delayed(
    proxy: Proxy, part: Iterator[tuple[str, float, int]], seconds: float
) -> Iterator[tuple[str, float, int]]:
    proxy.delay(seconds)
    yield from part


def _cell(times: list[tuple[float, int]]) -> str:
    if not times:
        return "-"
    seconds, requests = statistics.median(t for t, _ in times), times[-1][1]
    return f"{seconds:.2f} s, {requests} requests"


if __name__ == "__main__":
    main()
