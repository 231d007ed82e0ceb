"""Converts scalars to other types and to text without loss.

A value is converted only where a comparison with a column of the other type keeps its meaning in
Spark: ``5.5`` is no integer and ``5`` no string. Times without zone are UTC. NULL stays NULL.
"""

from __future__ import annotations

import datetime as dt
from decimal import Decimal, InvalidOperation
from fractions import Fraction

import pyarrow as pa

from pennon.predicate.values.time_units import (
    EPOCH,
    MILLIS_PER_DAY,
    NANOS_PER_DAY,
    NANOS_PER_UNIT,
    SECONDS_PER_HOUR,
    is_binary,
    is_moment,
    is_number,
    is_text,
    of_stored_integer,
    stored_integer,
)

_READABLE_NANOS = 1900 * 365 * NANOS_PER_DAY  # years before and after 1970 that have four digits
_COUNT = "@"  # before the stored number of a moment that has no readable text
_MICROSECOND = dt.timedelta(microseconds=1)
_DOUBLE_DIGITS = 15
DOUBLE_INTEGERS = 2**53
FLOAT_INTEGERS = 2**24


def convert(scalar: pa.Scalar, data_type: pa.DataType) -> pa.Scalar | None:
    """Convert a scalar to another type; None where a comparison would change its meaning."""
    source = scalar.type
    if pa.types.is_dictionary(data_type):
        return convert(scalar, data_type.value_type)
    if not scalar.is_valid:
        return pa.scalar(None, data_type)
    if source.equals(data_type):
        return scalar
    if is_text(source) and not is_text(data_type):
        return None if is_binary(data_type) else from_text(scalar.as_py().strip(), data_type)
    if (is_text(source) and is_text(data_type)) or (is_binary(source) and is_binary(data_type)):
        return _of_size(scalar.as_py(), data_type)
    if is_number(source) and is_number(data_type):
        return _convert_number(scalar, data_type)
    if is_moment(source) and is_moment(data_type):
        return _of_nanos(_nanos(scalar), data_type)
    if pa.types.is_time(source) and pa.types.is_time(data_type):
        nanos = scalar.value * NANOS_PER_UNIT[source.unit]
        return (
            None
            if nanos % NANOS_PER_UNIT[data_type.unit]
            else of_stored_integer(nanos // NANOS_PER_UNIT[data_type.unit], data_type)
        )
    return None


def _of_size(value: str | bytes, data_type: pa.DataType) -> pa.Scalar | None:
    if pa.types.is_fixed_size_binary(data_type) and len(value) != data_type.byte_width:
        return None
    return pa.scalar(value, data_type)


def _convert_number(scalar: pa.Scalar, data_type: pa.DataType) -> pa.Scalar | None:
    value = scalar.as_py()
    if isinstance(value, float) and value - value != 0:  # NaN and the infinities
        return pa.scalar(value, data_type) if pa.types.is_floating(data_type) else None
    number = Fraction(value)
    if pa.types.is_floating(data_type):
        # Spark compares a double column as doubles, whatever the literal's type
        nearest = pa.scalar(float(value), data_type)
        is_exact = Fraction(nearest.as_py()) == number
        takes_nearest = pa.types.is_float64(data_type) and not pa.types.is_floating(scalar.type)
        return nearest if is_exact or takes_nearest else None
    if pa.types.is_floating(scalar.type) and not _is_within_precision(scalar, data_type):
        return None
    if pa.types.is_integer(data_type):
        return of_stored_integer(int(number), data_type) if number.denominator == 1 else None
    return _exact_decimal(number, data_type)


def _is_within_precision(scalar: pa.Scalar, data_type: pa.DataType) -> bool:
    """Whether no other value of the type equals the float once both are floats."""
    if pa.types.is_decimal(data_type):
        return bool(data_type.precision <= _DOUBLE_DIGITS)
    is_double = pa.types.is_float64(scalar.type)
    return bool(abs(scalar.as_py()) < (DOUBLE_INTEGERS if is_double else FLOAT_INTEGERS))


def _exact_decimal(number: Fraction, data_type: pa.DataType) -> pa.Scalar | None:
    unscaled = number * Fraction(10) ** data_type.scale
    if unscaled.denominator != 1 or abs(unscaled) >= 10**data_type.precision:
        return None
    sign, digits = (1 if unscaled < 0 else 0), tuple(int(d) for d in str(abs(int(unscaled))))
    return pa.scalar(Decimal((sign, digits, -data_type.scale)), data_type)


def _nanos(scalar: pa.Scalar) -> int:
    if pa.types.is_date(scalar.type):
        return int(scalar.cast(pa.date32()).value) * NANOS_PER_DAY
    return int(scalar.value) * NANOS_PER_UNIT[scalar.type.unit]


def _of_nanos(nanos: int, data_type: pa.DataType) -> pa.Scalar | None:
    is_date = pa.types.is_date(data_type)
    count, rest = divmod(nanos, NANOS_PER_DAY if is_date else NANOS_PER_UNIT[data_type.unit])
    if pa.types.is_date64(data_type):
        count *= MILLIS_PER_DAY
    return None if rest else of_stored_integer(count, data_type)


def to_text(scalar: pa.Scalar) -> str | None:
    """Write a scalar as text from which ``from_text`` gives the same scalar; None for NULL.

    Example:
        >>> to_text(pa.scalar(b"ab"))
        '6162'
    """
    data_type = scalar.type
    if not scalar.is_valid:
        return None
    if pa.types.is_dictionary(data_type):
        return to_text(scalar.cast(data_type.value_type))
    value = scalar.as_py() if not is_moment(data_type) and not pa.types.is_time(data_type) else None
    match value:
        case bool():
            return "true" if value else "false"
        case bytes():
            return value.hex()
        case float():
            return repr(value)
        case Decimal():
            return f"{value:f}"
        case None:
            return _time_text(scalar)
        case _:
            return str(value)


def _time_text(scalar: pa.Scalar) -> str:
    data_type = scalar.type
    if is_moment(data_type) and abs(_nanos(scalar)) >= _READABLE_NANOS:
        return f"{_COUNT}{stored_integer(scalar)}"
    readable = scalar.cast(pa.date32()) if pa.types.is_date(data_type) else scalar
    return str(readable.cast(pa.string()).as_py()).replace(" ", "T")


def from_text(text: str | None, type: pa.DataType) -> pa.Scalar | None:  # noqa: A002
    """Read a scalar from text; None when the text is none of that type.

    Args:
        text: What ``to_text`` wrote, or what Spark casts to the type; None is NULL.
        type: The type of the scalar.
    """
    if text is None:
        return pa.scalar(None, type)
    if is_text(type):
        return pa.scalar(text, type)
    try:
        return _read_text(text, type)
    except (ValueError, InvalidOperation, OverflowError, pa.ArrowInvalid):
        return None


def _read_text(text: str, data_type: pa.DataType) -> pa.Scalar | None:
    if pa.types.is_boolean(data_type):
        known = {"true": True, "false": False}
        return pa.scalar(known[text.lower()]) if text.lower() in known else None
    if is_number(data_type) and "_" in text:  # Python's digit groups are none of Spark's
        return None
    if is_binary(data_type):
        return _of_size(bytes.fromhex(text), data_type)
    if pa.types.is_integer(data_type):
        return of_stored_integer(int(text), data_type)
    if pa.types.is_floating(data_type):
        return pa.scalar(float(text), data_type)
    if pa.types.is_decimal(data_type):
        return _exact_decimal(Fraction(Decimal(text)), data_type)
    if pa.types.is_time(data_type):
        return _read_time(text, data_type)
    return _read_moment(text, data_type) if is_moment(data_type) else None


def _read_time(text: str, data_type: pa.DataType) -> pa.Scalar | None:
    whole, _, fraction = text.partition(".")
    moment = dt.time.fromisoformat(whole)
    seconds = moment.hour * SECONDS_PER_HOUR + moment.minute * 60 + moment.second
    nanos = seconds * 10**9 + int(fraction[:9].ljust(9, "0"))
    count, rest = divmod(nanos, NANOS_PER_UNIT[data_type.unit])
    return None if rest else of_stored_integer(count, data_type)


def _read_moment(text: str, data_type: pa.DataType) -> pa.Scalar | None:
    if text.startswith(_COUNT):
        return of_stored_integer(int(text.removeprefix(_COUNT)), data_type)
    zone = data_type.tz if pa.types.is_timestamp(data_type) else None
    try:
        return pa.scalar(text).cast(data_type)
    except pa.ArrowInvalid:
        micros = _read_micros(text, is_zoned=zone is not None)
    return None if micros is None else _of_nanos(micros * 1000, data_type)


def _read_micros(text: str, *, is_zoned: bool) -> int | None:
    moment = dt.datetime.fromisoformat(text)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=dt.UTC)
    elif not is_zoned:
        return None
    return (moment - EPOCH) // _MICROSECOND
