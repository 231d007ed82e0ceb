"""The text of a predicate as an error cites it: short, whatever was asked."""

from __future__ import annotations

from typing import Final

from pennon.predicate.values.long_lists import with_short_lists

_LONGEST: Final = 200


def shortened_predicate(sql: str) -> str:
    """Cut a predicate to what people read of one in an error, its long lists first.

    Args:
        sql: Of any length.

    Returns:
        At most 200 characters, and a sign that there is more.

    Example:
        >>> shortened_predicate("k = 3"), len(shortened_predicate("k = " + "x" * 1000))
        ('k = 3', 201)
        >>> shortened_predicate(f"k IN ({', '.join(map(str, range(60)))}) AND j")
        'k IN (0, 1, 2, … 57 more) AND j'
    """
    text = with_short_lists(sql)
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "…"
