"""What became of a commit to ``__manifest``: a value, not an exception."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["ConcurrentChange", "ManifestCommitted", "ManifestOutcome"]


@dataclass(frozen=True, slots=True)
class ManifestCommitted:
    """The change is visible from this version of ``__manifest`` on.

    Args:
        version: The version that the commit made.
    """

    version: int


@dataclass(frozen=True, slots=True)
class ConcurrentChange:
    """Another writer committed a change of the same rows or keys; nothing of ours is visible.

    Args:
        base_version: The version of ``__manifest`` that the refused change was made against.
        latest_version: The version that is there now.
    """

    base_version: int
    latest_version: int


ManifestOutcome = ManifestCommitted | ConcurrentChange
