"""Paths of nested columns as Spark spells them: ``a.element.x``, ``m.key``, ``m.value``."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from pennon.spec.schema import NamespaceSchema, SchemaField, children_of

__all__ = ["find_column", "inside_map_key", "is_container_part", "shown_path"]


def find_column(schema: NamespaceSchema, path: Sequence[str]) -> SchemaField | None:
    """Find a column by Spark's path: exactly, else the only one but for case.

    Example:
        >>> columns = pa.schema({"a": pa.list_(pa.struct({"x": pa.int8()}))})
        >>> column = find_column(NamespaceSchema.with_fresh_ids(columns), ["a", "element", "X"])
        >>> column.path
        ('a', 'item', 'x')
    """
    above: pa.DataType | None = None
    names: list[str] = []
    for name in path:
        fields = list(schema.arrow) if above is None else children_of(above)
        shown = [_shown(above, at, field) for at, field in enumerate(fields)]
        places = [at for at, one in enumerate(shown) if one == name] or [
            at for at, one in enumerate(shown) if one.lower() == name.lower()
        ]
        if len(places) != 1:
            return None
        names.append(fields[places[0]].name)
        above = fields[places[0]].type
    return schema.field_by_path(names)


def shown_path(schema: pa.Schema, path: Sequence[str]) -> tuple[str, ...]:
    """Spell the path of a field as Spark does.

    Example:
        >>> shown_path(pa.schema({"a": pa.list_(pa.int8())}), ["a", "item"])
        ('a', 'element')
    """
    fields, above = list(schema), None
    shown = []
    for name in path:
        at = next(at for at, field in enumerate(fields) if field.name == name)
        shown.append(_shown(above, at, fields[at]))
        above = fields[at].type
        fields = children_of(above)
    return tuple(shown)


def is_container_part(schema: pa.Schema, path: Sequence[str]) -> bool:
    """Whether a path ends at the elements of an array or the keys or values of a map."""
    return _type_of(schema, path[:-1]) not in (None, "struct")


def inside_map_key(schema: pa.Schema, path: Sequence[str]) -> bool:
    """Whether a path is that of a map's keys, or goes through them."""
    return any(
        _type_of(schema, path[:depth]) == "map"
        and _field_at(schema, path[:depth]).type.key_field.name == path[depth]
        for depth in range(1, len(path))
    )


def _type_of(schema: pa.Schema, path: Sequence[str]) -> str | None:
    if not path:
        return None
    data_type = _field_at(schema, path).type
    if pa.types.is_struct(data_type):
        return "struct"
    return "map" if pa.types.is_map(data_type) else "list"


def _field_at(schema: pa.Schema, path: Sequence[str]) -> pa.Field:
    fields = list(schema)
    for name in path:
        field_ = next(field for field in fields if field.name == name)
        fields = children_of(field_.type)
    return field_


def _shown(above: pa.DataType | None, at: int, field: pa.Field) -> str:
    if above is None or pa.types.is_struct(above):
        return str(field.name)
    return ("key", "value")[at] if pa.types.is_map(above) else "element"
