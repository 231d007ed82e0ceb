"""The table properties that say how rows are written: order, compression, copies, isolation.

``write.order``
    The columns by which every write sorts the rows of a leaf, in the words of ORDER BY:
    ``id ASC NULLS FIRST``. As in Spark, ASC and NULLS FIRST stand for themselves, and DESC brings
    NULLS LAST. A type is orderable where Pennon orders its values exactly as Spark does: NaN is the
    greatest and equal to itself, -0.0 equals 0.0, texts and binary go by their unsigned bytes.
    Nested columns and transforms are no part of an order.
``write.compression``
    A codec for all columns, columns with a codec each, or both: ``lz4, comment zstd``. The last one
    that names a column counts. Lance takes it from the metadata of a field; columns with fields
    below have none.
``write.delete.mode``, ``write.update.mode``, ``write.merge.mode``
    Iceberg's. By ``merge-on-read``, the default, rows that go are marked as gone in their
    fragments; by ``copy-on-write`` their fragments are written anew without them, so that no reader
    has to leave rows out. New rows are written beside them either way.
``write.isolation``, and ``write.<command>.isolation-level`` before it
    By ``serializable``, the default, a change of rows stands only where no other commit changed
    anything that its statement read, so it is as if it had run alone. By ``snapshot`` it stands
    where no other commit changed the rows that it replaces. Rows that others append meanwhile are
    not looked at, so two statements may both insert a key that both missed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError, TokenError

from pennon.errors import (
    PennonError,
    RowChangeModeRefused,
    UnknownIsolation,
    WriteOrderColumnNotFound,
    WriteOrderSyntax,
    WriteOrderTypeNotSupported,
)
from pennon.predicate.parse import SparkSql
from pennon.settings import ISOLATION, ROW_COMMANDS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pennon.spec.schema import NamespaceSchema, SchemaField

__all__ = [
    "SERIALIZABLE",
    "WRITE_ORDER",
    "OrderColumn",
    "WriteOrder",
    "check_isolation",
    "check_row_change_modes",
    "codecs",
    "is_copy_on_write",
    "isolation",
]

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


_MERGE_ON_READ: Final = "merge-on-read"
_COPY_ON_WRITE: Final = "copy-on-write"


def is_copy_on_write(properties: Mapping[str, str], command: str | None) -> bool:
    """Whether fragments are copied without the rows that go.

    Args:
        properties: The table's properties.
        command: ``delete``, ``update`` or ``merge``; None where no statement of its own asks.

    Raises:
        RowChangeModeRefused: The property has a value that it cannot have.

    Example:
        >>> is_copy_on_write({"write.merge.mode": "Copy-On-Write"}, "merge")
        True
        >>> is_copy_on_write({"write.merge.mode": "copy-on-write"}, "delete")
        False
    """
    name = f"write.{command}.mode"
    value = properties.get(name, _MERGE_ON_READ)
    if command not in ROW_COMMANDS or value.lower() == _MERGE_ON_READ:
        return False
    if value.lower() == _COPY_ON_WRITE:
        return True
    raise RowChangeModeRefused(property=name, value=value)


def check_row_change_modes(properties: Mapping[str, str]) -> None:
    """Check how DELETE, UPDATE and MERGE are to change rows, where properties are set.

    Args:
        properties: The table's properties, as they are to be.

    Raises:
        RowChangeModeRefused: A property has a value that it cannot have.

    Example:
        >>> check_row_change_modes({"write.delete.mode": "Merge-On-Read"})
    """
    for command in ROW_COMMANDS:
        is_copy_on_write(properties, command)


SERIALIZABLE: Final = "serializable"
SNAPSHOT: Final = "snapshot"


def isolation(properties: Mapping[str, str], command: str | None = None) -> str:
    """Read the isolation of a table's row-level changes.

    Args:
        properties: The table's properties.
        command: ``delete``, ``update`` or ``merge``; None where no statement of its own asks.

    Raises:
        UnknownIsolation: The property has another value.

    Example:
        >>> isolation({}), isolation({"write.isolation": "SNAPSHOT"})
        ('serializable', 'snapshot')
        >>> isolation({"write.merge.isolation-level": "snapshot"}, "merge")
        'snapshot'
    """
    own = f"write.{command}.isolation-level"
    name = own if own in properties else ISOLATION.name
    value = properties.get(name, SERIALIZABLE).lower()
    if value not in (SERIALIZABLE, SNAPSHOT):
        raise UnknownIsolation(property=name, value=value)
    return value


def check_isolation(properties: Mapping[str, str]) -> None:
    """Check the isolation of all statements, where properties are set.

    Raises:
        UnknownIsolation: A property has another value.
    """
    for command in (None, *ROW_COMMANDS):
        isolation(properties, command)
