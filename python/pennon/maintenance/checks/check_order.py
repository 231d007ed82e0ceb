"""A recorded order of a leaf's rows against the rows: a join without a sort relies on it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from pennon.leaf import scan_leaf
from pennon.leaf.row_order import SortedCheck
from pennon.manifest.format.statistics import RECORDED_ORDER, recorded_order
from pennon.spec.json_text import object_or_empty

if TYPE_CHECKING:
    import lance

    from pennon.spec import NamespaceSchema
    from pennon.spec.write_order import WriteOrder

__all__ = ["unsorted_fragments"]


def unsorted_fragments(
    dataset: lance.LanceDataset,
    metadata: str | None,
    order: WriteOrder | None,
    schema: NamespaceSchema,
) -> list[int]:
    """List the fragments whose rows are not in the order that is recorded of them.

    Args:
        dataset: The leaf at the version to read.
        metadata: The leaf's metadata in the manifest, JSON text.
        order: The table's write order; a record of another one or of another version counts for
            nothing.
        schema: The namespace schema.
    """
    if order is None:
        return []
    recorded = object_or_empty(metadata).get(RECORDED_ORDER)
    if recorded != recorded_order(dataset.version, order.identity):
        return []
    columns = pa.schema([field.field for field in order.fields])
    unsorted = []
    for at, fragment in enumerate(dataset.get_fragments()):
        check = SortedCheck(order.columns)
        for batch in scan_leaf(
            dataset, columns, namespace_schema=schema.arrow, fragments=(at, at + 1)
        ):
            check.observe(batch.columns)
        if not check.is_sorted:
            unsorted.append(fragment.fragment_id)
    return unsorted
