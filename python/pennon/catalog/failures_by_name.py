"""Tells failures by the name of the table: below the catalog only its folder is known."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from pennon.errors import (
    StreamColumnsChanged,
    StreamPositionExpired,
    StreamSourceChanged,
    StreamSourceRefused,
    TableMadeAnew,
    TransactionModeChanged,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["by_name"]

_KNOW_THE_FOLDER = (
    StreamColumnsChanged,
    StreamPositionExpired,
    StreamSourceChanged,
    StreamSourceRefused,
    TableMadeAnew,
    TransactionModeChanged,
)


@contextmanager
def by_name(table: str) -> Iterator[None]:
    """Raise failures of the statements within as failures of the table.

    Args:
        table: Its full name.

    Raises:
        StreamColumnsChanged: A stream does not read on over a change of columns.
        StreamPositionExpired: A stream came too late.
        StreamSourceChanged: A stream does not read on over changed rows.
        StreamSourceRefused: A stream cannot read such a table.
        TableMadeAnew: Another table stands where the statement began with its own.
        TransactionModeChanged: The table's transactions become, or became, others.

    Example:
        >>> with by_name("lance.shop.orders"):
        ...     raise TableMadeAnew(table="/lake/1f2e_orders", location="/lake/1f2e_orders")
        Traceback (most recent call last):
        pennon.errors.catalog.TableMadeAnew: ... lance.shop.orders as the query saw it: ...
    """
    try:
        yield
    except _KNOW_THE_FOLDER as error:
        raise type(error)(**{**error.parameters, "table": table}) from error
