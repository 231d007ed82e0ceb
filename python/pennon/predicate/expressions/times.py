"""Dates and timestamps in DataFusion's calendar, as texts, and by the clocks of the session.

NULL rules: NULL stays NULL.

| DataFusion | Spark | guard |
|---|---|---|
| parts of days beyond the years -262143 to 262142 are NULL | all years | an error |
| a T before the time, a fraction of 3 or 6 digits | a space, no zeros at the end | replaced |
| formats of chrono | of Java: letters count, quotes | each field by chrono's letter for it |
| zones of its own | the offsets that the session's Java has | functions of ``execution`` |

Declined: years by eras or weeks, zones, days of a year, fractions of more than six digits.
"""

from __future__ import annotations

import re
from functools import partial, reduce
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from sqlglot import exp

from pennon.predicate.condition import Declined
from pennon.predicate.typed import (
    NTZ,
    ZONED,
    Typed,
    binary,
    call,
    cast,
    choice,
    has_more_nodes,
    integer,
)
from pennon.predicate.values.time_units import MICROS_PER_DAY, MICROS_PER_SECOND

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pennon.predicate.condition import Semantics

_MOST_NODES: Final = 400
_INT: Final = pa.int32()
_LONG: Final = pa.int64()


def field(name: str, source: Typed) -> exp.Expr:
    """Extract a field of a date, or of a timestamp without a zone, as an INT.

    Of a day that DataFusion's calendar has not it is NULL to DataFusion: an error here, for it has
    no text either.

    Raises:
        Declined: Many terms, which would be there several times.
    """
    if has_more_nodes(source.tree, _MOST_NODES):
        raise Declined(why="a date of many terms")
    known = exp.Extract(this=exp.var(name), expression=source.tree.copy())
    beyond = call("ascii", cast(source.tree.copy(), pa.utf8()))
    return cast(exp.Coalesce(this=known, expressions=[beyond]), _INT)


def time_of_day(source: Typed) -> exp.Expr:
    """Count the microseconds of a timestamp since midnight."""
    width = integer(MICROS_PER_DAY, _LONG)
    over = binary(exp.Mod, cast(source.tree.copy(), _LONG), width)
    return binary(exp.Mod, binary(exp.Add, over, width.copy()), width.copy())


def day_of(source: Typed) -> exp.Expr:
    """Give the day of a date or timestamp, counted in UTC."""
    if pa.types.is_date(source.type):
        return source.tree.copy()
    days = _floor_quotient(cast(source.tree.copy(), _LONG), MICROS_PER_DAY)
    return cast(cast(days, _INT), pa.date32())


def _floor_quotient(number: exp.Expr, width: int) -> exp.Expr:
    """Divide and round down; nothing in between is beyond 64 bits."""
    by = integer(width, _LONG)
    is_below = binary(exp.LT, binary(exp.Mod, number, by), integer(0, _LONG))
    quotient = binary(exp.Div, number.copy(), by.copy())
    return binary(exp.Sub, quotient, cast(exp.paren(is_below), _LONG))


CLOCK: Final = "zone_clock"
MOMENT: Final = "zone_moment"
MOMENT_NEAR: Final = "zone_moment_near"
MOMENT_OF_DAY: Final = "zone_moment_of_day"
MOMENT_OF_DAY_NEAR: Final = "zone_moment_of_day_near"


def uses_zone(sql: str) -> bool:
    """Whether a query calls one of the functions."""
    return f"{CLOCK}(" in sql or MOMENT in sql


def knows_zone(semantics: Semantics) -> bool:
    """Whether timestamps with a zone have a local time here."""
    return semantics.is_utc or bool(semantics.zone_offsets)


def clock(value: Typed, semantics: Semantics) -> Typed:
    """Take a timestamp with a zone as one without: what the session's clocks show.

    Raises:
        Declined: The session's zone is not known.
    """
    _check_known(semantics)
    micros = cast(value.tree, _LONG)
    return Typed(cast(micros if semantics.is_utc else call(CLOCK, micros), NTZ), NTZ)


def moment(value: Typed, semantics: Semantics, *, near: Typed | None = None) -> Typed:
    """Give the moment at which the session's clocks show a time; of a date, at which it begins.

    Args:
        value: A date, or a timestamp without a zone.
        semantics: The session's.
        near: A timestamp with a zone, whose offset is preferred where clocks show the time twice.

    Raises:
        Declined: The session's zone is not known.
    """
    _check_known(semantics)
    micros = cast(cast(value.tree, NTZ) if pa.types.is_date(value.type) else value.tree, _LONG)
    return Typed(cast(_moment(micros, value, semantics, near), ZONED), ZONED)


def _moment(micros: exp.Expr, value: Typed, semantics: Semantics, near: Typed | None) -> exp.Expr:
    if semantics.is_utc:
        return micros
    is_day = pa.types.is_date(value.type)
    if near is None:
        return call(MOMENT_OF_DAY if is_day else MOMENT, micros)
    function = MOMENT_OF_DAY_NEAR if is_day else MOMENT_NEAR
    return call(function, micros, cast(near.tree.copy(), _LONG))


def _check_known(semantics: Semantics) -> None:
    if not knows_zone(semantics):
        raise Declined(why="a timestamp in a zone that is not UTC")


# The fields of a pattern, texts in quotes, and signs that mean themselves.
_PIECES: Final = re.compile(r"'(?:[^']|'')*'|([A-Za-z])\1*|[-/.:,;_|()+*=@!?~ ]+")
_FIELDS: Final = {
    "yyyy": "%Y",
    "MM": "%m",
    "M": "%-m",
    "dd": "%d",
    "d": "%-d",
    "MMM": "%b",
    "MMMM": "%B",
    **dict.fromkeys(("E", "EE", "EEE"), "%a"),
    "EEEE": "%A",
    "HH": "%H",
    "H": "%-H",
    "hh": "%I",
    "h": "%-I",
    "mm": "%M",
    "m": "%-M",
    "ss": "%S",
    "s": "%-S",
    "a": "%p",
    "SSS": "%3f",
    "SSSSSS": "%6f",
}
# What the last, or the first, signs of another field are: of the year, or of the microseconds.
_CUT_FIELDS: Final[Mapping[str, tuple[str, str, int]]] = {
    "yy": ("right", "%Y", 2),
    **{"S" * count: ("left", "%6f", count) for count in (1, 2, 4, 5)},
}


def timestamp_text(source: Typed) -> exp.Expr:
    """Write a timestamp without a zone, as Spark's cast does."""
    micros = binary(exp.Mod, cast(source.tree.copy(), _LONG), integer(MICROS_PER_SECOND, _LONG))
    signs = (exp.Literal.string(sign) for sign in ("T", " "))
    text = call("replace", cast(source.tree.copy(), pa.utf8()), *signs)
    is_whole = binary(exp.EQ, micros, integer(0, _LONG))
    return choice((is_whole, text), default=call("rtrim", text.copy(), exp.Literal.string("0")))


def formatted(source: Typed, pattern: str | None) -> exp.Expr:
    """Write a date, or a timestamp without a zone, by a pattern of Java.

    Raises:
        Declined: A pattern that is computed, or has other fields, or none.

    Example:
        >>> formatted(Typed(exp.column("d"), pa.date32()), "yyyy-MM").sql()
        "TO_CHAR(d, '%Y-%m')"
    """
    pieces = [] if pattern is None else [match.group() for match in _PIECES.finditer(pattern)]
    # Signs alone would be there for NULL, too.
    if "".join(pieces) != pattern or not any(piece[0].isalpha() for piece in pieces):
        raise Declined(why=f"the pattern {pattern}")
    is_date = not {*"HhmsSa"}.intersection(piece[0] for piece in pieces)
    if not is_date and source.type != NTZ:
        raise Declined(why=f"the pattern {pattern} of {source.type}")
    time = day_of(source) if is_date else source.tree
    written: list[exp.Expr] = []
    letters = ""
    for piece in [*pieces, ""]:
        if piece and piece not in _CUT_FIELDS:
            letters += _chrono(piece, pattern)
            continue
        if letters:
            written.append(call("to_char", time.copy(), exp.Literal.string(letters)))
            letters = ""
        if piece:
            name, whole, count = _CUT_FIELDS[piece]
            digits = call("to_char", time.copy(), exp.Literal.string(whole))
            written.append(call(name, digits, integer(count, _LONG)))
    return reduce(partial(binary, exp.DPipe), written)


def _chrono(piece: str, pattern: str | None) -> str:
    """Write a piece of a pattern of Java as DataFusion reads it."""
    if piece[0].isalpha():
        letter = _FIELDS.get(piece)
        if letter is None:
            raise Declined(why=f"the pattern {pattern}")
        return letter
    text = (piece[1:-1].replace("''", "'") or "'") if piece.startswith("'") else piece
    return text.replace("%", "%%")
