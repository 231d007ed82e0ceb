"""Formats rows: a table for people, CSV and JSON lines for programs."""

from __future__ import annotations

import csv
import itertools
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from pennon.maintenance.leaves.leaf_files import Progress, no_progress
from pennon.manifest.partition_struct import partition_names, spec_versions
from pennon.planning.reports.explain import readable_size

if TYPE_CHECKING:
    from pennon.namespace import PartitionedNamespace
    from pennon.planning import ScanPlan

__all__ = [
    "pager_of",
    "print_line",
    "print_table",
    "progress_line",
    "show_lines",
    "table_picture",
    "write_csv",
]

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


# The description of a table that ``pennon describe`` prints.

_MOST_SHOWN: Final = 8
_BAR: Final = 24
_WIDEST_NAME: Final = 48
# An eighth of a sign each.
_BLOCKS: Final = " ▏▎▍▌▋▊▉█"


def table_picture(
    namespace: PartitionedNamespace,
    plan: ScanPlan,
    specs: Mapping[int, Mapping[str, str]],
    mode: str,
) -> Iterator[str]:
    """Draw a table in lines.

    Args:
        namespace: The table.
        plan: What a scan of all of it reads.
        specs: The transforms of each spec version, as calls, by the name of their field.
        mode: How its versions are committed.

    Yields:
        Lines without line breaks.
    """
    snapshot = namespace.snapshot
    yield f"{namespace.location}"
    yield f"  version {namespace.version}, {mode}"
    if snapshot.comment:
        yield f"  {snapshot.comment}"
    yield f"  {_size(plan.table)}"
    yield ""
    yield "columns"
    kinds = [
        f"{column.type}{'' if column.nullable else ' not null'}" for column in namespace.schema
    ]
    yield from _aligned(list(zip(namespace.schema.names, kinds, strict=True)))
    of_leaves = spec_versions(plan.table) if snapshot.layout.has_manifest else None
    for version, fields in specs.items():
        is_current = version == snapshot.current_spec.spec_version
        yield ""
        own = plan.table if of_leaves is None else plan.table.filter(pc.equal(of_leaves, version))
        yield f"partition spec {version}{' (current)' if is_current else ''}: {_size(own)}"
        yield from _aligned([(name, f"= {call}") for name, call in fields.items()])
        if not fields:
            yield "  one leaf, no partition field"
    if snapshot.layout.has_manifest:
        yield from _largest(namespace, plan.table)
    if snapshot.properties:
        yield ""
        yield "properties"
        yield from _aligned([(name, f"= {value}") for name, value in snapshot.properties.items()])


def _largest(namespace: PartitionedNamespace, leaves: pa.Table) -> Iterator[str]:
    """Draw the rows of the partitions that have the most."""
    counted = leaves.filter(pc.is_valid(leaves["num_rows"]))
    if counted.num_rows < 2:  # noqa: PLR2004 - one partition is the table
        return
    ranks = pc.select_k_unstable(counted, _MOST_SHOWN, [("num_rows", "descending")])
    shown = counted.take(ranks)
    names = [name or "" for name in partition_names(namespace.snapshot, shown).to_pylist()]
    rows = shown["num_rows"].to_pylist()
    sizes = [size or 0 for size in shown["num_bytes"].to_pylist()]
    yield ""
    yield "rows of its largest partitions" if len(leaves) > len(shown) else "rows of its partitions"
    cut = [name if len(name) <= _WIDEST_NAME else name[: _WIDEST_NAME - 1] + "…" for name in names]
    counts = [f"{count:,}" for count in rows]
    width = max(map(display_width, cut))
    digits = max(map(len, counts))
    for name, count, text, size in zip(cut, rows, counts, sizes, strict=True):
        blanks = " " * (width - display_width(name))
        bar = _bar(count, max(rows))
        yield f"  {name}{blanks}  {bar:<{_BAR}}  {text:>{digits}}  {readable_size(size)}"
    if len(leaves) > len(shown):
        yield f"  … and {len(leaves) - len(shown):,} more"


def _bar(count: int, most: int) -> str:
    """Draw a number as a bar, any number but none as at least its thinnest.

    Example:
        >>> _bar(1, 2), _bar(1, 1000), _bar(0, 1)
        ('████████████', '▏', '')
    """
    eighths = 0 if not most else max(round(count / most * _BAR * 8), int(count > 0))
    whole, part = divmod(eighths, 8)
    return (_BLOCKS[-1] * whole + _BLOCKS[part]).rstrip()


def _aligned(pairs: Sequence[tuple[str, str]]) -> Iterator[str]:
    width = max((display_width(name) for name, _ in pairs), default=0)
    for name, text in pairs:
        yield f"  {name}{' ' * (width - display_width(name))}  {text}"


def _size(leaves: pa.Table) -> str:
    """Tell partitions, rows and bytes of some leaves."""
    rows, sizes = leaves["num_rows"], leaves["num_bytes"]
    partitions = "1 partition" if len(leaves) == 1 else f"{len(leaves):,} partitions"
    total = pc.sum(rows).as_py() or 0
    counted = "rows unknown" if rows.null_count else f"{total:,} row{'' if total == 1 else 's'}"
    size = "" if sizes.null_count else f", {readable_size(pc.sum(sizes).as_py() or 0)}"
    return f"{partitions}, {counted}{size}"


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
