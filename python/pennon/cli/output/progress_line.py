"""A progress line on standard error, rewritten in place on a terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from pennon.maintenance.leaves.progress import Progress, no_progress

__all__ = ["progress_line"]

_SECONDS_BETWEEN: Final = 1.0
_FROM_THE_START: Final = "\r"
_CLEARED_TO_THE_END: Final = "\033[K"


@contextmanager
def progress_line() -> Iterator[Progress]:
    """Give a progress whose line is gone when the work is over, done or failed.

    Example:
        >>> with progress_line() as progress:  # standard error is no terminal here: nothing is seen
        ...     progress("leaves checked", 1, 2)
    """
    if not sys.stderr.isatty():
        yield no_progress
        return
    last_shown, is_shown = time.monotonic(), False

    def show(what: str, done: int, total: int) -> None:
        nonlocal last_shown, is_shown
        now = time.monotonic()
        if now - last_shown >= _SECONDS_BETWEEN:
            last_shown, is_shown = now, True
            text = f"{what}: {done:,} of {total:,}"
            sys.stderr.write(_FROM_THE_START + text + _CLEARED_TO_THE_END)
            sys.stderr.flush()

    try:
        yield show
    finally:
        if is_shown:
            sys.stderr.write(_FROM_THE_START + _CLEARED_TO_THE_END)
            sys.stderr.flush()
