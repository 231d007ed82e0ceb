"""The root of all errors, and the internal error."""

from __future__ import annotations

from typing import ClassVar


class PennonError(Exception):
    """Root of all errors that Pennon raises for a user.

    Args:
        **parameters: The values that the class's ``template`` names.

    Example:
        >>> print(str(InternalError(what="The reply had no schema"))[:51])
        [INTERNAL_ERROR] The reply had no schema. This is a
    """

    condition: ClassVar[str] = "PENNON_ERROR"
    template: ClassVar[str] = "{message}."
    sql_state: ClassVar[str] = "XX000"

    def __init__(self, **parameters: object) -> None:
        self.parameters = {name: str(value) for name, value in parameters.items()}
        self.message = self.template.format(**self.parameters)
        super().__init__(f"[{self.condition}] {self.message}")

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        """Travel between processes by class and parameters: the message is made of them."""
        return _made_again, (type(self), self.parameters)


def _made_again(kind: type[PennonError], parameters: dict[str, str]) -> PennonError:
    return kind(**parameters)


class InternalError(PennonError):
    """Something that cannot happen did."""

    condition = "INTERNAL_ERROR"
    template = "{what}. This is a bug in Pennon: please report it with the log of the worker."
