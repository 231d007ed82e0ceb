"""A namespace of up to 1,000,000 partitions, registered in bulk over a few real leaves.

``events(k BIGINT, ts TIMESTAMP, v DOUBLE)``, partitioned by ``days(ts)`` and ``k``: partition ``n``
is key ``n`` of day ``n / 1,000``. The rows of ``__manifest`` are those that as many appends would
have written: one per namespace, leaf and leaf version. Planning opens no leaf, so that all of them
share four.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

import lance
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pennon.manifest import create
from pennon.spec.evolution import spec_of
from pennon.spec.schema import NamespaceSchema
from pennon.transforms.registry import from_sql

if TYPE_CHECKING:
    from pathlib import Path

    from pennon.manifest import Snapshot

__all__ = ["FIRST_DAY", "PER_DAY", "make_namespace"]

SCHEMA: Final = pa.schema(
    [("k", pa.int64()), ("ts", pa.timestamp("us", "UTC")), ("v", pa.float64())]
)
PER_DAY: Final = 1_000
FIRST_DAY: Final = np.datetime64("2020-01-01", "D")
_LEAVES: Final = 4
ROWS_PER_LEAF: Final = 100
_AT_ONCE: Final = 250_000


def make_namespace(location: Path, count: int, *, is_shuffled: bool = False) -> None:
    """Make the namespace.

    Args:
        location: Its folder, which is made.
        count: How many partitions.
        is_shuffled: Whether they come in no order, as those of a table partitioned by a hash do.
    """
    schema = NamespaceSchema.with_fresh_ids(SCHEMA)
    calls = [from_sql("days", [{"column": "ts"}]), from_sql("identity", [{"column": "k"}])]
    snapshot = create(str(location), schema, spec_of(schema, calls))
    for leaf in range(_LEAVES):
        days = pa.array(np.repeat(FIRST_DAY, ROWS_PER_LEAF)).cast(pa.timestamp("us", "UTC"))
        rows = [pa.array(range(ROWS_PER_LEAF)), days, pa.repeat(1.0, ROWS_PER_LEAF)]
        lance.write_dataset(pa.table(rows, schema=SCHEMA), str(location / f"leaf{leaf}"))
    numbers = np.arange(count, dtype=np.int64)
    if is_shuffled:
        numbers = np.random.default_rng(7).permutation(numbers)
    for first in range(0, count, _AT_ONCE):
        _register(snapshot, numbers[first : first + _AT_ONCE])


def _register(snapshot: Snapshot, numbers: np.ndarray) -> None:
    count = len(numbers)
    day = FIRST_DAY + (numbers // PER_DAY).astype("timedelta64[D]")
    dates = pa.array(day)
    levels = [pc.year(dates), pc.month(dates), pc.day(dates), pa.array(numbers)]
    prefix: pa.Array | str = "v1"
    for level in levels:
        name = pc.utf8_lpad(level.cast(pa.utf8()), width=16, padding="x")
        prefix = pc.binary_join_element_wise(prefix, name, "$")
    leaf = pc.binary_join_element_wise(prefix, "dataset", "$")
    version = pc.binary_join_element_wise(leaf, "1", "$")
    leaves = pa.array(numbers % _LEAVES).cast(pa.utf8())
    statistics = {"num_rows": str(ROWS_PER_LEAF), "num_bytes": "2400", "num_fragments": "1"}
    values = dict(zip(snapshot.partition_columns, levels, strict=True))
    shared = {"read_version": pa.repeat(pa.scalar(1, pa.uint64()), count)}
    table = {
        "object_id": leaf,
        "location": pc.binary_join_element_wise("leaf", leaves, ""),
        "metadata": pa.repeat(json.dumps(statistics, separators=(",", ":")), count),
        **shared,
        **values,
    }
    objects = {
        "namespace": {"object_id": prefix, **values},
        "table": table,
        "table_version": {"object_id": version, **shared},
    }
    arrow = snapshot.manifest.schema
    for kind, columns in objects.items():
        fixed = {"object_type": pa.repeat(kind, count), "metadata": pa.repeat("{}", count)}
        rows = [
            {**fixed, **columns}.get(field.name, pa.nulls(count, field.type)).cast(field.type)
            for field in arrow
        ]
        lance.write_dataset(pa.table(rows, schema=arrow), snapshot.manifest.uri, mode="append")
