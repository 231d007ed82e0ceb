"""A progress line on standard error, rewritten in place on a terminal."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final

from pennon.cli.output.row_format import display_width
from pennon.maintenance.leaves.leaf_files import Progress, no_progress

__all__ = ["pager_of", "progress_line", "show_lines"]

# Shows a result that is larger than the terminal, by ``$PAGER`` or ``less``.

# Lines are not folded, so that columns stay below each other, and stay on the screen behind it.
_LESS: Final = ("less", "-S", "-X", "-F")


def pager_of(
    lines: Sequence[str], size: tuple[int, int], environment: Mapping[str, str]
) -> list[str]:
    """Choose the command that shows lines; none where they fit, or none is asked for.

    Args:
        lines: What is to be shown.
        size: The columns and lines of the terminal.
        environment: ``PAGER`` names another pager than less, or none if it is empty.

    Example:
        >>> pager_of(["a", "b"], (80, 24), {"PAGER": "more -s"})
        []
        >>> pager_of(["a" * 81], (80, 24), {"PAGER": "more -s"})
        ['more', '-s']
    """
    columns, rows = size
    # The prompt and the time take two lines.
    is_small = len(lines) + 2 <= rows and all(display_width(line) <= columns for line in lines)
    if is_small or (environment.get("TERM", "dumb") == "dumb" and "PAGER" not in environment):
        return []
    command = shlex.split(environment.get("PAGER", shlex.join(_LESS)))
    return command if command and shutil.which(command[0]) else []


def show_lines(lines: Sequence[str]) -> None:
    """Print lines, by a pager where they are more than a screen."""
    size = shutil.get_terminal_size()
    command = pager_of(lines, (size.columns, size.lines), os.environ)
    text = "".join(f"{line}\n" for line in lines)
    if not command:
        sys.stdout.write(text)
        return
    sys.stdout.flush()
    # Ctrl-C is the pager's while it shows.
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        subprocess.run(command, input=text, text=True, check=False)  # noqa: S603 - the user's own
    finally:
        signal.signal(signal.SIGINT, before)


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
