"""Clusters rows by partition, in whatever order they come.

Spark sorts before it writes; whoever writes without Spark hands rows over as they come. They are
gathered up to a bound in bytes and sorted there, so that memory is bounded and a partition gets one
run of files per gathered piece.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from pennon.leaf.row_order import key_columns
from pennon.leaf.write.incoming_rows import conform
from pennon.leaf.write.partition_tuples import partition_tuples, tuple_codes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    import numpy as np
    from numpy.typing import NDArray

    from pennon.manifest import Snapshot
    from pennon.spec.partition_spec import PartitionSpec
    from pennon.spec.write_order import WriteOrder

__all__ = ["clustered"]

GATHERED_BYTES: Final = 128 << 20
_BATCH_ROWS: Final = 65_536


def clustered(
    batches: Iterable[pa.RecordBatch],
    snapshot: Snapshot,
    spec: PartitionSpec,
    order: WriteOrder | None,
    *,
    gathered_bytes: int = GATHERED_BYTES,
    observe: Callable[[pa.Array], None] | None = None,
) -> Iterator[pa.RecordBatch]:
    """Sort rows by partition, and within each by the write order.

    Args:
        batches: Rows in the namespace's columns by name.
        snapshot: The namespace.
        spec: The spec to partition by.
        order: The table's write order, if it has one.
        gathered_bytes: So much is held and sorted at a time.
        observe: Is told of each row that is given which one of the rows that came it is.

    Yields:
        The rows in exactly the namespace's schema.

    Raises:
        WriteColumnUnknown: The rows have a column that the table has not.
        WriteTypeMismatch: A value does not fit its column.
        NotNullViolated: A NOT NULL column has a NULL.
        PartitionValueOverflow: A partition value does not fit the manifest's column.

    Spec: "Partition Expression".
    """
    gathered: list[pa.RecordBatch] = []
    num_bytes = num_seen = 0

    def ordered() -> Iterator[pa.RecordBatch]:
        for rows, places in _sorted(gathered, snapshot, spec, order):
            if observe is not None:
                observe(pc.add(places, num_seen))
            yield from _sliced(rows)

    for batch in _cut(batches, gathered_bytes):
        rows = conform(batch, snapshot.schema, snapshot.location)
        gathered.append(rows)
        num_bytes += rows.nbytes
        if num_bytes >= gathered_bytes:
            yield from ordered()
            num_seen += sum(piece.num_rows for piece in gathered)
            gathered, num_bytes = [], 0
    if gathered:
        yield from ordered()


def _cut(batches: Iterable[pa.RecordBatch], most_bytes: int) -> Iterator[pa.RecordBatch]:
    """Cut what is larger than the bound; leave out what has no row."""
    for batch in batches:
        num_parts = max(1, -(-batch.nbytes // most_bytes))
        step = max(1, -(-batch.num_rows // num_parts))
        for start in range(0, batch.num_rows, step):
            yield batch.slice(start, step)


def _sorted(
    gathered: list[pa.RecordBatch],
    snapshot: Snapshot,
    spec: PartitionSpec,
    order: WriteOrder | None,
) -> Iterator[tuple[pa.RecordBatch, pa.Array]]:
    """Sort rows; the second array has the position where each of them was."""
    for rows in pa.Table.from_batches(gathered).combine_chunks().to_batches():
        keys: list[tuple[pa.Array | NDArray[np.generic], str]] = []
        if spec.fields:
            keys.append((tuple_codes(partition_tuples(rows, spec, snapshot)), "ascending"))
        if order is not None:
            columns = [rows.column(column.name) for column in order.columns]
            keys += [
                (key.values, "descending" if key.is_descending else "ascending")
                for key in key_columns(columns, order.columns)
            ]
        places = _indices(keys) if keys else pa.array(range(rows.num_rows), pa.uint64())
        yield (rows.take(places) if keys else rows), places


def _sliced(rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    for start in range(0, rows.num_rows, _BATCH_ROWS):
        yield rows.slice(start, _BATCH_ROWS)


def _indices(keys: list[tuple[pa.Array | NDArray[np.generic], str]]) -> pa.Array:
    names = [f"key_{place}" for place in range(len(keys))]
    table = pa.table([values for values, _ in keys], names=names)
    directions = [direction for _, direction in keys]
    return pc.sort_indices(table, sort_keys=list(zip(names, directions, strict=True)))
