"""Column names of a predicate → columns of the full schema, nested ones too."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, cast

import pyarrow as pa
from sqlglot import exp

from pennon.errors import PennonError, UnknownColumn
from pennon.leaf.read.metadata_columns import is_metadata_column
from pennon.planning.binding.bound_predicate import (
    BoundPredicate,
    Compared,
    ComputedCondition,
    SourceColumn,
    TransformedColumn,
    all_of,
)
from pennon.predicate.condition import (
    Comparison,
    Operator,
    reference_path,
    referenced_paths,
    replaced_references,
)
from pennon.predicate.normalize import read_pattern
from pennon.predicate.values.literals import literal_value
from pennon.predicate.values.time_units import is_list
from pennon.spec.schema import FIELD_ID, NamespaceSchema
from pennon.transforms.registry import sized

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

__all__ = ["transform_call", "transformed_column"]

# So many columns are listed of a table that has not the one asked for.
_LISTED = 20


def resolve_column(path: Sequence[str], schema: pa.Schema) -> SourceColumn:
    """Find a column by its names; the case is ignored, as Spark does, unless it decides.

    Raises:
        UnknownColumn: No such column, or several that differ in case only.

    Example:
        >>> resolve_column(["A"], pa.schema([("a", pa.int32())])).path
        ('a',)
    """
    path_fields: list[pa.Field] = []
    within: pa.Schema | pa.DataType = schema
    for name in path:
        matching = _named(within, name)
        if len(matching) != 1:
            raise UnknownColumn(column=".".join(path), columns=_near(path, schema))
        path_fields.append(matching[0])
        within = matching[0].type
    last = path_fields[-1]
    field_id = (last.metadata or {}).get(FIELD_ID)
    return SourceColumn(
        tuple(field.name for field in path_fields),
        None if field_id is None else int(field_id),
        last.type,
        is_metadata=is_metadata_column(path_fields[0]),
    )


def is_of_elements(path: Sequence[str], schema: pa.Schema) -> bool:
    """Whether names lead to a field of the elements of a list, which Spark takes for a list.

    Example:
        >>> kind = pa.list_(pa.struct([("x", pa.int32())]))
        >>> is_of_elements(["a", "x"], pa.schema([("a", kind)]))
        True
    """
    within: pa.Schema | pa.DataType = schema
    is_within = False
    for at, name in enumerate(path):
        matching = _named(within, name)
        if len(matching) != 1:
            return False
        within = matching[0].type
        while is_list(within) and at + 1 < len(path):
            within, is_within = within.value_type, True
    return is_within


def source_columns(schema: NamespaceSchema, field_ids: Iterable[int]) -> dict[int, SourceColumn]:
    """Find columns by their field ids; those inside lists and maps are left out.

    Args:
        schema: The table's.
        field_ids: Those of a spec's sources; the cost is by their number, not by the columns'.

    Example:
        >>> schema = NamespaceSchema.with_fresh_ids(pa.schema({"a": pa.int32(), "b": pa.int32()}))
        >>> {number: column.path for number, column in source_columns(schema, [1, 7]).items()}
        {1: ('b',)}
    """
    return {
        field_id: resolve_column(column.path, schema.arrow)
        for field_id in field_ids
        if (column := schema.field_by_id(field_id)) is not None
        and all(_is_struct(schema, column.path[:depth]) for depth in range(1, len(column.path)))
    }


def names_elements(node: exp.Expr, schema: pa.Schema) -> bool:
    """Whether a tree names a field of the elements of a list."""
    return any(is_of_elements(path, schema) for path in referenced_paths(node))


def with_own_spelling(node: exp.Expr, schema: pa.Schema) -> exp.Expression:
    """Rewrite every column reference of a tree in the table's own spelling, in place."""
    return replaced_references(node, lambda path: resolve_column(path, schema).expression())


def _is_struct(schema: NamespaceSchema, path: Sequence[str]) -> bool:
    column = schema.field_by_path(path)
    return column is not None and pa.types.is_struct(column.field.type)


def _named(within: pa.Schema | pa.DataType, name: str) -> list[pa.Field]:
    """Find the fields of a name; all are looked at only where none is spelt as it is."""
    if isinstance(within, pa.DataType) and not pa.types.is_struct(within):
        return []
    exact = within.get_all_field_indices(name)
    if exact:
        return [within.field(at) for at in exact]
    return [field for field in within if field.name.lower() == name.lower()]


def _paths(fields: Sequence[pa.Field], above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for field in fields:
        path = (*above, field.name)
        yield path
        if pa.types.is_struct(field.type):
            inner = [field.type.field(i) for i in range(field.type.num_fields)]
            yield from _paths(inner, path)


def _near(path: Sequence[str], schema: pa.Schema) -> str:
    names = [".".join(name_path) for name_path in _paths(list(schema))]
    by_lower = {name.lower(): name for name in names}
    close = difflib.get_close_matches(".".join(path).lower(), list(by_lower), n=5, cutoff=0.5)
    near = [by_lower[name] for name in close]
    listed = [*near, *(name for name in names if name not in near)]
    return ", ".join([*listed[:_LISTED], *(["…"] if len(listed) > _LISTED else [])])


# Partition transforms that a query computes itself: ``lance.system.bucket(8, id) = 3``.
#
# Spark writes such a call with the whole name of its function, which says its parameters and the
# type of the column: ``PARTITION_TRANSFORM('pennon.bucket(bigint)', 8, id)``. It is computed in UTC
# whatever the session's time zone is, as the values of partitions are.
#
# NULL rules: those of the transforms; NULL gives NULL.

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


# LIKE, startswith, endswith and contains on a text column with a literal.
#
# LIKE stays as it is and is accompanied by the start that it implies. NULL is never LIKE anything,
# nor NOT LIKE.


def like(column: SourceColumn, pattern: str, *, negated: bool) -> BoundPredicate | None:
    r"""Bind LIKE or NOT LIKE; None for a pattern whose escapes Spark refuses.

    Args:
        column: A text column.
        pattern: One that is no test of a start, an end or a part: those are other forms.
        negated: Whether it is NOT LIKE.

    Example:
        >>> column = SourceColumn(("s",), 0, pa.string())
        >>> print(like(column, "abc_", negated=False).parts[0].comparison)
        STARTS WITH abc
    """
    read = read_pattern(pattern)
    if read is None:
        return None
    test = read.test(column.expression())
    if negated or not read.leading_text:
        whole = exp.Not(this=test) if negated else test
        return ComputedCondition(whole, sources=(column,), rejected_nulls=(column,))
    start = text_test(exp.StartsWith, column, read.leading_text, negated=False)
    return all_of([start, ComputedCondition(test, sources=(column,))])


def text_test(
    kind: type[exp.Expression], column: SourceColumn, text: str, *, negated: bool
) -> BoundPredicate:
    """Bind startswith, endswith or contains of a text that is not empty, or its NOT."""
    if kind is exp.StartsWith:
        operator = Operator.NOT_STARTS_WITH if negated else Operator.STARTS_WITH
        return Compared(column, Comparison(operator, (pa.scalar(text, column.type),)))
    test = kind(this=column.expression(), expression=exp.Literal.string(text))
    whole = exp.Not(this=test) if negated else test
    return ComputedCondition(whole, is_exact=True, sources=(column,), rejected_nulls=(column,))
