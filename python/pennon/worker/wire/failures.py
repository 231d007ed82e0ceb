"""Converts exceptions into error messages for the JVM; tracebacks go to the log only.

No value of a storage option leaves the process: every one that a request brought is blotted out
of messages and log lines alike.
"""

from __future__ import annotations

import errno
import logging
import threading
from typing import TYPE_CHECKING

import pyarrow as pa

from pennon.errors import (
    ArrowFailure,
    FileGone,
    InternalError,
    PennonError,
    ReadFailure,
    StorageDenied,
    StorageFull,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

_LOG = logging.getLogger(__name__)
_SHORTEST_SECRET = 5
_BLOT = "<hidden>"
_LONGEST_REASON = 400


class StorageOptionValues:
    """The values of storage options that this process has met."""

    def __init__(self) -> None:
        self._values: frozenset[str] = frozenset()
        self._lock = threading.Lock()

    def remember(self, options: Mapping[str, str]) -> None:
        """Keep the values of these options out of messages and log lines from now on."""
        secrets = {value for value in options.values() if len(value) >= _SHORTEST_SECRET}
        secrets -= {"false"}
        if not secrets <= self._values:
            with self._lock:
                self._values |= secrets

    def blotted(self, text: str) -> str:
        """Blot the values out of a text.

        Example:
            >>> values = StorageOptionValues()
            >>> values.remember({"aws_secret_access_key": "hush-hush"})
            >>> values.blotted("signature of hush-hush refused")
            'signature of <hidden> refused'
        """
        for value in sorted(self._values, key=len, reverse=True):
            text = text.replace(value, _BLOT)
        return text


STORAGE_OPTION_VALUES = StorageOptionValues()


class BlottingFormatter(logging.Formatter):
    """A log format without the values of storage options, tracebacks included."""

    def format(self, record: logging.LogRecord) -> str:
        """Format a record, then blot."""
        return STORAGE_OPTION_VALUES.blotted(super().format(record))


def describe(error: BaseException) -> dict[str, object]:
    """Turn an exception into the JSON of an ``X`` frame.

    Args:
        error: What a request raised; anything but a ``PennonError`` is logged with its traceback.

    Example:
        >>> describe(FileGone(place="x"))["condition"]
        'FILE_GONE'
    """
    described = error if isinstance(error, PennonError) else _translated(error)
    if described is not error or isinstance(described, InternalError):
        _LOG.error("a request failed: %s", described, exc_info=error)
    else:
        _LOG.debug("a request was refused: %s", described, exc_info=error)
    blotted = STORAGE_OPTION_VALUES.blotted
    return {
        "condition": described.condition,
        "message": blotted(str(described)),
        "parameters": {name: blotted(value) for name, value in described.parameters.items()},
        "sqlState": described.sql_state,
    }


def _translated(error: BaseException) -> PennonError:
    text = str(error)
    lowered = text.lower()
    number = error.errno if isinstance(error, OSError) else None
    if number in (errno.ENOSPC, errno.EDQUOT) or "no space left" in lowered:
        return StorageFull(verb="write to", location=_place(text))
    if number in (errno.EACCES, errno.EPERM) or any(
        words in lowered for words in ("permission denied", "access denied", "forbidden")
    ):
        return StorageDenied(place=_place(text))
    if isinstance(error, FileNotFoundError) or (
        isinstance(error, OSError | ValueError)
        and any(words in lowered for words in ("not found", "no such file"))
    ):
        return FileGone(place=_place(text))
    if isinstance(error, pa.ArrowInvalid | pa.ArrowNotImplementedError | pa.ArrowTypeError):
        return ArrowFailure(why=_reason(text))
    if isinstance(error, OSError):
        return ReadFailure(why=_reason(text))
    return InternalError(what=f"{type(error).__name__}: {_reason(text)}")


def _reason(text: str) -> str:
    """Take the first line, without the place in upstream's source and without the full stop."""
    line = text.strip().splitlines()[0] if text.strip() else "no message"
    return line.split(", /", 1)[0][:_LONGEST_REASON].rstrip(". ")


def _place(text: str) -> str:
    """Find the path or URL that a message names."""
    for word in text.replace("`", " ").replace("'", " ").replace('"', " ").split():
        stripped = word.strip(",;()[]:")
        if ("://" in stripped or stripped.startswith("/")) and ".rs" not in stripped:
            return stripped
    return _reason(text)
