"""Frozen dataclasses from and to the JSON objects of the protocol, by their annotations.

A field's JSON name is its own name, or ``key`` in its metadata. A missing value takes the field's
default; an unknown key is ignored, so that either side may learn new fields first.
"""

from __future__ import annotations

import types
from collections.abc import Mapping
from dataclasses import MISSING, Field, fields
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar, get_args, get_origin, get_type_hints

from pennon.errors import MalformedMessage

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

T = TypeVar("T", bound="DataclassInstance")


def decode(cls: type[T], message: Mapping[str, object]) -> T:
    """Read a message.

    Args:
        cls: The message's dataclass.
        message: The JSON object.

    Raises:
        MalformedMessage: A field is missing or of a wrong type.
    """
    values: dict[str, Any] = {}
    for field, annotation in _annotated(cls):
        key = _key(field)
        if key not in message or (message[key] is None and not _takes_none(annotation)):
            if field.default is MISSING and field.default_factory is MISSING:
                raise MalformedMessage(why=f"{cls.__name__} has no field {key}")
            continue
        values[field.name] = _read(annotation, message[key], f"{cls.__name__}.{key}")
    return cls(**values)


def encode(message: DataclassInstance) -> dict[str, object]:
    """Write a message as a JSON object.

    Example:
        >>> from pennon.worker.wire.messages import ListTablesReply
        >>> encode(ListTablesReply(tables=("orders",)))
        {'tables': ['orders']}
    """
    return {_key(field): _written(getattr(message, field.name)) for field in fields(message)}


@cache
def _annotated(cls: type[DataclassInstance]) -> tuple[tuple[Field[Any], Any], ...]:
    hints = get_type_hints(cls)
    return tuple((field, hints[field.name]) for field in fields(cls))


def _key(field: Field[Any]) -> str:
    return str(field.metadata.get("key", field.name))


def _takes_none(annotation: Any) -> bool:
    return annotation is object or (
        get_origin(annotation) is types.UnionType and types.NoneType in get_args(annotation)
    )


def _read(annotation: Any, value: object, where: str) -> Any:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if annotation is object:
        return value
    if origin is types.UnionType:
        if value is None:
            return None
        return _read(next(each for each in arguments if each is not types.NoneType), value, where)
    if origin is tuple:
        if not isinstance(value, list):
            raise _wrong(where, value, "a list")
        return tuple(_read(arguments[0], each, where) for each in value)
    if origin is Mapping:
        if not isinstance(value, dict):
            raise _wrong(where, value, "an object")
        return {str(key): _read(arguments[1], each, where) for key, each in value.items()}
    if hasattr(annotation, "__dataclass_fields__"):
        if not isinstance(value, dict):
            raise _wrong(where, value, "an object")
        return decode(annotation, value)
    if not isinstance(value, annotation) or (annotation is int and isinstance(value, bool)):
        raise _wrong(where, value, annotation.__name__)
    return value


def _wrong(where: str, value: object, wanted: str) -> MalformedMessage:
    # The value itself may be a storage option.
    return MalformedMessage(why=f"{where} is a {type(value).__name__} and should be {wanted}")


def _written(value: object) -> object:
    if hasattr(value, "__dataclass_fields__"):
        return encode(value)  # type: ignore[arg-type]
    if isinstance(value, tuple | list):
        return [_written(each) for each in value]
    if isinstance(value, Mapping):
        return {key: _written(each) for key, each in value.items()}
    return value
