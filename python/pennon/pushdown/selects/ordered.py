"""The keys of an order, as columns of their own.

NULL rules: those of the order, which says where NULLs stand.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from pennon.pushdown.selects.selected import Selected, named, selected_from

if TYPE_CHECKING:
    from collections.abc import Sequence


def with_columns_of(keys: Sequence[exp.Ordered], below: Selected, name: str) -> Selected:
    """Make a column of each key, which is ordered by then, unless all of them are columns.

    DataFusion 54 refuses to merge what several threads have sorted by some conditions.

    Args:
        keys: The keys, which become those columns.
        below: What is ordered.
        name: A name for it.
    """
    if all(isinstance(key.this.unnest(), exp.Column) for key in keys):
        return below
    columns = [exp.column(column, quoted=True) for column in below.types]
    computed = [named(key.this, f"o{at}") for at, key in enumerate(keys)]
    for at, key in enumerate(keys):
        key.set("this", exp.column(f"o{at}", quoted=True))
    return Selected(selected_from(below, name, [*columns, *computed]), below.types)
