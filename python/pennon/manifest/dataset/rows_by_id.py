"""Fetches rows of a Lance dataset by their row ids, which Lance offers to itself alone.

Its public ``take`` wants the rows' positions among those that are left.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pennon.errors import InternalError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import lance
    import pyarrow as pa

__all__ = ["rows_by_id"]


def rows_by_id(dataset: lance.LanceDataset, ids: Sequence[int], columns: Sequence[str]) -> pa.Table:
    """Fetch rows in the order of their ids, which are addresses where they are not stable.

    Args:
        dataset: At one version.
        ids: Row ids of that version.
        columns: The columns to fetch.

    Raises:
        InternalError: A row is not there.
        OSError: The storage refused.
    """
    rows = dataset._take_rows(list(ids), columns=list(columns))  # noqa: SLF001
    if rows.num_rows != len(ids):
        raise InternalError(what=f"{len(ids)} rows of {dataset.uri} were {rows.num_rows}")
    return rows
