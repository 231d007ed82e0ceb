"""JsonArrowSchema and JsonArrowDataType of the namespace specification, to and from Arrow.

Upstream's model of a type has a name, child fields and a ``length``: no unit, no zone, no
precision. So units and zones stand inside the type's name in Arrow's spelling
(``timestamp[us, tz=UTC]``), and a decimal's ``length`` is precision * 1000 + scale, as upstream's
directory namespace has it. Reading accepts the other spellings met in the wild: a bare
``timestamp`` (microseconds without zone), ``timestamp(us, UTC)``,
``Timestamp(Microsecond, Some("UTC"))``, ``decimal128(10, 2)``, ``string``, ``boolean``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

import pyarrow as pa

from pennon.errors import CorruptJson, InvalidArrowJson

__all__ = [
    "BLOB",
    "EXTENSION_NAME",
    "TYPE_MARKS",
    "UnknownKeys",
    "field_from_json",
    "field_to_json",
    "is_blob",
    "object_from_text",
    "object_or_empty",
    "storage_field",
    "storage_type",
    "text_of",
    "type_from_json",
    "type_to_json",
    "unknown_keys",
    "with_unknown_keys",
]


# Parses JSON metadata, with errors that name key, line and column.


def object_from_text(text: str, key: str) -> dict[str, object]:
    """Parse a JSON object.

    Args:
        text: The value of a metadata key.
        key: The key, for errors.

    Raises:
        CorruptJson: The text is not JSON, or its value is not an object.

    Example:
        >>> object_from_text('{"id": 1}', "partition_spec_v1")
        {'id': 1}

    Spec: "Metadata Definition".
    """
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise CorruptJson(
            key=key, problem=error.msg, line=error.lineno, column=error.colno
        ) from error
    if not isinstance(value, dict):
        raise CorruptJson(
            key=key, problem=f"expected an object, found {text[:40]!r}", line=1, column=1
        )
    return value


def object_or_empty(text: str | None) -> dict[str, object]:
    """Read a JSON object; an empty one where the text is none, as another writer may leave it.

    Example:
        >>> object_or_empty('{"num_rows": "3"}'), object_or_empty("[1]"), object_or_empty(None)
        ({'num_rows': '3'}, {}, {})
    """
    try:
        value = json.loads(text or "{}")
    except json.JSONDecodeError:
        return {}
    return value if isinstance(value, dict) else {}


def text_of(written: object) -> str:
    """Write JSON as the specification's examples have it: compact, keys in their order.

    Example:
        >>> text_of({"id": 1, "fields": []})
        '{"id":1,"fields":[]}'

    Spec: Appendix E.
    """
    return json.dumps(written, separators=(",", ":"), ensure_ascii=False)


# Preserves keys of a schema's JSON that Pennon does not know.
#
# They are remembered by the field's id, which stays when a field is renamed or moved. A field that
# has none (an item of a fixed-size list, the entries of a map) is remembered by its name below the
# nearest one that has.

_Place = tuple[int | str, ...]
UnknownKeys = Mapping[_Place, Mapping[str, Mapping[str, object]]]
"""By field, the keys of the field (``field``) and those of its type (``type``)."""

_FIELD_ID: Final = "lance:field_id"
_FIELD_KEYS: Final = frozenset({"name", "nullable", "type", "metadata"})
_TYPE_KEYS: Final = frozenset({"type", "fields", "length"})


def unknown_keys(columns: Sequence[object]) -> UnknownKeys:
    """Collect the unknown keys of JsonArrowField objects and of all below them.

    Example:
        >>> column = {"name": "a", "type": {"type": "int8"}, "metadata": {"lance:field_id": "3"}}
        >>> unknown_keys([{**column, "tags": ["pii"]}])
        {(3,): {'field': {'tags': ['pii']}}}
    """
    unknown: dict[_Place, Mapping[str, Mapping[str, object]]] = {}
    for column in columns:
        for place, written in _walk(column, ()):
            data_type = written.get("type")
            kept_by_place = {
                "field": _others(written, _FIELD_KEYS),
                "type": _others(data_type, _TYPE_KEYS) if isinstance(data_type, dict) else {},
            }
            kept = {name: keys for name, keys in kept_by_place.items() if keys}
            if kept:
                unknown[place] = kept
    return unknown


def with_unknown_keys(written: dict[str, object], known: UnknownKeys) -> dict[str, object]:
    """Put the unknown keys of a column, and of all below it, back; the column is changed."""
    if known:
        for place, mapping in _walk(written, ()):
            keys = known.get(place, {})
            mapping.update(keys.get("field", {}))
            data_type = mapping["type"]
            if isinstance(data_type, dict):
                data_type.update(keys.get("type", {}))
    return written


def _others(written: Mapping[str, object], known: frozenset[str]) -> dict[str, object]:
    return {name: value for name, value in written.items() if name not in known}


def _walk(written: object, above: _Place) -> Iterator[tuple[_Place, dict[str, object]]]:
    """Give a field and all below it, each with its place."""
    if not isinstance(written, dict):
        return
    metadata, data_type = written.get("metadata"), written.get("type")
    stated = metadata.get(_FIELD_ID) if isinstance(metadata, dict) else None
    text = str(stated)
    place: _Place = (int(text),) if text.isdecimal() else (*above, str(written.get("name")))
    yield place, written
    below = data_type.get("fields") if isinstance(data_type, dict) else None
    for child in below if isinstance(below, list) else ():
        yield from _walk(child, place)


# A column of an extension type is one of its storage type whose metadata names the extension, as
# Arrow writes it into files. Blobs, of either version of Lance, are LARGE_BINARY with Lance's mark.

EXTENSION_NAME: Final = b"ARROW:extension:name"
_EXTENSION_PARAMETERS: Final = b"ARROW:extension:metadata"
BLOB: Final = b"lance-encoding:blob"
"""The metadata key of a column whose values Lance stores beside the others."""
_BLOB_EXTENSION: Final = "lance.blob.v2"
TYPE_MARKS: Final = frozenset({EXTENSION_NAME, _EXTENSION_PARAMETERS, BLOB})
"""The keys of a field's metadata that say how its values are stored."""


def is_blob(field: pa.Field) -> bool:
    """Whether a field, as ``storage_field`` gives it, is one of blobs.

    Example:
        >>> is_blob(pa.field("image", pa.large_binary(), metadata={"lance-encoding:blob": "true"}))
        True
    """
    return (field.metadata or {}).get(BLOB, b"").lower() == b"true"


def storage_field(field: pa.Field) -> pa.Field:
    """Give a field with the storage of its extension types, the name of its own in its metadata.

    Example:
        >>> storage_field(pa.field("id", pa.uuid()))
        pyarrow.Field<id: fixed_size_binary[16]>
    """
    metadata, extension = dict(field.metadata or {}), field.type
    is_extension = isinstance(extension, pa.BaseExtensionType)
    if not (is_extension or extension.num_fields or TYPE_MARKS & metadata.keys()):
        return field
    if isinstance(extension, pa.BaseExtensionType) and extension.extension_name != _BLOB_EXTENSION:
        metadata[EXTENSION_NAME] = extension.extension_name.encode()
        metadata[_EXTENSION_PARAMETERS] = _parameters(extension)
    elif _is_second_blob(field):
        metadata = {BLOB: b"true"} | {
            key: text for key, text in metadata.items() if not key.startswith(b"ARROW:extension:")
        }
    plain = field.with_metadata(metadata or None)
    return plain.with_type(pa.large_binary() if is_blob(plain) else storage_type(extension))


def storage_type(data_type: pa.DataType) -> pa.DataType:
    """Give the type that stores the values of one which is, or has below it, an extension type.

    Example:
        >>> storage_type(pa.list_(pa.json_()))
        ListType(list<item: string>)
    """
    if isinstance(data_type, pa.BaseExtensionType):
        return storage_type(data_type.storage_type)
    if not data_type.num_fields:
        return data_type
    if pa.types.is_struct(data_type):
        return pa.struct([storage_field(child) for child in data_type])
    if pa.types.is_map(data_type):
        key, item = storage_field(data_type.key_field), storage_field(data_type.item_field)
        return pa.map_(key, item, keys_sorted=data_type.keys_sorted)
    if pa.types.is_fixed_size_list(data_type):
        return pa.list_(storage_field(data_type.value_field), data_type.list_size)
    if pa.types.is_list(data_type):
        return pa.list_(storage_field(data_type.value_field))
    if pa.types.is_large_list(data_type):
        return pa.large_list(storage_field(data_type.value_field))
    return data_type


def _is_second_blob(field: pa.Field) -> bool:
    name = (field.metadata or {}).get(EXTENSION_NAME, b"").decode(errors="replace")
    return _BLOB_EXTENSION in (name, getattr(field.type, "extension_name", None))


def _parameters(extension: pa.BaseExtensionType) -> bytes:
    """Write what an extension type is made with, as its definition demands."""
    if isinstance(extension, pa.ExtensionType):
        return bytes(extension.__arrow_ext_serialize__())
    if isinstance(extension, pa.FixedShapeTensorType):
        shaped = {
            "shape": extension.shape,
            "dim_names": extension.dim_names,
            "permutation": extension.permutation,
        }
        return text_of({key: value for key, value in shaped.items() if value is not None}).encode()
    if isinstance(extension, pa.OpaqueType):
        return text_of(
            {"type_name": extension.type_name, "vendor_name": extension.vendor_name}
        ).encode()
    return b""


_PLAIN: Final[Mapping[str, pa.DataType]] = {
    "null": pa.null(),
    "bool": pa.bool_(),
    "int8": pa.int8(),
    "int16": pa.int16(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "uint8": pa.uint8(),
    "uint16": pa.uint16(),
    "uint32": pa.uint32(),
    "uint64": pa.uint64(),
    "float16": pa.float16(),
    "float32": pa.float32(),
    "float64": pa.float64(),
    "utf8": pa.utf8(),
    "large_utf8": pa.large_utf8(),
    "utf8_view": pa.string_view(),
    "binary": pa.binary(),
    "large_binary": pa.large_binary(),
    "binary_view": pa.binary_view(),
    "date32": pa.date32(),
    "date64": pa.date64(),
}
_NAME_OF: Final[Mapping[pa.DataType, str]] = {plain: name for name, plain in _PLAIN.items()}
_SYNONYMS: Final[Mapping[str, str]] = {
    "boolean": "bool",
    "string": "utf8",
    "large_string": "large_utf8",
    "string_view": "utf8_view",
    "halffloat": "float16",
    "float": "float32",
    "double": "float64",
    "date": "date32",
    "date32[day]": "date32",
    "date64[ms]": "date64",
    "largeutf8": "large_utf8",
    "largebinary": "large_binary",
    "utf8view": "utf8_view",
    "binaryview": "binary_view",
    "largelist": "large_list",
    "fixedsizelist": "fixed_size_list",
    "fixedsizebinary": "fixed_size_binary",
}
_UNITS: Final[Mapping[str, str]] = {
    "s": "s",
    "second": "s",
    "ms": "ms",
    "millisecond": "ms",
    "us": "us",
    "microsecond": "us",
    "ns": "ns",
    "nanosecond": "ns",
}
# name, optionally followed by parameters in [...], (...) or <...>
_SPELLING = re.compile(r"\s*([A-Za-z0-9_]+)\s*(?:[\[(](.*)[\])])?\s*", re.DOTALL)
_ZONE = re.compile(r"""(?:tz\s*=\s*)?(?:some\()?["']?([^"'()]+?)["']?\)?""", re.IGNORECASE)
_DECIMAL_BITS: Final[Mapping[str, Callable[[int, int], pa.DataType]]] = {
    "decimal32": pa.decimal32,
    "decimal64": pa.decimal64,
    "decimal128": pa.decimal128,
    "decimal256": pa.decimal256,
    "decimal": pa.decimal128,
}


def type_to_json(data_type: pa.DataType) -> dict[str, object]:
    """Write an Arrow type as a JsonArrowDataType object.

    Args:
        data_type: Any Arrow type that Lance stores.

    Returns:
        An object with ``type`` and, where the type has them, ``fields`` and ``length``.

    Raises:
        InvalidArrowJson: The type has no JSON form (unions, run-end encoding).

    Example:
        >>> type_to_json(pa.timestamp("us", "UTC"))
        {'type': 'timestamp[us, tz=UTC]'}
        >>> type_to_json(pa.decimal128(10, 2))
        {'type': 'decimal128', 'length': 10002}

    Spec: "Schema", "Partition Field Schema".
    """
    if data_type in _NAME_OF:
        return {"type": _NAME_OF[data_type]}
    if pa.types.is_decimal(data_type):
        bits = data_type.bit_width
        return {"type": f"decimal{bits}", "length": data_type.precision * 1000 + data_type.scale}
    if pa.types.is_fixed_size_binary(data_type):
        return {"type": "fixed_size_binary", "length": data_type.byte_width}
    if pa.types.is_temporal(data_type):
        return {"type": str(data_type)}
    if pa.types.is_dictionary(data_type):
        # Upstream writes the values' type: the encoding is a property of the file.
        return type_to_json(data_type.value_type)
    return _nested_to_json(data_type)


def _nested_to_json(data_type: pa.DataType) -> dict[str, object]:
    if pa.types.is_struct(data_type):
        return {"type": "struct", "fields": [field_to_json(child) for child in data_type]}
    if pa.types.is_map(data_type):
        entries = pa.field(
            "entries", pa.struct([data_type.key_field, data_type.item_field]), nullable=False
        )
        return {"type": "map", "fields": [field_to_json(entries)]}
    if pa.types.is_fixed_size_list(data_type):
        return {
            "type": "fixed_size_list",
            "fields": [field_to_json(data_type.value_field)],
            "length": data_type.list_size,
        }
    if pa.types.is_list(data_type) or pa.types.is_large_list(data_type):
        name = "list" if pa.types.is_list(data_type) else "large_list"
        return {"type": name, "fields": [field_to_json(data_type.value_field)]}
    raise InvalidArrowJson(
        where="type", actual=str(data_type), expected="an Arrow type that Lance stores"
    )


def field_to_json(field: pa.Field) -> dict[str, object]:
    """Write an Arrow field as a JsonArrowField object, its metadata included.

    Example:
        >>> field_to_json(pa.field("id", pa.int64(), nullable=False))
        {'name': 'id', 'nullable': False, 'type': {'type': 'int64'}}

    Spec: "Schema", Appendix A.
    """
    field = storage_field(field)
    written: dict[str, object] = {
        "name": field.name,
        "nullable": field.nullable,
        "type": type_to_json(field.type),
    }
    if field.metadata:
        written["metadata"] = {
            key.decode(): value.decode() for key, value in field.metadata.items()
        }
    return written


def type_from_json(written: object, where: str = "type") -> pa.DataType:
    """Read a JsonArrowDataType object, or a bare type name, as an Arrow type.

    Args:
        written: The parsed JSON value.
        where: What to name in an error, for example ``schema.fields[2].type``.

    Raises:
        InvalidArrowJson: The value is not a type; the error names ``where`` and what was found.

    Example:
        >>> type_from_json({"type": "timestamp[us, tz=UTC]"})
        TimestampType(timestamp[us, tz=UTC])
        >>> type_from_json({"type": "decimal128", "length": 10002})
        Decimal128Type(decimal128(10, 2))

    Spec: "Schema", "Partition Field Schema".
    """
    if isinstance(written, str):
        written = {"type": written}
    if not isinstance(written, Mapping) or not isinstance(written.get("type"), str):
        raise InvalidArrowJson(
            where=where, actual=repr(written), expected='an object with a "type" name'
        )
    spelled: str = written["type"]
    matched = _SPELLING.fullmatch(spelled)
    if matched is None:
        raise InvalidArrowJson(where=where, actual=repr(spelled), expected="an Arrow type name")
    name = matched.group(1).lower()
    name = _SYNONYMS.get(spelled.strip().lower(), _SYNONYMS.get(name, name))
    parameters = matched.group(2)
    if name in _PLAIN:
        return _PLAIN[name]
    length = written.get("length")
    if name in _DECIMAL_BITS:
        return _decimal(name, parameters, length, where)
    if name in {"timestamp", "timestamp_tz", "timestamptz", "time32", "time64", "time", "duration"}:
        return _temporal(name, parameters, where)
    if name == "fixed_size_binary":
        return pa.binary(_whole(length if parameters is None else parameters, where))
    return _nested_from_json(name, written, where)


def _whole(value: object, where: str) -> int:
    try:
        if isinstance(value, (int, str)) and not isinstance(value, bool):
            return int(value)
    except ValueError as error:
        raise InvalidArrowJson(
            where=where, actual=repr(value), expected="a whole number"
        ) from error
    raise InvalidArrowJson(where=f"{where}.length", actual=repr(value), expected="a whole number")


def _decimal(name: str, parameters: str | None, length: object, where: str) -> pa.DataType:
    if parameters is not None:
        digits = [_whole(part.strip(), where) for part in parameters.split(",")]
        precision, scale = digits[0], digits[1] if len(digits) > 1 else 0
    else:
        precision, scale = divmod(_whole(length, where), 1000)
    try:
        return _DECIMAL_BITS[name](precision, scale)
    except ValueError as error:
        raise InvalidArrowJson(
            where=where,
            actual=f"precision {precision}, scale {scale}",
            expected=f"what {name} can hold",
        ) from error


def _temporal(name: str, parameters: str | None, where: str) -> pa.DataType:
    default = {"time32": "ms"}.get(name, "us")
    unit_text, _, zone_text = (parameters or default).partition(",")
    unit = _UNITS.get(unit_text.strip().lower())
    if unit is None:
        raise InvalidArrowJson(
            where=where, actual=repr(unit_text), expected="a unit s, ms, us or ns"
        )
    try:
        if name == "time32":
            return pa.time32(unit)
        if name in {"time64", "time"}:
            return pa.time64(unit)
        if name == "duration":
            return pa.duration(unit)
    except ValueError as error:
        raise InvalidArrowJson(
            where=where, actual=repr(unit), expected=f"a unit of {name}"
        ) from error
    zone = _zone(zone_text.strip())
    if zone is None and name != "timestamp":
        zone = "UTC"
    return pa.timestamp(unit, zone)


def _zone(text: str) -> str | None:
    if not text or text.lower() == "none":
        return None
    matched = _ZONE.fullmatch(text)
    return matched.group(1) if matched else text


def _nested_from_json(name: str, written: Mapping[str, object], where: str) -> pa.DataType:
    if name not in {"struct", "list", "large_list", "fixed_size_list", "map"}:
        raise InvalidArrowJson(
            where=where, actual=repr(written["type"]), expected="a known Arrow type name"
        )
    children = written.get("fields")
    if not isinstance(children, Sequence) or isinstance(children, str):
        raise InvalidArrowJson(
            where=f"{where}.fields", actual=repr(children), expected="an array of fields"
        )
    fields = [field_from_json(child, f"{where}.fields[{at}]") for at, child in enumerate(children)]
    if name == "struct":
        return pa.struct(fields)
    if name == "map":
        return _map(fields, where)
    if len(fields) != 1:
        raise InvalidArrowJson(
            where=f"{where}.fields",
            actual=f"{len(fields)} fields",
            expected=f"the one item of a {name}",
        )
    if name == "fixed_size_list":
        return pa.list_(fields[0], _whole(written.get("length"), where))
    return pa.list_(fields[0]) if name == "list" else pa.large_list(fields[0])


def _map(fields: Sequence[pa.Field], where: str) -> pa.DataType:
    if len(fields) == 1 and pa.types.is_struct(fields[0].type):
        fields = list(fields[0].type)
    if len(fields) != 2:  # noqa: PLR2004 - a key and a value
        raise InvalidArrowJson(
            where=f"{where}.fields",
            actual=f"{len(fields)} fields",
            expected="a map's key and value",
        )
    key, item = fields
    return pa.map_(key.with_nullable(False), item)


def field_from_json(written: object, where: str = "field") -> pa.Field:
    """Read a JsonArrowField object.

    Raises:
        InvalidArrowJson: The object lacks a name or a type, or its type is not one of Arrow's.

    Example:
        >>> field_from_json({"name": "id", "nullable": False, "type": {"type": "int64"}})
        pyarrow.Field<id: int64 not null>

    Spec: "Schema", Appendix A.
    """
    if not isinstance(written, Mapping):
        raise InvalidArrowJson(where=where, actual=repr(written), expected="a field object")
    name = written.get("name")
    if not isinstance(name, str):
        raise InvalidArrowJson(where=f"{where}.name", actual=repr(name), expected="a string")
    nullable = written.get("nullable", True)
    if not isinstance(nullable, bool):
        raise InvalidArrowJson(
            where=f"{where}.nullable", actual=repr(nullable), expected="true or false"
        )
    metadata = written.get("metadata")
    if metadata is not None and not isinstance(metadata, Mapping):
        raise InvalidArrowJson(
            where=f"{where}.metadata", actual=repr(metadata), expected="an object of strings"
        )
    read = pa.field(
        name,
        type_from_json(written.get("type"), f"{where}.type"),
        nullable=nullable,
        metadata={str(key): str(value) for key, value in metadata.items()} if metadata else None,
    )
    return storage_field(read)  # others may write a blob as the struct that Lance has for it
