"""How many rows queries read, which bounds how many groups they make, and their batches' size."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from pennon.execution.small_leaves import row_count

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pennon.execution.fragment import LeafRead, Query, Relation

__all__ = ["MANY_ROWS", "count_rows", "is_grouped", "may_exceed", "rows_at_once"]

MANY_ROWS: Final = 16_384
"""The rows of a batch where nothing has to be spilled."""
_FEW_ROWS: Final = 1_024
_GROUP_BYTES: Final = 96  # of a key and two numbers, with the place in the hash and room to grow
_GROUPED: Final = re.compile(r"\b(?:GROUP BY|DISTINCT)\b")


def is_grouped(query: Query) -> bool:
    """Whether a query makes groups of its rows."""
    return _GROUPED.search(query.sql) is not None


def rows_at_once(relations: Sequence[Relation], query: Query, memory: int) -> int:
    """Give the size of the batches in which a query is computed.

    Args:
        relations: What it reads.
        query: The query.
        memory: Bytes that all queries of the process have together.

    Raises:
        LeafMissing: A leaf's files are gone.
    """
    if not is_grouped(query):
        return MANY_ROWS
    return _FEW_ROWS if may_exceed(relations, _GROUP_BYTES, memory) else MANY_ROWS


def may_exceed(relations: Sequence[Relation], row_bytes: int, memory: int) -> bool:
    """Whether rows may take more than some memory.

    Leaves whose rows the plan knows are not opened for it, nor those behind the answer.

    Args:
        relations: What is read.
        row_bytes: What each row is reckoned with.
        memory: In bytes.

    Raises:
        LeafMissing: A leaf's files are gone.
    """
    left = memory // row_bytes
    for count in _counts(relations):
        left -= count
        if left < 0:
            return True
    return False


def count_rows(relations: Sequence[Relation]) -> int:
    """Count the rows of all leaves.

    Raises:
        LeafMissing: A leaf's files are gone.
    """
    return sum(_counts(relations))


def _counts(relations: Sequence[Relation]) -> Iterator[int]:
    for relation in relations:
        for leaf in relation.leaves:
            yield _count(relation, leaf)


def _count(relation: Relation, leaf: LeafRead) -> int:
    if leaf.num_rows is not None and leaf.fragments is None:
        return leaf.num_rows
    return row_count(relation.opened(leaf), leaf)
