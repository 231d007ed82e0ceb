"""The list of an IN as one node of the tree, however many values it has.

A tree is copied and walked dozens of times on its way from a predicate to a query; a list of 10,000
literals took 3 s of that. Its text is written once, and copies share it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from sqlglot import exp

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pyarrow as pa

__all__ = ["LiteralList", "Literals"]


class Literals:
    """Values of one type, none of them NULL, and their text once it was asked for.

    Args:
        scalars: The values.
    """

    __slots__ = ("_hash", "_text", "scalars")

    def __init__(self, scalars: Sequence[pa.Scalar]) -> None:
        self.scalars = tuple(scalars)
        self._hash: int | None = None
        self._text: str | None = None

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash(self.scalars)
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Literals) and self.scalars == other.scalars

    def text(self, write: Callable[[pa.Scalar], str]) -> str:
        """Give the values beside each other.

        Args:
            write: Writes one of them; there is one dialect that lists are written in.
        """
        if self._text is None:
            self._text = ", ".join(map(write, self.scalars))
        return self._text


class LiteralList(exp.Expression):
    """The right side of an IN: ``exp.In(this=column, field=LiteralList.of(values))``."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True}

    @classmethod
    def of(cls, scalars: Sequence[pa.Scalar]) -> LiteralList:
        """Make a list of values that are not NULL."""
        return cls(this=Literals(scalars))

    @property
    def literals(self) -> Literals:
        """The values."""
        literals: Literals = self.args["this"]
        return literals
