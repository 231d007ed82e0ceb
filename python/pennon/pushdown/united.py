"""The SELECTs of a union's inputs → one SELECT of all their rows.

NULL rules: a row is what it is; nothing is compared.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from pennon.predicate.expressions.semantics import Declined
from pennon.pushdown.selected import Selected, named, selected_columns, selected_from

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from pennon.plan import Union


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
    names: list[exp.Expr] = [exp.column(each, quoted=True) for each in types]
    return Selected(selected_columns(names).from_(whole.subquery(name, copy=False)), types)
