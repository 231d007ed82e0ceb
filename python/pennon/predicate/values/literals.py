"""Typed literals: Arrow scalars to SQL trees and back, and to text and back, without loss.

``literal_value`` reads a literal as a scalar of its own type; ``conversion`` then decides whether
it can be compared as one of a column's type. Times without a zone are UTC. NULL stays NULL in every
type.
"""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar, Final

import pyarrow as pa
from sqlglot import exp

from pennon.errors import InternalError
from pennon.predicate.values.conversion import convert, from_text, to_text
from pennon.predicate.values.time_units import (
    EPOCH,
    MICROS_PER_DAY,
    MICROS_PER_HOUR,
    MICROS_PER_MINUTE,
    MICROS_PER_SECOND,
    NANOS_PER_UNIT,
    UNIT_NAMES,
    is_binary,
    is_text,
    of_stored_integer,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

__all__ = [
    "LiteralList",
    "arrow_type",
    "from_text",
    "literal_value",
    "to_expression",
    "to_text",
    "whole_interval",
]


# The list of an IN as one node of the tree, however many values it has.
#
# A tree is copied and walked dozens of times on its way from a predicate to a query; a list of
# 10,000 literals took 3 s of that. Its text is written once, and copies share it.


class Literals:
    """Values of one type, none of them NULL, and their text once it was asked for.

    Args:
        scalars: The values.
    """

    __slots__ = ("_hash", "_text", "scalars")

    def __init__(self, scalars: Sequence[pa.Scalar]) -> None:
        self.scalars = tuple(scalars)
        self._hash: int | None = None
        self._text: str | None = None

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash(self.scalars)
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Literals) and self.scalars == other.scalars

    def text(self, write: Callable[[pa.Scalar], str]) -> str:
        """Give the values beside each other.

        Args:
            write: Writes one of them; there is one dialect that lists are written in.
        """
        if self._text is None:
            self._text = ", ".join(map(write, self.scalars))
        return self._text


class LiteralList(exp.Expression):
    """The right side of an IN: ``exp.In(this=column, field=LiteralList.of(values))``."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True}

    @classmethod
    def of(cls, scalars: Sequence[pa.Scalar]) -> LiteralList:
        """Make a list of values that are not NULL."""
        return cls(this=Literals(scalars))

    @property
    def literals(self) -> Literals:
        """The values."""
        literals: Literals = self.args["this"]
        return literals


_INT64_MIN = -(2**63)

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
    data_type = scalar.type
    if pa.types.is_dictionary(data_type):
        return to_expression(scalar.cast(data_type.value_type))
    if not scalar.is_valid:
        return exp.Null()
    if pa.types.is_boolean(data_type):
        return exp.Boolean(this=scalar.as_py())
    if pa.types.is_integer(data_type):
        return _integer(scalar.as_py())
    if is_text(data_type):
        return exp.Literal.string(scalar.as_py())
    if is_binary(data_type):
        return exp.HexString(this=scalar.as_py().hex())
    if pa.types.is_floating(data_type):
        is_double = pa.types.is_float64(data_type)
        return _cast_text(repr(float(scalar.as_py())), "DOUBLE" if is_double else "FLOAT")
    if pa.types.is_decimal(data_type):
        return _cast_text(
            f"{scalar.as_py():f}", f"DECIMAL({data_type.precision}, {data_type.scale})"
        )
    return _time_expression(scalar)


def _integer(value: int) -> exp.Expression:
    if value == _INT64_MIN:  # Lance reads the digits before the sign
        return _cast_text(str(value), "BIGINT")
    digits = exp.Literal.number(abs(value))
    return exp.Neg(this=digits) if value < 0 else digits


def _cast_text(text: str, type_name: str) -> exp.Expression:
    return exp.Cast(this=exp.Literal.string(text), to=type_named(type_name))


def type_named(name: str) -> exp.DataType:
    """Read the name of a type.

    Example:
        >>> type_named("DECIMAL(12, 2)").sql()
        'DECIMAL(12, 2)'
    """
    return _read_type(name).copy()


@lru_cache(maxsize=256)
def _read_type(name: str) -> exp.DataType:
    # Costs as much as reading a condition.
    return exp.DataType.build(name)


def _arrow_cast(value: exp.Expression, type_name: str) -> exp.Expression:
    return exp.Anonymous(this="arrow_cast", expressions=[value, exp.Literal.string(type_name)])


def _time_expression(scalar: pa.Scalar) -> exp.Expression:
    data_type = scalar.type
    if pa.types.is_date(data_type):
        days = scalar.cast(pa.date32()).value
        text = _date_text(days)
        return _arrow_cast(_integer(days), "Date32") if text is None else _cast_text(text, "DATE")
    if pa.types.is_time(data_type):
        bits = 32 if pa.types.is_time32(data_type) else 64
        name = f"Time{bits}({UNIT_NAMES[data_type.unit]})"
        return _arrow_cast(_integer(scalar.value), name)
    if not pa.types.is_timestamp(data_type):
        raise InternalError(what=f"a literal of type {data_type} has no SQL form")
    nanos = scalar.value * NANOS_PER_UNIT[data_type.unit]
    text = None if nanos % 1000 else _micros_text(nanos // 1000)
    if text is None:
        zone = 'Some("UTC")' if data_type.tz else "None"
        return _arrow_cast(
            _integer(scalar.value), f"Timestamp({UNIT_NAMES[data_type.unit]}, {zone})"
        )
    if data_type.tz:
        return _cast_text(f"{text}+00:00", "TIMESTAMPTZ")
    return _cast_text(text, "TIMESTAMP")


def _date_text(days: int) -> str | None:
    try:
        return (EPOCH + dt.timedelta(days=days)).date().isoformat()
    except OverflowError:
        return None


def _micros_text(micros: int) -> str | None:
    try:
        moment = EPOCH + dt.timedelta(microseconds=micros)
    except OverflowError:
        return None
    return moment.replace(tzinfo=None).isoformat(sep=" ", timespec="microseconds")


def literal_value(node: exp.Expr) -> pa.Scalar | None:
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
            scalar = of_stored_integer(int(value), kind)
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
        fits = of_stored_integer(-value, scalar.type)
        return of_stored_integer(-value, pa.int64()) if fits is None else fits
    if isinstance(value, Decimal):
        return pa.scalar(value.copy_negate(), scalar.type)  # the operator rounds to 28 digits
    return pa.scalar(-value, scalar.type) if isinstance(value, float) else None


def _arrow_cast_value(node: exp.Anonymous) -> pa.Scalar | None:
    value, name = node.expressions
    inner = literal_value(value)
    kinds: dict[str, pa.DataType] = {"Date32": pa.date32()}
    for unit, title in UNIT_NAMES.items():
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


# Intervals that are whole numbers: of months, whose lengths differ, or of microseconds.
#
# NULL rules: an interval of NULL is none.

_UNITS: Final[Mapping[str, tuple[str, int]]] = {
    "YEAR": ("MONTH", 12),
    "MONTH": ("MONTH", 1),
    "DAY": ("MICROSECOND", MICROS_PER_DAY),
    "HOUR": ("MICROSECOND", MICROS_PER_HOUR),
    "MINUTE": ("MICROSECOND", MICROS_PER_MINUTE),
    "SECOND": ("MICROSECOND", MICROS_PER_SECOND),
    "MICROSECOND": ("MICROSECOND", 1),
}


def whole_interval(interval: exp.Interval) -> tuple[str, int] | None:
    """Read an interval as a number of MONTH or MICROSECOND; None for another, or one computed.

    Example:
        >>> from sqlglot import parse_one
        >>> whole_interval(parse_one("INTERVAL '2' YEAR"))
        ('MONTH', 24)
    """
    unit, literal = interval.text("unit").upper().removesuffix("S"), literal_value(interval.this)
    if unit not in _UNITS or literal is None or not literal.is_valid:
        return None
    try:
        count = int(str(literal.as_py()))
    except ValueError:
        return None
    counted, factor = _UNITS[unit]
    return counted, count * factor
