"""Parts of texts between separators.

NULL rules: every function gives NULL for NULL; a part that there is not is NULL, or empty.

| DataFusion | Spark | guard |
|---|---|---|
| substr_index looks behind what it found | behind its first character | single characters |
| split_part gives an empty text for no part | NULL, or an error (ANSI) | separators are counted |
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa
from sqlglot import exp

from pennon.predicate.expressions.texts.java_patterns import plain_text
from pennon.predicate.expressions.texts.text_operands import literal_text, texts
from pennon.predicate.semantics import Declined
from pennon.predicate.typed import (
    Typed,
    binary,
    call,
    cast,
    choice,
    integer,
    is_null,
    stated_integer,
)

NO_PART: Final = "no part "
"""What stands before a part's number, from 0, and how many there are, in an error."""


def before_separator(value: Typed, separator: Typed, count: Typed) -> Typed:
    """Cut a text at a place of a character, counted from either end (``substring_index``).

    Raises:
        Declined: The place is computed; or no single character, of which Spark finds places that
            overlap.
    """
    (whole,) = texts([value])
    sign, place = literal_text(separator), stated_integer(count)
    if sign is None or len(sign) != 1 or place is None:
        raise Declined(why="a place of what is no single character")
    parts = (exp.Literal.string(sign), integer(place, pa.int64()))
    return Typed(cast(call("substr_index", whole, *parts), pa.utf8()), pa.utf8())


def part_of_split(value: Typed, separator: Typed, number: int, *, is_error: bool = False) -> Typed:
    """Give a part between matches of a regular expression (``split``); NULL where there is none.

    Args:
        value: The text.
        separator: What separates its parts.
        number: Which one, from 1; the last one is -1.
        is_error: Whether a part that there is not is an error instead (ANSI).

    Raises:
        Declined: The separator is computed, or more than signs that stand for themselves; or of
            several signs, where parts are counted from the end.
    """
    (whole,) = texts([value])
    sign = plain_text(literal_text(separator) or "")
    taken = _part(whole, sign, number)
    if abs(number) == 1:
        return taken
    without = call("replace", whole.copy(), exp.Literal.string(sign), exp.Literal.string(""))
    sizes = [cast(call("octet_length", tree), pa.int64()) for tree in (whole.copy(), without)]
    least = (abs(number) - 1) * len(sign.encode())
    behind = binary(exp.Sub, *sizes)
    is_there = binary(exp.GTE, behind, integer(least, pa.int64()))
    if not is_error:
        return Typed(choice((is_there, taken.tree), default=None), pa.utf8())
    separators = binary(exp.Div, behind.copy(), integer(len(sign.encode()), pa.int64()))
    missing = _missing(number - 1, binary(exp.Add, separators, integer(1, pa.int64())))
    tree = choice((is_there, taken.tree), (is_null(whole.copy()), exp.Null()), default=missing)
    return Typed(tree, pa.utf8(), can_fail=True)


def _missing(index: int, count: exp.Expr) -> exp.Expr:
    """Write what is an error of a part that there is not, and tells how many there are."""
    text = binary(
        exp.DPipe,
        exp.Literal.string(f"{NO_PART}{index} of "),
        cast(exp.paren(count, copy=False), pa.utf8()),
    )
    return cast(cast(exp.paren(text, copy=False), pa.int32()), pa.utf8())


def part_or_nothing(value: Typed, separator: Typed, number: int) -> Typed:
    """Give a part between separators (``split_part``); an empty text where there is none.

    Args:
        value: The text.
        separator: What separates its parts, as it is.
        number: Which one, from 1; the last one is -1.

    Raises:
        Declined: The separator is computed or empty; or of several signs, where parts are counted
            from the end.
    """
    (whole,) = texts([value])
    sign = literal_text(separator)
    if not sign:
        raise Declined(why="a separator that is computed or empty")
    return _part(whole, sign, number)


def _part(whole: exp.Expr, sign: str, number: int) -> Typed:
    if number < 0 and len(sign) > 1:
        raise Declined(why="the last part between several signs")
    place = (exp.Literal.string(sign), integer(number, pa.int64()))
    return Typed(cast(call("split_part", whole, *place), pa.utf8()), pa.utf8())
