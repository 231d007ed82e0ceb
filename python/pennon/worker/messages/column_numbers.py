"""The numbers by which a plan's nodes name columns, and the fields of struct columns."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from pennon.predicate.parse import column_path

_COLUMN: Final = re.compile(r"c(\d+)")

_Names = tuple[str, ...]


class ColumnNumbers:
    """The numbers of the columns of one plan, by their texts.

    A column has the number of its attribute; a field of a struct, which is no attribute, a negative
    number.

    Example:
        >>> numbers = ColumnNumbers()
        >>> numbers.of("`c5`"), numbers.of("`c5`.`city`"), numbers.of("(`c5` + 1)")
        (5, -1, None)
        >>> numbers.path(-1)
        (5, ('city',))
    """

    def __init__(self) -> None:
        """Start with a plan of which nothing is known."""
        self._numbers: dict[tuple[int, _Names], int] = {}
        self._paths: dict[int, tuple[int, _Names]] = {}

    def of(self, text: str | None) -> int | None:
        """Number what a text names; None where it is no column and no field of one."""
        column, *names = column_path(text or "") or ("",)
        number = _COLUMN.fullmatch(column)
        return None if number is None else self._number(int(number[1]), tuple(names))

    def all_of(self, texts: Iterable[str | None]) -> frozenset[int]:
        """Number those of some texts that name a column, or a field of one."""
        return frozenset(number for text in texts if (number := self.of(text)) is not None)

    def path(self, number: int) -> tuple[int, _Names]:
        """Give the attribute that has a number, and the names that lead to a field in it."""
        return self._paths.get(number, (number, ()))

    def fields(self, attribute: int, data_type: object) -> Iterator[tuple[int, _Names]]:
        """Number all fields in a column, with the names that lead to each.

        Args:
            attribute: The column.
            data_type: Its type, as Spark writes it in JSON.
        """
        for names in _fields(data_type):
            yield self._number(attribute, names), names

    def renamed(self, expressions: Iterable[Sequence[Any]]) -> tuple[tuple[int, int], ...]:
        """Pair each of some columns that takes a column or a field, and its fields, with these.

        Args:
            expressions: Attribute, text and type of each.
        """
        return tuple(pair for expression in expressions for pair in self._pairs(*expression))

    def _pairs(
        self, attribute: int, text: str | None, data_type: object
    ) -> Iterator[tuple[int, int]]:
        taken = self.of(text)
        if taken is not None:
            yield attribute, taken
            column, names = self.path(taken)
            for below in _fields(data_type):
                yield self._number(attribute, below), self._number(column, names + below)

    def _number(self, attribute: int, names: _Names) -> int:
        if not names:
            return attribute
        path = (attribute, names)
        number = self._numbers.setdefault(path, -1 - len(self._numbers))
        self._paths[number] = path
        return number


def _fields(data_type: object) -> Iterator[_Names]:
    """List the names that lead to each field in a struct, those above a field before it."""
    if isinstance(data_type, Mapping) and data_type["type"] == "struct":
        for field in data_type["fields"]:
            yield (field["name"],)
            yield from ((field["name"], *names) for names in _fields(field["type"]))
