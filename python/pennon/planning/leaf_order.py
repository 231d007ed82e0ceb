"""The sort order that the rows of a scan's partitions are known to have.

An order counts only where every chosen partition has a record of it, made by the commit that wrote
the very version that is read. What another writer appended, compacted or rewrote has another
version; a changed write order or column type makes another order of it. Unknown means none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from pennon.manifest.format.statistics import RECORDED_ORDER
from pennon.spec.write_order import WriteOrder

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pennon.planning.scan_plan import ScanPlan
    from pennon.spec.write_order import OrderColumn

__all__ = ["known_order", "mergeable_scans"]

# Files that one task merges at most: each is open with a batch of its rows.
_MOST_MERGED: Final = 64


def known_order(plan: ScanPlan, names: Sequence[str]) -> tuple[OrderColumn, ...]:
    """Give the order of every fragment of the chosen partitions, as far as it can be seen.

    Args:
        plan: The chosen partitions.
        names: The top-level columns of the scan's output.

    Returns:
        The longest beginning of the table's write order that is in the output; nothing where some
        partition is not known to be in it.
    """
    leaves = plan.table
    order = WriteOrder.known(plan.snapshot.properties, plan.snapshot.schema)
    if order is None or RECORDED_ORDER not in leaves.column_names:
        return ()
    versions = leaves["read_version"].cast(pa.utf8())
    keys = pc.binary_join_element_wise(versions, order.identity, " ")
    is_known = pc.fill_null(pc.equal(leaves[RECORDED_ORDER], keys), fill_value=False)
    is_known = pc.and_(is_known, pc.less_equal(_num_files(leaves), _MOST_MERGED))
    return order.prefix(names) if pc.all(is_known, min_count=0).as_py() else ()


def mergeable_scans(assigned: pa.Table, leaves: Mapping[int, pa.Table]) -> list[int]:
    """List the scans of which no task has too many files to merge them.

    Args:
        assigned: What is read under each key: scan, key, leaf, first_fragment and end_fragment.
        leaves: For each scan whose table has a write order, its chosen partitions.
    """
    mergeable: list[int] = []
    for scan in leaves.keys() & set(pc.unique(assigned["scan"]).to_pylist()):
        is_read = pc.and_(pc.equal(assigned["scan"], scan), pc.is_valid(assigned["leaf"]))
        rows = assigned.filter(is_read)
        of_part = pc.subtract(rows["end_fragment"], rows["first_fragment"]).cast(pa.int64())
        files = pc.coalesce(of_part, pc.take(_num_files(leaves[scan]), rows["leaf"]))
        by_key = pa.table({"key": rows["key"], "files": files}).group_by("key")
        most = pc.max(by_key.aggregate([("files", "sum")])["files_sum"])
        if (most.as_py() or 0) <= _MOST_MERGED:
            mergeable.append(scan)
    return sorted(mergeable)


def _num_files(leaves: pa.Table) -> pa.ChunkedArray:
    """Count the fragments of each leaf; more than can be merged where they are not known."""
    return pc.fill_null(leaves["num_fragments"], _MOST_MERGED + 1)
