"""The cases of ``benchmarks.store`` for Iceberg, by PyIceberg, in a virtual environment of its own.

python benchmarks/iceberg_store.py s3://lake/run0 PORT CATALOG.db
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import pyarrow as pa
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import IntegerType, LongType, NestedField, StringType

PARTS = 100


def rows(parts: int) -> pa.Table:
    """Ten rows in each of some partitions."""
    numbers = range(parts * 10)
    columns = {
        "id": pa.array(numbers, pa.int64()),
        "part": pa.array([number % parts for number in numbers], pa.int32()),
        "text": [f"row {number}" for number in numbers],
    }
    return pa.table(columns)


def main(place: str, port: str, catalog_file: str) -> None:
    """Print a line for each case, and wait for one."""
    catalog = SqlCatalog(
        "store",
        uri=f"sqlite:///{catalog_file}",
        warehouse=f"{place}/iceberg",
        **{
            "s3.endpoint": f"http://127.0.0.1:{port}",
            "s3.access-key-id": "tests",
            "s3.secret-access-key": "no-secret",
            "s3.region": "us-east-1",
        },
    )
    catalog.create_namespace("shop")
    schema = Schema(
        NestedField(1, "id", LongType()),
        NestedField(2, "part", IntegerType()),
        NestedField(3, "text", StringType()),
    )
    spec = PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "part"))

    def done(name: str, case: Callable[[], object]) -> None:
        started = time.perf_counter()
        case()
        print(f"{name}\t{time.perf_counter() - started}", flush=True)
        sys.stdin.readline()

    def scan(where: str | None = None) -> object:
        table = catalog.load_table("shop.orders")
        return (table.scan(where) if where else table.scan()).to_arrow()

    def append(parts: int) -> object:
        return catalog.load_table("shop.orders").append(rows(parts))

    done("create a table", lambda: catalog.create_table("shop.orders", schema, partition_spec=spec))
    done(f"append to {PARTS} new partitions", lambda: append(PARTS))
    done(f"append to {PARTS} existing partitions", lambda: append(PARTS))
    done("append to 10 existing partitions", lambda: append(10))
    done("append to 1 existing partitions", lambda: append(1))
    done(f"scan of {PARTS} partitions, cold", scan)
    done("scan again", scan)
    done("a query of one partition", lambda: scan("part = 3"))
    done("delete of one row", lambda: catalog.load_table("shop.orders").delete("id = 3"))


if __name__ == "__main__":
    main(*sys.argv[1:])
