"""Suggestions of existing names for one that was not found."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

__all__ = ["near_names"]


def near_names(name: str, existing: Sequence[str], kind: str) -> str:
    """Tell the near names, or those there are.

    Example:
        >>> near_names("order", ["orders", "planes"], "tables")
        'did you mean orders'
        >>> near_names("Orders", ["orders", "planes"], "tables")
        'names are case-sensitive, did you mean orders'
    """
    if not existing:
        return f"there are no {kind}"
    same = [candidate for candidate in existing if candidate.casefold() == name.casefold()]
    if same:
        return f"names are case-sensitive, did you mean {' or '.join(same)}"
    close = difflib.get_close_matches(name, existing, n=3, cutoff=0.6)
    if close:
        return f"did you mean {' or '.join(close)}"
    shown = ", ".join(existing[:10]) + (", …" if len(existing) > 10 else "")  # noqa: PLR2004
    return f"the {kind} there are {shown}"
