"""Preserves keys of a schema's JSON that Pennon does not know.

They are remembered by the field's id, which stays when a field is renamed or moved. A field that
has none (an item of a fixed-size list, the entries of a map) is remembered by its name below the
nearest one that has.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

__all__ = ["UnknownKeys", "unknown_keys", "with_unknown_keys"]

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
