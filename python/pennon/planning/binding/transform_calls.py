"""Partition transforms that a query computes itself: ``lance.system.bucket(8, id) = 3``.

Spark writes such a call with the whole name of its function, which says its parameters and the type
of the column: ``PARTITION_TRANSFORM('pennon.bucket(bigint)', 8, id)``. It is computed in UTC
whatever the session's time zone is, as the values of partitions are.

NULL rules: those of the transforms; NULL gives NULL.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, cast

import pyarrow as pa
from sqlglot import exp

from pennon.errors import PennonError
from pennon.planning.binding.bound_predicate import TransformedColumn
from pennon.planning.binding.source_columns import resolve_column
from pennon.predicate.column_references import reference_path
from pennon.predicate.values.literals import literal_value
from pennon.transforms.registry import sized

__all__ = ["PartitionTransformCall", "transform_call", "transformed_column"]

_FUNCTION: Final = "PARTITION_TRANSFORM"
_NAME: Final = re.compile(r"pennon\.(\w+)(?:\[(\d+)\])?\(")


@dataclass(frozen=True, slots=True)
class PartitionTransformCall:
    """A call of a transform.

    Args:
        name: The function's: ``bucket``, ``truncate``, ``year``, ``days``, ….
        parameter: Buckets or width; None for a function without.
        argument: What is transformed.
    """

    name: str
    parameter: int | None
    argument: exp.Expression


def transform_call(node: exp.Expr) -> PartitionTransformCall | None:
    """Read a call; None for whatever else a node is.

    Example:
        >>> from sqlglot import parse_one
        >>> call = transform_call(parse_one("PARTITION_TRANSFORM('pennon.bucket(bigint)', 8, id)"))
        >>> call.name, call.parameter, call.argument.sql()
        ('bucket', 8, 'id')
    """
    if not isinstance(node, exp.Anonymous) or node.name.upper() != _FUNCTION:
        return None
    name, *arguments = node.expressions or [exp.Null()]
    named = _NAME.match(name.name)
    if named is None or not arguments:
        return None
    parameter = named[2]
    if parameter is None and len(arguments) > 1:
        literal = literal_value(arguments[0])
        parameter = literal.as_py() if literal is not None and literal.is_valid else None
        if not isinstance(parameter, int):
            return None
    return PartitionTransformCall(
        named[1],
        None if parameter is None else int(parameter),
        cast("exp.Expression", arguments[-1]),
    )


def transformed_column(node: exp.Expr, schema: pa.Schema) -> TransformedColumn | None:
    """Resolve a call of ``bucket`` or ``truncate``; None for other nodes, calls and arguments.

    Raises:
        UnknownColumn: The table has no column of that name.

    Spec: "Supported Transforms".
    """
    call = transform_call(node)
    if call is None or call.parameter is None or call.parameter <= 0:
        return None
    transform, path = sized(call.name, call.parameter), reference_path(call.argument)
    if transform is None or path is None:
        return None
    source = resolve_column(path, schema)
    if pa.types.is_uint64(source.type):  # whose values Spark makes of a DECIMAL
        return None
    try:
        return TransformedColumn(transform, source, transform.result_type([source.type]))
    except PennonError:
        return None
