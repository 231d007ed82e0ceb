"""Aggregates that are exactly Spark's.

NULL rules: NULLs are left out; a sum of nothing is NULL.

| DataFusion | Spark | guard |
|---|---|---|
| sums of 64-bit integers wrap | an error (ANSI) | sum as DECIMAL(38, 0), cast back |
| sums of decimals wrap beyond 38 digits | an error (ANSI), or NULL | sum in 76 digits |
| a group's extreme of floats starts at the greatest finite one | at nothing | infinities apart |
| any NaN, by ``<``, leaves it as it is | NaN is the greatest | counted apart |
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa
from sqlglot import exp

from pennon.predicate.expressions.floats.float_order import comparable
from pennon.predicate.semantics import Declined
from pennon.predicate.typed import (
    MAX_DIGITS,
    WIDE_DIGITS,
    Typed,
    binary,
    call,
    cast,
    choice,
    decimal_type,
    enclosed,
    integer,
    is_null,
    is_plain,
    lossy_cast,
    opaque,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pennon.predicate.semantics import Semantics

# Sums of at most this many decimal digits more than their values cannot overflow: 10**10 rows.
SUM_DIGITS: Final = 10
BITS: Final = frozenset({"bit_and", "bit_or", "bit_xor"})


def total(value: Typed, semantics: Semantics, *, is_distinct: bool = False) -> Typed:
    """Sum as Spark does, all values or the different ones.

    Spark: integers sum to BIGINT, decimals to ten more digits (at most 38), floats to DOUBLE in no
    defined order. A sum that does not fit is an error under ANSI; without, a BIGINT sum wraps and
    one of decimals is NULL. Where only a part of the rows is beyond 38 digits, Spark's answer
    depends on their order; here it is the sum.

    Raises:
        Declined: Not a number.
    """
    if value.is_float:
        summed = comparable(value) if is_distinct else value.tree
        return Typed(_sum(cast(summed, pa.float64()), is_distinct=is_distinct), pa.float64())
    if value.is_integer:
        is_safe = value.type.bit_width < pa.int64().bit_width  # 2**32 rows cannot overflow
        if is_safe or not semantics.ansi:
            return Typed(_sum(cast(value.tree, pa.int64()), is_distinct=is_distinct), pa.int64())
        exact = _sum(cast(value.tree, pa.decimal128(MAX_DIGITS, 0)), is_distinct=is_distinct)
        return Typed(cast(exact, pa.int64()), pa.int64())
    if not value.is_decimal:
        raise Declined(why=f"the sum of {value.type}")
    precision, scale = value.type.precision, value.type.scale
    kept = pa.decimal128(min(MAX_DIGITS, precision + SUM_DIGITS), scale)
    if not is_cut(value.type):
        return Typed(_sum(value.tree, is_distinct=is_distinct), kept)
    wide = _sum(
        exp.Cast(this=value.tree, to=decimal_type(WIDE_DIGITS, scale)), is_distinct=is_distinct
    )
    if semantics.ansi:
        return Typed(cast(wide, kept), kept)
    return Typed(lossy_cast(wide, kept, is_tried=True), kept)


def is_cut(data_type: pa.DataType | None) -> bool:
    """Whether a sum of this type has fewer digits than it may need: Spark's has at most 38."""
    if data_type is None or not pa.types.is_decimal(data_type):
        return False
    return bool(data_type.precision + SUM_DIGITS > MAX_DIGITS)


def total_of_parts(part: Typed, data_type: pa.DataType) -> Typed:
    """Add up the sums or counts of the parts of a group.

    Args:
        part: The result for one part, in a type in which it cannot overflow.
        data_type: The type of the whole.

    Raises:
        Declined: The type is not one of Spark's plain ones.
    """
    whole = _sum(part.tree)
    return Typed(
        whole if part.type == data_type and not part.is_decimal else cast(whole, data_type),
        data_type,
    )


def extreme(operator: type[exp.Min | exp.Max], value: Typed) -> Typed:
    """Give the least or the greatest value; of zeros either one."""
    if not value.is_float:
        return Typed(operator(this=value.tree), value.type)
    is_greatest = operator is exp.Max
    beyond = "-Infinity" if is_greatest else "Infinity"
    is_nan = call("isnan", enclosed(value.tree.copy()))
    is_beyond = binary(exp.EQ, value.tree.copy(), _float(beyond, value))
    is_left_out = exp.Or(this=is_nan, expression=is_beyond)
    other = choice((is_left_out, exp.Null()), default=value.tree.copy())
    nan = (_occurs(choice((is_nan.copy(), value.tree.copy()), default=None)), _float("NaN", value))
    only_beyond = (
        _occurs(choice((is_nan.copy(), exp.Null()), default=value.tree.copy())),
        _float(beyond, value),
    )
    finite = operator(this=other)
    cases = [nan, (exp.Not(this=is_null(finite)), finite.copy()), only_beyond]
    tree = choice(*(cases if is_greatest else [*cases[1:], nan]), default=exp.Null())
    return Typed(tree, value.type)


def extreme_pair(
    operator: type[exp.Min | exp.Max], is_counted: exp.Expr, values: Mapping[str, Typed]
) -> Typed:
    """Give the least or the greatest of pairs, as structs are ordered (``min_by``, ``max_by``).

    Args:
        operator: Which of them.
        is_counted: Which rows have a pair; only such as have a first value.
        values: The first value, and the other one, by their names in the struct.

    Raises:
        Declined: A value can be an error, or has no order.
    """
    ordering, value = values.values()
    # Spark computes the other value for some of the rows: which, depends on their order.
    if value.can_fail or (ordering.can_fail and pa.types.is_boolean(ordering.type)):
        raise Declined(why="a value that can be an error, beside an extreme")
    names = [exp.Literal.string(name) for name in values]
    first, other = (
        Typed(choice((is_counted.copy(), value.tree), default=None), value.type)
        for value in values.values()
    )
    if any(not is_plain(value.type) for value in (first, other)):
        raise Declined(why=f"a value beside one of {first.type}")
    is_greatest = operator is exp.Max
    # An order by one column twice ends DataFusion 54: the second key is opaque.
    again = Typed(opaque(other.tree.copy()), other.type)
    order = [
        exp.Ordered(
            this=enclosed(comparable(key)),
            desc=is_greatest,
            nulls_first=key is again and not is_greatest,
        )
        for key in (first, again)
    ]
    beside = call("first_value", exp.Order(this=other.tree.copy(), expressions=order))
    best = extreme(operator, first)
    pair = call("named_struct", names[0], best.tree, names[1], beside)
    kind = pa.struct([(name, value.type) for name, value in values.items()])
    return Typed(choice((is_null(best.tree.copy()), exp.Null()), default=pair), kind)


def _float(text: str, like: Typed) -> exp.Expr:
    return cast(exp.Literal.string(text), like.type)


def _occurs(tree: exp.Expr) -> exp.Expr:
    return binary(exp.GT, exp.Count(this=tree), integer(0, pa.int64()))


def bits(name: str, value: Typed) -> Typed:
    """Combine the bits of integers; of none that is NULL in both engines.

    Raises:
        Declined: No integers.
    """
    if not value.is_integer:
        raise Declined(why=f"{name} of {value.type}")
    return Typed(cast(call(name, value.tree), value.type), value.type)


def _sum(tree: exp.Expr, *, is_distinct: bool = False) -> exp.Expr:
    return exp.Sum(this=exp.Distinct(expressions=[tree]) if is_distinct else tree)
