"""Whether a computed condition can be TRUE in a leaf, by the bounds of its columns.

What is walked is the condition as DataFusion computes it, in which every implicit cast, and every
width in which Spark would find an overflow, is written. A form that is not known here says nothing
of the whole condition.

NULL rules: those of ``possible_values``; a leaf is kept where the condition can be TRUE.
"""

from __future__ import annotations

import decimal
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
from sqlglot import exp

from pennon.manifest.format.column_statistics import is_counted_type
from pennon.manifest.statistics_texts import ColumnBounds
from pennon.planning.binding.bound_predicate import ComputedCondition, SourceColumn
from pennon.planning.possible_values import (
    PossibleValues,
    arithmetic,
    both,
    compared,
    either,
    first_valid,
    listed,
    magnitude,
    negated,
    null_safe_equal,
)
from pennon.predicate.column_references import reference_path
from pennon.predicate.connectives import operands
from pennon.predicate.typed import has_more_nodes
from pennon.predicate.values.literals import arrow_type, literal_value

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["can_be_true", "deciding_columns"]

# Of a longer condition nothing is said: planning walks it several times.
_MOST_NODES: Final = 2_000
# More digits than the product of two of the widest decimals has, so that none is rounded.
_EXACT: Final = decimal.Context(prec=400, traps=[decimal.Inexact, decimal.InvalidOperation])


def deciding_columns(condition: ComputedCondition) -> tuple[SourceColumn, ...]:
    """List the columns whose bounds can tell that a condition is TRUE of no row.

    Args:
        condition: Any that is computed.

    Returns:
        Its columns; none where bounds say nothing of it.

    Example:
        >>> deciding_columns(ComputedCondition(exp.true()))
        ()

    Spec: "Partition Pruning".
    """
    sources = condition.sources
    columns = [column for column in sources if isinstance(column, SourceColumn)]
    is_counted = all(
        column.field_id is not None and is_counted_type(column.type) for column in columns
    )
    is_known = not condition.why and is_counted and len(columns) == len(sources) > 0
    if not is_known or has_more_nodes(condition.expression, _MOST_NODES):
        return ()
    return tuple(columns) if _possible(condition, {}, 0) is not None else ()


def can_be_true(
    condition: ComputedCondition, bounds_of: Mapping[int, ColumnBounds], num_leaves: int
) -> pa.Array | None:
    """Tell of each leaf whether a condition can be TRUE of a row in it, or an error.

    Args:
        condition: One of which there are ``deciding_columns``.
        bounds_of: What is known of columns, by field id.
        num_leaves: How many leaves there are.

    Returns:
        A boolean per leaf, never NULL; None where nothing is known of any.

    Example:
        >>> can_be_true(ComputedCondition(exp.true()), {}, 1)

    Spec: "Partition Pruning".
    """
    if not deciding_columns(condition):
        return None
    possible = _possible(condition, bounds_of, num_leaves)
    return None if possible is None else pa.array(possible.is_open | possible.can_be_true)


def _possible(
    condition: ComputedCondition, bounds_of: Mapping[int, ColumnBounds], num_leaves: int
) -> PossibleValues | None:
    columns: dict[tuple[str, ...], PossibleValues] = {}
    for column in condition.sources:
        if isinstance(column, SourceColumn):
            bounds = bounds_of.get(column.field_id) if column.field_id is not None else None
            bounds = bounds or ColumnBounds.unknown(num_leaves, column.type)
            values = PossibleValues.of_bounds(bounds)
            if values is None:
                return None
            columns[column.path] = values
    with decimal.localcontext(_EXACT):
        value = _Walk(columns, num_leaves).value(condition.expression)
    return value if value is not None and pa.types.is_boolean(value.type) else None


@dataclass(frozen=True, slots=True)
class _Walk:
    columns: Mapping[tuple[str, ...], PossibleValues]
    num_leaves: int

    def value(self, node: exp.Expr) -> PossibleValues | None:
        """Find what a node can be; None where its form is not known."""
        literal = literal_value(node)
        if literal is not None:
            return PossibleValues.of_literal(literal, self.num_leaves)
        path = reference_path(node)
        if path is not None:
            return self.columns.get(path)
        match node:
            case exp.Paren():
                return self.value(node.this)
            case exp.Cast() if type(node) is exp.Cast:
                value, target = self.value(node.this), arrow_type(node.to)
                return None if value is None or target is None else value.cast(target)
            case exp.Add() | exp.Sub() | exp.Mul():
                operands_of = self._several([node.this, node.expression])
                return None if operands_of is None else arithmetic(type(node), *operands_of)
            case exp.Neg() | exp.Abs():
                value = self.value(node.this)
                if value is None:
                    return None
                return negated(value) if isinstance(node, exp.Neg) else magnitude(value)
            case exp.Coalesce():
                parts = self._several([node.this, *node.expressions])
                return None if parts is None else first_valid(parts)
            case exp.Case() if node.this is None:
                return self._case(node)
            case exp.Anonymous() if node.name.lower() == "greatest" and len(node.expressions) == 1:
                return self.value(node.expressions[0])  # it stands for its only value
        return self._condition(node)

    def _condition(self, node: exp.Expr) -> PossibleValues | None:
        match node:
            case exp.EQ() | exp.NEQ() | exp.LT() | exp.LTE() | exp.GT() | exp.GTE():
                sides = self._several([node.this, node.expression])
                return None if sides is None else compared(node, *sides)
            case exp.NullSafeEQ():
                sides = self._several([node.this, node.expression])
                return None if sides is None else null_safe_equal(*sides)
            case exp.Is() if isinstance(node.expression, exp.Null):
                value = self.value(node.this)
                return None if value is None else value.is_null()
            case exp.In():
                return self._in(node)
            case exp.Not():
                condition = self._truths([node.this])
                return None if condition is None else condition[0].inverted()
            case exp.And():
                conditions = self._truths(operands(node, exp.And))
                return None if conditions is None else reduce(both, conditions)
            case exp.Or():
                conditions = self._truths(operands(node, exp.Or))
                return None if conditions is None else reduce(either, conditions)
        return None

    def _several(self, nodes: Sequence[exp.Expr]) -> list[PossibleValues] | None:
        values = [self.value(node) for node in nodes]
        known = [value for value in values if value is not None]
        return known if len(known) == len(values) else None

    def _truths(self, nodes: Sequence[exp.Expr]) -> list[PossibleValues] | None:
        values = self._several(nodes)
        if values is None or not all(pa.types.is_boolean(value.type) for value in values):
            return None
        return values

    def _in(self, node: exp.In) -> PossibleValues | None:
        value = self.value(node.this)
        literals = [literal_value(item) for item in node.expressions]
        known = [literal for literal in literals if literal is not None]
        if value is None or not known or len(known) < len(literals):
            return None
        return listed(value, known)

    def _case(self, node: exp.Case) -> PossibleValues | None:
        """Join the values of the branches that can be reached."""
        branches = node.args["ifs"]
        conditions = self._truths([branch.this for branch in branches])
        values = self._several([branch.args["true"] for branch in branches])
        default = None if node.args.get("default") is None else self.value(node.args["default"])
        if conditions is None or values is None or default is None:
            return None
        result, is_reached = default.none_of_them(), np.ones(self.num_leaves, dtype=bool)
        for condition, value in zip(conditions, values, strict=True):
            if not value.type.equals(result.type):
                return None
            result = result.with_others(value, is_reached & condition.can_be_true)
            is_reached &= condition.can_be_false | condition.has_null
            result = result.also_open(condition)
        return result.with_others(default, is_reached)
