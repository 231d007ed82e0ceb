"""Spark's StructType JSON ⇄ Arrow schema, for every type that both sides store.

Text metadata of a Spark field (``comment``, ``CURRENT_DEFAULT``, …) stands in the Arrow field's
metadata under its own key, everything else as JSON under ``spark:metadata``; Lance's and Pennon's
own keys never reach Spark. A column of CHAR or VARCHAR is STRING with the type that was typed in
such metadata, where Spark looks for it; inside of another type there is no place for it.

A column whose type, or a part of it, Spark lacks is hidden as a whole, so that the others are read.
TIME has a unit for each of four precisions; Spark has the type only where a setting says so.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Final

import pyarrow as pa
from lance.schema import LanceSchema

from pennon.errors import (
    InvalidArrowJson,
    MalformedMessage,
    PennonError,
    TablePropertyRefused,
    UnsupportedColumnType,
)
from pennon.predicate.values.time_units import is_binary, is_list, is_number, is_text
from pennon.spec.arrow_json import BLOB, EXTENSION_NAME, field_to_json, is_blob, storage_field
from pennon.spec.column_names import LENGTH_LIMIT
from pennon.spec.schema import children_of
from pennon.starting_jvm import starting_jvm

__all__ = [
    "CURRENT_DEFAULT",
    "arrow_schema",
    "arrow_type",
    "catalog_text",
    "declaration",
    "declarations",
    "declared_columns",
    "given_type",
    "hidden_columns",
    "hidden_names",
    "is_estimated_type",
    "length_limit",
    "shown_columns",
    "spark_schema",
    "stored_schema",
]

# The types of new columns that come as an Arrow schema, as Lance stores them.
#
# Lance stores texts and bytes without views and decimals of 128 bits or more, so a column of
# another form of the same values becomes one of these. Polars gives its texts as views.

_OF_VIEWS: Final[Mapping[pa.DataType, pa.DataType]] = {
    pa.string_view(): pa.utf8(),
    pa.binary_view(): pa.binary(),
}


def stored_schema(schema: pa.Schema) -> pa.Schema:
    """Give the columns in the types in which Lance stores their values.

    Raises:
        UnsupportedColumnType: There is none for a column's type.

    Example:
        >>> stored_schema(pa.schema({"name": pa.string_view(), "price": pa.decimal32(5, 2)}))
        name: string
        price: decimal128(5, 2)
    """
    columns = [_stored(column) for column in schema]
    for given, column in zip(schema, columns, strict=True):
        try:
            if not any(_is_nested_blob(child) for child in children_of(column.type)):
                LanceSchema.from_pyarrow(pa.schema([column])).to_pyarrow()
                field_to_json(column)
                continue
        except (ValueError, InvalidArrowJson):
            pass
        raise UnsupportedColumnType(column=column.name, type=str(given.type), target="Lance")
    return pa.schema(columns, metadata=schema.metadata)


def _stored(column: pa.Field) -> pa.Field:
    column = storage_field(column)
    return column.with_type(_stored_type(column.type))


def _is_nested_blob(column: pa.Field) -> bool:
    return is_blob(column) or any(map(_is_nested_blob, children_of(column.type)))


def _stored_type(data_type: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(data_type):
        return pa.struct([_stored(child) for child in data_type])
    if pa.types.is_map(data_type):
        key, item = _stored(data_type.key_field), _stored(data_type.item_field)
        return pa.map_(key, item, keys_sorted=data_type.keys_sorted)
    if pa.types.is_fixed_size_list(data_type):
        return pa.list_(_stored(data_type.value_field), data_type.list_size)
    if pa.types.is_large_list(data_type) or pa.types.is_large_list_view(data_type):
        return pa.large_list(_stored(data_type.value_field))
    if pa.types.is_list(data_type) or pa.types.is_list_view(data_type):
        return pa.list_(_stored(data_type.value_field))
    if pa.types.is_decimal32(data_type) or pa.types.is_decimal64(data_type):
        return pa.decimal128(data_type.precision, data_type.scale)
    return _OF_VIEWS.get(data_type, data_type)


# Types of Lance that Spark lacks, as properties of a column: lance-spark's names.
#
# They come as TBLPROPERTIES, ``v.arrow.fixed-size-list.size``, or in the metadata of a field of a
# DataFrame. Spark is shown the same metadata, so that a table that is made of a query keeps them.

_SIZE: Final = "arrow.fixed-size-list.size"
# Vectors of numbers that Spark has in a wider type: the property, and both types.
_NARROWED: Final[Mapping[str, tuple[pa.DataType, pa.DataType]]] = {
    "arrow.float16": (pa.float32(), pa.float16()),
    "arrow.uint8": (pa.int16(), pa.uint8()),
}
_LARGE: Final = "arrow.large_var_char"
_ENCODING: Final = "lance.encoding"
_DECLARATION: Final = re.compile(r"(.+?)\.((?:arrow|lance)\..+)", re.DOTALL)
_KNOWN: Final = (_SIZE, *_NARROWED, _LARGE, _ENCODING)


def declared_columns(
    schema: pa.Schema, properties: Mapping[str, str], table: str
) -> tuple[pa.Schema, dict[str, str]]:
    """Give columns the types that properties and their metadata say.

    Args:
        schema: The columns of a new table.
        properties: Its properties, which come before the metadata.
        table: For errors.

    Returns:
        The columns, and the properties that are about something else.

    Raises:
        TablePropertyRefused: A property of that kind does not fit its column, or there is none.

    Example:
        >>> vectors = pa.schema({"v": pa.list_(pa.float32())})
        >>> stated = {"v.arrow.fixed-size-list.size": "4", "team": "search"}
        >>> columns, others = declared_columns(vectors, stated, "t")
        >>> columns.types, others
        ([FixedSizeListType(fixed_size_list<item: float>[4])], {'team': 'search'})
    """
    stated: dict[int, dict[str, str]] = {}
    others = dict(properties)
    for name, value in properties.items():
        named = declaration(name)
        if named is None:
            continue
        column, kind = named
        alike = [at for at, own in enumerate(schema.names) if own == column] or [
            at for at, own in enumerate(schema.names) if own.lower() == column.lower()
        ]
        if len(alike) != 1:
            raise _misplaced(table, name, value, f"there is no column {column}")
        if kind not in _KNOWN:
            raise _misplaced(table, name, value, f"it is none of {', '.join(_KNOWN)}")
        stated.setdefault(alike[0], {})[kind] = value
        del others[name]
    columns = [_declared(column, stated.get(at, {}), table) for at, column in enumerate(schema)]
    return pa.schema(columns, metadata=schema.metadata), others


def declaration(name: str) -> tuple[str, str] | None:
    """Take the name of a property apart that is about a column's type; None for another one.

    Example:
        >>> declaration("v.arrow.float16"), declaration("team")
        (('v', 'arrow.float16'), None)
    """
    matched = _DECLARATION.fullmatch(name)
    return None if matched is None else (matched[1], matched[2])


def declarations(schema: pa.Schema) -> dict[str, str]:
    """Give the properties that say the types of a table's columns.

    Example:
        >>> declarations(pa.schema({"v": pa.list_(pa.float16(), 4)}))
        {'v.arrow.fixed-size-list.size': '4', 'v.arrow.float16': 'true'}
    """
    return {
        f"{column.name}.{kind}": value
        for column in schema
        for kind, value in _declarations_of(column).items()
    }


def _declarations_of(column: pa.Field) -> dict[str, str]:
    if is_blob(column):
        return {_ENCODING: "blob"}
    if not pa.types.is_fixed_size_list(column.type):
        return {_LARGE: "true"} if pa.types.is_large_string(column.type) else {}
    narrow = [kind for kind, (_, own) in _NARROWED.items() if own.equals(column.type.value_type)]
    return {_SIZE: str(column.type.list_size), **dict.fromkeys(narrow, "true")}


def _declared(column: pa.Field, stated: Mapping[str, str], table: str) -> pa.Field:
    """Give a column its declared type; what its metadata says of it has no other use then."""
    metadata = dict(column.metadata or {})
    beside = json.loads(metadata.get(_OTHER, b"{}"))
    own = {kind: beside.pop(kind) for kind in _KNOWN if kind in beside}
    own |= {
        kind: metadata.pop(kind.encode()).decode() for kind in _KNOWN if kind.encode() in metadata
    }
    own |= {_ENCODING: "blob"} if is_blob(column) else {}
    if own and _OTHER in metadata:
        metadata[_OTHER] = json.dumps(beside).encode()
    said = {kind: str(value).lower() for kind, value in {**own, **stated}.items()}
    said = {kind: value for kind, value in said.items() if value != "false"}

    def misplaced(kind: str, why: str) -> PennonError:
        return _misplaced(table, f"{column.name}.{kind}", said[kind], why)

    kind = next((kind for kind in said if kind != _SIZE and said[kind] not in ("true", "blob")), "")
    if kind:
        raise misplaced(kind, "no such value is known")
    data_type = column.type
    if _SIZE in said:
        if not is_list(data_type) or not is_number(data_type.value_type):
            raise misplaced(_SIZE, f"the column is {data_type}, and no array of numbers")
        if not said[_SIZE].isdecimal() or not int(said[_SIZE]):
            raise misplaced(_SIZE, "a vector has a whole number of values, at least one")
    for kind, (wide, narrow) in _NARROWED.items():
        if kind in said:
            if _SIZE not in said or not data_type.value_type.equals(wide):
                raise misplaced(kind, f"it is of an array of {wide} that has {_SIZE}, too")
            data_type = pa.list_(data_type.value_field.with_type(narrow))
    if _SIZE in said:
        data_type = pa.list_(data_type.value_field.remove_metadata(), int(said[_SIZE]))
    if _LARGE in said:
        if not is_text(data_type):
            raise misplaced(_LARGE, f"the column is {data_type}, and no STRING")
        data_type = pa.large_utf8()
    if _ENCODING in said:
        if not is_binary(data_type):
            raise misplaced(_ENCODING, f"the column is {data_type}, and no BINARY")
        data_type, metadata = pa.large_binary(), {**metadata, BLOB: b"true"}
    return column.with_type(data_type).with_metadata(metadata or None)


def _misplaced(table: str, name: str, value: str, why: str) -> PennonError:
    return TablePropertyRefused(
        property=name, value=value, table=table, why=why, advice="Leave it out, or correct it"
    )


# Bounds of columns as Spark writes them into its own catalog (``CatalogColumnStat``).

_YEAR_DIGITS: Final = 4
_BOUNDED: Final = (
    pa.types.is_integer,
    pa.types.is_floating,
    pa.types.is_decimal,
    pa.types.is_date,
    pa.types.is_timestamp,
)


def catalog_text(value: pa.Scalar) -> str | None:
    """Write a bound; None for NULL, and for what Spark's estimates have no bounds of.

    These are texts, and numbers and times that Spark would not read: infinities, NaN, and years
    that have not four digits. Timestamps are in UTC.

    Example:
        >>> import datetime
        >>> catalog_text(pa.scalar(datetime.date(2025, 12, 10)))
        '2025-12-10'
        >>> catalog_text(pa.scalar("a")) is None
        True
    """
    data_type = value.type
    if not value.is_valid or not any(is_bounded(data_type) for is_bounded in _BOUNDED):
        return None
    if pa.types.is_floating(data_type):
        number = float(value.as_py())
        return repr(number) if math.isfinite(number) else None
    if pa.types.is_decimal(data_type):
        return format(value.as_py(), "f")
    if pa.types.is_integer(data_type):
        return str(value.as_py())
    zoneless = value.cast(pa.timestamp("us")) if pa.types.is_timestamp(data_type) else value
    text = str(zoneless.cast(pa.utf8()).as_py())
    return text if text.index("-") == _YEAR_DIGITS else None


def is_estimated_type(data_type: pa.DataType) -> bool:
    """Whether Spark's estimates know a type: one of a filter on TIMESTAMP_NTZ ends the query.

    Example:
        >>> is_estimated_type(pa.timestamp("us", "UTC")), is_estimated_type(pa.timestamp("us"))
        (True, False)
    """
    return not pa.types.is_timestamp(data_type) or data_type.tz is not None


_TO_ARROW: Final[Mapping[str, pa.DataType]] = {
    "boolean": pa.bool_(),
    "byte": pa.int8(),
    "short": pa.int16(),
    "integer": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.utf8(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}
_TO_SPARK: Final[Mapping[pa.DataType, str]] = {
    **{arrow: spark for spark, arrow in _TO_ARROW.items()},
    pa.uint8(): "short",
    pa.uint16(): "integer",
    pa.uint32(): "long",
    pa.uint64(): "decimal(20,0)",
    pa.float16(): "float",
    pa.date64(): "date",
    pa.large_utf8(): "string",
    pa.string_view(): "string",
    pa.large_binary(): "binary",
    pa.binary_view(): "binary",
    pa.null(): "void",
}
_TIMES: Final[Mapping[str, pa.DataType]] = {
    "time(0)": pa.time32("s"),
    "time(3)": pa.time32("ms"),
    "time(6)": pa.time64("us"),
    "time(9)": pa.time64("ns"),
}
# Extension types whose storage says nothing to who does not know them.
_WITHOUT_COUNTERPART: Final = frozenset({"lance.bfloat16"})
_BEFORE_4_3: Final = ("4.1.", "4.2.")
_DECIMAL: Final = re.compile(r"decimal\((\d+),\s*(-?\d+)\)")
# The collation of plain bytes; under another one equal values would have other bytes, which
# partition values, filters and joins in the workers compare.
_TEXT: Final = re.compile(
    r"(?:string|(?:char|varchar)\(\d+\))(?: collate utf8_binary)?", re.IGNORECASE
)
_COLLATIONS: Final = "__COLLATIONS"
CURRENT_DEFAULT: Final = "CURRENT_DEFAULT"
"""The key under which Spark keeps the expression of a column's DEFAULT."""
_LIMITED: Final = re.compile(r"((?:char|varchar)\(\d+\))(?: collate utf8_binary)?", re.IGNORECASE)
# For rows without the column, which a new table has not; ALTER TABLE hands its value over.
_EXISTENCE_DEFAULT: Final = "EXISTS_DEFAULT"
_OTHER: Final = b"spark:metadata"
_OWN_PREFIXES: Final = ("lance", "pennon:", "spark:", "PARQUET:", "ARROW:")


def arrow_schema(struct: object) -> pa.Schema:
    """Turn a Spark StructType into an Arrow schema.

    Args:
        struct: The JSON of the StructType, as an object or as its text.

    Raises:
        UnsupportedColumnType: A type that Lance does not store; the error names the column.

    Example:
        >>> field = {"name": "id", "type": "long", "nullable": False, "metadata": {}}
        >>> arrow_schema({"type": "struct", "fields": [field]})
        id: int64 not null
    """
    parsed = json.loads(struct) if isinstance(struct, str) else struct
    if not isinstance(parsed, dict) or not isinstance(parsed.get("fields"), list):
        raise MalformedMessage(why="a schema is no StructType")
    return pa.schema([_arrow_field(member, ()) for member in parsed["fields"]])


def arrow_type(spark: object, column: str) -> pa.DataType:
    """Turn the JSON of one Spark type into an Arrow type; ``column`` is for errors."""
    if isinstance(spark, str) and spark.startswith(('"', "{")):
        spark = json.loads(spark)
    return _arrow_type(spark, (column,))


def given_type(data_type: pa.DataType) -> pa.DataType:
    """Give the type in which Spark takes values of a column, where it has none like the column's.

    Example:
        >>> given_type(pa.uint32()), given_type(pa.timestamp("s"))
        (DataType(int64), TimestampType(timestamp[us]))
    """
    return _arrow_type(_spark_type(data_type, ()), ("",))


def length_limit(spark: object) -> str | None:
    """Give the type of a CHAR or VARCHAR column as Spark keeps it in the column's metadata.

    Example:
        >>> length_limit('"varchar(5)"')
        'varchar(5)'
    """
    name = json.loads(spark) if isinstance(spark, str) and spark.startswith('"') else spark
    limited = _LIMITED.fullmatch(name) if isinstance(name, str) else None
    return None if limited is None else limited[1]


def spark_schema(schema: pa.Schema) -> dict[str, object]:
    """Turn an Arrow schema into the JSON object of a Spark StructType.

    Raises:
        UnsupportedColumnType: A type that Spark does not have; the error names the column.
    """
    return {"type": "struct", "fields": [_spark_field(field, ()) for field in schema]}


def shown_columns(schema: pa.Schema, *, has_time: bool) -> dict[str, object]:
    """Give the columns that Spark has types for, as the JSON object of a Spark StructType.

    Args:
        schema: The columns.
        has_time: Whether the session has the type TIME.

    Example:
        >>> columns = pa.schema([("id", pa.int32()), ("age", pa.duration("s"))])
        >>> [column["name"] for column in shown_columns(columns, has_time=True)["fields"]]
        ['id']
    """
    return spark_schema(
        pa.schema([column for column in schema if _lacking(column, has_time=has_time) is None])
    )


def hidden_columns(schema: pa.Schema, *, has_time: bool) -> dict[str, object]:
    """Give the other columns: of the type VOID, and with the reason as their comment.

    Args:
        schema: The columns.
        has_time: Whether the session has the type TIME.

    Example:
        >>> columns = pa.schema([("id", pa.int32()), ("age", pa.duration("s"))])
        >>> hidden_columns(columns, has_time=True)["fields"][0]["metadata"]
        {'comment': 'hidden: Spark has no type for duration[s] of age'}
    """
    hidden: list[pa.Field] = []
    for column in schema:
        lacking = _lacking(column, has_time=has_time)
        if lacking is not None:
            hidden.append(
                pa.field(
                    column.name,
                    pa.null(),
                    metadata={"comment": f"hidden: Spark has no type for {lacking}"},
                )
            )
    return spark_schema(pa.schema(hidden))


def hidden_names(schema: pa.Schema) -> frozenset[str]:
    """Name the columns that some session hides: those with TIME, too.

    Example:
        >>> sorted(hidden_names(pa.schema([("id", pa.int32()), ("at", pa.time64("us"))])))
        ['at']
    """
    return frozenset(
        column.name for column in schema if _lacking(column, has_time=False) is not None
    )


def _lacking(column: pa.Field, *, has_time: bool) -> str | None:
    """Name the type that Spark lacks, and where it is; None where it has all."""
    extension = (column.metadata or {}).get(EXTENSION_NAME, b"").decode()
    if extension in _WITHOUT_COUNTERPART:
        return f"{extension} of {column.name}"
    try:
        _spark_field(column, ())
    except UnsupportedColumnType as error:
        return f"{error.parameters['type']} of {error.parameters['column']}"
    is_finished = has_time and not starting_jvm().spark.startswith(_BEFORE_4_3)
    time = None if is_finished else _time_within(column.name, column.type)
    return None if time is None else f"{time} without spark.sql.timeType.enabled in Spark 4.3"


def _time_within(path: str, data_type: pa.DataType) -> str | None:
    if pa.types.is_dictionary(data_type):
        return _time_within(path, data_type.value_type)
    if pa.types.is_time(data_type):
        return f"{data_type} of {path}"
    below = map(data_type.field, range(data_type.num_fields))
    parts = (_time_within(f"{path}.{part.name}", part.type) for part in below)
    return next(filter(None, parts), None)


def field_metadata(metadata: Mapping[str, object]) -> dict[str, str]:
    """Turn the metadata of a Spark field into that of an Arrow field."""
    texts = {
        name: value
        for name, value in metadata.items()
        if isinstance(value, str) and name != _EXISTENCE_DEFAULT
    }
    other = {name: value for name, value in metadata.items() if not isinstance(value, str)}
    if other:
        texts[_OTHER.decode()] = json.dumps(other)
    return texts


def _arrow_field(field: Mapping[str, object], above: tuple[str, ...]) -> pa.Field:
    name = str(field["name"])
    data_type = _arrow_type(field["type"], (*above, name))
    stated = field.get("metadata") or {}
    _check_collations(stated, (*above, name))
    metadata = field_metadata(stated) if isinstance(stated, dict) else {}
    limit = None if above else length_limit(field["type"])
    if limit is not None:
        metadata[LENGTH_LIMIT] = limit
    nullable = bool(field.get("nullable", True))
    return pa.field(name, data_type, nullable=nullable, metadata=metadata or None)


def _check_collations(metadata: object, path: tuple[str, ...]) -> None:
    """Refuse a collation, which Spark keeps in the metadata of a field of plain STRING."""
    collations = metadata.get(_COLLATIONS) if isinstance(metadata, dict) else None
    for collation in (collations or {}).values():
        if collation.rpartition(".")[2].upper() != "UTF8_BINARY":
            kind = f"STRING COLLATE {collation.rpartition('.')[2]}"
            raise UnsupportedColumnType(column=".".join(path), type=kind, target="Lance")


def _arrow_type(spark: object, path: tuple[str, ...]) -> pa.DataType:
    if isinstance(spark, str):
        equivalent = _TO_ARROW.get(spark) or _TIMES.get(spark)
        if equivalent is not None:
            return equivalent
        decimal = _DECIMAL.fullmatch(spark)
        if decimal is not None:
            return pa.decimal128(int(decimal[1]), int(decimal[2]))
        if _TEXT.fullmatch(spark) and (len(path) == 1 or length_limit(spark) is None):
            return pa.utf8()
        raise UnsupportedColumnType(column=".".join(path), type=spark, target="Lance")
    if isinstance(spark, dict):
        match spark.get("type"):
            case "struct":
                return pa.struct([_arrow_field(member, path) for member in spark["fields"]])
            case "array":
                item = _arrow_type(spark["elementType"], (*path, "element"))
                return pa.list_(pa.field("item", item, nullable=bool(spark["containsNull"])))
            case "map":
                key = _arrow_type(spark["keyType"], (*path, "key"))
                value = _arrow_type(spark["valueType"], (*path, "value"))
                nullable = bool(spark["valueContainsNull"])
                return pa.map_(
                    pa.field("key", key, nullable=False),
                    pa.field("value", value, nullable=nullable),
                )
            case "udt":
                return _arrow_type(spark["sqlType"], path)
    raise UnsupportedColumnType(column=".".join(path), type=spark, target="Lance")


def _spark_field(field: pa.Field, above: tuple[str, ...]) -> dict[str, object]:
    field = storage_field(field)
    return {
        "name": field.name,
        "type": _spark_type(field.type, (*above, field.name)),
        "nullable": field.nullable,
        "metadata": {
            **_spark_metadata(field.metadata or {}),
            **({} if above else _declared_metadata(field)),
        },
    }


def _declared_metadata(field: pa.Field) -> dict[str, object]:
    stated = _declarations_of(field)
    if _ENCODING in stated:
        return {BLOB.decode(): "true"}
    return {kind: int(value) if kind == _SIZE else value for kind, value in stated.items()}


def _spark_metadata(metadata: Mapping[bytes, bytes]) -> dict[str, object]:
    shown: dict[str, object] = {
        name.decode(): value.decode()
        for name, value in metadata.items()
        if not name.decode(errors="replace").startswith(_OWN_PREFIXES)
    }
    return {**shown, **json.loads(metadata.get(_OTHER, b"{}"))}


def _spark_type(arrow: pa.DataType, path: tuple[str, ...]) -> object:
    equivalent = _TO_SPARK.get(arrow)
    if equivalent is not None:
        return equivalent
    if pa.types.is_time(arrow):
        return next(name for name, held in _TIMES.items() if held.equals(arrow))
    if pa.types.is_decimal(arrow) and arrow.precision <= pa.decimal128(38, 0).precision:
        return f"decimal({arrow.precision},{arrow.scale})"
    if pa.types.is_timestamp(arrow):
        return "timestamp_ntz" if arrow.tz is None else "timestamp"
    if pa.types.is_fixed_size_binary(arrow):
        return "binary"
    if pa.types.is_dictionary(arrow):
        return _spark_type(arrow.value_type, path)
    if pa.types.is_struct(arrow):
        return {"type": "struct", "fields": [_spark_field(child, path) for child in arrow]}
    if pa.types.is_map(arrow):
        return {
            "type": "map",
            "keyType": _spark_type(arrow.key_type, (*path, "key")),
            "valueType": _spark_type(arrow.item_type, (*path, "value")),
            "valueContainsNull": arrow.item_field.nullable,
        }
    if hasattr(arrow, "value_field"):
        return {
            "type": "array",
            "elementType": _spark_type(arrow.value_type, (*path, "element")),
            "containsNull": arrow.value_field.nullable,
        }
    raise UnsupportedColumnType(column=".".join(path), type=arrow, target="Spark")
