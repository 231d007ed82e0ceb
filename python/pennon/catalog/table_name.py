"""Names of tables as users type them: ``shop.orders``, ``lance.shop.`my orders```, a path."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import sqlglot

from pennon.catalog.configured_catalog import absolute_place, is_path, quoted
from pennon.errors import InvalidTableName
from pennon.predicate.spark_dialect import SparkSql

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pennon.catalog.configured_catalog import Catalog

__all__ = ["check_name", "parts_of", "spelled"]

_NOT_IN_NAMES: Final = frozenset("/\\$;")


def parts_of(catalog: Catalog, name: str) -> tuple[str, ...]:
    """Take a name apart; a path or URL is one part.

    Args:
        catalog: Its own name may stand before the others.
        name: As the user types it; parts with dots or blanks in backquotes.

    Example:
        >>> from pennon.catalog.configured_catalog import Catalog
        >>> parts_of(Catalog("lance", "/lake"), "lance.shop.`my orders`")
        ('shop', 'my orders')
        >>> parts_of(Catalog("lance", "/lake"), "/data/orders/")
        ('/data/orders',)
        >>> parts_of(Catalog("lance", "/lake"), "lance.`/data/orders`")
        ('/data/orders',)
    """
    if is_path(name):
        return _of_path(name)
    parts = tuple(name.split("."))
    if "`" in name:
        tokens = sqlglot.tokenize(name, read=SparkSql)
        parts = tuple(
            token.text for token in tokens if token.token_type is not sqlglot.TokenType.DOT
        )
    if len(parts) > 1 and parts[0] == catalog.name:
        parts = parts[1:]
    return _of_path(parts[0]) if len(parts) == 1 and is_path(parts[0]) else parts


def _of_path(place: str) -> tuple[str]:
    return (absolute_place(place),)


def check_name(identifier: Sequence[str]) -> None:
    """Refuse a name that the layout of the catalog cannot hold, or that nobody could type.

    Raises:
        InvalidTableName: A part is empty, only dots, or has a slash, ``$``, ``;`` or control
            character.

    Spec: "Physical Layout and Naming".
    """
    for part in identifier:
        refused = sorted(
            character
            for character in set(part)
            if character in _NOT_IN_NAMES or ord(character) < ord(" ")
        )
        if refused:
            raise InvalidTableName(name=".".join(identifier), why=f"{refused[0]!r} is in it")
        if not part.strip(". "):
            raise InvalidTableName(name=".".join(identifier), why="a part of it is empty")


def spelled(parts: tuple[str, ...]) -> str:
    """Spell a name as the user types it.

    Example:
        >>> spelled(("shop", "my orders"))
        'shop.`my orders`'
    """
    return ".".join(map(quoted, parts))
