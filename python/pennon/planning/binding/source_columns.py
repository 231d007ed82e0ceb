"""Column names of a predicate → columns of the full schema, nested ones too."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

import pyarrow as pa

from pennon.errors import UnknownColumn
from pennon.leaf.read.metadata_columns import is_metadata_column
from pennon.planning.binding.bound_predicate import SourceColumn
from pennon.predicate.column_references import referenced_paths, replaced_references
from pennon.predicate.values.arrow_kinds import is_list
from pennon.spec.schema import FIELD_ID, NamespaceSchema

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from sqlglot import exp

# So many columns are listed of a table that has not the one asked for.
_LISTED = 20


def resolve_column(path: Sequence[str], schema: pa.Schema) -> SourceColumn:
    """Find a column by its names; the case is ignored, as Spark does, unless it decides.

    Raises:
        UnknownColumn: No such column, or several that differ in case only.

    Example:
        >>> resolve_column(["A"], pa.schema([("a", pa.int32())])).path
        ('a',)
    """
    path_fields: list[pa.Field] = []
    within: pa.Schema | pa.DataType = schema
    for name in path:
        matching = _named(within, name)
        if len(matching) != 1:
            raise UnknownColumn(column=".".join(path), columns=_near(path, schema))
        path_fields.append(matching[0])
        within = matching[0].type
    last = path_fields[-1]
    field_id = (last.metadata or {}).get(FIELD_ID)
    return SourceColumn(
        tuple(field.name for field in path_fields),
        None if field_id is None else int(field_id),
        last.type,
        is_metadata=is_metadata_column(path_fields[0]),
    )


def is_of_elements(path: Sequence[str], schema: pa.Schema) -> bool:
    """Whether names lead to a field of the elements of a list, which Spark takes for a list.

    Example:
        >>> kind = pa.list_(pa.struct([("x", pa.int32())]))
        >>> is_of_elements(["a", "x"], pa.schema([("a", kind)]))
        True
    """
    within: pa.Schema | pa.DataType = schema
    is_within = False
    for at, name in enumerate(path):
        matching = _named(within, name)
        if len(matching) != 1:
            return False
        within = matching[0].type
        while is_list(within) and at + 1 < len(path):
            within, is_within = within.value_type, True
    return is_within


def source_columns(schema: NamespaceSchema, field_ids: Iterable[int]) -> dict[int, SourceColumn]:
    """Find columns by their field ids; those inside lists and maps are left out.

    Args:
        schema: The table's.
        field_ids: Those of a spec's sources; the cost is by their number, not by the columns'.

    Example:
        >>> schema = NamespaceSchema.with_fresh_ids(pa.schema({"a": pa.int32(), "b": pa.int32()}))
        >>> {number: column.path for number, column in source_columns(schema, [1, 7]).items()}
        {1: ('b',)}
    """
    return {
        field_id: resolve_column(column.path, schema.arrow)
        for field_id in field_ids
        if (column := schema.field_by_id(field_id)) is not None
        and all(_is_struct(schema, column.path[:depth]) for depth in range(1, len(column.path)))
    }


def names_elements(node: exp.Expr, schema: pa.Schema) -> bool:
    """Whether a tree names a field of the elements of a list."""
    return any(is_of_elements(path, schema) for path in referenced_paths(node))


def with_own_spelling(node: exp.Expr, schema: pa.Schema) -> exp.Expression:
    """Rewrite every column reference of a tree in the table's own spelling, in place."""
    return replaced_references(node, lambda path: resolve_column(path, schema).expression())


def _is_struct(schema: NamespaceSchema, path: Sequence[str]) -> bool:
    column = schema.field_by_path(path)
    return column is not None and pa.types.is_struct(column.field.type)


def _named(within: pa.Schema | pa.DataType, name: str) -> list[pa.Field]:
    """Find the fields of a name; all are looked at only where none is spelt as it is."""
    if isinstance(within, pa.DataType) and not pa.types.is_struct(within):
        return []
    exact = within.get_all_field_indices(name)
    if exact:
        return [within.field(at) for at in exact]
    return [field for field in within if field.name.lower() == name.lower()]


def _paths(fields: Sequence[pa.Field], above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for field in fields:
        path = (*above, field.name)
        yield path
        if pa.types.is_struct(field.type):
            inner = [field.type.field(i) for i in range(field.type.num_fields)]
            yield from _paths(inner, path)


def _near(path: Sequence[str], schema: pa.Schema) -> str:
    names = [".".join(name_path) for name_path in _paths(list(schema))]
    by_lower = {name.lower(): name for name in names}
    close = difflib.get_close_matches(".".join(path).lower(), list(by_lower), n=5, cutoff=0.5)
    near = [by_lower[name] for name in close]
    listed = [*near, *(name for name in names if name not in near)]
    return ", ".join([*listed[:_LISTED], *(["…"] if len(listed) > _LISTED else [])])
