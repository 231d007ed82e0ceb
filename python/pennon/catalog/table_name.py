"""Names of tables as users type them: ``shop.orders``, ``lance.shop.`my orders```, a path."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlglot

from pennon.catalog.configured_catalog import is_path, plain_path, quoted
from pennon.predicate.spark_dialect import SparkSql

if TYPE_CHECKING:
    from pennon.catalog.configured_catalog import Catalog

__all__ = ["parts_of", "spelled"]


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
    """
    if is_path(name):
        return (plain_path(name).rstrip("/"),)
    parts = tuple(name.split("."))
    if "`" in name:
        tokens = sqlglot.tokenize(name, read=SparkSql)
        parts = tuple(
            token.text for token in tokens if token.token_type is not sqlglot.TokenType.DOT
        )
    return parts[1:] if len(parts) > 1 and parts[0] == catalog.name else parts


def spelled(parts: tuple[str, ...]) -> str:
    """Spell a name as the user types it.

    Example:
        >>> spelled(("shop", "my orders"))
        'shop.`my orders`'
    """
    return ".".join(map(quoted, parts))
