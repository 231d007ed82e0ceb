"""The shape of a random query, beside its SQL: what the oracle of ``least_shuffles`` reads.

Columns are named as in the SQL, and no two visible columns of a query have one name.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Leaf:
    """Rows of a table: its number, and for each visible name the table's column."""

    table: int
    columns: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Joined:
    """An equi-join: inner, left, right, full, semi or anti; pairs of names, left first.

    Spark hashes the pairs that are compared by ``<=>`` as expressions, which it knows of no shuffle
    below.
    """

    kind: str
    left: Tree
    right: Tree
    pairs: tuple[tuple[str, str], ...]
    null_safe: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Grouped:
    """An aggregate or a DISTINCT: for each key its name above and below; none for all rows."""

    child: Tree
    keys: tuple[tuple[str, str], ...]
    counts_distinct: bool = False


@dataclass(frozen=True, slots=True)
class Windowed:
    """A window by keys."""

    child: Tree
    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Renamed:
    """A projection: for each name above, the one below."""

    child: Tree
    columns: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class United:
    """UNION ALL: nothing is known of where rows lie."""

    children: tuple[Tree, ...]


@dataclass(frozen=True, slots=True)
class Beside:
    """Rows that stay where they are, and something that is computed for all of them at once."""

    child: Tree
    other: Tree


Tree = Leaf | Joined | Grouped | Windowed | Renamed | United | Beside
