"""Encodes and decodes messages: frozen dataclasses as JSON objects, by their annotations.

A field's JSON name is its own name, or ``key`` in its metadata; one whose key is None is in no
message, and ``read`` there makes the value of what JSON has. Every other field is written and has
to be there, so messages have no defaults. The jar checks all messages by the same declarations
(``Wire.java``).
"""

from __future__ import annotations

import base64
import types
from collections.abc import Callable, Mapping
from dataclasses import Field, dataclass, fields
from enum import StrEnum
from functools import cache
from typing import TYPE_CHECKING, Any, Final, TypeVar, get_args, get_origin, get_type_hints

import pyarrow as pa

from pennon.errors import MalformedMessage
from pennon.spec.arrow_json import type_from_json, type_to_json
from pennon.transforms.registry import from_message
from pennon.transforms.transform import Transform

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

T = TypeVar("T", bound="DataclassInstance")


@dataclass(frozen=True, slots=True)
class Spelling:
    """How messages have the values of a class that is no message itself.

    Args:
        type: The type in JSON, as ``Wire.java`` names it.
        read: Makes the value of what JSON has.
    """

    type: str
    read: Callable[[Any], Any]


SPELLINGS: Final[dict[Any, Spelling]] = {}
"""Those classes, for which whoever decodes them says it."""
_AS_THEY_ARE: Final = frozenset({str, int, float, bool, type(None)})
_LISTS: Final = (tuple, list)


def decode(cls: type[T], message: object) -> T:
    """Read a message: all of its fields, and no others.

    Args:
        cls: The message's dataclass; a request's ``op`` may stand beside its fields.
        message: The JSON object.

    Raises:
        MalformedMessage: A field is missing, unknown or of a wrong type. The error names the
            message and the field, and never a value: that may be a storage option.

    Example:
        >>> from pennon.worker.messages.messages import DroppedReply
        >>> decode(DroppedReply, {"dropped": True})
        DroppedReply(dropped=True)
    """
    if not isinstance(message, dict):
        raise _wrong(cls.__name__, message, "an object")
    declared = declared_fields(cls)
    unknown = message.keys() - declared.keys() - ({"op"} if hasattr(cls, "op") else set())
    if unknown:
        raise MalformedMessage(why=f"{cls.__name__} knows no field {min(unknown)}")
    values: dict[str, Any] = {}
    for key, (field, annotation) in declared.items():
        if key not in message:
            raise MalformedMessage(why=f"{cls.__name__} has no field {key}")
        read, value = field.metadata.get("read"), message[key]
        values[field.name] = (
            _read(annotation, value, f"{cls.__name__}.{key}") if read is None else read(value)
        )
    return cls(**values)


def encode(message: DataclassInstance) -> dict[str, object]:
    """Write a message as a JSON object.

    Example:
        >>> from pennon.worker.messages.messages import ListTablesReply
        >>> encode(ListTablesReply(tables=("orders",)))
        {'tables': ['orders']}
    """
    return {key: _written(getattr(message, name)) for key, name in _keys(type(message))}


@cache
def _keys(cls: type[DataclassInstance]) -> tuple[tuple[str, str], ...]:
    return tuple((key, field.name) for key, (field, _) in declared_fields(cls).items())


@cache
def declared_fields(cls: type[DataclassInstance]) -> Mapping[str, tuple[Field[Any], Any]]:
    """List the fields of a message, each with its annotation, by their keys in JSON."""
    hints = get_type_hints(cls)
    keys = ((field.metadata.get("key", field.name), field) for field in fields(cls))
    return {key: (field, hints[field.name]) for key, field in keys if key is not None}


@cache
def _shape(annotation: Any) -> tuple[Any, tuple[Any, ...]]:
    return get_origin(annotation), get_args(annotation)


def _read(annotation: Any, value: object, where: str) -> Any:
    if annotation is object or (type(value) is annotation and annotation in _AS_THEY_ARE):
        return value
    spelling = SPELLINGS.get(annotation)
    if spelling is not None:
        return spelling.read(value)
    origin, arguments = _shape(annotation)
    if origin is types.UnionType:
        if value is None:
            return None
        annotation = next(member for member in arguments if member is not types.NoneType)
        return _read(annotation, value, where)
    if origin is tuple:
        has_length = arguments[-1] is not ...
        if not isinstance(value, list) or (has_length and len(value) != len(arguments)):
            raise _wrong(where, value, f"a list of {len(arguments)}" if has_length else "a list")
        kind = arguments[0]
        if kind is object or (kind in _AS_THEY_ARE and all(type(item) is kind for item in value)):
            return tuple(value)
        return tuple(_read(kind, item, where) for item in value)
    if origin is Mapping:
        if not isinstance(value, dict):
            raise _wrong(where, value, "an object")
        return {str(key): _read(arguments[1], item, where) for key, item in value.items()}
    if hasattr(annotation, "__dataclass_fields__"):
        return decode(annotation, value)
    if annotation is Transform:
        if not isinstance(value, dict):
            raise _wrong(where, value, "an object")
        return from_message(value, type_from_json)
    if annotation is pa.Schema or issubclass(annotation, StrEnum):
        return _read_text(annotation, value, where)
    if not isinstance(value, annotation) or (annotation is int and isinstance(value, bool)):
        raise _wrong(where, value, annotation.__name__)
    return value


def _read_text(kind: Any, value: object, where: str) -> Any:
    """Read what stands in a text: a schema, or one of several names."""
    if not isinstance(value, str):
        raise _wrong(where, value, "a text")
    try:
        if kind is pa.Schema:
            return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(value)))
        return kind(value)
    except (ValueError, pa.ArrowInvalid) as error:
        raise MalformedMessage(why=f"{where} is no {kind.__name__}") from error


def _wrong(where: str, value: object, expected: str) -> MalformedMessage:
    # The value itself may be a storage option.
    return MalformedMessage(why=f"{where} is a {type(value).__name__} and should be {expected}")


def _written(value: object) -> object:
    if type(value) in _AS_THEY_ARE:
        return value
    if isinstance(value, Transform):
        return value.to_message(type_to_json)
    if hasattr(value, "__dataclass_fields__"):
        return encode(value)  # type: ignore[arg-type]
    if isinstance(value, _LISTS):
        return [item if type(item) in _AS_THEY_ARE else _written(item) for item in value]
    if isinstance(value, Mapping):
        return {key: _written(item) for key, item in value.items()}
    if isinstance(value, pa.Schema):
        return base64.b64encode(memoryview(value.serialize())).decode("ascii")
    return value
