"""How a commit ends: a value, to be matched exhaustively."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pennon.manifest import Snapshot

__all__ = ["Committed", "Conflicted", "Outcome", "Retryable"]


@dataclass(frozen=True, slots=True)
class Committed:
    """The changes are visible from this snapshot on."""

    snapshot: Snapshot


@dataclass(frozen=True, slots=True)
class Conflicted:
    """Another commit changed what these changes depend on; nothing of them is visible.

    Args:
        partition: The partition in conflict, as its values: ``region=eu, day=3``.
        reason: Which changes do not commute.
    """

    partition: str
    reason: str


@dataclass(frozen=True, slots=True)
class Retryable:
    """Other commits came first each time: nothing is visible, the same commit may be tried again.

    Args:
        attempts: How often it was tried.
    """

    attempts: int


Outcome = Committed | Conflicted | Retryable
