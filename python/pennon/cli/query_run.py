"""Runs one statement for a person: prints rows, shows progress, cancels on Ctrl-C.

The statement runs in a thread of its own, so that this one can hear Ctrl-C at any time. A thread
that waits for the JVM cannot leave without spoiling its connection, nor can this one where it asks
for progress: while a statement runs, Ctrl-C is noted and interrupts nothing.
"""

from __future__ import annotations

import contextlib
import logging
import re
import signal
import sys
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from pennon.cli import quiet_start
from pennon.cli.output import print_table, show_lines, write_csv

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyspark.sql import Column, DataFrame, SparkSession

__all__ = [
    "Cancelled",
    "Format",
    "Output",
    "Statement",
    "cut_statements",
    "execute",
    "has_sql",
    "silence_query_context",
    "statements_of",
]

# Splits SQL text into statements.

# A script of SQL: BEGIN … END, with or without a label before it.
_SCRIPT: Final = re.compile(r"(?:\w+\s*:\s*)?BEGIN\b", re.IGNORECASE)
_WORD: Final = re.compile(r"\w+")
# `END IF` closes what no word below opened, while END alone closes a BEGIN or a CASE.
_ENDS_OF_OTHERS: Final = frozenset({"IF", "WHILE", "FOR", "LOOP", "REPEAT"})
_EXPECTED: Final = re.compile(r"\s*--!\s*(\w+)")


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement.

    Args:
        sql: Its text without the ``;``.
        expected: The condition that it is meant to fail with: ``--! CONDITION`` behind it.
    """

    sql: str
    expected: str | None = None


def statements_of(text: str) -> list[Statement]:
    r"""Split a text at each ``;`` outside of quotes, comments and scripts.

    Args:
        text: Any number of statements of Spark SQL; the last one needs no ``;``.

    Returns:
        The statements, each with the condition that it is meant to fail with; what holds only
        blanks and comments is left out.

    Example:
        >>> for statement in statements_of("SELECT ';'; /* ; */; SELECT 2 -- two; really"):
        ...     print(statement.sql)
        SELECT ';'
        SELECT 2 -- two; really
        >>> [
        ...     statement.expected
        ...     for statement in statements_of("SELECT 1; SELECT x;\n--! UNRESOLVED_COLUMN")
        ... ]
        [None, 'UNRESOLVED_COLUMN']
    """
    pieces, rest = cut_statements(text)
    parts = [*pieces, rest]
    behind = [_EXPECTED.match(part) for part in [*parts[1:], ""]]
    return [
        Statement(part.strip(), None if match is None else match.group(1))
        for part, match in zip(parts, behind, strict=True)
        if has_sql(part)
    ]


def cut_statements(text: str) -> tuple[list[str], str]:
    """Cut off the statements that are complete.

    Args:
        text: What was typed so far.

    Returns:
        The statements that a ``;`` has ended, without it, and what stands behind the last one.
    """
    pieces: list[str] = []
    start = place = depth = 0
    is_script = False
    last_word = ""
    while place < len(text):
        behind = _skip(text, place)
        if behind != place:
            place = behind
            continue
        character = text[place]
        if character == ";" and depth == 0:
            pieces.append(text[start:place])
            place = start = place + 1
            is_script, last_word = False, ""
            continue
        word = _WORD.match(text, place)
        if word is None:
            place += 1
            continue
        if not has_sql(text[start:place]):
            is_script = _SCRIPT.match(text, place) is not None
        if is_script:
            depth = max(0, depth + _step(word.group().upper(), last_word, text, word.end()))
        last_word = word.group().upper()
        place = word.end()
    return pieces, text[start:]


def has_sql(piece: str) -> bool:
    """Tell whether a text holds more than blanks and comments."""
    place = 0
    while place < len(piece):
        if piece[place].isspace():
            place += 1
            continue
        behind = _skip_comment(piece, place)
        if behind == place:
            return True
        place = behind
    return False


def _step(word: str, before: str, text: str, end: int) -> int:
    """Tell how a word of a script changes the number of open BEGINs and CASEs."""
    if word in ("BEGIN", "CASE") and before != "END":
        return 1
    if word != "END":
        return 0
    following = _WORD.match(text, _skip_blanks(text, end))
    is_other = following is not None and following.group().upper() in _ENDS_OF_OTHERS
    return 0 if is_other else -1


def _skip_blanks(text: str, place: int) -> int:
    while place < len(text) and text[place].isspace():
        place += 1
    return place


def _skip(text: str, place: int) -> int:
    """Give the place behind the comment or the quoted text that begins here, else the same."""
    if text[place] in "'\"`":
        return _quote_end(text, place)
    return _skip_comment(text, place)


def _skip_comment(text: str, place: int) -> int:
    if text.startswith("--", place):
        newline = text.find("\n", place)
        return len(text) if newline < 0 else newline
    if text.startswith("/*", place):
        end = text.find("*/", place + 2)
        return len(text) if end < 0 else end + 2
    return place


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


_LOOK_SECONDS: Final = 0.1
_PROGRESS_AFTER_SECONDS: Final = 1.0
_END_SECONDS: Final = 10.0
_CHANGES: Final = (("recordsWritten", "written"), ("rowsDeleted", "deleted or replaced"))


class Format(StrEnum):
    """How rows are printed."""

    TABLE = "table"
    CSV = "csv"
    JSON = "json"
    PARQUET = "parquet"


@dataclass(frozen=True, slots=True)
class Output:
    """What is printed of a statement.

    Args:
        format: How rows are printed.
        limit: So many rows at most; None for all.
        is_timed: Whether a line says how long the statement took.
        is_paged: Whether a table that is larger than the terminal is shown by a pager.
    """

    format: Format = Format.TABLE
    limit: int | None = None
    is_timed: bool = False
    is_paged: bool = False


class Cancelled(KeyboardInterrupt):
    """The statement was cancelled by Ctrl-C, and has ended."""


def execute(spark: SparkSession, sql: str, output: Output, expected: str | None = None) -> bool:
    """Run one statement and print its rows, or its error in one message.

    Args:
        spark: The session.
        sql: One statement.
        output: How rows are printed.
        expected: The condition that the statement has to fail with; None for none.

    Returns:
        Whether it did what is expected of it.

    Raises:
        Cancelled: By Ctrl-C.
    """
    run = _Run(spark, sql, output)
    failure = run.watched()
    if failure is None:
        if expected is not None:
            sys.stderr.write(f"The statement should have failed with {expected}.\n")
        return expected is None
    message = quiet_start.message_of(failure)
    is_expected = expected is not None and expected in message.partition("]")[0]
    (sys.stdout if is_expected else sys.stderr).write(message + "\n")
    return is_expected


def silence_query_context() -> None:
    """Keep PySpark from logging each failed statement as JSON: the message says it all."""
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        logging.getLogger(name).disabled = True


class _Run:
    """One statement on its way."""

    def __init__(self, spark: SparkSession, sql: str, output: Output) -> None:
        self._spark, self._sql, self._output = spark, sql, output
        self._is_cancelled = threading.Event()
        self._is_printing = threading.Event()
        self._paged: list[str] = []

    def watched(self) -> Exception | None:
        """Run to the end; give the error of a statement that failed."""
        started = time.monotonic()
        pool = ThreadPoolExecutor(1, thread_name_prefix="statement")
        statement = pool.submit(self._run)
        pool.shutdown(wait=False)
        progress = _Progress(self._spark)
        with _interrupt_noted() as interrupt:
            while not wait([statement], _LOOK_SECONDS).done and not interrupt.is_set():
                waited = time.monotonic() - started
                if waited > _PROGRESS_AFTER_SECONDS and not self._is_printing.is_set():
                    progress.show()
            progress.clear()
            if interrupt.is_set():
                self._cancel(statement, interrupt)
                raise Cancelled
        failure = statement.result()
        show_lines(self._paged)
        if self._output.is_timed and failure is None:
            sys.stdout.write(f"{time.monotonic() - started:.1f} s\n")
        return failure

    def _cancel(self, statement: Future[Exception | None], interrupt: threading.Event) -> None:
        self._is_cancelled.set()
        sys.stderr.write("\nCancelling …\n")
        interrupt.clear()  # the next one ends the waiting
        with contextlib.suppress(*quiet_start.spark_errors()):
            end = time.monotonic() + _END_SECONDS
            while not (statement.done() or interrupt.is_set()) and time.monotonic() < end:
                # Again and again: a statement that was still being planned has no job yet.
                self._spark.sparkContext.cancelAllJobs()
                wait([statement], _LOOK_SECONDS)
        is_over = statement.done()
        sys.stderr.write("Cancelled.\n" if is_over else "It is still ending.\n")

    def _run(self) -> Exception | None:
        try:
            frame = self._spark.sql(self._sql)
            if frame.columns:
                self._print(frame)
            elif self._output.is_timed:
                summary = _rows_changed(frame)
                if summary:
                    _write_line(summary)
        except quiet_start.spark_errors() as error:
            return error
        except _Stop:
            pass
        return None

    def _print(self, frame: DataFrame) -> None:
        limit = self._output.limit
        if self._output.format is Format.PARQUET:
            _write_parquet(frame if limit is None else frame.limit(limit))
            return
        if self._output.format is Format.JSON:
            shown = frame if limit is None else frame.limit(limit)
            for row in self._rows(_json_lines(shown), limit):
                sys.stdout.write(f"{row[0]}\n")
            return
        # One row beyond the limit shows that there are more.
        texts = _texts(frame if limit is None else frame.limit(limit + 1))
        names = list(frame.columns)
        if self._output.format is Format.CSV:
            write_csv(names, self._cut(self._rows(texts, limit)), sys.stdout)
            return
        rows = self._cut(self._rows(texts, limit))
        # What a pager shows is kept until all is there: at most the rows of the limit.
        is_paged = self._output.is_paged and limit is not None
        write = self._paged.append if is_paged else _write_line
        count = print_table(names, _numbers(frame), rows, write)
        if limit is not None and self._has_more:
            write(f"(the first {count:,} rows)")
        else:
            write(f"({count:,} row{'' if count == 1 else 's'})")

    def _rows(self, texts: DataFrame, limit: int | None) -> Iterator[tuple[str | None, ...]]:
        rows: Iterable[tuple[str | None, ...]]
        rows = texts.toLocalIterator(prefetchPartitions=True) if limit is None else texts.collect()
        for row in rows:
            if self._is_cancelled.is_set():
                raise _Stop
            self._is_printing.set()
            yield tuple(row)

    def _cut(self, rows: Iterable[tuple[str | None, ...]]) -> Iterator[tuple[str | None, ...]]:
        self._has_more = False
        for count, row in enumerate(rows):
            if self._output.limit is not None and count == self._output.limit:
                self._has_more = True
                return
            yield row


@contextlib.contextmanager
def _interrupt_noted() -> Iterator[threading.Event]:
    """Give an event that Ctrl-C sets, instead of raising KeyboardInterrupt wherever it comes."""
    interrupt = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield interrupt
        return
    before = signal.signal(signal.SIGINT, lambda *_: interrupt.set())
    try:
        yield interrupt
    finally:
        signal.signal(signal.SIGINT, before)


class _Stop(Exception):
    pass


class _Progress:
    """How many tasks are done, on one line that is written again, where a person looks."""

    def __init__(self, spark: SparkSession) -> None:
        self._is_shown = False
        self._tracker = spark.sparkContext.statusTracker() if sys.stderr.isatty() else None

    def show(self) -> None:
        if self._tracker is None:
            return
        stages = [
            self._tracker.getStageInfo(stage_id) for stage_id in self._tracker.getActiveStageIds()
        ]
        started = [stage for stage in stages if stage is not None]
        if not started:
            return
        done = sum(stage.numCompletedTasks for stage in started)
        total = sum(stage.numTasks for stage in started)
        names = ", ".join(str(stage.stageId) for stage in started)
        sys.stderr.write(f"\rstage {names}: {done:,} of {total:,} tasks\033[K")
        sys.stderr.flush()
        self._is_shown = True

    def clear(self) -> None:
        if self._is_shown:
            sys.stderr.write("\r\033[K")
            sys.stderr.flush()
            self._is_shown = False


def _rows_changed(frame: DataFrame) -> str:
    """Tell what a statement wrote and deleted, as Spark's page of it does; nothing of others."""
    plan = frame._jdf.queryExecution().executedPlan()  # noqa: SLF001 - PySpark has no other door
    if plan.getClass().getSimpleName() != "CommandResultExec":
        return ""
    metrics = plan.commandPhysicalPlan().metrics()
    counts = [
        (metrics.apply(name).value(), verb) for name, verb in _CHANGES if metrics.contains(name)
    ]
    shown = [f"{count:,} row{'' if count == 1 else 's'} {verb}" for count, verb in counts if count]
    return f"({', '.join(shown)})" if shown else ""


def _write_line(line: str) -> None:
    sys.stdout.write(line + "\n")


def _numbers(frame: DataFrame) -> list[bool]:
    from pyspark.sql.types import NumericType  # noqa: PLC0415 - optional package

    return [isinstance(field.dataType, NumericType) for field in frame.schema]


def _texts(frame: DataFrame) -> DataFrame:
    """Turn every column into text as Spark itself writes it; names need not be unique."""
    from pyspark.sql import functions  # noqa: PLC0415 - optional package
    from pyspark.sql.types import BinaryType  # noqa: PLC0415

    def text(name: str, is_binary: bool) -> Column:  # noqa: FBT001 - one of two in a zip
        column = functions.col(name)
        return functions.hex(column) if is_binary else column.cast("string")

    names = [f"column_{place}" for place in range(len(frame.columns))]
    binary = [isinstance(field.dataType, BinaryType) for field in frame.schema]
    columns = [text(*pair).alias(pair[0]) for pair in zip(names, binary, strict=True)]
    return frame.toDF(*names).select(*columns)


def _json_lines(frame: DataFrame) -> DataFrame:
    from pyspark.sql import functions  # noqa: PLC0415 - optional package

    options = {"ignoreNullFields": "false"}
    return frame.select(functions.to_json(functions.struct("*"), options).alias("line"))


def _write_parquet(frame: DataFrame) -> None:
    import pyarrow.parquet  # noqa: PLC0415 - half a tenth of a second

    pyarrow.parquet.write_table(frame.toArrow(), sys.stdout.buffer)
