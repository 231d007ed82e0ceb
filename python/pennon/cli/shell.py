"""``pennon sql``: runs statements from a prompt, from ``-e`` or from files.

An error is one message: the stack of the JVM and of Python stays in the log.
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pennon.cli import quiet_start
from pennon.cli.prompt import TypedStatements
from pennon.cli.query_run import Cancelled, Format, Output, execute, silence_query_context
from pennon.cli.statements import Statement, statements_of
from pennon.errors import FileNotReadable, PennonError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pennon.cli.completion import LakeNames

__all__ = ["run"]

_ROWS_AT_A_TERMINAL: Final = 1000
_INTERRUPTED: Final = 130


def run(
    builder: SparkSession.Builder,
    *,
    statements: Sequence[str] = (),
    files: Sequence[str] = (),
    output_format: Format = Format.TABLE,
    limit: int | None = None,
    names: LakeNames | None = None,
) -> int:
    """Run what is given and end, or show a prompt when nothing is given.

    Args:
        builder: A builder with Pennon's catalog.
        statements: SQL texts, each of one or more statements that ``;`` separates.
        files: Paths of files with such texts, run after the statements.
        output_format: How rows are printed.
        limit: So many rows of a statement at most; None for all, at a terminal for the first 1,000.
        names: The names that a prompt completes; none where it is not given.

    Returns:
        The exit code: 0; 1 when a statement failed (the following ones are not run); 130 after
        Ctrl-C.
    """
    texts = list(statements)
    log = Path(tempfile.gettempdir()) / f"pennon-sql-{os.getpid()}.log"
    try:
        texts += [_read(Path(path)) for path in files]
        spark = quiet_start.start(builder, log)
    except PennonError as error:
        print(error, file=sys.stderr)
        return 1
    silence_query_context()
    if threading.current_thread() is threading.main_thread():
        # PySpark's own handler talks to the JVM in the middle of a call to it.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    is_terminal = sys.stdout.isatty()
    if limit is None and is_terminal:
        limit = _ROWS_AT_A_TERMINAL
    try:
        if texts:
            pieces = [piece for text in texts for piece in statements_of(text)]
            return _run_all(spark, pieces, Output(output_format, limit))
        is_prompt = sys.stdin.isatty()
        output = Output(
            output_format, limit, is_timed=is_prompt, is_paged=is_prompt and is_terminal
        )
        return _run_typed(spark, output, log, TypedStatements(names, is_prompt=is_prompt))
    finally:
        spark.stop()
        log.unlink(missing_ok=True)


def _run_all(spark: SparkSession, pieces: Sequence[Statement], output: Output) -> int:
    try:
        done = all(execute(spark, piece.sql, output, piece.expected) for piece in pieces)
    except Cancelled:
        return _INTERRUPTED
    return 0 if done else 1


def _run_typed(spark: SparkSession, output: Output, log: Path, typed: TypedStatements) -> int:
    if typed.is_prompt:
        print(f"Spark {spark.version}; its log, while this runs, is {log}.")
        print(
            "End a statement with ;  Ctrl-C cancels it, help; tells more, exit; or Ctrl-D leaves."
        )
    has_failed = False
    for sql in typed:
        try:
            succeeded = execute(spark, sql, output)
        except Cancelled:
            if not typed.is_prompt:
                return _INTERRUPTED
            succeeded = False
        has_failed = has_failed or not succeeded
    return 1 if has_failed and not typed.is_prompt else 0


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise FileNotReadable(path=os.fspath(path), problem=error.strerror) from error
