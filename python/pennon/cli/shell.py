"""``pennon sql``: statements in, tables out; at a prompt, from ``-e`` or from files.

An error is one message: the stack of the JVM and of Python stays in the log.
"""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pennon.cli import quiet_start
from pennon.errors import FileNotReadable, PennonError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import Row

ROWS_SHOWN = 1000
PROMPT, CONTINUED = "pennon> ", "      > "


def run(
    builder: SparkSession.Builder,
    *,
    statements: Sequence[str] = (),
    files: Sequence[str] = (),
) -> int:
    """Run what is given and end, or show a prompt when nothing is given.

    Args:
        builder: A builder with Pennon's catalog.
        statements: SQL texts, each of one or more statements that ``;`` separates.
        files: Paths of files with such texts, run after the statements.

    Returns:
        The exit code: 0, or 1 when a statement failed (the following ones are not run).
    """
    texts = list(statements)
    try:
        texts += [_read(Path(path)) for path in files]
    except PennonError as error:
        print(error, file=sys.stderr)
        return 1
    log = Path(tempfile.gettempdir()) / f"pennon-sql-{os.getpid()}.log"
    try:
        spark = quiet_start.start(builder, log)
    except PennonError as error:
        print(error, file=sys.stderr)
        return 1
    try:
        if texts:
            pieces = [piece for text in texts for piece in split_statements(text)]
            return 0 if all(execute(spark, piece) for piece in pieces) else 1
        return _prompt(spark, log)
    finally:
        spark.stop()


def execute(spark: SparkSession, sql: str) -> bool:
    """Run one statement and print its rows, or its error in one message.

    Returns:
        Whether it succeeded.
    """
    try:
        frame = spark.sql(sql)
        rows = frame.limit(ROWS_SHOWN + 1).collect() if frame.columns else []
    except quiet_start.spark_errors() as error:
        print(quiet_start.message_of(error), file=sys.stderr)
        return False
    if frame.columns:
        print_table(frame.columns, rows[:ROWS_SHOWN])
        if len(rows) > ROWS_SHOWN:
            print(f"(the first {ROWS_SHOWN} rows)")
    return True


def split_statements(text: str) -> list[str]:
    """Split a text at each ``;`` outside of quotes and comments.

    Args:
        text: Any number of statements of Spark SQL; the last one needs no ``;``.

    Returns:
        The statements without their ``;``; what holds only blanks and comments is left out.

    Example:
        >>> split_statements("SELECT ';'; /* ; */; SELECT 2 -- two; really")
        ["SELECT ';'", 'SELECT 2 -- two; really']
    """
    pieces, rest = _scan(text)
    return [piece.strip() for piece in [*pieces, rest] if _has_sql(piece)]


def print_table(names: Sequence[str], rows: Sequence[Row]) -> None:
    """Print rows as a table, numbers to the right, with a line that counts them."""
    texts = [["NULL" if value is None else str(value) for value in row] for row in rows]
    widths = [
        max([len(name), *(len(row[place]) for row in texts)]) for place, name in enumerate(names)
    ]
    numbers = [
        all(row[place] is None or isinstance(row[place], int | float) for row in rows)
        for place in range(len(names))
    ]
    print("  ".join(_set(*cell) for cell in zip(names, widths, numbers, strict=True)).rstrip())
    print("  ".join("-" * width for width in widths))
    for row in texts:
        print("  ".join(_set(*cell) for cell in zip(row, widths, numbers, strict=True)).rstrip())
    print(f"({len(rows)} row{'' if len(rows) == 1 else 's'})")


def _set(text: str, width: int, right: bool) -> str:  # noqa: FBT001 - one of three in a zip
    return text.rjust(width) if right else text.ljust(width)


def _prompt(spark: SparkSession, log: Path) -> int:
    with contextlib.suppress(ImportError):
        import readline  # noqa: F401, PLC0415 - line editing, where the platform has it
    interactive = sys.stdin.isatty()
    if interactive:
        print(f"Spark {spark.version}; its log is {log}.")
        print("End a statement with ;  Leave with exit; or Ctrl-D.")
    failed = False
    for sql in _typed(show_prompt=interactive):
        if sql.strip().lower() in ("exit", "quit"):
            break
        started = time.monotonic()
        succeeded = execute(spark, sql)
        failed = failed or not succeeded
        if interactive and succeeded:
            print(f"{time.monotonic() - started:.1f} s")
    return 1 if failed and not interactive else 0


def _typed(*, show_prompt: bool) -> Iterator[str]:
    """Collect lines until a ``;`` ends a statement; Ctrl-C forgets what was typed so far."""
    begun = ""
    while True:
        prompt = (CONTINUED if begun.strip() else PROMPT) if show_prompt else ""
        try:
            begun += input(prompt) + "\n"
        except EOFError:
            break
        except KeyboardInterrupt:
            print()
            begun = ""
            continue
        if begun.strip().lower() in ("exit", "quit"):
            return
        pieces, begun = _scan(begun)
        yield from (piece.strip() for piece in pieces if _has_sql(piece))
    if _has_sql(begun):
        yield begun.strip()


def _scan(text: str) -> tuple[list[str], str]:
    """Cut a text at each ``;`` that is neither quoted nor in a comment."""
    pieces: list[str] = []
    start = place = 0
    while place < len(text):
        character = text[place]
        if character in "'\"`":
            place = _quote_end(text, place)
        elif text.startswith("--", place):
            newline = text.find("\n", place)
            place = len(text) if newline < 0 else newline
        elif text.startswith("/*", place):
            end = text.find("*/", place + 2)
            place = len(text) if end < 0 else end + 2
        elif character == ";":
            pieces.append(text[start:place])
            place = start = place + 1
        else:
            place += 1
    return pieces, text[start:]


def _quote_end(text: str, start: int) -> int:
    """Find the place behind the quote that closes the one at ``start``."""
    quote = text[start]
    place = start + 1
    while place < len(text):
        if text[place] == "\\" and quote != "`":
            place += 2
        elif text[place] == quote:
            return place + 1
        else:
            place += 1
    return len(text)


def _has_sql(piece: str) -> bool:
    """Tell whether a piece holds more than blanks and comments."""
    place = 0
    while place < len(piece):
        if piece[place].isspace():
            place += 1
        elif piece.startswith("--", place):
            newline = piece.find("\n", place)
            place = len(piece) if newline < 0 else newline
        elif piece.startswith("/*", place):
            end = piece.find("*/", place + 2)
            place = len(piece) if end < 0 else end + 2
        else:
            return True
    return False


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise FileNotReadable(path=os.fspath(path), problem=error.strerror) from error
