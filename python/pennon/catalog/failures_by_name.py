"""Tells failures by the name of the table: below the catalog only its folder is known."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from pennon.errors import (
    ChangesNotKept,
    ChangesNotPaired,
    NotNullViolated,
    PennonError,
    PredicateNotEvaluable,
    RollbackRefused,
    SnapshotExpired,
    SnapshotNotFound,
    StreamColumnsChanged,
    StreamOptionRefused,
    StreamPositionExpired,
    StreamSourceChanged,
    StreamSourceRefused,
    TableMadeAnew,
    TableNotFound,
    TableVersionNotFound,
    TransactionModeChanged,
    UnsupportedTableChange,
    WriteConflict,
    WriteTypeMismatch,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["by_name"]

# By error, the parameter that has the folder.
_KNOW_THE_FOLDER: Final[Mapping[type[PennonError], str]] = {
    ChangesNotKept: "location",
    ChangesNotPaired: "table",
    NotNullViolated: "table",
    PredicateNotEvaluable: "namespace",
    RollbackRefused: "table",
    SnapshotExpired: "table",
    SnapshotNotFound: "location",
    StreamColumnsChanged: "table",
    StreamOptionRefused: "table",
    StreamPositionExpired: "table",
    StreamSourceChanged: "table",
    StreamSourceRefused: "table",
    TableMadeAnew: "table",
    TableNotFound: "table",
    TableVersionNotFound: "table",
    TransactionModeChanged: "table",
    UnsupportedTableChange: "table",
    WriteConflict: "table",
    WriteTypeMismatch: "table",
}


@contextmanager
def by_name(table: str) -> Iterator[None]:
    """Raise failures of the statements within as failures of the table.

    Args:
        table: Its full name.

    Raises:
        ChangesNotKept: A version does not hold its rows.
        ChangesNotPaired: The key of a change feed does not identify a row.
        NotNullViolated: A row has NULL in a NOT NULL column.
        PredicateNotEvaluable: A condition is not understood.
        RollbackRefused: A version cannot be brought back.
        SnapshotExpired: The version that is read has expired meanwhile.
        SnapshotNotFound: There is no such version, or it has expired.
        StreamColumnsChanged: A stream does not read on over a change of columns.
        StreamOptionRefused: A stream cannot begin where it is to.
        StreamPositionExpired: A stream came too late.
        StreamSourceChanged: A stream does not read on over changed rows.
        StreamSourceRefused: A stream cannot read such a table.
        TableMadeAnew: Another table stands where the statement began with its own.
        TableNotFound: It was dropped meanwhile.
        TableVersionNotFound: A plain dataset has no such version.
        TransactionModeChanged: The table's transactions become, or became, others.
        UnsupportedTableChange: The table does not allow it.
        WriteConflict: Another commit came first.
        WriteTypeMismatch: A value does not fit its column.

    Example:
        >>> with by_name("lance.shop.orders"):
        ...     raise TableMadeAnew(table="/lake/1f2e_orders", location="/lake/1f2e_orders")
        Traceback (most recent call last):
        pennon.errors.catalog.TableMadeAnew: ... lance.shop.orders as the query saw it: ...
    """
    try:
        yield
    except tuple(_KNOW_THE_FOLDER) as error:
        kind = next(kind for kind in _KNOW_THE_FOLDER if isinstance(error, kind))
        named = {_KNOW_THE_FOLDER[kind]: table}
        raise type(error)(**{**error.parameters, **named}) from error
