"""Writes a filter over what is selected below it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa

from pennon.predicate.expressions.typed_expression import typed_expression
from pennon.predicate.typed import columns_above
from pennon.pushdown.selects.selected import Selected, quoted_columns, selected_from

if TYPE_CHECKING:
    from collections.abc import Collection

    from pennon.predicate.semantics import Semantics
    from pennon.predicate.spark_expression import SparkExpression

__all__ = ["filtered"]

# More rows than there are anywhere.
_ALL_ROWS: Final = (1 << 63) - 1


def filtered(
    name: str,
    below: Selected,
    condition: SparkExpression,
    semantics: Semantics,
    left_out: Collection[str] = (),
) -> Selected:
    """Select the rows of which a condition is true.

    A condition that is an error for some rows must not see those that others leave out, below it
    those of the scan: DataFusion would compute all of them for every row.

    Args:
        name: Of what is below, in the query.
        below: What is selected.
        condition: Spark's.
        semantics: The session's.
        left_out: Columns that only the condition is about.

    Raises:
        Declined: It is not boolean, or a part of it is not known to be computed as Spark does.
    """
    value = typed_expression(condition, below.types, semantics, pa.bool_())
    if value.can_fail:
        below = _with_its_own_conditions_first(f"{name}a", below)
    types = {column: kind for column, kind in below.types.items() if column not in left_out}
    rows = selected_from(below, name, columns_above(value.tree, types))
    return Selected(rows.where(value.tree, copy=False), types)


def _with_its_own_conditions_first(name: str, below: Selected) -> Selected:
    """Let no condition from above move in: DataFusion moves none past a limit."""
    rows = selected_from(below, name, quoted_columns(below.types))
    return Selected(rows.limit(_ALL_ROWS, copy=False), below.types)
