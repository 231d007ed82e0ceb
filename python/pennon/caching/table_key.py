"""The key of everything that is cached of a table's version."""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Final

__all__ = ["DIGEST_KEY", "TableKey", "storage_identity"]

# Drawn anew by every process, so that a digest in a log cannot be tried against guessed secrets.
DIGEST_KEY: Final = secrets.token_bytes(32)


def storage_identity(storage_options: Mapping[str, str] | None) -> str:
    """Give a digest of storage options: equal for equal options, within one process.

    Two sessions with different credentials, or one whose credentials were rotated, have different
    identities, and nothing that one opened is handed to the other.

    Args:
        storage_options: As given to Lance; None and no options are the same.

    Example:
        >>> storage_identity({"a": "1", "b": "2"}) == storage_identity({"b": "2", "a": "1"})
        True
        >>> storage_identity({"key": "old"}) == storage_identity({"key": "new"})
        False
    """
    if not storage_options:
        return ""
    text = json.dumps(sorted(storage_options.items()))
    return hashlib.blake2b(text.encode(), key=DIGEST_KEY, digest_size=16).hexdigest()


@dataclass(frozen=True, slots=True)
class TableKey:
    """A table's version as a key.

    Args:
        location: Path or URL of the table, or of one of its leaves.
        version: The version of ``__manifest`` or of the dataset.
        table: The table identity: another one for a table made anew at the same location
            (``version_identity``).
        storage: The storage identity, never the options themselves.
        detail: What of the version is kept, where there are several: a predicate, a spec version.

    Example:
        >>> TableKey("/lake/t", 3, "1f00") == TableKey("/lake/t", 3, "7a21")
        False
    """

    location: str
    version: int
    table: str
    storage: str = ""
    detail: Hashable = None
