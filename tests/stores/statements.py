"""What is done to a table, each a statement of its own: counted, timed, and made to fail."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta

import pyarrow as pa

from pennon.namespace import Lake, PartitionedNamespace

SCHEMA = pa.schema({"id": pa.int64(), "part": pa.int32(), "text": pa.string()})

Statement = Callable[[PartitionedNamespace], object]


def rows(parts: int, start: int = 0, size: int = 1) -> pa.Table:
    """Rows of a number of partitions, ``size`` in one, with ids of their own."""
    numbers = range(start, start + parts * size)
    return pa.table(
        {
            "id": numbers,
            "part": [number % parts for number in numbers],
            "text": [f"row {number}" for number in numbers],
        },
        schema=SCHEMA,
    )


def filled(
    lake: Lake, parts: int, name: str = "shop.orders", appends: int = 1
) -> PartitionedNamespace:
    """Make a table of ten rows in each partition for each append, their ids from 0 on."""
    table = lake.create_table(name, SCHEMA, partition_by=["part"])
    for number in range(appends):
        table.append(rows(parts, number * parts * 10, size=10))
    return table


def _merge(table: PartitionedNamespace) -> object:
    source = pa.concat_tables([rows(5), rows(5, 900_000)])
    merge = table.merge(source, on=["id", "part"])
    return merge.when_matched_update_all().when_not_matched_insert_all().execute()


def _old() -> datetime:
    return datetime.now(UTC) + timedelta(days=1)


# Each is done once to a table of `filled`, in this order.
CHANGES: Mapping[str, Statement] = {
    "append": lambda table: table.append(rows(3, 1_000_000)),
    "delete": lambda table: table.delete("id = 1"),
    "delete a partition": lambda table: table.delete("part = 2"),
    "update": lambda table: table.update({"text": "'changed'"}, "id = 0"),
    "merge": _merge,
    "overwrite": lambda table: table.overwrite(rows(1, 2_000_000), "part = 0"),
    "add a column": lambda table: table.add_column("more", pa.int64()),
    "create a tag": lambda table: table.create_tag("kept"),
    "drop a tag": lambda table: table.drop_tag("kept"),
    "compact": lambda table: table.maintenance.compact(),
    "expire": lambda table: table.maintenance.expire_snapshots(retain_last=1),
    "vacuum": lambda table: table.maintenance.vacuum(),
}
