"""Names of columns in one text: the form in which options, properties and procedures take them."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["listed_columns"]

_ENTRY: Final = re.compile(r"(?:`[^`]*`|[^,`])+")


def listed_columns(text: str) -> list[str]:
    """Take names apart that have commas between.

    A name, or each part of a path with dots, may stand in backquotes, which are left away: no
    column has any in its name.

    Example:
        >>> listed_columns("id, `a b`, place.`zip, code`")
        ['id', 'a b', 'place.zip, code']
    """
    entries = (entry.strip() for entry in _ENTRY.findall(text))
    return [name for entry in entries if (name := entry.replace("`", ""))]
