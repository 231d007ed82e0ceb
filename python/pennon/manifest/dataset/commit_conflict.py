"""Recognises Lance's errors that mean a concurrent commit won."""

from __future__ import annotations

__all__ = ["is_conflict"]

_CONFLICT_WORDS = ("too many concurrent writers", "commit conflict", "incompatible transaction")


def is_conflict(error: Exception) -> bool:
    """Whether Lance's error means that a concurrent commit came first.

    Lance has one class for some of these errors and OSError for the others.
    """
    message = str(error).lower()
    return any(words in message for words in _CONFLICT_WORDS)
