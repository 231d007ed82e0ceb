"""Writes which rows around one a function of a window sees.

NULL rule: rows whose order is NULL are near each other and near no other row.

| DataFusion | Spark | guard |
|---|---|---|
| RANGE with offsets adds intervals to times | days and microseconds | in the order of numbers |
| an offset wraps where it leaves 64 bits | an error, if rows are left | numbers of 20 digits |
| an empty RANGE lets earlier values stay in a sum | none | declined without the row itself |

Spark computes an end from the row only while rows are left beyond it, and an end that leaves the
integers is an error or wraps, by the session. So which rows are an error depends on their order.

Declined: RANGE with offsets of months, of decimals and floats, of integers whose known values do
not keep every end within their type, and of whole days in a zone whose days differ in length.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from sqlglot import exp, parse_one

from pennon.predicate.expressions.value_ranges import ValueRange
from pennon.predicate.semantics import Declined
from pennon.predicate.typed import NTZ, ZONED, Typed, cast
from pennon.predicate.values.intervals import whole_interval
from pennon.predicate.values.time_units import MICROS_PER_DAY

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pennon.plan import WindowFrame
    from pennon.predicate.semantics import Semantics

__all__ = ["is_near", "near_number", "written_frame"]

_ENDS: Final[Mapping[str, tuple[str, str | None]]] = {
    "UNBOUNDED PRECEDING": ("UNBOUNDED", "PRECEDING"),
    "UNBOUNDED FOLLOWING": ("UNBOUNDED", "FOLLOWING"),
    "CURRENT ROW": ("CURRENT ROW", None),
}
# As Spark writes them: -3, -3L.
_INTEGER: Final = re.compile(r"(-?\d+)L?")
_WIDE: Final = pa.decimal128(20, 0)


def is_near(frame: WindowFrame) -> bool:
    """Whether it is of the rows whose values are near that of the row."""
    return frame.unit == "RANGE" and not {frame.lower, frame.upper} <= set(_ENDS)


def written_frame(frame: WindowFrame, near: Typed | None) -> exp.WindowSpec:
    """Write a frame.

    Args:
        frame: The frame.
        near: The key of the order where ``is_near`` holds of the frame.

    Raises:
        Declined: It is none that DataFusion has as Spark does.
    """
    if frame.unit not in ("ROWS", "RANGE"):
        raise Declined(why=f"a frame of {frame.unit}")
    (start, start_side), (end, end_side) = (
        _end(bound, None if near is None else near.type) for bound in (frame.lower, frame.upper)
    )
    if near is not None and start_side == end_side:
        raise Declined(why="a frame of values that may be empty")
    return exp.WindowSpec(
        kind=frame.unit, start=start, start_side=start_side, end=end, end_side=end_side
    )


def near_number(
    frame: WindowFrame,
    key: Typed,
    semantics: Semantics,
    *,
    values: ValueRange | None,
    is_descending: bool,
) -> exp.Expr:
    """Write the number by which rows are near that of the row.

    Args:
        frame: A frame of which ``is_near`` holds.
        key: The only key of the order.
        semantics: The session's.
        values: The range of its values; None where it is not known.
        is_descending: Whether the greatest comes first.

    Raises:
        Declined: An offset does not lead to the same values from everywhere, or may be lost.
    """
    offsets = [_offset(end, key.type) for end in (frame.lower, frame.upper) if end not in _ENDS]
    if key.type == pa.date32():
        return cast(cast(key.tree, pa.int32()), pa.int64())
    number = cast(cast(key.tree, pa.int64()), _WIDE)
    if key.type == NTZ:
        return number
    if key.type == ZONED:
        if not semantics.is_utc and any(abs(offset) >= MICROS_PER_DAY for offset in offsets):
            raise Declined(why="a frame of days, which differ in length in the session's zone")
        return number
    ends = [0, *(-offset if is_descending else offset for offset in offsets)]
    moved = None if values is None else ValueRange(values.low + min(ends), values.high + max(ends))
    if moved is None or moved.within(key.type) is None:
        raise Declined(why="a frame of integers whose ends may leave their type")
    return number


def _end(text: str, key: pa.DataType | None) -> tuple[str | exp.Expr, str | None]:
    """Read an end of a frame as Spark writes it: a number of rows, or what is added to a key."""
    end = _ENDS.get(text)
    if end is not None:
        return end
    offset = _rows(text) if key is None else _offset(text, key)
    return exp.Literal.number(abs(offset)), "PRECEDING" if offset < 0 else "FOLLOWING"


def _rows(text: str) -> int:
    try:
        return int(text)
    except ValueError as reason:
        raise Declined(why=f"a frame up to {text}") from reason


def _offset(text: str, key: pa.DataType) -> int:
    """Read what is added to a key: days to a date, microseconds to a timestamp."""
    number = _INTEGER.fullmatch(text)
    if number is not None and key in (pa.date32(), pa.int32(), pa.int64()):
        return int(number[1])
    if number is None and key in (pa.date32(), NTZ, ZONED):
        interval = parse_one(text)
        whole = whole_interval(interval) if isinstance(interval, exp.Interval) else None
        if whole is not None and whole[0] == "MICROSECOND":
            days, rest = divmod(whole[1], MICROS_PER_DAY)
            if key != pa.date32():
                return whole[1]
            if rest == 0:
                return days
    raise Declined(why=f"a frame of values near that of the row: {text} of {key}")
