"""Writes UNION ALL and Spark's Expand as one SELECT.

NULL rules: a row is what it is; nothing is compared.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlglot import exp

from pennon.predicate.semantics import Declined
from pennon.predicate.typed import call
from pennon.pushdown.selects.selected import (
    Selected,
    named,
    quoted_columns,
    selected_columns,
    selected_from,
    whole_number,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from pennon.plan import Expand, Union
    from pennon.predicate.typed import Typed

# The number of a projection beside the rows that it is applied to.
_PROJECTION: Final = "n"


def united(name: str, node: Union, inputs: Sequence[Selected]) -> Selected:
    """Write the rows of all inputs, each column under the union's name for it.

    Args:
        name: A name for the rows; those of the inputs begin with it.
        node: The ``UNION ALL``.
        inputs: Its inputs, in order.

    Raises:
        Declined: The inputs' columns differ in their types, or stand there twice.
    """
    types: dict[str, pa.DataType] = {}
    whole: exp.Query | None = None
    for at, below in enumerate(inputs):
        columns = []
        for output, sources in node.columns:
            source, column = f"c{sources[at]}", f"c{output}"
            kind = below.types.get(source)
            if kind is None or types.setdefault(column, kind) != kind:
                raise Declined(why="a union of several types")
            columns.append(named(exp.column(source, quoted=True), column))
        select = selected_from(below, f"{name}i{at}", columns)
        whole = (
            select if whole is None else exp.Union(this=whole, expression=select, distinct=False)
        )
    if whole is None or len(types) < len(node.columns):
        raise Declined(why="a union with a column that stands there twice")
    names = quoted_columns(types)
    return Selected(selected_columns(names).from_(whole.subquery(name, copy=False)), types)


def repeated(
    name: str, node: Expand, values: Sequence[Sequence[Typed]], below: Selected
) -> Selected:
    """Write the rows of an expansion: each row beside the number of each projection.

    Args:
        name: What the input is called.
        node: The expansion.
        values: For each column, its value in each projection.
        below: What is selected of the input.

    Raises:
        Declined: The outline does not contain its columns.
    """
    if not node.outputs:
        raise Declined(why="an expansion without its projections")
    number = exp.column(_PROJECTION, quoted=True)
    types: dict[str, pa.DataType] = {}
    columns: list[exp.Expr] = []
    for output, column in zip(node.outputs, values, strict=True):
        types[f"c{output.id}"] = column[0].type
        branches = [
            exp.If(this=exp.EQ(this=number.copy(), expression=whole_number(at)), true=value.tree)
            for at, value in enumerate(column)
        ]
        is_same = len(set(output.values)) == 1
        columns.append(
            named(column[0].tree if is_same else exp.Case(ifs=branches), f"c{output.id}")
        )
    # A cross join with the numbers may go through all rows one by one.
    numbers = [whole_number(at) for at in range(len(node.outputs[0].values))]
    listed = call("unnest", call("make_array", *numbers))
    every = [*quoted_columns(below.types), named(listed, _PROJECTION)]
    rows = Selected(selected_from(below, f"{name}n", every), below.types)
    return Selected(selected_from(rows, name, columns), types)
