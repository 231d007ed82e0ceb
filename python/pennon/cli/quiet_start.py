"""Starts Spark at a terminal with the JVM's output in a file.

The JVM writes its log, and some lines of its own before logging is set up, to the standard error
that it is born with. So that is a file while it is born; Python's own is back afterwards.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from pennon.errors import SparkDidNotStart

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def start(builder: SparkSession.Builder, log: Path) -> SparkSession:
    """Start the builder's session with the JVM's output in a file.

    Args:
        builder: Any builder; Spark's own progress bar is switched off.
        log: The file; what is in it already stays.

    Returns:
        The session.

    Raises:
        SparkDidNotStart: The reason is in the file.
    """
    builder.config("spark.ui.showConsoleProgress", "false")
    log.parent.mkdir(parents=True, exist_ok=True)
    try:
        with _standard_error_to(log):
            return builder.getOrCreate()
    except spark_errors() as error:
        raise SparkDidNotStart(log=log) from error


@contextlib.contextmanager
def _standard_error_to(log: Path) -> Iterator[None]:
    sys.stderr.flush()
    kept = os.dup(2)
    opened = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        os.dup2(opened, 2)
        yield
    finally:
        sys.stderr.flush()
        os.dup2(kept, 2)
        os.close(opened)
        os.close(kept)


def spark_errors() -> tuple[type[Exception], ...]:
    """Name the classes under which a failed statement arrives in Python.

    PySpark translates the exceptions of Spark that it knows; Py4J hands over the others.
    """
    from py4j.protocol import Py4JJavaError  # noqa: PLC0415 - optional package
    from pyspark.errors import PySparkException  # noqa: PLC0415

    return PySparkException, Py4JJavaError


def message_of(error: Exception) -> str:
    r"""Cut an error of Spark down to its message.

    Example:
        >>> message_of(Exception("[NO_TABLE] Not there.\n\nJVM stacktrace:\norg.apache…"))
        '[NO_TABLE] Not there.'
    """
    text = _thrown_message(error) or str(error)
    kept = []
    for line in text.split("JVM stacktrace:", maxsplit=1)[0].splitlines():
        if line.lstrip().startswith(("at ", "Driver stacktrace", "Traceback (most recent")):
            break
        kept.append(line)
    return "\n".join(kept).strip()


def _thrown_message(error: Exception) -> str | None:
    """Give the message of an exception of the JVM, without the plan that Spark's analyzer adds.

    Of any other exception that PySpark has translated only its text is asked: its own getMessage
    looks the condition up among Spark's and fails for Pennon's.
    """
    thrown = getattr(error, "java_exception", None)
    cause = thrown if thrown is not None else getattr(error, "_origin", None)
    message: str | None = None
    if cause is not None and cause.getClass().getSimpleName() == "ExtendedAnalysisException":
        message = cause.getSimpleMessage()
    elif thrown is not None:
        message = thrown.getMessage()
    return message
