"""The table property ``write.isolation``: what a change of rows has to be shielded from.

* ``serializable``: it stands only where no other commit changed anything that its statement read,
  so it is as if it had run alone.
* ``snapshot``: it stands where no other commit changed the rows that it replaces. Rows that others
  append meanwhile are not looked at, so two statements may both insert a key that both missed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pennon.errors import UnknownIsolation
from pennon.settings import ISOLATION

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["SERIALIZABLE", "SNAPSHOT", "isolation"]

SERIALIZABLE: Final = "serializable"
SNAPSHOT: Final = "snapshot"


def isolation(properties: Mapping[str, str]) -> str:
    """Read the isolation of a table's row-level changes.

    Args:
        properties: The table's properties.

    Raises:
        UnknownIsolation: The property has another value.

    Example:
        >>> isolation({}), isolation({"write.isolation": "SNAPSHOT"})
        ('serializable', 'snapshot')
    """
    value = properties.get(ISOLATION.name, SERIALIZABLE).lower()
    if value not in (SERIALIZABLE, SNAPSHOT):
        raise UnknownIsolation(value=value)
    return value
