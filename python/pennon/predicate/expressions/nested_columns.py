"""Columns of nested types: which pass through a query as they are, and the fields of structs.

NULL rules: a field of a NULL struct is NULL.

| DataFusion | Spark | guard |
|---|---|---|
| the field of a NULL struct is what lies there | NULL | CASE |
| a field that is read below a UNION has another's type | its own | ``execution.engine`` |
"""

from __future__ import annotations

import re
from functools import reduce
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from sqlglot import exp

from pennon.predicate.semantics import Declined
from pennon.predicate.typed import Typed, call, choice, is_carried, is_null, is_plain

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# Columns of a query are called so, and texts are searched for them by name.
_OF_QUERIES: Final = re.compile(r"[a-z]\d+")


def carried_column(tree: exp.Expr | None, columns: Mapping[str, pa.DataType]) -> Typed | None:
    """Name a column of a nested type as a whole; None for any other expression.

    Args:
        tree: An expression; None for one that cannot be read.
        columns: The columns that there are, and their types.

    Example:
        >>> carried_column(exp.column("c1"), {"c1": pa.list_(pa.int32())}).type
        ListType(list<item: int32>)
    """
    column = None if tree is None else tree.unnest()
    if not isinstance(column, exp.Column) or len(column.parts) > 1:
        return None
    kind = columns.get(column.name)
    if kind is None or not is_carried(kind):
        return None
    return Typed(exp.column(column.name, quoted=True), kind)


def struct_field(path: Sequence[str], columns: Mapping[str, pa.DataType]) -> Typed:
    """Read a field of a struct, or of a struct within one.

    Args:
        path: The column, and the names down to the field.
        columns: The columns that there are, and their types.

    Raises:
        Declined: There is none of a plain type, or its name could be that of a column.
    """
    column, *names = path
    kind = columns.get(column)
    structs: list[exp.Expr] = [exp.column(column, quoted=True)]
    for name in names:
        positions: list[int] = []
        if kind is not None and pa.types.is_struct(kind):
            positions = kind.get_all_field_indices(name)
        if kind is None or len(positions) != 1 or _OF_QUERIES.fullmatch(name):
            raise Declined(why=f"the column {'.'.join(path)}")
        kind = kind.field(positions[0]).type
        structs.append(call("get_field", structs[-1].copy(), exp.Literal.string(name)))
    if kind is None or not is_plain(kind):
        raise Declined(why=f"a field of {kind}")
    *above, value = structs
    is_missing = reduce(lambda one, other: exp.Or(this=one, expression=other), map(is_null, above))
    return Typed(choice((is_missing, exp.Null()), default=value), kind)
