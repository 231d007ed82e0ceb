"""Projects comparisons through a monotone transform.

``c < 25`` is ``c <= 24`` for integers, so its rows lie in partitions up to that of 24. The step
to the neighbouring value makes the bounds as narrow as they can be. NULL rules: the conditions
are NULL for NULL.
"""

from __future__ import annotations

import decimal
from typing import TYPE_CHECKING

import pyarrow as pa
from sqlglot import exp

from pennon.predicate.comparison import Comparison, Operator
from pennon.predicate.condition import condition, negation, one_of
from pennon.predicate.values.arrow_kinds import of_stored_integer, stored_integer
from pennon.predicate.values.time_units import MILLIS_PER_DAY
from pennon.transforms.evaluation.source_array import from_scalars, plain_type
from pennon.transforms.transform import one_of_values

if TYPE_CHECKING:
    from pennon.transforms.transform import Transform

_WIDE = decimal.Context(prec=100)


def project_monotone(
    transform: Transform, comparison: Comparison, column: exp.Column, source_type: pa.DataType
) -> exp.Expression | None:
    """Give the condition on the partition values of rows that satisfy a comparison.

    Args:
        transform: A transform for which a <= b gives transform(a) <= transform(b).
        comparison: Operator and literals.
        column: The manifest column.
        source_type: Integer, decimal, date or timestamp.
    """
    data_type = plain_type(source_type)
    match comparison.operator:
        case Operator.EQUAL | Operator.IN:
            images = transform.apply([from_scalars(comparison.literals, data_type)])
            return one_of_values(column, images)
        case Operator.LESS | Operator.LESS_OR_EQUAL:
            step = -1 if comparison.operator is Operator.LESS else 0
            return _bounded(transform, comparison.literal, step, Operator.LESS_OR_EQUAL, column)
        case Operator.GREATER | Operator.GREATER_OR_EQUAL:
            step = 1 if comparison.operator is Operator.GREATER else 0
            return _bounded(transform, comparison.literal, step, Operator.GREATER_OR_EQUAL, column)
        case Operator.NOT_EQUAL | Operator.NOT_IN:
            # only a partition that holds one value cannot have another one
            alone = [s for s in comparison.literals if _is_alone(transform, s, data_type)]
            values = [transform.value_of(scalar, data_type) for scalar in alone]
            return negation(one_of(column, values)) if values else None
        case _:
            return None


def _bounded(
    transform: Transform, literal: pa.Scalar, step: int, operator: Operator, column: exp.Column
) -> exp.Expression:
    bound = neighbour(literal, step)
    if bound is None:  # nothing lies beyond the last value of the type
        return exp.Boolean(this=False)
    return condition(Comparison(operator, (transform.value_of(bound, literal.type),)), column)


def _is_alone(transform: Transform, literal: pa.Scalar, data_type: pa.DataType) -> bool:
    image = transform.value_of(literal, data_type)
    beside = [neighbour(literal, -1), neighbour(literal, 1)]
    return all(n is None or transform.value_of(n, data_type) != image for n in beside)


def neighbour(literal: pa.Scalar, step: int) -> pa.Scalar | None:
    """Give the next greater (step 1) or smaller (step -1) value; None beyond the last one."""
    data_type = literal.type
    if pa.types.is_decimal(data_type):
        unscaled = int(literal.as_py().scaleb(data_type.scale, _WIDE)) + step
        if abs(unscaled) >= 10**data_type.precision:
            return None
        return pa.scalar(_WIDE.create_decimal(unscaled).scaleb(-data_type.scale, _WIDE), data_type)
    if pa.types.is_date64(data_type):
        step *= MILLIS_PER_DAY
    return of_stored_integer(stored_integer(literal) + step, data_type)
