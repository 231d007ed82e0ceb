"""Partitions by the thousand, written into ``__manifest`` alone: planning opens no leaf."""

from __future__ import annotations

import json
from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


def add_partitions(location: Path, count: int, *, num_bytes: int = 4_000) -> None:
    """Register partitions of a table that is partitioned by one BIGINT column, ``0 … count - 1``.

    Args:
        location: The namespace.
        count: How many.
        num_bytes: What each is said to hold.
    """
    manifest = lance.dataset(str(location / "__manifest"))
    numbers = pa.array(np.arange(count, dtype=np.int64))
    names = pc.utf8_lpad(numbers.cast(pa.utf8()), width=16, padding="0")
    object_ids = pc.binary_join_element_wise("v1$", names, "$dataset", "")
    statistics = {"num_rows": "100", "num_bytes": str(num_bytes), "num_fragments": "1"}
    columns = {
        "object_id": object_ids,
        "object_type": pa.repeat("table", count),
        "location": pc.binary_join_element_wise("12345678_", object_ids, ""),
        "metadata": pa.repeat(json.dumps(statistics), count),
        "read_version": pa.array(np.ones(count, dtype=np.uint64)),
    }
    for name in manifest.schema.names:
        if name.startswith("partition_field_"):
            columns[name] = numbers
    rows = [
        columns.get(field.name, pa.nulls(count, field.type)).cast(field.type)
        for field in manifest.schema
    ]
    lance.write_dataset(pa.table(rows, schema=manifest.schema), manifest.uri, mode="append")
