"""Splits of several leaves, one row per task, as the jar reads them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from pennon.worker.wire.split_texts import packed_column

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pennon.planning.splits import Piece

__all__ = ["packed_splits"]


def packed_splits(leaves: pa.Table, tasks: Sequence[Sequence[Piece]]) -> pa.Table:
    """Write the split of each task.

    Args:
        leaves: Columns ``object_id``, ``location``, ``read_version`` and ``residual``.
        tasks: The pieces of each, by the rows of ``leaves``.

    Returns:
        Columns ``object_id``, the leaves' ids with commas between them, and ``split``.
    """
    ids = leaves["object_id"].to_pylist()
    names = [",".join(dict.fromkeys(ids[piece.leaf] for piece in pieces)) for pieces in tasks]
    return pa.table(
        {"object_id": pa.array(names, pa.utf8()), "split": packed_column(leaves, tasks)}
    )
