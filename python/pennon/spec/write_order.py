"""The write order of a table: the columns by which every write sorts the rows of a leaf.

It is the table property ``write.order``, in the words of ORDER BY: ``id ASC NULLS FIRST``. As in
Spark, ASC and NULLS FIRST stand for themselves, and DESC brings NULLS LAST.

A type is orderable where Pennon orders its values exactly as Spark does: NaN is the greatest and
equal to itself, -0.0 equals 0.0, texts and binary go by their unsigned bytes. Nested columns and
transforms are no part of an order.

The value that older rows have in a column that was added with a DEFAULT.

It stands as JSON in the column's metadata under ``pennon:initial_default`` and never changes but
for the column's type; what later rows get by default is another key, Spark's ``CURRENT_DEFAULT``.
A leaf that has the column states its own values: the default is for leaves that lack it. Other
readers know nothing of it and see NULL there.

| type | JSON |
|---|---|
| boolean, integer, text | as JSON has them |
| float | a number, or ``"NaN"``, ``"Infinity"``, ``"-Infinity"`` |
| decimal | its digits as text |
| binary | hexadecimal text |
| date, timestamp | days, or the type's unit, since the epoch |
| struct | an object by name; list: an array; map: ``{"keys": […], "values": […]}`` |

How a table's files are compressed is the table property ``write.compression``: a codec for all
columns, columns with a codec each, or both: ``lz4, comment zstd``. The last one that names a column
counts. Lance takes it from the metadata of a field; columns with fields below have none.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Final, cast

import pyarrow as pa
import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError, TokenError

from pennon.errors import (
    InvalidArrowJson,
    PennonError,
    WriteOrderColumnNotFound,
    WriteOrderSyntax,
    WriteOrderTypeNotSupported,
)
from pennon.predicate.parse import SparkSql
from pennon.spec.arrow_json import text_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pennon.spec.schema import NamespaceSchema, SchemaField

__all__ = [
    "INITIAL_DEFAULT",
    "WRITE_ORDER",
    "OrderColumn",
    "WriteOrder",
    "codecs",
    "initial_default",
    "value_from_json",
    "value_to_json",
    "with_initial_default",
]

_CODECS: Final = ("lz4", "zstd", "none")


def codecs(text: str, schema: pa.Schema) -> tuple[dict[str, str], list[str]]:
    """Read which codec each column has.

    Args:
        text: The property.
        schema: The table's columns.

    Returns:
        The codecs by column, and the parts of the text that name no codec or no column.

    Example:
        >>> columns = pa.schema({"id": pa.int64(), "comment": pa.string()})
        >>> codecs("lz4, comment zstd, note lz4", columns)
        ({'id': 'lz4', 'comment': 'zstd'}, ['note lz4'])
    """
    chosen: dict[str, str] = {}
    wrong: list[str] = []
    for part in filter(None, map(str.strip, text.split(","))):
        name, _, codec = part.rpartition(" ")
        name, codec = name.strip().strip("`"), codec.lower()
        if codec in _CODECS and (not name or name in schema.names):
            chosen |= dict.fromkeys([name] if name else schema.names, codec)
        else:
            wrong.append(part)
    return chosen, wrong


INITIAL_DEFAULT: Final = b"pennon:initial_default"


def initial_default(column: pa.Field) -> pa.Scalar | None:
    """Give what rows of leaves without the column have there; None for NULL.

    Raises:
        InvalidArrowJson: The kept text is no value of the column's type.

    Example:
        >>> initial_default(with_initial_default(pa.field("n", pa.int32()), pa.scalar(5)))
        <pyarrow.Int32Scalar: 5>
    """
    text = (column.metadata or {}).get(INITIAL_DEFAULT)
    if text is None:
        return None
    try:
        return pa.scalar(_from_json(json.loads(text), column.type), column.type)
    except (ValueError, TypeError, KeyError, ArithmeticError) as error:
        raise InvalidArrowJson(
            where=f"the initial default of column '{column.name}'",
            actual=text.decode(errors="replace"),
            expected=f"a value of {column.type}",
        ) from error


def with_initial_default(column: pa.Field, value: pa.Scalar | None) -> pa.Field:
    """Keep a value in a column's metadata, in the column's type; None or NULL takes it away."""
    metadata = {
        key: entry for key, entry in (column.metadata or {}).items() if key != INITIAL_DEFAULT
    }
    if value is not None and value.is_valid:
        kept = value if value.type.equals(column.type) else value.cast(column.type)
        metadata[INITIAL_DEFAULT] = text_of(value_to_json(kept)).encode()
    return column.with_metadata(metadata or None)


def value_from_json(written: object, column: pa.Field) -> pa.Scalar:
    """Read a value in the form that is kept; it raises what ``initial_default`` lists."""
    kept = column.with_metadata({INITIAL_DEFAULT: text_of(written).encode()})
    value = initial_default(kept)
    return pa.scalar(None, column.type) if value is None else value


def value_to_json(value: pa.Scalar) -> object:
    """Write a value in the form that is kept; None for NULL."""
    data_type = value.type
    if not value.is_valid:
        return None
    if pa.types.is_dictionary(data_type):
        return value_to_json(value.cast(data_type.value_type))
    if pa.types.is_struct(data_type):
        return {child.name: value_to_json(value[at]) for at, child in enumerate(data_type)}
    if pa.types.is_map(data_type):
        entries = value.values
        return {
            "keys": [value_to_json(entry) for entry in entries.field(0)],
            "values": [value_to_json(entry) for entry in entries.field(1)],
        }
    if hasattr(data_type, "value_field"):
        return [value_to_json(element) for element in value.values]
    if pa.types.is_floating(data_type):
        number = float(value.as_py())
        return number if number - number == 0 else _SPELLED.get(number, "NaN")
    if pa.types.is_decimal(data_type):
        return f"{value.as_py():f}"
    if pa.types.is_temporal(data_type):
        return int(value.cast(_storage(data_type)).as_py())
    plain = value.as_py()
    return plain.hex() if isinstance(plain, bytes) else plain


_SPELLED: Final[Mapping[float, str]] = {float("inf"): "Infinity", float("-inf"): "-Infinity"}


def _from_json(written: object, data_type: pa.DataType) -> object:
    """Give what ``pa.scalar`` makes a value of the type from."""
    if written is None:
        return None
    if pa.types.is_dictionary(data_type):
        return _from_json(written, data_type.value_type)
    if pa.types.is_struct(data_type):
        fields = cast("dict[str, object]", written)
        return {child.name: _from_json(fields.get(child.name), child.type) for child in data_type}
    if pa.types.is_map(data_type):
        entries = cast("dict[str, list[object]]", written)
        keys = [_from_json(key, data_type.key_type) for key in entries["keys"]]
        values = [_from_json(value, data_type.item_type) for value in entries["values"]]
        return list(zip(keys, values, strict=True))
    if hasattr(data_type, "value_field"):
        return [
            _from_json(element, data_type.value_type) for element in cast("list[object]", written)
        ]
    if pa.types.is_floating(data_type):
        return float(cast("float", written))
    if pa.types.is_decimal(data_type):
        return Decimal(cast("str", written))
    if pa.types.is_temporal(data_type):
        return pa.scalar(cast("int", written), _storage(data_type)).cast(data_type)
    if pa.types.is_binary(data_type) or pa.types.is_large_binary(data_type):
        return bytes.fromhex(cast("str", written))
    return written


def _storage(data_type: pa.DataType) -> pa.DataType:
    return pa.int32() if data_type.bit_width == pa.int32().bit_width else pa.int64()


WRITE_ORDER: Final = "write.order"


@dataclass(frozen=True, slots=True)
class OrderColumn:
    """One column of an order, by its name.

    Example:
        >>> print(OrderColumn("ts", is_descending=True, nulls_first=False))
        ts DESC NULLS LAST
    """

    name: str
    is_descending: bool = False
    nulls_first: bool = True

    def __str__(self) -> str:
        """Write the column as ORDER BY has it."""
        quoted = "`" + self.name.replace("`", "``") + "`"
        return f"{quoted if _needs_quotes(self.name) else self.name} {self.direction}"

    @property
    def direction(self) -> str:
        """Write which values come first."""
        direction = "DESC" if self.is_descending else "ASC"
        return f"{direction} NULLS {'FIRST' if self.nulls_first else 'LAST'}"

    def to_json(self) -> dict[str, object]:
        """Write the column as messages have it."""
        return {"column": self.name, "desc": self.is_descending, "nulls_first": self.nulls_first}

    @classmethod
    def from_json(cls, stored: Mapping[str, object]) -> OrderColumn:
        """Read what ``to_json`` wrote."""
        return cls(str(stored["column"]), bool(stored["desc"]), bool(stored["nulls_first"]))


@dataclass(frozen=True, slots=True)
class WriteOrder:
    """A table's write order over the columns of its schema.

    Args:
        fields: The columns with their ids and types, the first one first.
        columns: The same with their directions.

    Example:
        >>> from pennon.spec.schema import NamespaceSchema
        >>> schema = NamespaceSchema.with_fresh_ids(pa.schema({"id": pa.int64()}))
        >>> order = WriteOrder.parse("ID desc", schema)
        >>> print(order, "/", order.identity)
        id DESC NULLS LAST / 0 int64 DESC NULLS LAST
    """

    fields: tuple[SchemaField, ...]
    columns: tuple[OrderColumn, ...]

    def __str__(self) -> str:
        """Write the order as the property has it."""
        return ", ".join(map(str, self.columns))

    @property
    def identity(self) -> str:
        """What the order means whatever its columns are called: their ids and types."""
        return ", ".join(
            f"{field.id} {field.field.type} {column.direction}"
            for field, column in zip(self.fields, self.columns, strict=True)
        )

    @classmethod
    def parse(cls, text: str, schema: NamespaceSchema) -> WriteOrder:
        """Read an order.

        Args:
            text: ``id, ts DESC NULLS LAST``, in Spark's SQL.
            schema: The table's columns.

        Raises:
            WriteOrderSyntax: The text is no list of columns.
            WriteOrderColumnNotFound: There is no such column.
            WriteOrderTypeNotSupported: A column's values cannot be ordered as Spark orders them.
        """
        fields: list[SchemaField] = []
        columns: list[OrderColumn] = []
        for tree in _ordered(text):
            name, column = _column(text, tree)
            field = schema.field_by_path([name])
            if field is None:
                raise WriteOrderColumnNotFound(
                    column=name, order=text, columns=", ".join(schema.arrow.names)
                )
            if not is_orderable(field.field.type):
                raise WriteOrderTypeNotSupported(column=name, order=text, actual=field.field.type)
            if field in fields:
                raise WriteOrderSyntax(order=text, reason=f"column {name} is in it twice")
            fields.append(field)
            columns.append(OrderColumn(str(field), column.is_descending, column.nulls_first))
        return cls(tuple(fields), tuple(columns))

    @classmethod
    def of(cls, properties: Mapping[str, str], schema: NamespaceSchema) -> WriteOrder | None:
        """Read the order of a table's properties; None where it has none.

        Raises:
            WriteOrderSyntax: As ``parse``, for a property that another writer set.
        """
        text = properties.get(WRITE_ORDER)
        return None if text is None else cls.parse(text, schema)

    @classmethod
    def known(cls, properties: Mapping[str, str], schema: NamespaceSchema) -> WriteOrder | None:
        """Read the order where it can be read; one that another writer made up counts for none."""
        try:
            return cls.of(properties, schema)
        except PennonError:
            return None

    def renamed(self, schema: NamespaceSchema) -> WriteOrder | None:
        """Give the same order with the columns' names in a changed schema; None if one is gone."""
        columns = []
        for field, column in zip(self.fields, self.columns, strict=True):
            now = schema.field_by_id(field.id)
            if now is None:
                return None
            columns.append(OrderColumn(str(now), column.is_descending, column.nulls_first))
        return WriteOrder.parse(", ".join(map(str, columns)), schema)

    def prefix(self, names: Sequence[str]) -> tuple[OrderColumn, ...]:
        """Give the longest beginning of the order whose columns are among some names."""
        kept: list[OrderColumn] = []
        for column in self.columns:
            if column.name not in names:
                break
            kept.append(column)
        return tuple(kept)


def is_orderable(data_type: pa.DataType) -> bool:
    """Whether values of a type have one order in Spark and in Pennon.

    Example:
        >>> is_orderable(pa.float64()), is_orderable(pa.list_(pa.int8()))
        (True, False)
    """
    if pa.types.is_timestamp(data_type):
        return bool(data_type.unit == "us")
    is_plain = (
        pa.types.is_boolean,
        pa.types.is_signed_integer,
        pa.types.is_float32,
        pa.types.is_float64,
        pa.types.is_decimal128,
        pa.types.is_date32,
        pa.types.is_string,
        pa.types.is_large_string,
        pa.types.is_binary,
        pa.types.is_large_binary,
    )
    return any(test(data_type) for test in is_plain)


def _ordered(text: str) -> list[exp.Expr]:
    try:
        tree = sqlglot.parse_one(f"ORDER BY {text}", read=SparkSql, into=exp.Order)
    except ParseError as error:
        raise WriteOrderSyntax(order=text, reason="it is no list of columns") from error
    except TokenError as error:
        raise WriteOrderSyntax(order=text, reason="a name does not end") from error
    if tree.this is not None:
        raise WriteOrderSyntax(order=text, reason="it is no list of columns")
    return list(tree.expressions)


def _needs_quotes(name: str) -> bool:
    """Whether a name alone would be read as another one, as a word of SQL, or not at all."""
    if not (name.isascii() and name.isidentifier()):
        return True
    try:
        (entry,) = _ordered(f"{name} ASC")
    except WriteOrderSyntax:
        return True
    return not isinstance(entry.this, exp.Column) or entry.this.name != name


def _column(text: str, tree: exp.Expr) -> tuple[str, OrderColumn]:
    """Read one entry; sqlglot knows which end NULLs go to where the text does not say."""
    column = tree.this if isinstance(tree, exp.Ordered) else tree
    is_all = isinstance(column, exp.Var)  # what sqlglot makes of a column called all
    if not is_all and (not isinstance(column, exp.Column) or len(column.parts) > 1):
        reason = "it has an expression, or a field of a struct, in the place of a column"
        raise WriteOrderSyntax(order=text, reason=reason)
    if not isinstance(tree, exp.Ordered):
        return column.name, OrderColumn(column.name)
    is_descending = bool(tree.args.get("desc"))
    nulls_first = tree.args.get("nulls_first")
    return column.name, OrderColumn(
        column.name, is_descending, not is_descending if nulls_first is None else bool(nulls_first)
    )
