"""Spans of time: between two moments, and as moments after 1970.

NULL rules: every function gives NULL for NULL.

| DataFusion | Spark | guard |
|---|---|---|
| a difference of two BIGINTs wraps | never | quotients and remainders apart |
| seconds with a fraction are a DOUBLE | DECIMAL(8, 6) | of microseconds |
| a product of BIGINTs wraps | an error | in decimals, cast back |

Declined: spans of months, quarters and years, which depend on the calendar.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa
from sqlglot import exp

from pennon.predicate.expressions.time_functions import local
from pennon.predicate.semantics import Declined
from pennon.predicate.typed import NTZ, ZONED, Typed, binary, cast, choice, integer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pennon.predicate.semantics import Semantics

_LONG: Final = pa.int64()
SECOND: Final = 1_000_000
_MICROS: Final[Mapping[str, int]] = {
    "SECOND": SECOND,
    "MINUTE": 60 * SECOND,
    "HOUR": 3600 * SECOND,
    "DAY": 86_400 * SECOND,
    "WEEK": 7 * 86_400 * SECOND,
}


def units_between(unit: str, start: Typed, end: Typed, semantics: Semantics) -> Typed:
    """Count the whole units from one timestamp to another (``timestampdiff``), cut.

    Raises:
        Declined: No timestamps, a zone that is not UTC, or a unit without a fixed length.
    """
    width = _MICROS.get(unit)
    if width is None or {start.type, end.type} - {NTZ, ZONED}:
        raise Declined(why=f"timestampdiff of {unit}")
    units = integer(width, _LONG)
    whole: list[exp.Expr] = []
    rest: list[exp.Expr] = []
    for moment in (end, start):
        micros = cast(local(moment, semantics).tree, _LONG)
        whole.append(binary(exp.Div, micros, units.copy()))
        rest.append(binary(exp.Mod, micros.copy(), units.copy()))
    left = binary(exp.Sub, *rest)
    count = binary(exp.Add, binary(exp.Sub, *whole), binary(exp.Div, left, units.copy()))
    left = binary(exp.Mod, left.copy(), units.copy())
    zero, one = integer(0, _LONG), integer(1, _LONG)
    # What is left points the other way where whole units were counted too many.
    is_less = binary(exp.And, binary(exp.GT, count, zero), binary(exp.LT, left, zero.copy()))
    is_more = binary(
        exp.And,
        binary(exp.LT, count.copy(), zero.copy()),
        binary(exp.GT, left.copy(), zero.copy()),
    )
    counted = choice(
        (is_less, binary(exp.Sub, count.copy(), one)),
        (is_more, binary(exp.Add, count.copy(), one.copy())),
        default=count.copy(),
    )
    return Typed(cast(counted, _LONG), _LONG)


def moment_of(value: Typed, width: int) -> Typed:
    """Give the timestamp so many units after 1970 (``timestamp_seconds``).

    Args:
        value: How many.
        width: Microseconds of a unit.

    Raises:
        Declined: No integer.
    """
    if not value.is_integer:
        raise Declined(why=f"a timestamp of {value.type}")
    exact = pa.decimal128(19, 0)
    factor = cast(exp.Literal.string(str(width)), pa.decimal128(7, 0))
    micros = binary(exp.Mul, cast(value.tree, exact), factor)
    is_small = width == 1 or value.type.bit_width < _LONG.bit_width
    return Typed(cast(cast(micros, _LONG), ZONED), ZONED, can_fail=not is_small)


def seconds_with_fraction(value: Typed, semantics: Semantics) -> Typed:
    """Give the seconds of a minute with their fraction, a DECIMAL(8, 6) (``extract(SECOND …)``).

    Raises:
        Declined: No timestamp, or a zone that is not UTC.
    """
    if value.type not in (NTZ, ZONED):
        raise Declined(why=f"the seconds of {value.type}")
    minute = integer(_MICROS["MINUTE"], _LONG)
    over = binary(exp.Mod, cast(local(value, semantics).tree, _LONG), minute)
    micros = binary(exp.Mod, binary(exp.Add, over, minute.copy()), minute.copy())
    least = cast(exp.Literal.string("0.000001"), pa.decimal128(6, 6))
    kept = pa.decimal128(8, 6)
    return Typed(cast(binary(exp.Mul, cast(micros, pa.decimal128(8, 0)), least), kept), kept)
