"""Whole numbers of DOUBLEs: ``floor``, ``ceil``, and the casts that cut fractions.

NULL rules: NULL stays NULL.

| DataFusion | Spark | guard |
|---|---|---|
| floor and ceil are DOUBLEs | BIGINT; 0 of NaN; beyond it an error (ANSI), or its end | cast |
| a cast of NaN, or beyond the type, is an error | so under ANSI; else 0, or its end | CASE |
| a cast of 2**63 is an error | the last BIGINT, under ANSI too | apart |

Spark before 4.3 ends ``floor`` and ``ceil`` at the ends of BIGINT under ANSI, too: here that is an
error as it is since.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa
from sqlglot import exp

from pennon.predicate.typed import Typed, binary, call, cast, choice, double, integer

if TYPE_CHECKING:
    from pennon.predicate.semantics import Semantics

_DOUBLE: Final = pa.float64()
_LONG: Final = pa.int64()


def next_whole_number(
    operator: type[exp.Floor | exp.Ceil], value: Typed, semantics: Semantics
) -> Typed:
    """Give the next whole number below, or above, a DOUBLE as a BIGINT."""
    name = "floor" if operator is exp.Floor else "ceil"
    if not semantics.ansi:
        return Typed(_within(value.tree, _LONG, name), _LONG)
    is_nan = call("isnan", value.tree.copy())
    number = choice((is_nan, double(0)), default=value.tree.copy())
    return Typed(cast(call(name, number), _LONG), _LONG, can_fail=True)


def cut_number(value: Typed, target: pa.DataType, semantics: Semantics) -> Typed:
    """Cast a DOUBLE to an INT or a BIGINT."""
    if not semantics.ansi:
        return Typed(_within(value.tree, target, None), target)
    if target != _LONG:
        return Typed(cast(value.tree, target), target, can_fail=True)
    is_last = binary(exp.EQ, value.tree.copy(), double(2**63))
    other = choice((is_last, double(0)), default=value.tree.copy())
    whole = choice((is_last.copy(), integer(2**63 - 1, _LONG)), default=cast(other, _LONG))
    return Typed(whole, _LONG, can_fail=True)


def _within(number: exp.Expr, target: pa.DataType, name: str | None) -> exp.Expr:
    """Cut a DOUBLE, after ``floor`` or ``ceil``: 0 of NaN, and what is beyond a type is its end."""
    ends = 2 ** (target.bit_width - 1)
    is_nan = call("isnan", number.copy())
    is_above = binary(exp.GTE, number.copy(), double(ends))
    is_below = binary(exp.LT, number.copy(), double(-ends))
    # Also where DataFusion computes every branch there is nothing beyond the type.
    inside = choice(
        (is_nan, double(0)), (is_above, double(0)), (is_below, double(0)), default=number.copy()
    )
    whole = cast(inside if name is None else call(name, inside), target)
    return choice(
        (is_nan.copy(), integer(0, target)),
        (is_above.copy(), integer(ends - 1, target)),
        (is_below.copy(), integer(-ends, target)),
        default=whole,
    )
