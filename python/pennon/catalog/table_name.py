"""Names of tables as users type them: ``shop.orders``, ``lance.shop.`my orders```, a path."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import sqlglot

from pennon.catalog.configured_catalog import absolute_place, is_path, plain_path, quoted
from pennon.errors import (
    ChangesNotKept,
    ChangesNotPaired,
    InvalidTableName,
    NamespaceChangeRefused,
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
from pennon.manifest.draft import is_draft
from pennon.predicate.parse import SparkSql

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pennon.catalog.configured_catalog import Catalog

__all__ = [
    "LOCATION",
    "MARKER",
    "Registration",
    "by_name",
    "check_name",
    "check_new_namespace",
    "is_table",
    "parts_of",
    "registered",
    "registration_of",
    "relative_location",
    "spelled",
]

# Tells failures by the name of the table: below the catalog only its folder is known.

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
        pennon.errors.TableMadeAnew: ... lance.shop.orders as the query saw it: ...
    """
    try:
        yield
    except tuple(_KNOW_THE_FOLDER) as error:
        kind = next(kind for kind in _KNOW_THE_FOLDER if isinstance(error, kind))
        named = {_KNOW_THE_FOLDER[kind]: table}
        raise type(error)(**{**error.parameters, **named}) from error


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
        >>> parts_of(Catalog("lance", "/lake"), "lance.`s3://data/orders`")
        ('s3://data/orders',)
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


def storage_of(catalog: Catalog, name: str) -> Mapping[str, str]:
    """Give the storage options of a table by its name or its path, as ``Catalog.storage_of``."""
    return catalog.storage_of(parts_of(catalog, name))


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


# The properties by which a child namespace is registered as a table, and its location.
#
# A partitioned namespace is registered with two properties: ``location``, the folder of its
# ``__manifest`` (relative to the root, or a path or URL), and ``pennon.partitioned_namespace`` =
# ``v1``. A namespace of the older draft says so itself (``lance.partitioning.enabled``); it has no
# folder of its own and is named by where it would be: ``<root>/shop/orders``.

MARKER: Final = "pennon.partitioned_namespace"
MARKER_VALUE: Final = "v1"
LOCATION: Final = "location"


@dataclass(frozen=True, slots=True)
class Registration:
    """A table that the catalog knows.

    Args:
        location: Path or URL of the partitioned namespace or of the plain dataset.
        is_partitioned: Whether there is a ``__manifest``.
    """

    location: str
    is_partitioned: bool


def is_table(properties: Mapping[str, str] | None) -> bool:
    """Whether a namespace with these properties is a table to Spark.

    Example:
        >>> is_table({"pennon.partitioned_namespace": "v1", "location": "1a2b_orders"})
        True
    """
    if properties is None:
        return False
    return (MARKER in properties and LOCATION in properties) or is_draft(properties)


def check_new_namespace(
    catalog: Catalog, namespace: tuple[str, ...], properties: Mapping[str, str]
) -> None:
    """Refuse a name that no namespace can have, and a location, where no table of it would be.

    Raises:
        InvalidTableName: The name is empty, or has a character that no name can have.
        NamespaceChangeRefused: There is a location.
    """
    check_name(namespace[-1:])
    if LOCATION in properties:
        raise NamespaceChangeRefused(
            namespace=catalog.full_name(namespace),
            why=f"its tables are below the catalog's root, not at {properties[LOCATION]}",
            advice="Leave LOCATION out, or name it at a table",
        )


def registered(
    catalog: Catalog, identifier: tuple[str, ...], properties: Mapping[str, str] | None
) -> Registration | None:
    """Give the table that a namespace is to Spark; None where it is none."""
    if properties is None or not is_table(properties):
        return None
    if MARKER in properties and LOCATION in properties:
        return Registration(catalog.address(properties[LOCATION]), True)
    return Registration(catalog.address("/".join(identifier)), True)


def registration_of(catalog: Catalog, location: str) -> dict[str, str]:
    """Give the properties of a namespace that is the table at a location.

    What a service tells of a place is whole: others may have another root.
    """
    is_relative = catalog.implementation == "dir"
    place = relative_location(catalog, location) if is_relative else location
    return {LOCATION: place, MARKER: MARKER_VALUE}


def relative_location(catalog: Catalog, location: str) -> str:
    """Give a location relative to the root; one elsewhere stays a path or URL."""
    return plain_path(location).removeprefix(catalog.prefix)
