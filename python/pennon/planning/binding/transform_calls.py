"""Partition transforms that a query computes itself: ``lance.system.bucket(8, id) = 3``.

Spark writes such a call with the whole name of its function, which says its parameters and the type
of the column: ``PARTITION_TRANSFORM('pennon.bucket(bigint)', 8, id)``. It is computed in UTC
whatever the session's time zone is, as the values of partitions are.

What an expression or a truncation of texts is made of is found in a condition, too:
``lower(region)``, ``left(name, 2)``. All rows of a partition have the same value of it, which its
tuple names. Only of texts: what has another natural type than its field, or a zero of two signs, is
not the same value everywhere.

NULL rules: those of the transforms; NULL gives NULL.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, cast

import pyarrow as pa
from sqlglot import exp, parse_one

from pennon.errors import PennonError
from pennon.planning.binding.bound_predicate import TransformedColumn
from pennon.planning.binding.source_columns import resolve_column
from pennon.predicate.column_references import reference_path
from pennon.predicate.dialect import DataFusion
from pennon.predicate.values.arrow_kinds import is_text
from pennon.predicate.values.literals import literal_value
from pennon.transforms.bucket import Bucket
from pennon.transforms.expression import Expression
from pennon.transforms.truncate import Truncate

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pennon.planning.binding.bound_predicate import SourceColumn
    from pennon.transforms.transform import Transform

__all__ = ["PartitionTransformCall", "transform_call", "transformed_column", "with_field_values"]

_FIRST: Final = "CAST(1 AS BIGINT)"
_FUNCTION: Final = "PARTITION_TRANSFORM"
_NAME: Final = re.compile(r"pennon\.(\w+)(?:\[(\d+)\])?\(")
_WITH_PARAMETER: Final[dict[str, Callable[[int], Transform]]] = {
    "bucket": Bucket,
    "truncate": Truncate,
}


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
    if call is None or call.parameter is None or call.name not in _WITH_PARAMETER:
        return None
    path = reference_path(call.argument)
    if path is None or call.parameter <= 0:
        return None
    source = resolve_column(path, schema)
    if pa.types.is_uint64(source.type):  # whose values Spark makes of a DECIMAL
        return None
    transform = _WITH_PARAMETER[call.name](call.parameter)
    try:
        return TransformedColumn(transform, source, transform.result_type([source.type]))
    except PennonError:
        return None


def with_field_values(
    tree: exp.Expr, transform: Transform, sources: Sequence[SourceColumn], value: exp.Expr
) -> exp.Expr:
    """Put a partition field in the place of what it is computed by.

    Args:
        tree: A condition as DataFusion computes it; it is changed.
        transform: The field's.
        sources: Its source columns.
        value: What stands for its value.

    Returns:
        The condition, with whatever else of it untouched.

    Example:
        >>> import pyarrow as pa
        >>> from pennon.planning.binding.bound_predicate import SourceColumn
        >>> region = SourceColumn(("region",), 1, pa.string())
        >>> tree = parse_one("lower(`region`) = 'eu'", dialect=DataFusion)
        >>> lower = Expression("lower(col0)", pa.string())
        >>> print(with_field_values(tree, lower, [region], exp.column("p")).sql())
        p = 'eu'

    Spec: "Partition Pruning".
    """
    declared = transform.declared_type if isinstance(transform, Expression) else None
    if isinstance(transform, Expression) and declared is not None and is_text(declared):
        named = {f"col{at}": source.expression() for at, source in enumerate(sources)}
        call = parse_one(transform.expression_sql, dialect=DataFusion).transform(
            lambda node: (
                named[node.name] if isinstance(node, exp.Column) and node.name in named else node
            )
        )
        text = call.sql(dialect=DataFusion)
        return tree.transform(
            lambda node: (
                value.copy()
                if isinstance(node, type(call)) and node.sql(dialect=DataFusion) == text
                else node
            ),
            copy=False,
        )
    if isinstance(transform, Truncate) and is_text(sources[0].type):
        for part in tree.find_all(exp.Substring):
            if part.this == sources[0].expression() and _is_start(part, transform.width):
                part.set("this", value.copy())
    return tree


def _is_start(part: exp.Substring, width: int) -> bool:
    """Whether a part of a text is its first characters, and no more than so many."""
    start, length = part.args.get("start"), part.args.get("length")
    if start is None or length is None or start.sql(dialect=DataFusion) != _FIRST:
        return False
    literal = length.find(exp.Literal)
    count = length.this if isinstance(length, exp.Cast) else length
    return count is literal and literal.is_int and 0 <= int(literal.name) <= width
