"""The length of a CHAR or VARCHAR column, which Spark keeps in the metadata of a STRING."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["LENGTH_LIMIT", "LengthLimit"]

LENGTH_LIMIT: Final = "__CHAR_VARCHAR_TYPE_STRING"
"""The key of the metadata."""

_TYPE: Final = re.compile(r"(char|varchar)\((\d+)\)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class LengthLimit:
    """How many characters a text of a column has at most, or exactly.

    Args:
        length: So many.
        is_fixed: Whether shorter texts are filled up with spaces, as CHAR does.
    """

    length: int
    is_fixed: bool

    @classmethod
    def of(cls, column: pa.Field) -> LengthLimit | None:
        """Give the limit of a column; None where it has none.

        Example:
            >>> import pyarrow as pa
            >>> print(LengthLimit.of(pa.field("a", pa.utf8(), metadata={LENGTH_LIMIT: "char(3)"})))
            CHAR(3)
        """
        text = (column.metadata or {}).get(LENGTH_LIMIT.encode(), b"").decode()
        stated = _TYPE.fullmatch(text)
        return None if stated is None else cls(int(stated[2]), stated[1].lower() == "char")

    def __str__(self) -> str:
        """Print the type as users write it."""
        return f"{'CHAR' if self.is_fixed else 'VARCHAR'}({self.length})"
