"""How many rows queries read, which bounds how many groups they make."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pennon.execution.small_leaves import row_count

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pennon.execution.fragment import LeafRead, Relation

__all__ = ["count_rows", "may_exceed"]


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
