"""The keys of an order, as columns of their own.

NULL rules: those of the order, which says where NULLs stand.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from pennon.pushdown.selects.selected import (
    Selected,
    named,
    quoted_columns,
    random_column,
    selected_from,
    varying,
)

if TYPE_CHECKING:
    from collections.abc import Sequence


def with_columns_of(keys: Sequence[exp.Ordered], below: Selected, name: str) -> Selected:
    """Make a column of each key, which is ordered by then.

    DataFusion 54 refuses to merge what several threads have sorted by some conditions. Where a key
    is a constant of each input of a UNION, it compares the first rows of one by the other keys only
    with those of another.

    Args:
        keys: The keys, which become those columns.
        below: What is ordered.
        name: A name for it.
    """
    columns = quoted_columns(below.types)
    varied = Selected(selected_from(below, name, [*columns, random_column()]), {})
    computed = [named(varying(key.this), f"o{at}") for at, key in enumerate(keys)]
    for at, key in enumerate(keys):
        key.set("this", exp.column(f"o{at}", quoted=True))
    kept = [column.copy() for column in columns]
    return Selected(selected_from(varied, f"{name}y", [*kept, *computed]), below.types)
