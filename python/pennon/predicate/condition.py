"""Writes a comparison so that DataFusion and Lance decide it as Spark does.

NULL rules: the condition of every comparison is NULL for NULL, save IS [NOT] NULL.

Floats: Spark holds NaN equal to NaN and greater than all else, and -0.0 equal to 0.0. DataFusion
orders by sign and bits (-0.0 below 0.0), Lance follows IEEE for zeros; so zeros are written as
both, and NaN as ``isnan``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Final, cast

import pyarrow as pa
from sqlglot import exp

from pennon.errors import InternalError
from pennon.predicate.values.conversion import to_text
from pennon.predicate.values.literals import LiteralList, to_expression

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

__all__ = ["quoted_columns", "reference_path", "referenced_paths", "replaced_references"]


# Chains of AND and of OR: their operands, and conditions combined without repetitions.


def operands(condition: exp.Expr, connector: type[exp.Connector]) -> list[exp.Expression]:
    """List the operands of a chain of one connector, whose tree may be as deep as it is long.

    Returns:
        The operands without parentheses around them; a condition of another form alone.

    Example:
        >>> chain = exp.condition("a AND (b AND (c OR d))")
        >>> [operand.sql() for operand in operands(chain, exp.And)]
        ['a', 'b', 'c OR d']
    """
    listed: list[exp.Expression] = []
    waiting = [condition]
    while waiting:
        bare = waiting.pop().unnest()
        if isinstance(bare, connector):
            waiting += [bare.expression, bare.this]
        else:
            listed.append(cast("exp.Expression", bare))
    return listed


def and_all(conditions: Iterable[exp.Expr]) -> exp.Expression:
    """Join by AND; nothing is TRUE.

    Example:
        >>> and_all([exp.column("a"), exp.true(), exp.column("a")]).sql()
        'a'
    """
    return _joined(conditions, exp.And, neutral=True)


def or_all(conditions: Iterable[exp.Expr]) -> exp.Expression:
    """Join by OR; nothing is FALSE.

    Example:
        >>> or_all([exp.column("a"), exp.true()]).sql()
        'TRUE'
    """
    return _joined(conditions, exp.Or, neutral=False)


def is_true(condition: exp.Expr) -> bool:
    """Whether a condition is the literal TRUE."""
    return isinstance(condition, exp.Boolean) and bool(condition.this)


def is_false(condition: exp.Expr) -> bool:
    """Whether a condition is the literal FALSE."""
    return isinstance(condition, exp.Boolean) and not condition.this


def _joined(
    conditions: Iterable[exp.Expr], connector: type[exp.And | exp.Or], *, neutral: bool
) -> exp.Expression:
    kept: dict[exp.Expression, None] = {}
    for condition in conditions:
        for operand in operands(condition, connector):
            if not isinstance(operand, exp.Boolean):
                kept[operand] = None
            elif bool(operand.this) is not neutral:
                return operand
    if len(kept) == 1:
        return next(iter(kept))
    if not kept:
        return exp.Boolean(this=neutral)
    return _tree(connector, [_enclosed(operand) for operand in kept])


def _enclosed(operand: exp.Expression) -> exp.Expression:
    return exp.Paren(this=operand) if isinstance(operand, exp.Connector) else operand


def _tree(connector: type[exp.And | exp.Or], parts: Sequence[exp.Expression]) -> exp.Expression:
    """Build a shallow tree, so that thousands of operands do not nest thousands deep."""
    if len(parts) == 1:
        return parts[0]
    half = len(parts) // 2
    return connector(this=_tree(connector, parts[:half]), expression=_tree(connector, parts[half:]))


# A comparison of one column with literals, the input of a transform's projection.
#
# NULL rules: every operator but IS NULL and IS NOT NULL is never true for NULL, and the literals
# themselves are never NULL: ``c = NULL`` is no comparison but the constant NULL.


class Operator(StrEnum):
    """What a comparison asks of its column."""

    EQUAL = "="
    NOT_EQUAL = "<>"
    LESS = "<"
    LESS_OR_EQUAL = "<="
    GREATER = ">"
    GREATER_OR_EQUAL = ">="
    IN = "IN"
    NOT_IN = "NOT IN"
    IS_NULL = "IS NULL"
    IS_NOT_NULL = "IS NOT NULL"
    STARTS_WITH = "STARTS WITH"
    NOT_STARTS_WITH = "NOT STARTS WITH"

    @property
    def negated(self) -> Operator:
        """The operator that is true exactly where this one is false (NULL stays NULL)."""
        return _NEGATED[self]

    @property
    def flipped(self) -> Operator:
        """The operator with its sides exchanged: ``5 < c`` is ``c > 5``."""
        return _FLIPPED.get(self, self)

    @property
    def is_unary(self) -> bool:
        """Whether the operator takes no literal."""
        return self in (Operator.IS_NULL, Operator.IS_NOT_NULL)

    @property
    def is_list(self) -> bool:
        """Whether the operator takes any number of literals."""
        return self in (Operator.IN, Operator.NOT_IN)


_NEGATED = {
    Operator.EQUAL: Operator.NOT_EQUAL,
    Operator.NOT_EQUAL: Operator.EQUAL,
    Operator.LESS: Operator.GREATER_OR_EQUAL,
    Operator.LESS_OR_EQUAL: Operator.GREATER,
    Operator.GREATER: Operator.LESS_OR_EQUAL,
    Operator.GREATER_OR_EQUAL: Operator.LESS,
    Operator.IN: Operator.NOT_IN,
    Operator.NOT_IN: Operator.IN,
    Operator.IS_NULL: Operator.IS_NOT_NULL,
    Operator.IS_NOT_NULL: Operator.IS_NULL,
    Operator.STARTS_WITH: Operator.NOT_STARTS_WITH,
    Operator.NOT_STARTS_WITH: Operator.STARTS_WITH,
}

_FLIPPED = {
    Operator.LESS: Operator.GREATER,
    Operator.LESS_OR_EQUAL: Operator.GREATER_OR_EQUAL,
    Operator.GREATER: Operator.LESS,
    Operator.GREATER_OR_EQUAL: Operator.LESS_OR_EQUAL,
}


@dataclass(frozen=True, slots=True)
class Comparison:
    """An operator and its literals, which have the Arrow type of the column.

    Args:
        operator: What is asked.
        literals: None for IS [NOT] NULL, any number for [NOT] IN, else exactly one; never NULL.

    Example:
        >>> import pyarrow as pa
        >>> print(Comparison(Operator.LESS, (pa.scalar(5),)))
        < 5
    """

    operator: Operator
    literals: tuple[pa.Scalar, ...] = ()

    def __post_init__(self) -> None:
        count = len(self.literals)
        fits = count == 0 if self.operator.is_unary else self.operator.is_list or count == 1
        if not fits or not all(literal.is_valid for literal in self.literals):
            raise InternalError(what=f"the comparison {self} has the wrong literals")

    @property
    def literal(self) -> pa.Scalar:
        """The one literal of an operator that takes one."""
        if len(self.literals) != 1:
            raise InternalError(what=f"the comparison {self} has not one literal")
        return self.literals[0]

    @property
    def values(self) -> tuple[object, ...]:
        """The literals as Python values."""
        return tuple(literal.as_py() for literal in self.literals)

    def __str__(self) -> str:
        return " ".join([str(self.operator), *(str(to_text(literal)) for literal in self.literals)])


# The settings of a session that change what an expression means.

_UTC: Final = frozenset(
    {"UTC", "Z", "GMT", "ETC/UTC", "ETC/GMT", "UCT", "ZULU", "+00:00", "UTC+00:00", "GMT+00:00"}
)


class Declined(Exception):
    """DataFusion is not known to compute this as Spark does: Spark computes it itself.

    Args:
        why: What is not known.
    """

    def __init__(self, *, why: str) -> None:
        super().__init__(why)


@dataclass(frozen=True, slots=True)
class Semantics:
    """What a session means by its expressions.

    Args:
        ansi: Whether an overflow is an error; otherwise it wraps or is NULL.
        is_utc: Whether timestamps with a zone turn into dates, and their parts, in UTC.
        is_tried: Whether an overflow is NULL (``try_add``), also where it would wrap.
        zone_offsets: The offsets of the session's zone, as ``ZoneOffsets`` takes them, where what
            is computed may use them.
        in_fragments: Whether it is computed where the functions of fragments are known.
    """

    ansi: bool = True
    is_utc: bool = False
    is_tried: bool = False
    zone_offsets: tuple[int, ...] = ()
    in_fragments: bool = False

    @property
    def tried(self) -> Semantics:
        """What an operator means that is NULL where it would be an error."""
        return replace(self, ansi=False, is_tried=True)


def is_utc_zone(time_zone: str) -> bool:
    """Whether a session's time zone is UTC by any of its usual names.

    Example:
        >>> is_utc_zone("Etc/UTC"), is_utc_zone("Europe/London")
        (True, False)
    """
    return time_zone.upper() in _UTC


# References to columns: those of a tree, the fields of a struct with their column, as one path.


def reference_path(node: exp.Expr) -> tuple[str, ...] | None:
    """Give the names of a column reference from the top; None when the node is no column.

    Example:
        >>> from sqlglot import parse_one
        >>> reference_path(parse_one("a.b")), reference_path(parse_one("a + b"))
        (('a', 'b'), None)
    """
    if isinstance(node, exp.Dot):
        outer = reference_path(node.this)
        inner = node.expression
        return (
            None if outer is None or not isinstance(inner, exp.Identifier) else (*outer, inner.name)
        )
    return tuple(part.name for part in node.parts) if isinstance(node, exp.Column) else None


def referenced_paths(tree: exp.Expr) -> set[tuple[str, ...]]:
    """List the column references of a tree, nested fields as a whole.

    Example:
        >>> from sqlglot import parse_one
        >>> sorted(referenced_paths(parse_one("a + b.c > a")))
        [('a',), ('b', 'c')]
    """
    return {path for _, path in _outermost(tree)}


def replaced_references(
    tree: exp.Expr, replacement: Callable[[tuple[str, ...]], exp.Expression]
) -> exp.Expression:
    """Replace every column reference of a tree that is nobody else's, in place.

    Args:
        tree: Without a parent.
        replacement: What stands for a path, nested fields as a whole.

    Returns:
        The tree; another one where it was a column reference itself.

    Example:
        >>> from sqlglot import parse_one
        >>> replaced_references(parse_one("a + b.c"), lambda path: exp.column(path[-1])).sql()
        'a + c'
    """
    root = exp.Paren(this=tree)
    for inner, path in _outermost(root):
        inner.replace(replacement(path))
    whole: exp.Expression = root.this
    whole.pop()
    return whole


def quoted_columns(names: Iterable[str]) -> list[exp.Expr]:
    """Name columns as they are spelt.

    Example:
        >>> [column.sql() for column in quoted_columns(["a.b", "C"])]
        ['"a.b"', '"C"']
    """
    return [exp.column(name, quoted=True) for name in names]


def _outermost(tree: exp.Expr) -> list[tuple[exp.Expr, tuple[str, ...]]]:
    return [
        (inner, path)
        for inner in tree.find_all(exp.Column, exp.Dot)
        if (path := reference_path(inner)) is not None and not isinstance(inner.parent, exp.Dot)
    ]


# Lists from here on are one leaf of the tree.
_LONG: Final = 20
_BINARY: dict[Operator, type[exp.Expression]] = {
    Operator.EQUAL: exp.EQ,
    Operator.NOT_EQUAL: exp.NEQ,
    Operator.LESS: exp.LT,
    Operator.LESS_OR_EQUAL: exp.LTE,
    Operator.GREATER: exp.GT,
    Operator.GREATER_OR_EQUAL: exp.GTE,
}


def condition(comparison: Comparison, column: exp.Expression) -> exp.Expression:
    """Write a comparison of a column as DataFusion SQL with Spark's meaning.

    Args:
        comparison: Operator and literals of the column's type.
        column: The compared expression.

    Example:
        >>> from sqlglot import column
        >>> from pennon.predicate.dialect import DataFusion
        >>> less = Comparison(Operator.LESS, (pa.scalar(5),))
        >>> condition(less, column("a")).sql(dialect=DataFusion)
        '`a` < 5'
    """
    operator, literals = comparison.operator, comparison.literals
    if operator is Operator.IS_NULL:
        return is_null(column)
    if operator is Operator.IS_NOT_NULL:
        return is_not_null(column)
    if operator in (Operator.IN, Operator.NOT_IN):
        positive = one_of(column, literals)
        return positive if operator is Operator.IN else negation(positive)
    if operator in (Operator.STARTS_WITH, Operator.NOT_STARTS_WITH):
        positive = exp.StartsWith(this=column.copy(), expression=to_expression(comparison.literal))
        return positive if operator is Operator.STARTS_WITH else negation(positive)
    if pa.types.is_floating(comparison.literal.type):
        return _float_condition(operator, float(comparison.literal.as_py()), comparison, column)
    return _binary(operator, column, comparison.literal)


def is_null(column: exp.Expression) -> exp.Expression:
    """Write IS NULL."""
    return exp.Is(this=column.copy(), expression=exp.Null())


def is_not_null(column: exp.Expression) -> exp.Expression:
    """Write IS NOT NULL."""
    return exp.Not(this=is_null(column))


def negation(tree: exp.Expression) -> exp.Expression:
    """Write NOT; NULL stays NULL."""
    match tree:
        case exp.Not():
            inner: exp.Expression = tree.this
            return inner.this if isinstance(inner, exp.Paren) else inner
        case exp.EQ() | exp.NEQ() | exp.LT() | exp.LTE() | exp.GT() | exp.GTE():
            opposite = {kind: operator.negated for operator, kind in _BINARY.items()}[type(tree)]
            return _BINARY[opposite](this=tree.this, expression=tree.expression)
        case exp.Boolean():
            return exp.Boolean(this=not tree.this)
        case exp.And() | exp.Or():
            return exp.Not(this=exp.Paren(this=tree))
        case _:
            return exp.Not(this=tree)


def one_of(column: exp.Expression, literals: Sequence[pa.Scalar]) -> exp.Expression:
    """Write membership in a list, which may be long, and is FALSE when it is empty."""
    if not literals:
        return exp.Boolean(this=False)
    if not pa.types.is_floating(literals[0].type):
        if len(literals) >= _LONG:
            return exp.In(this=column.copy(), field=LiteralList.of(literals))
        return _membership(column, [to_expression(literal) for literal in literals])
    data_type = literals[0].type
    values = [float(literal.as_py()) for literal in literals]
    plain = [value for value in values if not math.isnan(value) and value != 0]
    if 0.0 in values:
        plain += [0.0, -0.0]
    alternatives = [_membership(column, [_float(v, data_type) for v in plain])] if plain else []
    if any(math.isnan(value) for value in values):
        alternatives.append(_is_nan(column))
    return _either(*alternatives) if len(alternatives) > 1 else alternatives[0]


def _either(first: exp.Expression, second: exp.Expression) -> exp.Expression:
    return exp.Paren(this=exp.Or(this=first, expression=second))


def _membership(column: exp.Expression, values: list[exp.Expression]) -> exp.Expression:
    if len(values) == 1:
        return exp.EQ(this=column.copy(), expression=values[0])
    return exp.In(this=column.copy(), expressions=values)


def _binary(operator: Operator, column: exp.Expression, literal: pa.Scalar) -> exp.Expression:
    return _BINARY[operator](this=column.copy(), expression=to_expression(literal))


def _float(value: float, data_type: pa.DataType) -> exp.Expression:
    return to_expression(pa.scalar(value, data_type))


def _is_nan(column: exp.Expression) -> exp.Expression:
    return exp.Anonymous(this="isnan", expressions=[column.copy()])


def _float_condition(
    operator: Operator, value: float, comparison: Comparison, column: exp.Expression
) -> exp.Expression:
    nan = _is_nan(column)
    if operator is Operator.EQUAL:
        return one_of(column, comparison.literals)
    if math.isnan(value) and operator in (Operator.LESS_OR_EQUAL, Operator.GREATER):
        # true of all numbers, and of none; NULL for NULL
        whole = exp.EQ if operator is Operator.LESS_OR_EQUAL else exp.NEQ
        return whole(this=column.copy(), expression=column.copy())
    if operator in (Operator.NOT_EQUAL, Operator.LESS, Operator.LESS_OR_EQUAL):
        opposite = Comparison(operator.negated, comparison.literals)
        return negation(_float_condition(opposite.operator, value, opposite, column))
    is_greater = operator is Operator.GREATER
    if math.isnan(value):
        return nan
    # of the two zeros, the one beyond which no zero lies in either order
    bound = (0.0 if is_greater else -0.0) if value == 0 else value
    greater = _binary(operator, column, pa.scalar(bound, comparison.literal.type))
    return _either(greater, nan)
