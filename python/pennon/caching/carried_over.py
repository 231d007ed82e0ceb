"""Values of one version of a table that stay valid in later versions, by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import Final, Generic, TypeVar

from pennon.caching.cache import Cache
from pennon.caching.table_key import TableKey

__all__ = ["CarriedOver"]

T = TypeVar("T")

_MOST_NAMES: Final = 128
_NAME_BYTES: Final = 100


class CarriedOver(Generic[T]):
    """Values by name, for each version of a table; a commit takes them along to the next version.

    Who commits knows what the version has that he made: what the one before had, and what he
    wrote. So a process that commits again and again reads what it needs of the first version only.
    The names used last are kept, so many of each version.

    Args:
        name: What it keeps, for the log.
        max_bytes: The most that its values weigh together, in bytes.
        weigh: Gives the bytes of a value.

    Example:
        >>> prices: CarriedOver[int] = CarriedOver("prices", max_bytes=1000, weigh=lambda _: 8)
        >>> first, second = TableKey("/lake/t", 1, "1f00"), TableKey("/lake/t", 2, "7a21")
        >>> prices.find(first, ["tea", "milk"], lambda names: {name: len(name) for name in names})
        {'tea': 3, 'milk': 4}
        >>> prices.carry(first, second, {"tea": 5})
        >>> prices.find(second, ["milk", "tea"], lambda names: {})
        {'milk': 4, 'tea': 5}
    """

    def __init__(self, name: str, *, max_bytes: int, weigh: Callable[[T], int]) -> None:
        self._cache: Cache[Mapping[str, T]] = Cache(
            name,
            max_bytes=max_bytes,
            weigh=lambda values: sum(_NAME_BYTES + weigh(value) for value in values.values()),
        )

    def find(
        self, key: TableKey, names: Sequence[str], read: Callable[[list[str]], Mapping[str, T]]
    ) -> dict[str, T]:
        """Give the values of some names at a version.

        Args:
            key: The version.
            names: What is asked for.
            read: Reads those that are not kept.

        Returns:
            The values by name, in the order of the names; names without one are left out.
        """
        parts = self._cache.peek(key) or {}
        missing = [name for name in names if name not in parts]
        if missing:
            parts = {**parts, **read(missing)}
            self._keep(key, parts, names)
        return {name: parts[name] for name in names if name in parts}

    def carry(
        self,
        before: TableKey,
        after: TableKey,
        changed: Mapping[str, T],
        forgotten: Iterable[str] = (),
    ) -> None:
        """Take what is known of a version along to the one that was made of it.

        Args:
            before: The version.
            after: The next one, which nobody else has changed anything in.
            changed: The values that are others there.
            forgotten: The names of which nothing is known there.
        """
        parts = {**(self._cache.peek(before) or {}), **changed}
        for key in forgotten:
            parts.pop(key, None)
        self._keep(after, parts, list(changed))

    def _keep(self, key: TableKey, values: Mapping[str, T], used: Sequence[str]) -> None:
        """Keep the names used last; those that are used now come behind all others."""
        now = set(used)
        order = [value for value in values if value not in now]
        order += [name for name in dict.fromkeys(used) if name in values]
        kept = islice(order, max(0, len(order) - _MOST_NAMES), None)
        self._cache.keep(key, {name: values[name] for name in kept})
