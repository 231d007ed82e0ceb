"""A SELECT of DataFusion under construction: its tree, and the types of its columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from sqlglot import exp

from pennon.predicate.column_references import quoted_columns
from pennon.predicate.typed import binary, call, cast, choice

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = [
    "Selected",
    "named",
    "only_columns",
    "quoted_columns",
    "random_column",
    "selected_columns",
    "selected_from",
    "selected_table",
    "varying",
    "whole_number",
]

# A SELECT without columns still counts rows.
_NOTHING: Final = "c"
_VARYING: Final = "y"
# What a SELECT may consist of whose list of columns nothing else in it refers to.
_PLAIN_CLAUSES: Final = frozenset({"expressions", "from_", "joins", "where"})


@dataclass(frozen=True, slots=True)
class Selected:
    """A SELECT, and its columns in order: their names and their types."""

    select: exp.Select
    types: Mapping[str, pa.DataType]


def selected_from(below: Selected, name: str, columns: Sequence[exp.Expr]) -> exp.Select:
    """Select columns of what is selected below, which gets a name."""
    return selected_columns(columns).from_(below.select.subquery(name, copy=False), copy=False)


def only_columns(below: Selected, names: Sequence[str]) -> Selected | None:
    """Leave columns out of a SELECT itself, and put the others in order.

    A SELECT around it would say the same, and everybody who reads the query would take it apart.

    Args:
        below: What is selected.
        names: The columns that stay.

    Returns:
        The SELECT, which is the same one changed; None where its columns are more than a list.
    """
    stated = {clause for clause, value in below.select.args.items() if value}
    columns = {column.alias_or_name: column for column in below.select.expressions}
    if not names or not stated <= _PLAIN_CLAUSES or not columns.keys() >= set(names):
        return None
    below.select.set("expressions", [columns[name] for name in names])
    return Selected(below.select, {name: below.types[name] for name in names})


def selected_columns(columns: Sequence[exp.Expr]) -> exp.Select:
    """Begin a SELECT of columns, or of rows only."""
    chosen = list(columns) or [named(exp.true(), _NOTHING)]
    return exp.select(*chosen, copy=False)


def named(tree: exp.Expr, name: str) -> exp.Expr:
    """Give a column its name; the tree becomes a part of it."""
    return exp.alias_(tree, name, quoted=True, copy=False)


def random_column() -> exp.Expr:
    """Select a number of each row that no optimizer knows: what ``varying`` reads."""
    return named(call("random"), _VARYING)


def varying(value: exp.Expr) -> exp.Expr:
    """Give a value so that DataFusion does not take it for constant.

    Args:
        value: Of rows that have a ``random_column``.
    """
    is_there = binary(exp.GTE, exp.column(_VARYING, quoted=True), exp.Literal.number(0))
    return choice((is_there, value), default=None)


def selected_table(name: str, columns: Sequence[exp.Expr]) -> exp.Select:
    """Select columns of a table."""
    table = exp.Table(this=exp.to_identifier(name))
    return selected_columns(columns).from_(table, copy=False)


def whole_number(value: int) -> exp.Expr:
    """Write a BIGINT."""
    return cast(exp.Literal.number(value), pa.int64())
