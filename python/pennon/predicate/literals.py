"""Typed literals: Arrow scalars to SQL trees and back, and to text and back, without loss.

A literal is converted to a column's type only where the comparison keeps its meaning in Spark:
``to_scalar`` gives None for ``int = 5.5`` or ``string = 5`` instead of rounding or guessing.
Times without zone are UTC. NULL stays NULL in every type.
"""

from __future__ import annotations

import datetime as dt
import zoneinfo
from decimal import Decimal, InvalidOperation
from fractions import Fraction

import pyarrow as pa
from sqlglot import exp

from pennon.errors import InternalError

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MICROSECOND = dt.timedelta(microseconds=1)
_NANOS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
_UNIT_NAMES = {"s": "Second", "ms": "Millisecond", "us": "Microsecond", "ns": "Nanosecond"}
_INT64_MIN = -(2**63)
_DOUBLE_DIGITS = 15
_DOUBLE_INTEGERS = 2**53
_FLOAT_INTEGERS = 2**24

_ARROW_TYPES = {
    exp.DType.BOOLEAN: pa.bool_(),
    exp.DType.TINYINT: pa.int8(),
    exp.DType.SMALLINT: pa.int16(),
    exp.DType.INT: pa.int32(),
    exp.DType.BIGINT: pa.int64(),
    exp.DType.UTINYINT: pa.uint8(),
    exp.DType.USMALLINT: pa.uint16(),
    exp.DType.UINT: pa.uint32(),
    exp.DType.UBIGINT: pa.uint64(),
    exp.DType.FLOAT: pa.float32(),
    exp.DType.DOUBLE: pa.float64(),
    exp.DType.TEXT: pa.string(),
    exp.DType.VARCHAR: pa.string(),
    exp.DType.BINARY: pa.binary(),
    exp.DType.DATE: pa.date32(),
    exp.DType.TIMESTAMP: pa.timestamp("us"),
    exp.DType.TIMESTAMPNTZ: pa.timestamp("us"),
    exp.DType.TIMESTAMPTZ: pa.timestamp("us", "UTC"),
    exp.DType.TIMESTAMPLTZ: pa.timestamp("us", "UTC"),
}


def to_expression(scalar: pa.Scalar) -> exp.Expression:
    """Write an Arrow scalar as a typed literal of DataFusion.

    Example:
        >>> from pennon.predicate.dialect import DataFusion
        >>> to_expression(pa.scalar("it's")).sql(dialect=DataFusion)
        "'it''s'"
    """
    kind = scalar.type
    if pa.types.is_dictionary(kind):
        return to_expression(scalar.cast(kind.value_type))
    if not scalar.is_valid:
        return exp.Null()
    if pa.types.is_boolean(kind):
        return exp.Boolean(this=scalar.as_py())
    if pa.types.is_integer(kind):
        return _integer(scalar.as_py())
    if _is_text(kind):
        return exp.Literal.string(scalar.as_py())
    if _is_binary(kind):
        return exp.HexString(this=scalar.as_py().hex())
    if pa.types.is_floating(kind):
        is_double = pa.types.is_float64(kind)
        return _cast_text(repr(float(scalar.as_py())), "DOUBLE" if is_double else "FLOAT")
    if pa.types.is_decimal(kind):
        return _cast_text(f"{scalar.as_py():f}", f"DECIMAL({kind.precision}, {kind.scale})")
    return _time_expression(scalar)


def _integer(value: int) -> exp.Expression:
    if value == _INT64_MIN:  # Lance reads the digits before the sign
        return _cast_text(str(value), "BIGINT")
    digits = exp.Literal.number(abs(value))
    return exp.Neg(this=digits) if value < 0 else digits


def _cast_text(text: str, type_name: str) -> exp.Expression:
    return exp.Cast(this=exp.Literal.string(text), to=exp.DataType.build(type_name))


def _arrow_cast(value: exp.Expression, type_name: str) -> exp.Expression:
    return exp.Anonymous(this="arrow_cast", expressions=[value, exp.Literal.string(type_name)])


def _time_expression(scalar: pa.Scalar) -> exp.Expression:
    kind = scalar.type
    if pa.types.is_date(kind):
        days = scalar.cast(pa.date32()).value
        text = _date_text(days)
        return _arrow_cast(_integer(days), "Date32") if text is None else _cast_text(text, "DATE")
    if pa.types.is_time(kind):
        bits = 32 if pa.types.is_time32(kind) else 64
        name = f"Time{bits}({_UNIT_NAMES[kind.unit]})"
        return _arrow_cast(_integer(scalar.value), name)
    if not pa.types.is_timestamp(kind):
        raise InternalError(what=f"a literal of type {kind} has no SQL form")
    nanos = scalar.value * _NANOS[kind.unit]
    text = None if nanos % 1000 else _micros_text(nanos // 1000)
    if text is None:
        zone = 'Some("UTC")' if kind.tz else "None"
        return _arrow_cast(_integer(scalar.value), f"Timestamp({_UNIT_NAMES[kind.unit]}, {zone})")
    if kind.tz:
        return _cast_text(f"{text}+00:00", "TIMESTAMPTZ")
    return _cast_text(text, "TIMESTAMP")


def _date_text(days: int) -> str | None:
    try:
        return (_EPOCH + dt.timedelta(days=days)).date().isoformat()
    except OverflowError:
        return None


def _micros_text(micros: int) -> str | None:
    try:
        moment = _EPOCH + dt.timedelta(microseconds=micros)
    except OverflowError:
        return None
    return moment.replace(tzinfo=None).isoformat(sep=" ", timespec="microseconds")


def to_scalar(node: exp.Expression, type: pa.DataType) -> pa.Scalar | None:  # noqa: A002
    """Read a literal as a scalar of the column's type.

    Returns:
        The scalar; None when the node is no literal, or has no exact counterpart in ``type``.

    Example:
        >>> from sqlglot import parse_one
        >>> to_scalar(parse_one("5"), pa.int64())
        <pyarrow.Int64Scalar: 5>
        >>> to_scalar(parse_one("5.5"), pa.int64()) is None
        True
    """
    scalar = literal_value(node)
    return None if scalar is None else convert(scalar, type)


def literal_value(node: exp.Expression) -> pa.Scalar | None:
    """Read a literal as a scalar of its own type; None when the node is no literal."""
    match node:
        case exp.Paren():
            return literal_value(node.this)
        case exp.Null():
            return pa.scalar(None, pa.null())
        case exp.Boolean():
            return pa.scalar(bool(node.this))
        case exp.Literal() if node.is_string:
            return pa.scalar(node.name)
        case exp.RawString():
            return pa.scalar(node.name)
        case exp.Literal():
            return _number(node.name)
        case exp.HexString():
            return _hex(node.name)
        case exp.Neg():
            return _negated(node.this)
        case exp.Cast():
            inner = literal_value(node.this)
            target = arrow_type(node.to)
            return None if inner is None or target is None else convert(inner, target)
        case exp.Anonymous() if node.name.lower() == "arrow_cast":
            return _arrow_cast_value(node)
        case _:
            return None


def _hex(digits: str) -> pa.Scalar | None:
    try:
        return pa.scalar(bytes.fromhex(digits.zfill(len(digits) + len(digits) % 2)))
    except ValueError:
        return None


def _number(text: str) -> pa.Scalar | None:
    if "e" in text.lower():
        return pa.scalar(float(text))
    value = Decimal(text)
    if "." not in text:
        for kind in (pa.int32(), pa.int64(), pa.uint64()):
            scalar = _exact_integer(int(value), kind)
            if scalar is not None:
                return scalar
    _, digits, exponent = value.as_tuple()
    scale = max(-int(exponent), 0)
    precision = max(len(digits), scale, 1)
    return pa.scalar(value, pa.decimal128(precision, scale)) if precision <= 38 else None  # noqa: PLR2004


def _negated(node: exp.Expression) -> pa.Scalar | None:
    scalar = literal_value(node)
    if scalar is None or not scalar.is_valid:
        return scalar
    value = scalar.as_py()
    if isinstance(value, int) and not isinstance(value, bool):
        fits = _exact_integer(-value, scalar.type)
        return _exact_integer(-value, pa.int64()) if fits is None else fits
    return pa.scalar(-value, scalar.type) if isinstance(value, float | Decimal) else None


def _arrow_cast_value(node: exp.Anonymous) -> pa.Scalar | None:
    value, name = node.expressions
    inner = literal_value(value)
    kinds: dict[str, pa.DataType] = {"Date32": pa.date32()}
    for unit, title in _UNIT_NAMES.items():
        bits = 32 if unit in ("s", "ms") else 64
        kinds[f"Time{bits}({title})"] = pa.time32(unit) if bits == 32 else pa.time64(unit)  # noqa: PLR2004
        kinds[f"Timestamp({title}, None)"] = pa.timestamp(unit)
        kinds[f'Timestamp({title}, Some("UTC"))'] = pa.timestamp(unit, "UTC")
    kind = kinds.get(name.name)
    if inner is None or kind is None:
        return None
    if pa.types.is_integer(inner.type):
        storage = pa.int32() if kind.bit_width == 32 else pa.int64()  # noqa: PLR2004
        return inner.cast(storage).cast(kind)
    return convert(inner, kind)


def arrow_type(node: exp.DataType) -> pa.DataType | None:
    """Give the Arrow type that a SQL type stands for; None for one that has no literals here."""
    if node.this is not exp.DType.DECIMAL:
        return _ARROW_TYPES.get(node.this)
    sizes = [int(size.this.name) for size in node.expressions]
    precision, scale = (sizes + [10, 0][len(sizes) :])[:2]
    return pa.decimal128(precision, scale) if precision <= 38 else pa.decimal256(precision, scale)  # noqa: PLR2004


def convert(scalar: pa.Scalar, kind: pa.DataType) -> pa.Scalar | None:
    """Convert a scalar to another type; None where a comparison would change its meaning."""
    source = scalar.type
    if pa.types.is_dictionary(kind):
        return convert(scalar, kind.value_type)
    if not scalar.is_valid:
        return pa.scalar(None, kind)
    if source.equals(kind):
        return scalar
    if _is_text(source) and not _is_text(kind):
        return None if _is_binary(kind) else from_text(scalar.as_py().strip(), kind)
    if (_is_text(source) and _is_text(kind)) or (_is_binary(source) and _is_binary(kind)):
        return _of_size(scalar.as_py(), kind)
    if _is_number(source) and _is_number(kind):
        return _convert_number(scalar, kind)
    if _is_moment(source) and _is_moment(kind):
        return _of_nanos(_nanos(scalar), kind)
    if pa.types.is_time(source) and pa.types.is_time(kind):
        nanos = scalar.value * _NANOS[source.unit]
        return None if nanos % _NANOS[kind.unit] else _raw(nanos // _NANOS[kind.unit], kind)
    return None


def _of_size(value: str | bytes, kind: pa.DataType) -> pa.Scalar | None:
    if pa.types.is_fixed_size_binary(kind) and len(value) != kind.byte_width:
        return None
    return pa.scalar(value, kind)


def _is_text(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    )


def _is_binary(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
        or pa.types.is_binary_view(kind)
        or pa.types.is_fixed_size_binary(kind)
    )


def _is_number(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    )


def _is_moment(kind: pa.DataType) -> bool:
    return bool(pa.types.is_date(kind) or pa.types.is_timestamp(kind))


def _exact_integer(value: int, kind: pa.DataType) -> pa.Scalar | None:
    bits = kind.bit_width
    low, high = (-(1 << bits - 1), 1 << bits - 1)
    if pa.types.is_unsigned_integer(kind):
        low, high = 0, 1 << bits
    return pa.scalar(value, kind) if low <= value < high else None


def _convert_number(scalar: pa.Scalar, kind: pa.DataType) -> pa.Scalar | None:
    value = scalar.as_py()
    if isinstance(value, float) and value - value != 0:  # NaN and the infinities
        return pa.scalar(value, kind) if pa.types.is_floating(kind) else None
    number = Fraction(value)
    if pa.types.is_floating(kind):
        # Spark compares a double column as doubles, whatever the literal's type
        nearest = pa.scalar(float(value), kind)
        is_exact = Fraction(nearest.as_py()) == number
        takes_nearest = pa.types.is_float64(kind) and not pa.types.is_floating(scalar.type)
        return nearest if is_exact or takes_nearest else None
    if pa.types.is_floating(scalar.type) and not _is_within_precision(scalar, kind):
        return None
    if pa.types.is_integer(kind):
        return _exact_integer(int(number), kind) if number.denominator == 1 else None
    return _exact_decimal(number, kind)


def _is_within_precision(scalar: pa.Scalar, kind: pa.DataType) -> bool:
    """Whether no other value of ``kind`` equals the float once both are floats."""
    if pa.types.is_decimal(kind):
        return bool(kind.precision <= _DOUBLE_DIGITS)
    is_double = pa.types.is_float64(scalar.type)
    return bool(abs(scalar.as_py()) < (_DOUBLE_INTEGERS if is_double else _FLOAT_INTEGERS))


def _exact_decimal(number: Fraction, kind: pa.DataType) -> pa.Scalar | None:
    unscaled = number * Fraction(10) ** kind.scale
    if unscaled.denominator != 1 or abs(unscaled) >= 10**kind.precision:
        return None
    sign, digits = (1 if unscaled < 0 else 0), tuple(int(d) for d in str(abs(int(unscaled))))
    return pa.scalar(Decimal((sign, digits, -kind.scale)), kind)


def _nanos(scalar: pa.Scalar) -> int:
    if pa.types.is_date(scalar.type):
        return int(scalar.cast(pa.date32()).value) * 86_400 * 10**9
    return int(scalar.value) * _NANOS[scalar.type.unit]


def _of_nanos(nanos: int, kind: pa.DataType) -> pa.Scalar | None:
    is_date = pa.types.is_date(kind)
    count, rest = divmod(nanos, 86_400 * 10**9 if is_date else _NANOS[kind.unit])
    if pa.types.is_date64(kind):
        count *= 86_400_000
    return None if rest else _raw(count, kind)


def _raw(count: int, kind: pa.DataType) -> pa.Scalar | None:
    storage = _exact_integer(count, pa.int32() if kind.bit_width == 32 else pa.int64())  # noqa: PLR2004
    return None if storage is None else storage.cast(kind)


def to_text(scalar: pa.Scalar) -> str | None:
    """Write a scalar as text from which ``from_text`` gives the same scalar; None for NULL.

    Example:
        >>> to_text(pa.scalar(b"ab"))
        '6162'
    """
    kind = scalar.type
    if not scalar.is_valid:
        return None
    if pa.types.is_dictionary(kind):
        return to_text(scalar.cast(kind.value_type))
    value = scalar.as_py() if not _is_moment(kind) and not pa.types.is_time(kind) else None
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
    text = scalar.cast(pa.date32()) if pa.types.is_date(scalar.type) else scalar
    return str(text.cast(pa.string()).as_py()).replace(" ", "T")


def from_text(text: str | None, type: pa.DataType) -> pa.Scalar | None:  # noqa: A002
    """Read a scalar from text; None when the text is none of that type.

    Args:
        text: What ``to_text`` wrote, or what Spark casts to the type; None is NULL.
        type: The type of the scalar.
    """
    if text is None:
        return pa.scalar(None, type)
    if _is_text(type):
        return pa.scalar(text, type)
    try:
        return _read_text(text, type)
    except (ValueError, InvalidOperation, OverflowError, pa.ArrowInvalid):
        return None


def _read_text(text: str, kind: pa.DataType) -> pa.Scalar | None:
    if pa.types.is_boolean(kind):
        known = {"true": True, "false": False}
        return pa.scalar(known[text.lower()]) if text.lower() in known else None
    if _is_binary(kind):
        return _of_size(bytes.fromhex(text), kind)
    if pa.types.is_integer(kind):
        return _exact_integer(int(text), kind)
    if pa.types.is_floating(kind):
        return pa.scalar(float(text), kind)
    if pa.types.is_decimal(kind):
        return _exact_decimal(Fraction(Decimal(text)), kind)
    if pa.types.is_time(kind):
        return pa.scalar(text).cast(kind)
    return _read_moment(text, kind) if _is_moment(kind) else None


def _read_moment(text: str, kind: pa.DataType) -> pa.Scalar | None:
    zone = kind.tz if pa.types.is_timestamp(kind) else None
    try:
        return pa.scalar(text).cast(kind)
    except pa.ArrowInvalid:
        micros = _read_micros(text, is_zoned=zone is not None)
    return None if micros is None else _of_nanos(micros * 1000, kind)


def _read_micros(text: str, *, is_zoned: bool) -> int | None:
    stamp, _, region = text.partition(" ") if text.count(":") == 0 else (text, "", "")
    moment = dt.datetime.fromisoformat(stamp) if not region else None
    if moment is None:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=dt.UTC)
    elif not is_zoned:
        return None
    return (moment - _EPOCH) // _MICROSECOND


_ = zoneinfo
