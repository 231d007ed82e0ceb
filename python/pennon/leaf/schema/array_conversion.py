"""Converts the Arrow arrays of a leaf to exactly the read types; matching ones are not copied."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from lance.blob import BlobType

from pennon.errors import LeafValueMismatch, WriteTypeMismatch
from pennon.leaf.schema.reconciliation import FieldMatch, LeafField
from pennon.predicate.values.time_units import is_binary, is_list, is_number, is_text
from pennon.spec.arrow_json import storage_type
from pennon.spec.column_defaults import initial_default
from pennon.spec.schema import children_of

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["check_stored", "convert_batch", "relabelled", "storage_values", "stored_as"]

# Store assignment: which types a column takes without an explicit CAST.
#
# The rules are those of an INSERT in ANSI Spark, and two are narrower, as in other libraries for
# tables in Python: nothing but text becomes text by itself, and a value is refused where it would
# lose a part. Arrow's own casts go further: they read numbers and dates from text, take bytes for
# text, and integers for days and microseconds.

# The most digits of an unsigned integer of 64 bits.
_INTEGER_DIGITS = 20


def check_stored(given: pa.DataType, column: pa.Field, table: str) -> None:
    """Check that a column takes values of a type, those that fit.

    Args:
        given: The type of the values.
        column: The column.
        table: The table's name, for the error.

    Raises:
        WriteTypeMismatch: It does not, at any depth.

    Example:
        >>> check_stored(pa.int64(), pa.field("price", pa.decimal128(10, 2)), "shop.orders")
    """
    refused = _refused_types(given, column.type)
    if refused is not None:
        stated, expected = refused
        raise WriteTypeMismatch(
            actual=given,
            column=column.name,
            table=table,
            expected=column.type,
            why=f"{stated} is stored as {expected} by an explicit CAST alone",
        )


def _refused_types(
    given: pa.DataType, column: pa.DataType
) -> tuple[pa.DataType, pa.DataType] | None:
    """Find two types, at any depth, of which the first is not stored as the second."""
    given, column = _plain(given), _plain(column)
    if given.equals(column) or pa.types.is_null(given):
        return None
    kind, expected = _kind(given), _kind(column)
    if kind != expected and (kind, expected) not in {("date", "timestamp"), ("timestamp", "date")}:
        return given, column
    if pa.types.is_struct(given):
        own = {child.name: child.type for child in column}
        pairs = [(child.type, own[child.name]) for child in given if child.name in own]
    else:
        pairs = list(zip(_value_types(given), _value_types(column), strict=True))
    for child, other in pairs:
        if pa.types.is_timestamp(child) and pa.types.is_date(other):
            return child, other  # below a column no one sees that a time of the day is cut off
        refused = _refused_types(child, other)
        if refused is not None:
            return refused
    return None


def storage_values(array: pa.Array, column: pa.Field, table: str) -> pa.Array:
    """Give the values of an extension type, or of one with such parts, as they are stored.

    Args:
        array: The values; of another type they are given as they are.
        column: The column that takes them, for errors.
        table: Its table, for errors.

    Raises:
        WriteTypeMismatch: A blob is given by its place alone.

    Example:
        >>> storage_values(pa.array([b"0" * 16], pa.uuid()), pa.field("id", pa.uuid()), "t").type
        FixedSizeBinaryType(fixed_size_binary[16])
    """
    if isinstance(array, pa.ExtensionArray) and isinstance(array.type, BlobType):
        blobs = array.storage
        if pc.struct_field(blobs, "uri").null_count < len(blobs):
            raise WriteTypeMismatch(
                actual="a blob by its URI",
                column=column.name,
                table=table,
                expected=column.type,
                why="only bytes are stored",
            )
        data: pa.Array = pc.struct_field(blobs, "data")
        return data
    stored = storage_type(array.type)
    return array if stored is array.type or stored.equals(array.type) else array.cast(stored)


def _check_vector(array: pa.Array, column: pa.DataType) -> None:
    """Refuse vectors of another length than the column's.

    Raises:
        pa.ArrowInvalid: It says both.
    """
    if not pa.types.is_fixed_size_list(column) or not is_list(array.type):
        return
    lengths = pc.unique(pc.list_value_length(array).drop_null())
    others = [length for length in lengths.to_pylist() if length != column.list_size]
    if others:
        message = f"a vector of {others[0]} values is none of {column.list_size}"
        raise pa.ArrowInvalid(message)


def stored_as(array: pa.Array, column: pa.DataType) -> pa.Array:
    """Convert values to the type of a column that takes them.

    Raises:
        pa.ArrowInvalid: A value does not fit.
        pa.ArrowNotImplementedError: Arrow has no such conversion.

    Example:
        >>> stored_as(pa.array([7]), pa.decimal128(3, 2)).to_pylist()
        [Decimal('7.00')]
    """
    _check_vector(array, column)
    if pa.types.is_integer(array.type) and pa.types.is_decimal(column):
        # Arrow asks for a precision in which every integer has room, not only those that are there.
        array = array.cast(pa.decimal128(_INTEGER_DIGITS, 0))
    if pa.types.is_timestamp(array.type) and pa.types.is_date(column):
        moments = array.cast(pa.timestamp(array.type.unit))
        if not moments.cast(pa.date32()).cast(moments.type).equals(moments):
            message = "a time that is not midnight in UTC is no date"
            raise pa.ArrowInvalid(message)
    return array.cast(column)


def _plain(data_type: pa.DataType) -> pa.DataType:
    """Give the type of the values themselves: of a dictionary, of an extension type."""
    while True:
        if pa.types.is_dictionary(data_type):
            data_type = data_type.value_type
        elif isinstance(data_type, pa.BaseExtensionType):
            data_type = data_type.storage_type
        else:
            return data_type


def _kind(data_type: pa.DataType) -> str:
    """Name what the values of a type are, whatever their width, unit or offsets."""
    types = pa.types
    kinds = {
        "number": is_number,
        "text": is_text,
        "binary": is_binary,
        "boolean": types.is_boolean,
        "date": types.is_date,
        "timestamp": types.is_timestamp,
        "time": types.is_time,
        "duration": types.is_duration,
        "struct": types.is_struct,
        "map": types.is_map,
        "list": is_list,
    }
    return next((kind for kind, holds in kinds.items() if holds(data_type)), str(data_type))


def _value_types(data_type: pa.DataType) -> list[pa.DataType]:
    if pa.types.is_map(data_type):
        return [data_type.key_type, data_type.item_type]
    return [data_type.value_type] if is_list(data_type) else []


def convert_batch(
    arrays: Sequence[pa.Array | None],
    matches: Sequence[FieldMatch],
    schema: pa.Schema,
    num_rows: int,
    leaf: str,
) -> pa.RecordBatch:
    """Build the requested batch from a leaf's columns.

    Args:
        arrays: One array per match, None where the leaf lacks the column: every row then has the
            column's initial default, or NULL.
        matches: One per column of ``schema``.
        schema: The requested columns, in plain types.
        num_rows: Rows of the batch, needed where there is no column.
        leaf: The leaf's name for errors.

    Raises:
        LeafValueMismatch: A value does not survive the promotion of its type.
    """
    if not matches:
        return pa.RecordBatch.from_struct_array(
            pa.StructArray.from_buffers(pa.struct([]), num_rows, [None])
        ).replace_schema_metadata(schema.metadata)
    columns = []
    for array, match in zip(arrays, matches, strict=True):
        default = initial_default(match.expected) if array is None else None
        if default is not None:
            columns.append(pa.repeat(default, num_rows))
            continue
        try:
            columns.append(_convert(array, match, num_rows))
        except pa.ArrowInvalid as error:
            raise LeafValueMismatch(
                column=match.expected.name,
                leaf=leaf,
                actual="" if match.stored is None else match.stored.arrow.type,
                expected=match.expected.type,
                why=str(error),
            ) from error
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def relabelled(array: pa.Array, column: pa.Field) -> pa.Array:
    """Give an array the names and nullabilities of a column's type, which it has but for these.

    Arrow's own cast refuses a NULL struct whose type has a NOT NULL field.
    """
    if array.type.equals(column.type):
        return array
    return _convert(array, _by_place(column, column.with_type(array.type)), len(array))


def _by_place(expected: pa.Field, given: pa.Field) -> FieldMatch:
    below = zip(children_of(expected.type), children_of(given.type), strict=True)
    children = tuple(_by_place(child, inner) for child, inner in below)
    stored_children = tuple(child.stored for child in children if child.stored is not None)
    return FieldMatch(expected, LeafField(given, -1, None, stored_children), children)


def _convert(array: pa.Array | None, match: FieldMatch, num_rows: int) -> pa.Array:
    target = match.expected.type
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if array is not None and array.type.equals(target) and not match.children:
        return array
    if array is None or match.stored is None:
        return pa.nulls(num_rows, target)
    if array.type.equals(target) and match.is_same:
        return array
    if not match.children:
        return array.cast(target)
    if pa.types.is_struct(target):
        return _convert_struct(array, match)
    if not pa.types.is_list(array.type) and not pa.types.is_map(array.type):
        array = array.cast(pa.list_(array.type.value_field))
    is_map = pa.types.is_map(target)
    below = _convert_entries(array, match) if is_map else _convert_items(array, match)
    return pa.Array.from_buffers(
        target, len(array), array.buffers()[:2], array.null_count, array.offset, [below]
    )


def _convert_struct(array: pa.Array, match: FieldMatch) -> pa.Array:
    assert match.stored is not None  # noqa: S101 - for the type checker
    places = {id(field): at for at, field in enumerate(match.stored.children)}
    children = [
        _convert(
            None if child.stored is None else array.field(places[id(child.stored)]),
            child,
            len(array),
        )
        for child in match.children
    ]
    mask = array.is_null() if array.null_count else None
    if not children:
        validity = array.buffers()[0]
        return pa.Array.from_buffers(
            match.expected.type, len(array), [validity], array.null_count, array.offset, []
        )
    return pa.StructArray.from_arrays(children, fields=list(match.expected.type), mask=mask)


def _convert_items(array: pa.Array, match: FieldMatch) -> pa.Array:
    return _convert(array.values, match.children[0], len(array.values))


def _convert_entries(array: pa.Array, match: FieldMatch) -> pa.Array:
    keys = _convert(array.keys, match.children[0], len(array.keys))
    items = _convert(array.items, match.children[1], len(array.items))
    target = match.expected.type
    return pa.StructArray.from_arrays([keys, items], fields=[target.key_field, target.item_field])
