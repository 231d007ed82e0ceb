"""Formats rows: a table for people, CSV and JSON lines for programs."""

from __future__ import annotations

import csv
import itertools
import sys
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import IO, Final

__all__ = ["display_width", "print_line", "print_table", "write_csv"]

# The widths of columns are those of the first rows; a wider cell behind them is not cut.
_ROWS_MEASURED: Final = 10_000
_NULL: Final = "NULL"

Cells = Sequence[str | None]


def print_line(text: str) -> None:
    """Print a line of a command's answer."""
    sys.stdout.write(text + "\n")


def print_table(
    names: Sequence[str],
    is_number: Sequence[bool],
    rows: Iterable[Cells],
    write: Callable[[str], object],
) -> int:
    """Print rows as a table, numbers to the right.

    A single column of texts with several lines (EXPLAIN, SHOW CREATE TABLE) is printed as it is.

    Args:
        names: The columns.
        is_number: Whether a column is set to the right.
        rows: Cells as text; None is shown as NULL.
        write: Takes each line, without its end.

    Returns:
        The number of rows.

    Example:
        >>> print_table(["n", "letter"], [True, False], [["1", "a"], ["10", None]], print)
         n  letter
        --  ------
         1  a
        10  NULL
        2
    """
    incoming = iter(rows)
    first = list(itertools.islice(incoming, _ROWS_MEASURED))
    if len(names) == 1 and any("\n" in (row[0] or "") for row in first):
        return _print_texts(itertools.chain(first, incoming), write)
    widths = [
        max([display_width(name), *(display_width(_shown(row[at])) for row in first)])
        for at, name in enumerate(names)
    ]
    write(_line(names, widths, is_number))
    write("  ".join("-" * width for width in widths))
    count = 0
    for count, row in enumerate(itertools.chain(first, incoming), 1):  # noqa: B007 - counts
        write(_line([_shown(cell) for cell in row], widths, is_number))
    return count


def write_csv(names: Sequence[str], rows: Iterable[Cells], file: IO[str]) -> int:
    """Write rows as CSV with a line of names; NULL is an empty cell.

    Returns:
        The number of rows.
    """
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(names)
    count = 0
    for row in rows:
        writer.writerow(["" if cell is None else cell for cell in row])
        count += 1
    return count


def display_width(text: str) -> int:
    """Count the columns of a terminal that a text takes: wide characters take two.

    Example:
        >>> display_width("München"), display_width("東京")
        (7, 4)
    """
    if text.isascii():
        return len(text)
    return sum(_character_width(character) for character in text)


def _character_width(character: str) -> int:
    if unicodedata.combining(character) or unicodedata.category(character) in ("Cf", "Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _print_texts(rows: Iterable[Cells], write: Callable[[str], object]) -> int:
    count = 0
    for row in rows:
        write(_NULL if row[0] is None else row[0].rstrip("\n"))
        count += 1
    return count


def _shown(cell: str | None) -> str:
    return _NULL if cell is None else cell.replace("\n", "\\n")


def _line(cells: Sequence[str], widths: Sequence[int], is_number: Sequence[bool]) -> str:
    return "  ".join(_set(cells, widths, is_number)).rstrip()


def _set(cells: Sequence[str], widths: Sequence[int], is_number: Sequence[bool]) -> Iterator[str]:
    for cell, width, right in zip(cells, widths, is_number, strict=True):
        blanks = " " * (width - display_width(cell))
        yield blanks + cell if right else cell + blanks
