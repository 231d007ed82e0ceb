"""The properties by which a child namespace is registered as a table, and its location.

A partitioned namespace is registered with two properties: ``location``, the folder of its
``__manifest`` (relative to the root, or a path or URL), and ``pennon.partitioned_namespace`` =
``v1``. A namespace of the older draft says so itself (``lance.partitioning.enabled``); it has no
folder of its own and is named by where it would be: ``<root>/shop/orders``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pennon.catalog.configured_catalog import plain_path
from pennon.catalog.table_name import check_name
from pennon.errors import NamespaceChangeRefused
from pennon.manifest.draft import is_draft

if TYPE_CHECKING:
    from pennon.catalog.configured_catalog import Catalog

__all__ = [
    "LOCATION",
    "MARKER",
    "MARKER_VALUE",
    "Registration",
    "check_new_namespace",
    "is_table",
    "registered",
    "registration_of",
    "relative_location",
]

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
    """Give the properties of a namespace that is the table at a location."""
    return {LOCATION: relative_location(catalog, location), MARKER: MARKER_VALUE}


def relative_location(catalog: Catalog, location: str) -> str:
    """Give a location relative to the root; one elsewhere stays a path or URL."""
    return plain_path(location).removeprefix(catalog.prefix)
