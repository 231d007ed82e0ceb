"""A DataFusion expression and its type in Spark."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Final

import pyarrow as pa
from sqlglot import exp

from pennon.errors import PredicateSyntaxError, PredicateTooDeep
from pennon.predicate.condition import Declined
from pennon.predicate.parse import SparkSql, parse_with_lists
from pennon.predicate.values.literals import literal_value, to_expression, type_named

# An expression of Spark as a plan carries it: a tree that is read once, and its type.
#
# Everybody who asks gets the same tree. Nobody may change it, and making a part of it the child of
# another node is a change: sqlglot's nodes know their parents. What builds on a part takes a copy.


@dataclass(frozen=True)
class SparkExpression:
    """An expression over columns that are named ``c`` and their attribute's number.

    Args:
        source: Spark SQL, or its tree; None for an expression that Spark could not write.
        type: Its type in Spark, as Arrow's; None where it is not stated, or has none.

    Example:
        >>> total = SparkExpression("(`c1` + `c2`) * `c1`")
        >>> sorted(total.columns), total.column, SparkExpression("`c1`").column
        (['c1', 'c2'], None, 'c1')
    """

    source: str | exp.Expr | None
    type: pa.DataType | None = None

    def __str__(self) -> str:
        """Write it as people are shown it."""
        if isinstance(self.source, exp.Expr):
            return self.source.sql(dialect=SparkSql)
        return self.source or "an expression without a text"

    @cached_property
    def tree(self) -> exp.Expr | None:
        """The tree; None where it has no text, or one that cannot be read."""
        if not isinstance(self.source, str):
            return self.source
        try:
            return parse_with_lists(self.source)
        except (PredicateSyntaxError, PredicateTooDeep):
            return None

    @property
    def stated_tree(self) -> exp.Expr:
        """The tree.

        Raises:
            Declined: It has no text, or one that cannot be read.
        """
        if self.tree is None:
            raise Declined(why=str(self))
        return self.tree

    @cached_property
    def columns(self) -> frozenset[str] | None:
        """The names of the columns in it; None as ``tree``."""
        if self.tree is None:
            return None
        return frozenset(node.parts[0].name for node in self.tree.find_all(exp.Column))

    @property
    def column(self) -> str | None:
        """The name of the column that it is; None for any other, and for a field of a struct."""
        tree = self.tree
        return tree.name if isinstance(tree, exp.Column) and len(tree.parts) == 1 else None

    @classmethod
    def of_column(cls, name: str, data_type: pa.DataType | None) -> SparkExpression:
        """Make the expression that is a column."""
        return cls(exp.column(name, quoted=True), data_type)


UNWRITTEN = SparkExpression(None)
"""An expression of which nothing is known."""


MAX_DIGITS: Final = 38
WIDE_DIGITS: Final = 76
INTEGER_DIGITS: Final[Mapping[int, int]] = {8: 3, 16: 5, 32: 10, 64: 19}
"""How many digits the integers of so many bits have at most."""
NTZ: Final = pa.timestamp("us")
ZONED: Final = pa.timestamp("us", "UTC")
_NAMES: Final[Mapping[pa.DataType, str]] = {
    pa.bool_(): "BOOLEAN",
    pa.int8(): "TINYINT",
    pa.int16(): "SMALLINT",
    pa.int32(): "INT",
    pa.int64(): "BIGINT",
    pa.float32(): "FLOAT",
    pa.float64(): "DOUBLE",
    pa.utf8(): "TEXT",
    pa.binary(): "BINARY",
    pa.date32(): "DATE",
    NTZ: "TIMESTAMPNTZ",
    ZONED: "TIMESTAMPTZ",
}


@dataclass(frozen=True, slots=True)
class Typed:
    """An expression.

    Args:
        tree: What DataFusion computes.
        type: The type in Spark, as Arrow's; null for a NULL that has none yet.
        can_fail: Whether it is an error for some values: it must not be computed for rows for
            which Spark would not compute it.
    """

    tree: exp.Expr
    type: pa.DataType
    can_fail: bool = False

    @property
    def is_float(self) -> bool:
        """Whether values may be NaN or negative zero."""
        return bool(pa.types.is_floating(self.type))

    @property
    def is_integer(self) -> bool:
        """Whether values are whole numbers of one of Spark's four widths."""
        return bool(pa.types.is_signed_integer(self.type))

    @property
    def is_decimal(self) -> bool:
        """Whether values are decimals."""
        return bool(pa.types.is_decimal(self.type))

    @property
    def is_null(self) -> bool:
        """Whether this is a NULL that has no type yet."""
        return bool(pa.types.is_null(self.type))


def is_plain(data_type: pa.DataType) -> bool:
    """Whether a type is one that expressions compute with: no nested one, no other widths."""
    return data_type in _NAMES or (
        pa.types.is_decimal128(data_type) and 0 <= data_type.scale <= data_type.precision
    )


def is_carried(data_type: pa.DataType | None) -> bool:
    """Whether a column of a nested type can pass through a query as it is."""
    if data_type is None or not pa.types.is_nested(data_type):
        return False
    children = [data_type.field(at) for at in range(data_type.num_fields)]
    return all(is_plain(child.type) or is_carried(child.type) for child in children)


def cast(tree: exp.Expr, data_type: pa.DataType) -> exp.Expr:
    """Cast an expression.

    Raises:
        Declined: The type is not one of Spark's plain ones.
    """
    return exp.Cast(this=tree, to=sql_type(data_type))


def sql_type(data_type: pa.DataType) -> exp.DataType:
    """Spell a type in SQL.

    Raises:
        Declined: The type is not one of Spark's plain ones.
    """
    if pa.types.is_decimal(data_type):
        return decimal_type(data_type.precision, data_type.scale)
    name = _NAMES.get(data_type)
    if name is None:
        raise Declined(why=f"the type {data_type}")
    return type_named(name)


def decimal_type(precision: int, scale: int) -> exp.DataType:
    """Spell a decimal type; above 38 digits it is DataFusion's 256-bit one."""
    return type_named(f"DECIMAL({precision}, {scale})")


def enclosed(tree: exp.Expr) -> exp.Expr:
    """Put parentheses around an operand where it needs them."""
    is_closed = isinstance(
        tree, exp.Column | exp.Cast | exp.Paren | exp.Case | exp.Anonymous | exp.Extract
    )
    return tree if is_closed else exp.paren(tree, copy=False)


def call(name: str, *arguments: exp.Expr) -> exp.Expr:
    """Call a function of DataFusion by its own name."""
    return exp.Anonymous(this=name, expressions=list(arguments))


def opaque(tree: exp.Expr) -> exp.Expr:
    """Write an expression that DataFusion does not look through: the greatest of one value.

    Example:
        >>> opaque(exp.column("a")).sql()
        'GREATEST(a)'
    """
    return call("greatest", tree)


def integer(value: int, data_type: pa.DataType) -> exp.Expr:
    """Write an integer that has its type, for DataFusion holds a plain one for a BIGINT."""
    return cast(exp.Literal.number(value), data_type)


def double(value: float) -> exp.Expr:
    """Write a DOUBLE."""
    return cast(exp.Literal.string(repr(float(value))), pa.float64())


def least_decimal(scale: int) -> exp.Expr:
    """Write the least decimal of a scale: a whole number times it has that many digits behind."""
    return cast(exp.Literal.string(f"{Decimal(1).scaleb(-scale):f}"), pa.decimal128(scale, scale))


def choice(*branches: tuple[exp.Expr, exp.Expr], default: exp.Expr | None) -> exp.Expr:
    """Write CASE: the value of the first condition that is true, else the default."""
    ifs = [exp.If(this=condition, true=value) for condition, value in branches]
    return exp.Case(ifs=ifs, default=default)


def lazily(connector: type[exp.And | exp.Or], condition: exp.Expr, other: exp.Expr) -> exp.Paren:
    """Connect two conditions of a filter; the second is computed where the first decides nothing.

    As a number: of a CASE of booleans DataFusion makes AND and OR, and computes both sides.
    """
    number, one, zero = (as_number(other), *(integer(n, pa.int32()) for n in (1, 0)))
    is_and = connector is exp.And
    return is_one(
        choice((condition, number if is_and else one), default=zero if is_and else number)
    )


def columns_above(condition: exp.Expr, names: Collection[str]) -> list[exp.Expr]:
    """Select columns of the rows that a condition leaves, so that it stays below what is computed.

    DataFusion moves a filter above a narrower projection that keeps all of the filter's columns,
    and then computes the projection for every row, of which some may be an error; a filter of a
    column that is ``opaque`` there stays.

    Args:
        condition: What the rows are filtered by.
        names: The columns.

    Example:
        >>> [column.sql() for column in columns_above(exp.column("a"), ["a", "b"])]
        ['GREATEST("a") AS "a"', '"b"']
    """
    filtered = {column.parts[0].name for column in condition.find_all(exp.Column)}
    columns = {name: exp.column(name, quoted=True) for name in names}
    return [
        exp.alias_(opaque(column), name, quoted=True, copy=False) if name in filtered else column
        for name, column in columns.items()
    ]


def has_more_nodes(tree: exp.Expr, most: int) -> bool:
    """Whether an expression is larger than one that is written several times into another."""
    waiting: list[object] = [tree]
    while waiting and most >= 0:
        node = waiting.pop()
        if isinstance(node, list):
            waiting += node
        elif isinstance(node, exp.Expr):
            most -= 1
            waiting += node.args.values()
    return most < 0


def as_number(boolean: exp.Expr) -> exp.Expr:
    """Write a boolean as 0 or 1: see ``lazily``."""
    return cast(boolean, pa.int32())


def is_one(number: exp.Expr) -> exp.Paren:
    """Write a number of ``as_number`` as a boolean again."""
    return exp.paren(exp.EQ(this=number, expression=integer(1, pa.int32())), copy=False)


def lossy_cast(tree: exp.Expr, data_type: pa.DataType, *, is_tried: bool = False) -> exp.Expr:
    """Cast to a type with fewer values, or give NULL where there is none (``is_tried``).

    DataFusion would compare what is cast with a literal of the wider type, which is equal less
    often.
    """
    kind = exp.TryCast if is_tried else exp.Cast
    return opaque(kind(this=tree, to=sql_type(data_type)))


def is_null(tree: exp.Expr) -> exp.Expr:
    """Write IS NULL of an operand."""
    return exp.Is(this=enclosed(tree), expression=exp.Null())


def typed_literal(scalar: pa.Scalar) -> Typed:
    """Write a value so that it has its type.

    Raises:
        Declined: Its type is not one of Spark's plain ones.
    """
    if pa.types.is_null(scalar.type):
        return Typed(exp.Null(), scalar.type)
    if not is_plain(scalar.type):
        raise Declined(why=f"a literal of type {scalar.type}")
    if not scalar.is_valid:
        return Typed(cast(exp.Null(), scalar.type), scalar.type)
    tree = to_expression(scalar)
    is_typed = isinstance(tree, exp.Cast | exp.Boolean | exp.HexString) or pa.types.is_string(
        scalar.type
    )
    return Typed(tree if is_typed else cast(tree, scalar.type), scalar.type)


def stated_integer(value: Typed) -> int | None:
    """Give the integer that an expression is; None where it is computed, NULL or no integer."""
    literal = literal_value(value.tree)
    number = None if literal is None else literal.as_py()
    return number if isinstance(number, int) else None


def binary(operator: type[exp.Binary], left: exp.Expr, right: exp.Expr) -> exp.Expr:
    """Write an operator between two operands."""
    return operator(this=enclosed(left), expression=enclosed(right))
