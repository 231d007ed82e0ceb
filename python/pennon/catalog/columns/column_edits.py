"""Changes of one column of a schema, at any depth; the other columns stay as they are."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa

from pennon.errors import UnknownColumn
from pennon.spec.schema import children_of, with_children

__all__ = ["edit_column", "place_column"]

Edit = Callable[[pa.Field], pa.Field | None]


def edit_column(schema: pa.Schema, path: Sequence[str], edit: Edit) -> pa.Schema:
    """Replace a column by what ``edit`` makes of it, or leave it out for None.

    Example:
        >>> edit_column(pa.schema({"a": pa.int8()}), ["a"], lambda column: column.with_name("b"))
        b: int8
    """
    return pa.schema(_edited(list(schema), tuple(path), edit), metadata=schema.metadata)


def place_column(
    schema: pa.Schema, path: Sequence[str], added: pa.Field | None, position: object
) -> pa.Schema:
    """Add a column, or move one that is there (``added`` None).

    Args:
        schema: The columns.
        path: The column.
        added: The new column; None moves the one at ``path``.
        position: ``{"first": true}``, ``{"after": name}``, or None for the end.
    """

    def placed(siblings: list[pa.Field]) -> list[pa.Field]:
        own = added
        if own is None:
            own = next(sibling for sibling in siblings if sibling.name == path[-1])
            siblings = [sibling for sibling in siblings if sibling.name != path[-1]]
        at = len(siblings)
        if isinstance(position, dict) and position.get("first"):
            at = 0
        elif isinstance(position, dict) and "after" in position:
            names = [sibling.name for sibling in siblings]
            if position["after"] not in names:
                raise UnknownColumn(column=position["after"], columns=", ".join(names))
            at = names.index(position["after"]) + 1
        return [*siblings[:at], own, *siblings[at:]]

    above = tuple(path[:-1])
    if not above:
        return pa.schema(placed(list(schema)), metadata=schema.metadata)

    def inside(parent: pa.Field) -> pa.Field:
        return parent.with_type(pa.struct(placed(list(parent.type))))

    return edit_column(schema, above, inside)


def _edited(siblings: list[pa.Field], path: tuple[str, ...], edit: Edit) -> list[pa.Field]:
    name, *below = path
    if all(sibling.name != name for sibling in siblings):
        raise UnknownColumn(column=name, columns=", ".join(sibling.name for sibling in siblings))
    edited_fields: list[pa.Field] = []
    for sibling in siblings:
        if sibling.name != name:
            edited_fields.append(sibling)
            continue
        if below:
            children = _edited(children_of(sibling.type), tuple(below), edit)
            edited_fields.append(sibling.with_type(with_children(sibling.type, children)))
            continue
        edited = edit(sibling)
        if edited is not None:
            edited_fields.append(edited)
    return edited_fields
