"""Casts that are exactly Spark's; DataFusion and Spark parse texts differently.

NULL rules: NULL stays NULL.

| cast | Spark | guard |
|---|---|---|
| integer to a wider one, to decimal, to float | exact, or the nearest | none |
| integer to a narrower one | an error outside (ANSI), or its last bits | a sign from these |
| decimal to integer | cut; an error outside (ANSI) | without ANSI only where it fits |
| decimal to decimal | half up; an error outside (ANSI), or NULL | ``TRY_CAST`` |
| a cast that loses digits, or fails, compared with a literal | cast first | a function around it |
| decimal to DOUBLE | the nearest | by its text beyond 15 digits, where DataFusion's is not |
| integer, boolean, decimal to text | all digits of the scale | without ANSI small scales only |
| text to integer, DOUBLE, boolean, date | trimmed; an error, or NULL, for none | ``parsed_texts`` |
| date to text | year, month, day; a sign before more than four digits | none |
| timestamp to text | in the session's zone, no zeros at the end | ``times`` |
| date and timestamps among each other | in the session's zone | ``times``; days of these |
| FLOAT to DOUBLE and back | the same, or the nearest | none |
| DOUBLE to INT, BIGINT | cut; an error outside (ANSI), or the end | ``floats`` |
| DOUBLE to decimal | its text half up; NaN is NULL | up to 14 digits, by the DOUBLE at the half |
| boolean to number | 0 and 1 | none |
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa
from sqlglot import exp

from pennon.predicate.condition import Declined
from pennon.predicate.expressions import floats, parsed_texts, times
from pennon.predicate.expressions.floats import decimal_of_double, double_of_decimal
from pennon.predicate.typed import (
    INTEGER_DIGITS,
    NTZ,
    ZONED,
    Typed,
    binary,
    cast,
    integer,
    lossy_cast,
)

if TYPE_CHECKING:
    from pennon.predicate.condition import Semantics

_DOUBLE_DIGITS: Final = 15
_PLAIN_FRACTION: Final = 6
_TIMES: Final = (pa.date32(), NTZ, ZONED)


def converted(value: Typed, target: pa.DataType, semantics: Semantics) -> Typed:
    """Cast as Spark does.

    Raises:
        Declined: The cast is not one of the table's.
    """
    if value.type == target:
        return value
    if pa.types.is_string(value.type) and pa.types.is_signed_integer(target):
        if not semantics.ansi:  # which cuts a fraction
            raise Declined(why=f"a cast of {value.type} to {target}")
        return parsed_texts.integer_of_text(value, target, is_tried=False)
    if pa.types.is_string(value.type) and target == pa.float64():
        return parsed_texts.double_of_text(value, semantics, is_tried=not semantics.ansi)
    if pa.types.is_string(value.type) and pa.types.is_date(target):
        return parsed_texts.date_of_text(value, is_tried=not semantics.ansi)
    if pa.types.is_string(value.type) and pa.types.is_boolean(target):
        return parsed_texts.boolean_of_text(value, is_tried=not semantics.ansi)
    if value.type == pa.float64() and target in (pa.int32(), pa.int64()):
        return floats.cut_number(value, target, semantics)
    if pa.types.is_boolean(target) and (value.is_integer or value.is_decimal):
        zero = cast(exp.Literal.string("0"), value.type)
        return Typed(exp.paren(binary(exp.NEQ, value.tree, zero), copy=False), target)
    can_fail = _failure(value, target, semantics)
    if can_fail is None and not semantics.ansi:
        return _without_error(value, target)
    if can_fail is None:
        raise Declined(why=f"a cast of {value.type} to {target}")
    if value.type == ZONED:
        value = times.clock(value, semantics)
        return converted(value, target, semantics)
    if value.type in _TIMES and pa.types.is_string(target):
        is_date = pa.types.is_date(value.type)
        tree = lossy_cast(value.tree, target) if is_date else times.timestamp_text(value)
        return Typed(tree, target)
    if value.type in _TIMES and pa.types.is_date(target):
        return Typed(times.day_of(value), target)
    if value.type in _TIMES and target == ZONED:
        return times.moment(value, semantics)
    if value.is_decimal and target == pa.float64() and value.type.precision > _DOUBLE_DIGITS:
        return double_of_decimal(value)
    if pa.types.is_floating(value.type) and pa.types.is_decimal(target):
        return decimal_of_double(value, target)
    write = lossy_cast if can_fail or _is_lossy(value, target) else cast
    return Typed(write(value.tree, target), target, can_fail=can_fail)


def _without_error(value: Typed, target: pa.DataType) -> Typed:
    """Cast a number without ANSI: an integer keeps its last bits, a decimal that is none is NULL.

    Raises:
        Declined: Neither is asked for.
    """
    if pa.types.is_decimal(target) and (value.is_integer or value.is_decimal):
        return Typed(lossy_cast(value.tree, target, is_tried=True), target)
    if not (pa.types.is_signed_integer(target) and value.is_integer):
        raise Declined(why=f"a cast of {value.type} to {target}")
    sign = integer(1 << target.bit_width - 1, value.type)
    last = binary(exp.BitwiseAnd, value.tree, integer((1 << target.bit_width) - 1, value.type))
    signed = binary(exp.Sub, binary(exp.BitwiseXor, last, sign), sign.copy())
    return Typed(cast(cast(exp.paren(signed), value.type), target), target)


def tried(value: Typed, target: pa.DataType, semantics: Semantics) -> Typed:
    """Cast a text or a number, or give NULL where it is no value of the type (``try_cast``).

    Raises:
        Declined: Neither; or no type that they are cast to here.
    """
    if pa.types.is_string(value.type) and pa.types.is_signed_integer(target):
        return parsed_texts.integer_of_text(value, target, is_tried=True)
    if pa.types.is_string(value.type) and target == pa.float64():
        return parsed_texts.double_of_text(value, semantics, is_tried=True)
    if pa.types.is_string(value.type) and pa.types.is_date(target):
        return parsed_texts.date_of_text(value, is_tried=True)
    if pa.types.is_string(value.type) and pa.types.is_boolean(target):
        return parsed_texts.boolean_of_text(value, is_tried=True)
    is_number = pa.types.is_signed_integer(target) or pa.types.is_decimal(target)
    if is_number and (value.is_integer or value.is_decimal):
        return Typed(lossy_cast(value.tree, target, is_tried=True), target)
    raise Declined(why=f"try_cast of {value.type} to {target}")


def _is_lossy(value: Typed, target: pa.DataType) -> bool:
    if value.is_float:
        return bool(target == pa.float32())
    if not value.is_decimal or pa.types.is_string(target):
        return False
    return not pa.types.is_decimal(target) or target.scale < value.type.scale


def _failure(value: Typed, target: pa.DataType, semantics: Semantics) -> bool | None:
    """Say whether a cast can be an error; None where it is not known to be Spark's."""
    source = value.type
    if value.is_null:
        return False
    if pa.types.is_string(target):
        return _text_failure(value, semantics)
    if value.is_integer:
        return _integer_failure(source, target, semantics)
    if value.is_decimal:
        return _decimal_failure(source, target, semantics)
    if pa.types.is_floating(source) and pa.types.is_floating(target):
        return False
    if source == pa.float64() and pa.types.is_decimal(target):
        return True if semantics.ansi and target.precision < _DOUBLE_DIGITS else None
    if pa.types.is_boolean(source):
        is_number = pa.types.is_signed_integer(target) or target == pa.float64()
        return False if is_number else None
    return _time_failure(source, target, semantics)


def _text_failure(value: Typed, semantics: Semantics) -> bool | None:
    if value.is_integer or pa.types.is_boolean(value.type) or pa.types.is_date(value.type):
        return False
    if value.is_decimal and (semantics.ansi or value.type.scale <= _PLAIN_FRACTION):
        return False
    is_clock = value.type == NTZ or (value.type == ZONED and times.knows_zone(semantics))
    return False if is_clock else None


def _integer_failure(source: pa.DataType, target: pa.DataType, semantics: Semantics) -> bool | None:
    if pa.types.is_signed_integer(target):
        if target.bit_width >= source.bit_width:
            return False
        return True if semantics.ansi else None
    if pa.types.is_decimal(target):
        if target.precision - target.scale >= INTEGER_DIGITS[source.bit_width]:
            return False
        return True if semantics.ansi else None
    return False if pa.types.is_floating(target) else None


def _decimal_failure(source: pa.DataType, target: pa.DataType, semantics: Semantics) -> bool | None:
    if pa.types.is_decimal(target):
        whole = source.precision - source.scale
        kept = target.precision - target.scale
        if kept > whole or (kept == whole and target.scale >= source.scale):
            return False
        return True if semantics.ansi else None
    if pa.types.is_signed_integer(target):
        fits = source.precision - source.scale < INTEGER_DIGITS[target.bit_width]
        return False if fits else True if semantics.ansi else None
    return False if target == pa.float64() else None


def _time_failure(source: pa.DataType, target: pa.DataType, semantics: Semantics) -> bool | None:
    if source not in _TIMES or target not in _TIMES:
        return None
    needs_zone = ZONED in (source, target)
    return False if times.knows_zone(semantics) or not needs_zone else None
