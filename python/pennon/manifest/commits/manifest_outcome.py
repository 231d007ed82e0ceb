"""The outcomes of a commit to ``__manifest``, as types."""

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
    """Another writer committed a change of the same rows or keys; nothing of ours is visible."""


ManifestOutcome = ManifestCommitted | ConcurrentChange
