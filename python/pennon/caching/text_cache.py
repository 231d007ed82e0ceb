"""What was read out of texts that come again and again, by the text."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Final, Generic, TypeVar

from pennon.caching.cache import Cache
from pennon.caching.table_key import DIGEST_KEY, TableKey

__all__ = ["TextCache"]

T = TypeVar("T")

# Objects of Python take about so many times the memory of the JSON that they were read from.
_OBJECTS_TO_TEXT: Final = 5


class TextCache(Generic[T]):
    """Values by the texts that they are read from: the tasks of a query all bring the same ones.

    No text is a key, for it may hold storage options: a digest of it is.

    Args:
        name: What it keeps, for the log.
        max_bytes: The most that its values weigh together, in bytes, estimated by their texts.
        read: Reads a text.

    Example:
        >>> numbers: TextCache[int] = TextCache("numbers", max_bytes=1_000, read=int)
        >>> numbers.find("12"), numbers.find("12")
        (12, 12)
    """

    def __init__(self, name: str, *, max_bytes: int, read: Callable[[str], T]) -> None:
        self._read = read
        self._cache: Cache[tuple[T, int]] = Cache(
            name, max_bytes=max_bytes, weigh=lambda value: _OBJECTS_TO_TEXT * value[1]
        )

    def find(self, text: str) -> T:
        """Give what a text says, read by the first who asks."""
        written = text.encode()
        digest = hashlib.blake2b(written, key=DIGEST_KEY, digest_size=16).hexdigest()
        key = TableKey("", 0, "", detail=digest)
        value, _ = self._cache.find(key, lambda: (self._read(text), len(written)))
        return value
