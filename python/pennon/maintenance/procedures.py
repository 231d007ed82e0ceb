"""The table of procedures that CALL runs: name → function."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from pennon.errors import UnknownProcedure

if TYPE_CHECKING:
    from pennon.catalog.catalog import Catalog

__all__ = ["PROCEDURES", "call"]

Rows = tuple[tuple[object, ...], ...]
Procedure = Callable[["Catalog", Mapping[str, object]], tuple[Mapping[str, object], Rows]]
"""Takes the catalog and the arguments, gives the JSON of a Spark StructType and the rows."""

PROCEDURES: Mapping[str, Procedure] = {}


def call(
    catalog: Catalog, procedure: str, arguments: Mapping[str, object]
) -> tuple[Mapping[str, object], Rows]:
    """Call a procedure.

    Args:
        catalog: The catalog that it is called in.
        procedure: Its name, ``system.`` in front or not.
        arguments: Values by parameter name.

    Raises:
        UnknownProcedure: There is none of that name; the error lists those there are.
    """
    name = procedure.lower().removeprefix("system.")
    found = PROCEDURES.get(name)
    if found is None:
        known = ", ".join(sorted(PROCEDURES)) or "none in this version"
        raise UnknownProcedure(procedure=procedure, known=known)
    return found(catalog, arguments)
