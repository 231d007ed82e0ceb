"""The kinds of change that a transaction can make to one leaf.

``Append`` commutes with other appends. The others depend on what was there: they conflict with
every other change of the same leaf, but for a ``Rewrite``, which changes no row, and a
``ChangeRows`` under snapshot isolation, which commutes with what leaves its rows as they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pennon.errors import InternalError
from pennon.leaf import StagedPartition
from pennon.leaf.changes.deleted_rows import DeletedRows

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Append", "Change", "ChangeRows", "Drop", "Replace", "Rewrite", "by_leaf"]


@dataclass(frozen=True, slots=True)
class Append:
    """Add rows to a leaf, which is made where it is not there."""

    staged: tuple[StagedPartition, ...]


@dataclass(frozen=True, slots=True)
class Replace:
    """Make a leaf's rows exactly these."""

    staged: tuple[StagedPartition, ...]


@dataclass(frozen=True, slots=True)
class Rewrite:
    """Put rows of a leaf into other files: other writers go on as if nothing had changed.

    Args:
        staged: Exactly the rows of some fragments, in their order or with a file of their places.
        fragments: The numbers of these fragments, which go.
        version: The Lance version of the leaf that they were read at.
    """

    staged: tuple[StagedPartition, ...]
    fragments: tuple[int, ...]
    version: int


@dataclass(frozen=True, slots=True)
class ChangeRows:
    """Take single rows out of a leaf, and add others.

    Args:
        deleted: Rows that go, by their addresses at the version that the statement read.
        staged: New rows.
        copies: Whether the fragments of rows that go are written anew without them.
    """

    deleted: DeletedRows
    staged: tuple[StagedPartition, ...] = ()
    copies: bool = False


@dataclass(frozen=True, slots=True)
class Drop:
    """Take a leaf out of the manifest; its files stay for older snapshots."""


Change = Append | Replace | Rewrite | ChangeRows | Drop


def by_leaf(staged: Iterable[StagedPartition]) -> dict[str, tuple[StagedPartition, ...]]:
    """Bring together what several tasks wrote for the same leaf.

    Raises:
        InternalError: Two tasks disagree on the leaf's directory.
    """
    grouped: dict[str, tuple[StagedPartition, ...]] = {}
    for part in staged:
        parts = grouped.get(part.object_id, ())
        if parts and parts[0].location != part.location:
            raise InternalError(what=f"two tasks wrote {part.object_id} to different directories")
        grouped[part.object_id] = (*parts, part)
    return grouped
