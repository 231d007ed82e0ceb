"""Suggestions of existing names for one that was not found."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from typing import Final

__all__ = ["misspelling_of", "near_name", "near_names"]

# How like two names are of which one may be suggested for the other.
_SUGGESTED: Final = 0.6
# How like they are where one is taken for the other's misspelling: it is refused, not suggested.
_MISSPELT: Final = 0.8


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
    close = difflib.get_close_matches(name, existing, n=3, cutoff=_SUGGESTED)
    if close:
        return f"did you mean {' or '.join(close)}"
    shown = ", ".join(existing[:10]) + (", …" if len(existing) > 10 else "")  # noqa: PLR2004
    return f"the {kind} there are {shown}"


def near_name(name: str, existing: Iterable[str]) -> str | None:
    """Give the nearest of some names to suggest for another; None where none is near."""
    return next(iter(difflib.get_close_matches(name, existing, n=1, cutoff=_SUGGESTED)), None)


def misspelling_of(name: str, existing: Iterable[str]) -> str | None:
    """Give the name that was meant by another, be it spelt right or nearly so; None for others.

    Example:
        >>> misspelling_of("replacewere", ["branch", "replacewhere"])
        'replacewhere'
        >>> misspelling_of("path", ["branch", "replacewhere"])
    """
    return next(iter(difflib.get_close_matches(name, existing, n=1, cutoff=_MISSPELT)), None)
