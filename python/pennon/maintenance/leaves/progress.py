"""The callback by which maintenance reports its progress."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["Progress", "no_progress"]

Progress = Callable[[str, int, int], None]
"""Told what is done, how many of it are done, and how many there are."""


def no_progress(what: str, done: int, total: int) -> None:
    """Show nothing."""
    del what, done, total
