"""What was worked out of an object that never changes, as long as the object lives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar
from weakref import ref

__all__ = ["PerObject"]

K = TypeVar("K")
T = TypeVar("T")


class PerObject(Generic[K, T]):
    """Values by the identity of an object: to hash or compare a wide schema costs as much as it.

    Threads that ask at once may each make the value.

    Args:
        make: Makes the value, which must not refer to the object.

    Example:
        >>> import pyarrow as pa
        >>> names: PerObject[pa.Schema, list[str]] = PerObject(lambda schema: schema.names)
        >>> schema = pa.schema({"a": pa.int64()})
        >>> names.of(schema) is names.of(schema)
        True
    """

    def __init__(self, make: Callable[[K], T]) -> None:
        self._make = make
        self._entries: dict[int, tuple[ref[K], T]] = {}

    def of(self, key: K) -> T:
        """Give the value of an object, made by the first who asks.

        Args:
            key: The object; an equal one is another.
        """
        number = id(key)
        entry = self._entries.get(number)
        if entry is not None and entry[0]() is key:
            return entry[1]
        value = self._make(key)
        self._entries[number] = (ref(key, lambda gone: self._forget(number, gone)), value)
        return value

    def _forget(self, number: int, gone: ref[K]) -> None:
        entry = self._entries.get(number)
        if entry is not None and entry[0] is gone:
            del self._entries[number]
