"""Conditions other than comparisons with literals, computed exactly as by Spark.

Where every column is an identity partition column, partition values decide it. A reader without
Spark behind it computes it on the rows; one that is not known to be computed as Spark does is an
error there, and never a guess.

NULL rules: those of ``predicate.expressions``; a filter takes NULL for FALSE.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from sqlglot import exp

from pennon.planning.binding.bound_predicate import ComputedCondition
from pennon.planning.binding.source_columns import (
    resolve_column,
    with_own_spelling,
)
from pennon.planning.binding.transform_calls import transformed_column
from pennon.predicate.column_references import reference_path, replaced_references
from pennon.predicate.expressions import Declined, Semantics, typed_expression
from pennon.predicate.spark_dialect import SparkSql
from pennon.predicate.values.literal_list import LiteralList
from pennon.predicate.values.long_lists import written_out

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pennon.planning.binding.bound_predicate import SourceColumn, TransformedColumn

# What is NULL as soon as one of its operands is.
_STRICT: Final = frozenset(
    {
        *(exp.Paren, exp.Neg, exp.Not, exp.Cast, exp.TryCast),
        *(exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Mod, exp.Abs, exp.DPipe),
        *(exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE),
        *(exp.Like, exp.ILike, exp.RegexpLike, exp.StartsWith, exp.EndsWith, exp.Contains),
        *(exp.Lower, exp.Upper, exp.Length, exp.Trim, exp.Substring, exp.Left, exp.Right),
    }
)


def computed_condition(
    node: exp.Expression, schema: pa.Schema, semantics: Semantics
) -> ComputedCondition:
    """Bind a condition that only a computation decides.

    Args:
        node: The condition.
        schema: The full schema of the table.
        semantics: The session's.

    Raises:
        UnknownColumn: The table has no column of that name.

    Example:
        >>> import pyarrow as pa
        >>> from sqlglot import parse_one
        >>> schema = pa.schema([("a", pa.int32())])
        >>> bound = computed_condition(parse_one("a % 3 = 1"), schema, Semantics())
        >>> [str(column.path[0]) for column in bound.sources]
        ['a']
    """
    sources: dict[SourceColumn | TransformedColumn, str] = {}
    calls: dict[tuple[str, ...], TransformedColumn] = {}

    def numbered(path: tuple[str, ...]) -> exp.Expression:
        column = calls.get(path) or resolve_column(path, schema)
        return exp.column(sources.setdefault(column, f"c{len(sources)}"), quoted=True)

    def called(inner: exp.Expr) -> exp.Expr:
        call = transformed_column(inner, schema)
        if call is None:
            return inner
        calls[call.path] = call
        return call.expression()

    is_long = node.find(LiteralList) is not None
    written = "" if is_long else node.sql(dialect=SparkSql, normalize_functions="lower")
    node = written_out(node.copy())
    whole = node.transform(called)
    try:
        tree = replaced_references(whole.copy(), numbered)
        types = {name: column.type for column, name in sources.items()}
        value = typed_expression(tree, types, semantics, pa.bool_())
    except Declined as reason:
        own = with_own_spelling(node.copy(), schema)
        rejected = _rejected_nulls(whole, schema)
        return ComputedCondition(own, why=str(reason), written=written, rejected_nulls=rejected)
    named = {name: column for column, name in sources.items()}
    own = replaced_references(value.tree, lambda path: named[path[0]].expression())
    # Rows have no such column, and DataFusion no such function.
    why = f"the transform {min(calls)[0]}" if calls else ""
    can_fail = value.can_fail or not _is_known_without_ansi(tree, types, semantics)
    return ComputedCondition(
        own,
        sources=tuple(sources),
        can_fail=can_fail,
        why=why,
        written=written,
        rejected_nulls=_rejected_nulls(whole, schema),
    )


def _rejected_nulls(node: exp.Expr, schema: pa.Schema) -> tuple[SourceColumn, ...]:
    """List the columns for whose NULL a condition is NULL, whatever the other columns are.

    Whether it is an error for these rows is not asked, as Spark infers IS NOT NULL all the same.
    """
    paths = sorted(_strict_in(node))
    return tuple(resolve_column(path, schema) for path in paths)


def _strict_in(node: exp.Expr) -> frozenset[tuple[str, ...]]:
    path = reference_path(node)
    if path is not None:
        return frozenset({tuple(path)})
    match node:
        case exp.In() | exp.Between():  # the rest of them may be NULL, and one is FALSE still
            return _strict_in(node.this)
        case exp.Not(this=exp.Is(expression=exp.Null()) as test):
            return _strict_in(test.this)
    if type(node) not in _STRICT:
        return frozenset()
    return frozenset[tuple[str, ...]]().union(*map(_strict_in, node.iter_expressions()))


def _is_known_without_ansi(
    tree: exp.Expr, types: Mapping[str, pa.DataType], semantics: Semantics
) -> bool:
    """Whether a session that is not ANSI computes a condition, too: plans do not know which."""
    try:
        typed_expression(tree, types, replace(semantics, ansi=False), pa.bool_())
    except Declined:
        return False
    return True
