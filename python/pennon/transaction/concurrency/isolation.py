"""The table property ``write.isolation``: serializable or snapshot.

``write.delete.isolation-level``, ``write.update.isolation-level`` and
``write.merge.isolation-level``, as Iceberg has them, hold for one statement, and before it.

* ``serializable``: it stands only where no other commit changed anything that its statement read,
  so it is as if it had run alone.
* ``snapshot``: it stands where no other commit changed the rows that it replaces. Rows that others
  append meanwhile are not looked at, so two statements may both insert a key that both missed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pennon.errors import UnknownIsolation
from pennon.settings import ISOLATION, ROW_COMMANDS

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["SERIALIZABLE", "SNAPSHOT", "check_isolation", "isolation"]

SERIALIZABLE: Final = "serializable"
SNAPSHOT: Final = "snapshot"


def isolation(properties: Mapping[str, str], command: str | None = None) -> str:
    """Read the isolation of a table's row-level changes.

    Args:
        properties: The table's properties.
        command: ``delete``, ``update`` or ``merge``; None where no statement of its own asks.

    Raises:
        UnknownIsolation: The property has another value.

    Example:
        >>> isolation({}), isolation({"write.isolation": "SNAPSHOT"})
        ('serializable', 'snapshot')
        >>> isolation({"write.merge.isolation-level": "snapshot"}, "merge")
        'snapshot'
    """
    own = f"write.{command}.isolation-level"
    name = own if own in properties else ISOLATION.name
    value = properties.get(name, SERIALIZABLE).lower()
    if value not in (SERIALIZABLE, SNAPSHOT):
        raise UnknownIsolation(property=name, value=value)
    return value


def check_isolation(properties: Mapping[str, str]) -> None:
    """Check the isolation of all statements, where properties are set.

    Raises:
        UnknownIsolation: A property has another value.
    """
    for command in (None, *ROW_COMMANDS):
        isolation(properties, command)
