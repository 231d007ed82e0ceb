"""Spark's expression texts → typed expressions of DataFusion that compute exactly the same.

What is not listed here is declined. NULL rules: AND, OR, NOT, comparisons, IN, CASE and COALESCE
have SQL's three values on both sides; ``<=>`` is IS NOT DISTINCT FROM.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from sqlglot import exp

from pennon.errors import PredicateSyntaxError
from pennon.predicate.literals import arrow_type, literal_value, to_expression
from pennon.predicate.parse import parse_expression
from pennon.pushdown.guards import arithmetic, comparable, converted
from pennon.pushdown.semantics import Declined
from pennon.pushdown.typed import Typed, cast, enclosed, is_plain

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pennon.pushdown.semantics import Semantics

_COMPARISONS: Final = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ)
_ARITHMETIC: Final = (exp.Add, exp.Sub, exp.Mul)
_TEXT_TESTS: Final = (exp.StartsWith, exp.EndsWith, exp.Contains)
_DATE_PARTS: Final = frozenset({"YEAR", "QUARTER", "MONTH", "DAY"})
_TIME_PARTS: Final = _DATE_PARTS | {"HOUR", "MINUTE"}


def typed_expression(
    text: str | None, columns: Mapping[str, pa.DataType], semantics: Semantics
) -> Typed:
    """Read an expression of Spark and rewrite it for DataFusion.

    Args:
        text: Spark SQL with typed literals; None for one that has no text.
        columns: The columns that it may name, and their types.
        semantics: The session's.

    Raises:
        Declined: A part of it is not known to be computed as Spark does.

    Example:
        >>> from pennon.predicate.dialect import DataFusion
        >>> from pennon.pushdown.semantics import Semantics
        >>> text = "(`c1` = CAST(5 AS BIGINT))"
        >>> found = typed_expression(text, {"c1": pa.int64()}, Semantics())
        >>> print(found.tree.sql(dialect=DataFusion), found.type)
        `c1` = CAST(5 AS BIGINT) bool
    """
    if text is None:
        raise Declined(why="an expression without a text")
    try:
        tree = parse_expression(text)
    except PredicateSyntaxError as error:
        raise Declined(why=text) from error
    try:
        return _Reader(columns, semantics).read(tree)
    except RecursionError as error:
        raise Declined(why="an expression of too many levels") from error


def typed_condition(
    text: str | None, columns: Mapping[str, pa.DataType], semantics: Semantics
) -> exp.Expr:
    """Read a boolean expression.

    Raises:
        Declined: It is not boolean, or a part of it is declined.
    """
    condition = typed_expression(text, columns, semantics)
    if condition.type != pa.bool_():
        raise Declined(why="a condition that is not boolean")
    return condition.tree


class _Reader:
    def __init__(self, columns: Mapping[str, pa.DataType], semantics: Semantics) -> None:
        self.columns = columns
        self.semantics = semantics

    def read(self, node: exp.Expr) -> Typed:
        literal = literal_value(node)
        if literal is not None:
            return _literal(literal)
        match node:
            case exp.Paren():
                return self.read(node.this)
            case exp.Column():
                return self.column(node)
            case exp.Cast():
                return self.cast(node)
            case exp.And() | exp.Or():
                sides = [enclosed(self.boolean(each)) for each in _flat(node)]
                joined = reduce(lambda one, other: type(node)(this=one, expression=other), sides)
                return Typed(joined, pa.bool_())
            case exp.Not():
                inner = enclosed(self.boolean(node.this))
                return Typed(exp.Not(this=inner), pa.bool_())
            case exp.Is() if isinstance(node.expression, exp.Null):
                value = enclosed(self.read(node.this).tree)
                return Typed(exp.Is(this=value, expression=exp.Null()), pa.bool_())
            case exp.In() if node.expressions:
                return self.membership(node)
            case exp.Neg():
                return self.negated(node)
            case exp.Case() if node.this is None:
                return self.case(node)
            case exp.Coalesce():
                return self.coalesce([node.this, *node.expressions])
            case exp.Mod():
                return self.remainder(node)
            case exp.Extract():
                return self.extract(node)
            case exp.Greatest() | exp.Least():
                return self.extreme(node)
            case exp.Abs():
                return self.magnitude(node)
        return self.operator(node)

    def operator(self, node: exp.Expr) -> Typed:
        if isinstance(node, _COMPARISONS):
            left, right = self.alike([self.read(node.this), self.read(node.expression)])
            return Typed(type(node)(this=_enclosed(left), expression=_enclosed(right)), pa.bool_())
        if isinstance(node, _ARITHMETIC):
            left, right = self.read(node.this), self.read(node.expression)
            return arithmetic(type(node), left, right, self.semantics)
        if isinstance(node, _TEXT_TESTS):
            whole, part = self.texts([node.this, node.expression])
            return Typed(type(node)(this=whole, expression=part), pa.bool_())
        if isinstance(node, exp.Concat):
            # DataFusion's concat leaves NULLs out, its operator does not
            joined = reduce(_piped, map(enclosed, self.texts(node.expressions)))
            return Typed(joined, pa.utf8())
        if isinstance(node, exp.Length):
            counted = exp.Anonymous(this="character_length", expressions=self.texts([node.this]))
            return Typed(cast(counted, pa.int32()), pa.int32())
        raise Declined(why=type(node).__name__)

    def negated(self, node: exp.Neg) -> Typed:
        value = self.read(node.this)
        if value.is_float or value.is_decimal:
            return Typed(exp.Neg(this=enclosed(value.tree)), value.type)
        zero = Typed(cast(exp.Literal.number(0), value.type), value.type)
        return arithmetic(exp.Sub, zero, value, self.semantics)

    def column(self, node: exp.Column) -> Typed:
        found = self.columns.get(node.name)
        if found is None or not is_plain(found) or len(node.parts) > 1:
            raise Declined(why=f"the column {node.name}")
        return Typed(exp.column(node.name, quoted=True), found)

    def boolean(self, node: exp.Expr) -> exp.Expr:
        value = self.read(node)
        if pa.types.is_null(value.type):
            return cast(value.tree, pa.bool_())
        if value.type != pa.bool_():
            raise Declined(why="a condition that is not boolean")
        return value.tree

    def cast(self, node: exp.Cast) -> Typed:
        target = arrow_type(node.to)
        if target is None or not is_plain(target):
            raise Declined(why=f"a cast to {node.to}")
        return converted(self.read(node.this), target, self.semantics)

    def membership(self, node: exp.In) -> Typed:
        value, *members = self.alike([self.read(each) for each in (node.this, *node.expressions)])
        found = exp.In(this=_enclosed(value), expressions=[comparable(each) for each in members])
        return Typed(found, pa.bool_())

    def case(self, node: exp.Case) -> Typed:
        branches = [*(each.args["true"] for each in node.args["ifs"]), node.args.get("default")]
        values = self.alike(
            [Typed(exp.Null(), pa.null()) if each is None else self.read(each) for each in branches]
        )
        ifs = [
            exp.If(this=self.boolean(each.this), true=value.tree)
            for each, value in zip(node.args["ifs"], values[:-1], strict=True)
        ]
        return Typed(exp.Case(ifs=ifs, default=values[-1].tree), values[0].type)

    def coalesce(self, arguments: Sequence[exp.Expr]) -> Typed:
        first, *others = self.alike([self.read(each) for each in arguments])
        tree = exp.Coalesce(this=first.tree, expressions=[each.tree for each in others])
        return Typed(tree, first.type)

    def remainder(self, node: exp.Mod) -> Typed:
        """Read ``%`` of an integer by a literal: both have the dividend's sign.

        -1 is left out for the smallest integer, whose quotient overflows.
        """
        divisor = literal_value(node.expression)
        left, right = self.read(node.this), self.read(node.expression)
        is_safe = divisor is not None and divisor.is_valid and divisor.as_py() not in (0, -1)
        if not left.is_integer or left.type != right.type or not is_safe:
            raise Declined(why="a remainder")
        tree = exp.Mod(this=_enclosed(left), expression=_enclosed(right))
        return Typed(cast(enclosed(tree), left.type), left.type)

    def extract(self, node: exp.Extract) -> Typed:
        part, source = node.this.name.upper(), self.read(node.expression)
        if not (
            (source.type == pa.date32() and part in _DATE_PARTS)
            or (source.type == pa.timestamp("us") and part in _TIME_PARTS)
        ):
            raise Declined(why=f"EXTRACT({part}) of {source.type}")
        tree = exp.Extract(this=exp.var(part), expression=source.tree)
        return Typed(cast(tree, pa.int32()), pa.int32())

    def texts(self, nodes: Sequence[exp.Expr]) -> list[exp.Expr]:
        values = [self.read(each) for each in nodes]
        if any(value.type != pa.utf8() for value in values):
            raise Declined(why="what is no text")
        return [value.tree for value in values]

    def extreme(self, node: exp.Greatest | exp.Least) -> Typed:
        """Read GREATEST and LEAST, which leave NULLs out in both engines."""
        first, *others = self.alike([self.read(each) for each in (node.this, *node.expressions)])
        if first.is_float:
            raise Declined(why="the greatest of floats")
        tree = type(node)(this=first.tree, expressions=[each.tree for each in others])
        return Typed(tree, first.type)

    def magnitude(self, node: exp.Abs) -> Typed:
        value = self.read(node.this)
        if not value.is_decimal and not value.is_float:
            raise Declined(why="an absolute value that may not fit")
        return Typed(exp.Abs(this=value.tree), value.type)

    def alike(self, values: Sequence[Typed]) -> list[Typed]:
        """Give NULLs the type of the other values, which all have to have one.

        Spark has written the casts that it wants into the text.
        """
        types = {value.type for value in values if not pa.types.is_null(value.type)}
        if len(types) != 1:
            raise Declined(why="values of several types")
        (common,) = types
        return [converted(value, common, self.semantics) for value in values]


def _literal(scalar: pa.Scalar) -> Typed:
    if pa.types.is_null(scalar.type):
        return Typed(exp.Null(), scalar.type)
    if not is_plain(scalar.type):
        raise Declined(why=f"a literal of type {scalar.type}")
    if not scalar.is_valid:
        return Typed(cast(exp.Null(), scalar.type), scalar.type)
    tree = to_expression(scalar)
    is_typed = isinstance(tree, exp.Cast | exp.Boolean) or pa.types.is_string(scalar.type)
    return Typed(tree if is_typed else cast(tree, scalar.type), scalar.type)


def _enclosed(value: Typed) -> exp.Expr:
    return enclosed(comparable(value))


def _piped(one: exp.Expr, other: exp.Expr) -> exp.Expr:
    return exp.DPipe(this=one, expression=other)


def _flat(node: exp.Expr) -> list[exp.Expr]:
    """List the operands of a chain of one connector, whose tree is as deep as it is long."""
    kind, found = type(node), []
    waiting: list[exp.Expr] = [node]
    while waiting:
        each = waiting.pop()
        while isinstance(each, exp.Paren):
            each = each.this
        if type(each) is kind:
            waiting += [each.expression, each.this]
        else:
            found.append(each)
    return found
