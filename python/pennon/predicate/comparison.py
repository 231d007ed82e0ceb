"""A comparison of one column with literals, the input of a transform's projection.

NULL rules: every operator but IS NULL and IS NOT NULL is never true for NULL, and the
literals themselves are never NULL: ``c = NULL`` is no comparison but the constant NULL.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from pennon.errors import InternalError
from pennon.predicate.values.conversion import to_text

if TYPE_CHECKING:
    import pyarrow as pa


class Operator(StrEnum):
    """What a comparison asks of its column."""

    EQUAL = "="
    NOT_EQUAL = "<>"
    LESS = "<"
    LESS_OR_EQUAL = "<="
    GREATER = ">"
    GREATER_OR_EQUAL = ">="
    IN = "IN"
    NOT_IN = "NOT IN"
    IS_NULL = "IS NULL"
    IS_NOT_NULL = "IS NOT NULL"
    STARTS_WITH = "STARTS WITH"
    NOT_STARTS_WITH = "NOT STARTS WITH"

    @property
    def negated(self) -> Operator:
        """The operator that is true exactly where this one is false (NULL stays NULL)."""
        return _NEGATED[self]

    @property
    def flipped(self) -> Operator:
        """The operator with its sides exchanged: ``5 < c`` is ``c > 5``."""
        return _FLIPPED.get(self, self)

    @property
    def is_unary(self) -> bool:
        """Whether the operator takes no literal."""
        return self in (Operator.IS_NULL, Operator.IS_NOT_NULL)

    @property
    def is_list(self) -> bool:
        """Whether the operator takes any number of literals."""
        return self in (Operator.IN, Operator.NOT_IN)


_NEGATED = {
    Operator.EQUAL: Operator.NOT_EQUAL,
    Operator.NOT_EQUAL: Operator.EQUAL,
    Operator.LESS: Operator.GREATER_OR_EQUAL,
    Operator.LESS_OR_EQUAL: Operator.GREATER,
    Operator.GREATER: Operator.LESS_OR_EQUAL,
    Operator.GREATER_OR_EQUAL: Operator.LESS,
    Operator.IN: Operator.NOT_IN,
    Operator.NOT_IN: Operator.IN,
    Operator.IS_NULL: Operator.IS_NOT_NULL,
    Operator.IS_NOT_NULL: Operator.IS_NULL,
    Operator.STARTS_WITH: Operator.NOT_STARTS_WITH,
    Operator.NOT_STARTS_WITH: Operator.STARTS_WITH,
}

_FLIPPED = {
    Operator.LESS: Operator.GREATER,
    Operator.LESS_OR_EQUAL: Operator.GREATER_OR_EQUAL,
    Operator.GREATER: Operator.LESS,
    Operator.GREATER_OR_EQUAL: Operator.LESS_OR_EQUAL,
}


@dataclass(frozen=True, slots=True)
class Comparison:
    """An operator and its literals, which have the Arrow type of the column.

    Args:
        operator: What is asked.
        literals: None for IS [NOT] NULL, any number for [NOT] IN, else exactly one; never NULL.

    Example:
        >>> import pyarrow as pa
        >>> print(Comparison(Operator.LESS, (pa.scalar(5),)))
        < 5
    """

    operator: Operator
    literals: tuple[pa.Scalar, ...] = ()

    def __post_init__(self) -> None:
        count = len(self.literals)
        fits = count == 0 if self.operator.is_unary else self.operator.is_list or count == 1
        if not fits or not all(literal.is_valid for literal in self.literals):
            raise InternalError(what=f"the comparison {self} has the wrong literals")

    @property
    def literal(self) -> pa.Scalar:
        """The one literal of an operator that takes one."""
        if len(self.literals) != 1:
            raise InternalError(what=f"the comparison {self} has not one literal")
        return self.literals[0]

    @property
    def values(self) -> tuple[object, ...]:
        """The literals as Python values."""
        return tuple(literal.as_py() for literal in self.literals)

    def __str__(self) -> str:
        return " ".join([str(self.operator), *(str(to_text(literal)) for literal in self.literals)])
