"""Every error a user can meet: one class per condition, the text in one place.

A message has the form ``[CONDITION] Cannot <verb> <object>: <why, with the values>. <What to do>.``
Parameters are values, never sentences, and never a storage option.
"""

from __future__ import annotations

from typing import ClassVar


class PennonError(Exception):
    """Root of all errors that Pennon raises for a user.

    Args:
        **parameters: The values that the class's ``template`` names.

    Example:
        >>> str(InternalError(what="the reply had no schema"))
        '[INTERNAL_ERROR] the reply had no schema. This is a bug in Pennon: please report it with the log of the worker.'
    """

    condition: ClassVar[str] = "PENNON_ERROR"
    template: ClassVar[str] = "{message}."
    sql_state: ClassVar[str] = "XX000"

    def __init__(self, **parameters: object) -> None:
        self.parameters = {name: str(value) for name, value in parameters.items()}
        self.message = self.template.format(**self.parameters)
        super().__init__(f"[{self.condition}] {self.message}")


class InternalError(PennonError):
    """Something that cannot happen did."""

    condition = "INTERNAL_ERROR"
    template = (
        "{what}. This is a bug in Pennon: please report it with the log of the worker."
    )


# --- predicates ---------------------------------------------------------------------------

# --- transforms ---------------------------------------------------------------------------

# --- specification: schema, partition specs, evolution --------------------------------------

# --- manifest -------------------------------------------------------------------------------

# --- leaves ---------------------------------------------------------------------------------

# --- planning and execution -------------------------------------------------------------------

# --- transactions -------------------------------------------------------------------------------

# --- catalog ------------------------------------------------------------------------------------

# --- the worker and the installation ------------------------------------------------------------
