"""Aggregates that are exactly Spark's.

NULL rules: NULLs are left out, and so is a pair in which one is; what is made of nothing is NULL.

| DataFusion | Spark | guard |
|---|---|---|
| sums of 64-bit integers wrap | an error (ANSI) | sum as DECIMAL(38, 0), cast back |
| sums of decimals wrap beyond 38 digits | an error (ANSI), or NULL | sum in 76 digits |
| a group's extreme of floats starts at the greatest finite one | at nothing | infinities apart |
| any NaN, by ``<``, leaves it as it is | NaN is the greatest | counted apart |
| the variance of one value is 0 | NaN of what is not finite | the difference of two averages |
| the correlation of one value is one | NULL | made of covariance and variances |
| a percentile has the type of its values | a DOUBLE, interpolated | values are sorted, two read |
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa
from sqlglot import exp

from pennon.predicate.condition import Declined
from pennon.predicate.expressions.casts import converted
from pennon.predicate.expressions.floats import comparable
from pennon.predicate.expressions.number_functions import quotient
from pennon.predicate.typed import (
    MAX_DIGITS,
    WIDE_DIGITS,
    Typed,
    binary,
    call,
    cast,
    choice,
    decimal_type,
    double,
    enclosed,
    integer,
    is_null,
    is_plain,
    lossy_cast,
    opaque,
)
from pennon.predicate.values.literals import literal_value
from pennon.starting_jvm import starting_jvm

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pennon.predicate.condition import Semantics

MOMENTS: Final = frozenset({"var_samp", "var_pop", "stddev_samp", "stddev_pop"})
CO_MOMENTS: Final = frozenset({"corr", "covar_samp", "covar_pop"})
PERCENTILES: Final = frozenset({"percentile", "percentile_reversed"})
OF_WHOLE_GROUPS: Final = MOMENTS | CO_MOMENTS | PERCENTILES
"""What is not put together of the parts of a group: the whole group has to be in one place."""

# Spark 4.3 interpolates in another order, which shows in the last digit.
_BEFORE_4_3: Final = ("4.1.", "4.2.")
_DOUBLE: Final = pa.float64()
_WHOLE: Final = pa.int64()


def moment(name: str, value: Typed) -> Typed:
    """Give a variance or standard deviation, of which the last digits depend on the order.

    Both engines keep a running mean and the squares around it; both give NULL for too few values.

    Args:
        name: ``var_samp``, ``var_pop``, ``stddev_samp`` or ``stddev_pop``.
        value: Of what; Spark has cast it to DOUBLE.

    Raises:
        Declined: No DOUBLE.
    """
    if value.type != _DOUBLE:
        raise Declined(why=f"a {name} of {value.type}")
    tree = call(name, value.tree)
    if name in ("var_pop", "stddev_pop"):
        # Without keys DataFusion says 0 of one value, whatever it is; of NaN or infinity it is NaN.
        # Sums and counts would clash with others of the same column: its names leave casts out.
        is_alone = is_null(call("var_samp", value.tree.copy()))
        zero = binary(exp.Sub, call("avg", value.tree.copy()), call("avg", value.tree.copy()))
        tree = choice((is_alone, zero), default=tree)
    return Typed(tree, _DOUBLE)


def co_moment(name: str, values: tuple[Typed, Typed], semantics: Semantics) -> Typed:
    """Give a covariance or correlation, of which the last digits depend on the order.

    Args:
        name: ``covar_samp``, ``covar_pop`` or ``corr``.
        values: Of which two; Spark has cast them to DOUBLE.
        semantics: The session's.

    Raises:
        Declined: No DOUBLEs, or a Spark before 4.3, to which a correlation with a constant may be
            an error.
    """
    if any(value.type != _DOUBLE for value in values):
        raise Declined(why=f"a {name} of {values[0].type} and {values[1].type}")
    one, other = values
    pair = _beside(one, other), _beside(other, one)
    match name:
        case "covar_samp":
            return Typed(call(name, *pair), _DOUBLE)
        case "covar_pop":
            # As the variance of one value, and for the same reason.
            is_alone = is_null(call("covar_samp", *_copies(pair)))
            means = [call("avg", tree) for tree in _copies(pair)]
            zeros = [exp.paren(binary(exp.Sub, mean, mean.copy())) for mean in means]
            single = binary(exp.Mul, *zeros)
            return Typed(choice((is_alone, single), default=call(name, *pair)), _DOUBLE)
    if starting_jvm().spark.startswith(_BEFORE_4_3):
        raise Declined(why="corr in Spark 4.1 and 4.2")
    return _correlation(pair, semantics)


def _correlation(pair: tuple[exp.Expr, exp.Expr], semantics: Semantics) -> Typed:
    """Divide the sum of products by the root of the sums of squares; NULL where one is zero."""
    count = exp.Count(this=pair[0].copy())
    size = cast(count.copy(), _DOUBLE)
    squares = [binary(exp.Mul, call("var_pop", tree), size.copy()) for tree in _copies(pair)]
    products = binary(exp.Mul, call("covar_pop", *_copies(pair)), size.copy())
    root = call("sqrt", binary(exp.Mul, *map(exp.paren, squares)))
    correlation = quotient(Typed(exp.paren(products), _DOUBLE), Typed(root, _DOUBLE), semantics)
    one, other = map(_is_constant, pair)
    tree = choice(
        (binary(exp.LT, count, integer(2, _WHOLE)), exp.Null()),
        (exp.Or(this=one, expression=other), exp.Null()),
        default=correlation.tree,
    )
    return Typed(tree, _DOUBLE, can_fail=correlation.can_fail)


def _is_constant(tree: exp.Expr) -> exp.Expr:
    """Test for squares of zero: of a constant, several threads find some that are nearly so."""
    width = binary(exp.Sub, exp.Max(this=tree.copy()), exp.Min(this=tree.copy()))
    is_number = exp.Not(this=call("isnan", call("var_pop", tree.copy())))
    return exp.paren(exp.And(this=binary(exp.EQ, width, double(0)), expression=is_number))


def _beside(value: Typed, other: Typed) -> exp.Expr:
    return choice((is_null(other.tree.copy()), exp.Null()), default=value.tree.copy())


def _copies(trees: tuple[exp.Expr, exp.Expr]) -> list[exp.Expr]:
    return [tree.copy() for tree in trees]


def percentile(
    value: Typed, share: Typed, semantics: Semantics, *, is_reversed: bool = False
) -> Typed:
    """Give the value below which a share of the others lies, between two of them in proportion.

    Args:
        value: Of what. Of both zeros either one may come out, as in Spark.
        share: A literal from 0 to 1.
        semantics: The session's.
        is_reversed: Whether the greatest value comes first.

    Raises:
        Declined: No numbers; or the share is computed, or several.
    """
    literal = literal_value(share.tree)
    if literal is None or not literal.is_valid or share.type != _DOUBLE:
        raise Declined(why="a percentile of a computed share")
    if not (value.is_integer or value.is_decimal or value.is_float):
        raise Declined(why=f"a percentile of {value.type}")
    ordered = _ordered(value, is_reversed=is_reversed)
    count = cast(call("array_length", ordered.copy()), _DOUBLE)
    last = exp.paren(binary(exp.Sub, count, double(1)))
    place = exp.paren(binary(exp.Mul, last, double(float(literal.as_py()))))
    lower, higher = (call(name, place.copy()) for name in ("floor", "ceil"))
    below, above = (_element(ordered, at, value.type) for at in (lower, higher))
    is_one = exp.Or(
        this=binary(exp.EQ, higher.copy(), lower.copy()),
        expression=binary(exp.EQ, comparable(below), comparable(above)),
    )
    numbers = [converted(element, _DOUBLE, semantics).tree for element in (below, above)]
    behind = exp.paren(binary(exp.Sub, place, lower))
    if starting_jvm().spark.startswith(_BEFORE_4_3):
        before = exp.paren(binary(exp.Sub, higher, place.copy()))
        terms = (
            binary(exp.Mul, before, numbers[0]),
            binary(exp.Mul, behind, numbers[1]),
        )
    else:
        width = exp.paren(binary(exp.Sub, numbers[1], numbers[0]))
        terms = (numbers[0], binary(exp.Mul, behind, width))
    chosen = choice((is_one, numbers[0].copy()), default=binary(exp.Add, *terms))
    return Typed(chosen, _DOUBLE)


def _ordered(value: Typed, *, is_reversed: bool) -> exp.Expr:
    """Sort the values of a group; NULL where there is none."""
    tree = value.tree.copy()
    if value.is_float:
        # A NaN with a sign would be less than everything.
        nan = cast(exp.Literal.string("NaN"), value.type)
        tree = choice((call("isnan", tree.copy()), nan), default=tree)
    is_known = exp.Where(this=exp.Not(this=exp.paren(is_null(value.tree.copy()))))
    known = exp.Filter(this=call("array_agg", tree), expression=is_known)
    direction = exp.Literal.string("DESC" if is_reversed else "ASC")
    return call("array_sort", known, direction, exp.Literal.string("NULLS LAST"))


def _element(ordered: exp.Expr, place: exp.Expr, kind: pa.DataType) -> Typed:
    number = binary(exp.Add, cast(place.copy(), _WHOLE), integer(1, _WHOLE))
    return Typed(cast(call("array_element", ordered.copy(), number), kind), kind)


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
