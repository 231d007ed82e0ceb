"""The partition tuple of a dataset's rows: from the ends of its source columns, else row by row.

A transform that never decreases has one value where it has the same for the smallest and the
greatest source value. A month, day or hour does not increase for ever, but between two times of
one month (day, hour) it is the same. Everything else, and columns with NULLs, is scanned.
"""

from __future__ import annotations

import lance
import pyarrow as pa
import pyarrow.compute as pc

from pennon.maintenance.adoption.leaf_tuple import MixedTuples, NoRows, OneTuple, tuple_of_rows
from pennon.maintenance.leaves.partition_values import RowValues
from pennon.spec import PartitionField

__all__ = ["recovered_tuple"]


def recovered_tuple(
    dataset: lance.LanceDataset, rows: RowValues
) -> OneTuple | MixedTuples | NoRows:
    """Find the partition tuple of a dataset.

    Args:
        dataset: The dataset.
        rows: Computes the values of its rows.

    Returns:
        The tuple, or two rows that contradict each other.
    """
    return _from_ends(dataset, rows) or tuple_of_rows(rows, rows.scan(dataset))


def _from_ends(dataset: lance.LanceDataset, rows: RowValues) -> OneTuple | None:
    if not rows.fields or not all(_is_ordered(field, rows) for field in rows.fields):
        return None
    ends: dict[str, pa.Array] = {}
    num_rows = 0
    try:
        for batch in rows.scan(dataset):
            num_rows += batch.num_rows
            for name, array in zip(batch.schema.names, batch.columns, strict=True):
                if array.null_count:
                    return None
                both = pc.min_max(array)
                here = pa.array([both["min"], both["max"]], array.type)
                ends_so_far = ends.get(name)
                if ends_so_far is not None:
                    wider = pc.min_max(pa.concat_arrays([ends_so_far, here]))
                    here = pa.array([wider["min"], wider["max"]], array.type)
                ends[name] = here
    except pa.ArrowNotImplementedError:
        return None
    if not ends:
        return None
    table = pa.table(ends)
    values = rows.of(table)
    if any(least != greatest for least, greatest in values.values()):
        return None
    for field in rows.fields:
        ends_of_field = rows.source(table, field.source_ids[0])
        first, last = field.derivation.monotone_values(ends_of_field)
        if first != last:
            return None
    return OneTuple({name: least for name, (least, _) in values.items()}, num_rows)


def _is_ordered(partition_field: PartitionField, rows: RowValues) -> bool:
    if not partition_field.derivation.has_monotone_values:
        return False
    source = rows.schema.field_by_id(partition_field.source_ids[0])
    # NaN is no end of a column of floats.
    return (
        source is not None and len(source.path) == 1 and not pa.types.is_floating(source.field.type)
    )
