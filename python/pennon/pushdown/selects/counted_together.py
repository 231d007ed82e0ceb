"""Several values that are one: ``count(a, b)``, ``count(DISTINCT a, b)``, ``max_by(a, b)``.

NULL rules: a row in which one of the values is NULL does not count. DataFusion counts one value, so
the several are a struct, which is NULL in such a row; of it Spark counts the different ones where
several tasks have rows of a group.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
from sqlglot import exp

from pennon.predicate.expressions.floats.float_order import comparable
from pennon.predicate.expressions.typed_expression import typed_condition, typed_expression
from pennon.predicate.semantics import Declined
from pennon.predicate.typed import Typed, call, choice

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pennon.predicate.semantics import Semantics
    from pennon.predicate.spark_expression import SparkExpression


def counted_together(
    argument: SparkExpression, columns: Mapping[str, pa.DataType], semantics: Semantics
) -> Typed | None:
    """Read several values that are counted as one.

    Args:
        argument: The argument of the count: a CASE of one condition and a ``named_struct``.
        columns: The types of the columns below.
        semantics: The session's.

    Returns:
        A struct; None where the argument is one value.

    Raises:
        Declined: A value is not known to be computed as Spark does, or can be an error, which it
            must not be for a row that another value leaves out.

    Example:
        >>> from pennon.predicate.dialect import DataFusion
        >>> from pennon.predicate.spark_expression import SparkExpression
        >>> from pennon.predicate.semantics import Semantics
        >>> struct = "CASE WHEN `c1` IS NOT NULL THEN named_struct('v0', `c1`) END"
        >>> columns = {"c1": pa.int32()}
        >>> counted = counted_together(SparkExpression(struct), columns, Semantics())
        >>> print(counted.tree.sql(dialect=DataFusion))
        CASE WHEN NOT (`c1` IS NULL) THEN named_struct('v0', `c1`) END
        >>> counted_together(SparkExpression("`c1`"), columns, Semantics()) is None
        True
    """
    pair = values_together(argument, columns, semantics)
    if pair is None:
        return None
    is_counted, values = pair
    if any(value.can_fail for value in values.values()):
        raise Declined(why="a value that can be an error, counted with others")
    fields: list[exp.Expr] = []
    for name, value in values.items():
        fields += [exp.Literal.string(name), comparable(value)]
    whole = call("named_struct", *fields)
    types = pa.struct([(name, value.type) for name, value in values.items()])
    return Typed(choice((is_counted, whole), default=None), types)


def values_together(
    argument: SparkExpression, columns: Mapping[str, pa.DataType], semantics: Semantics
) -> tuple[exp.Expr, dict[str, Typed]] | None:
    """Read several values that are one argument of an aggregate.

    Args:
        argument: Of the aggregate: a CASE of one condition and a ``named_struct``.
        columns: The types of the columns below.
        semantics: The session's.

    Returns:
        The condition, and the values by their names; None where the argument is one value.

    Raises:
        Declined: A value is not known to be computed as Spark does.
    """
    tree = None if argument.tree is None else argument.tree.unnest()
    if not isinstance(tree, exp.Case) or len(tree.args["ifs"]) != 1:
        return None
    (branch,) = tree.args["ifs"]
    together = branch.args["true"]
    if not isinstance(together, exp.Struct):
        return None
    values: dict[str, Typed] = {}
    for field in together.expressions:
        values[field.name] = typed_expression(field.expression, columns, semantics)
    return typed_condition(branch.this, columns, semantics), values
