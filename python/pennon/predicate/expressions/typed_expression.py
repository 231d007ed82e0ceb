"""Spark's expression texts → typed expressions of DataFusion that compute exactly the same.

What is not listed here is declined. NULL rules: AND, OR, NOT, comparisons, IN, CASE and COALESCE
have SQL's three values on both sides; ``<=>`` is IS NOT DISTINCT FROM.

Spark computes an operand of AND and OR, and a branch of CASE, only where the others leave the
result open. DataFusion may compute all of them, so what can be an error there is written as a
CASE of numbers, which it leaves as it is.

Columns of nested types: which pass through a query as they are, and the fields of structs.

NULL rules: a field of a NULL struct is NULL.

| DataFusion | Spark | guard |
|---|---|---|
| the field of a NULL struct is what lies there | NULL | CASE |
| a field that is read below a UNION has another's type | its own | ``execution.engine`` |
"""

from __future__ import annotations

import re
from functools import reduce
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from sqlglot import exp

from pennon.predicate.condition import Declined, operands
from pennon.predicate.expressions.arithmetic import (
    arithmetic,
    common_number,
    magnitude,
    negated,
    rounded,
)
from pennon.predicate.expressions.casts import converted, tried
from pennon.predicate.expressions.floats import comparable, compared, extreme_float
from pennon.predicate.expressions.named_functions import named_function
from pennon.predicate.expressions.number_functions import (
    Operands,
    quotient,
    remainder,
    tried_operation,
    whole_quotient,
)
from pennon.predicate.expressions.time_spans import moved_by_interval
from pennon.predicate.normalize import MOST_TUPLES
from pennon.predicate.typed import (
    INTEGER_DIGITS,
    NTZ,
    ZONED,
    SparkExpression,
    Typed,
    as_number,
    call,
    cast,
    choice,
    enclosed,
    has_more_nodes,
    integer,
    is_carried,
    is_null,
    is_one,
    is_plain,
    stated_integer,
    typed_literal,
)
from pennon.predicate.values.literals import LiteralList, arrow_type, literal_value
from pennon.predicate.values.long_lists import written_out

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pennon.predicate.condition import Semantics

# Columns of a query are called so, and texts are searched for them by name.
_OF_QUERIES: Final = re.compile(r"[a-z]\d+")


def carried_column(tree: exp.Expr | None, columns: Mapping[str, pa.DataType]) -> Typed | None:
    """Name a column of a nested type as a whole; None for any other expression.

    Args:
        tree: An expression; None for one that cannot be read.
        columns: The columns that there are, and their types.

    Example:
        >>> carried_column(exp.column("c1"), {"c1": pa.list_(pa.int32())}).type
        ListType(list<item: int32>)
    """
    column = None if tree is None else tree.unnest()
    if not isinstance(column, exp.Column) or len(column.parts) > 1:
        return None
    kind = columns.get(column.name)
    if kind is None or not is_carried(kind):
        return None
    return Typed(exp.column(column.name, quoted=True), kind)


def struct_field(path: Sequence[str], columns: Mapping[str, pa.DataType]) -> Typed:
    """Read a field of a struct, or of a struct within one.

    Args:
        path: The column, and the names down to the field.
        columns: The columns that there are, and their types.

    Raises:
        Declined: There is none of a plain type, or its name could be that of a column.
    """
    column, *names = path
    kind = columns.get(column)
    structs: list[exp.Expr] = [exp.column(column, quoted=True)]
    for name in names:
        positions: list[int] = []
        if kind is not None and pa.types.is_struct(kind):
            positions = kind.get_all_field_indices(name)
        if kind is None or len(positions) != 1 or _OF_QUERIES.fullmatch(name):
            raise Declined(why=f"the column {'.'.join(path)}")
        kind = kind.field(positions[0]).type
        structs.append(call("get_field", structs[-1].copy(), exp.Literal.string(name)))
    if kind is None or not is_plain(kind):
        raise Declined(why=f"a field of {kind}")
    *above, value = structs
    is_missing = reduce(lambda one, other: exp.Or(this=one, expression=other), map(is_null, above))
    return Typed(choice((is_missing, exp.Null()), default=value), kind)


_COMPARISONS: Final = (
    *(exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE),
    *(exp.NullSafeEQ, exp.NullSafeNEQ),
)
_ARITHMETIC: Final = (exp.Add, exp.Sub, exp.Mul)
# Spark takes a BIGINT for a decimal of one digit more than it has.
_DECIMAL_OF_INTEGER: Final[Mapping[int, int]] = {**INTEGER_DIGITS, 64: 20}
# Each is a CASE inside of the one before.
_MOST_SEGMENTS: Final = 8
_MOST_NODES: Final = 40_000  # what guards an operand writes it again, and so does what is above


def typed_expression(
    expression: SparkExpression | exp.Expr,
    columns: Mapping[str, pa.DataType],
    semantics: Semantics,
    expected: pa.DataType | None = None,
) -> Typed:
    """Rewrite an expression of Spark for DataFusion.

    Args:
        expression: As a plan carries it, or its tree.
        columns: The columns that it may name, and their types.
        semantics: The session's.
        expected: The only type that the expression may have; None for any.

    Raises:
        Declined: A part of it is not known to be computed as Spark does.

    Example:
        >>> from pennon.predicate.dialect import DataFusion
        >>> from pennon.predicate.condition import Semantics
        >>> is_five = SparkExpression("(`c1` = CAST(5 AS BIGINT))")
        >>> read = typed_expression(is_five, {"c1": pa.int64()}, Semantics())
        >>> print(read.tree.sql(dialect=DataFusion), read.type)
        `c1` = CAST(5 AS BIGINT) bool
    """
    tree = expression if isinstance(expression, exp.Expr) else expression.stated_tree
    try:
        value = _Reader(columns, semantics).read(tree)
    except RecursionError as error:
        raise Declined(why="an expression of too many levels") from error
    if expected not in (None, value.type):
        raise Declined(why=f"{value.type} instead of {expected}")
    return value


def typed_condition(
    condition: SparkExpression | exp.Expr,
    columns: Mapping[str, pa.DataType],
    semantics: Semantics,
) -> exp.Expr:
    """Rewrite a boolean expression; others are declined."""
    return typed_expression(condition, columns, semantics, pa.bool_()).tree


def typed_key(
    equality: exp.Expr, columns: Mapping[str, pa.DataType], semantics: Semantics
) -> exp.Expr:
    """Read an equality by which a join finds partners: both sides are computed of every row."""
    return _Reader(columns, semantics).value(equality.unnest()).tree


class _Reader:
    def __init__(self, columns: Mapping[str, pa.DataType], semantics: Semantics) -> None:
        self.columns = columns
        self.semantics = semantics
        self.failing = 0
        # Of what is being read, outermost first; above all there is nothing to be left out.
        self.operands = [Operands(exp.And(), is_ansi=semantics.ansi)]

    def read(self, node: exp.Expr) -> Typed:
        """Read a node, and count what in it can be an error."""
        before = self.failing
        self.operands.append(Operands(node, is_ansi=self.semantics.ansi))
        value = self.value(node)
        operands = self.operands.pop()
        value = operands.operator(value)
        if has_more_nodes(value.tree, _MOST_NODES):
            raise Declined(why="an expression of too many terms")
        self.failing += value.can_fail and self.failing == before
        value = Typed(value.tree, value.type, can_fail=self.failing > before)
        return self.operands[-1].add(value, operands.nulls_of(value))

    def value(self, node: exp.Expr) -> Typed:
        literal = literal_value(node)
        if literal is not None:
            return typed_literal(literal)
        match node:
            case exp.Paren():
                return self.read(node.this)
            case exp.Column():
                return self.column(node)
            case exp.Cast():
                return self.cast(node)
            case exp.And() | exp.Or():
                return self.connected(node)
            case exp.Not():
                inner = enclosed(self.boolean(node.this).tree)
                return Typed(exp.Not(this=inner), pa.bool_())
            case exp.Is() if isinstance(node.expression, exp.Null):
                nested = carried_column(node.this, self.columns)
                return Typed(is_null((nested or self.read(node.this)).tree), pa.bool_())
            case exp.In() if isinstance(node.args.get("field"), LiteralList):
                return self.long_membership(node)
            case exp.In() if node.expressions:
                return self.membership(node)
            case exp.Between():
                low = exp.GTE(this=node.this.copy(), expression=node.args["low"].copy())
                high = exp.LTE(this=node.this.copy(), expression=node.args["high"].copy())
                return self.read(exp.And(this=low, expression=high))
            case exp.Case() if node.this is None:
                branches = [(ifs.this, ifs.args["true"]) for ifs in node.args["ifs"]]
                return self.case(branches, node.args.get("default"))
            case exp.If():
                return self.case([(node.this, node.args["true"])], node.args.get("false"))
            case exp.Nullif():
                equal = exp.EQ(this=node.this.copy(), expression=node.expression.copy())
                return self.case([(equal, exp.Null())], node.this)
            case exp.Coalesce():
                return self.coalesce([node.this, *node.expressions])
        return self.operator(node, self.semantics)

    def operator(self, node: exp.Expr, semantics: Semantics) -> Typed:
        if isinstance(node, _COMPARISONS):
            left, right = self.alike([self.read(node.this), self.read(node.expression)])
            return compared(type(node), left, right)
        if isinstance(node, exp.Add | exp.Sub) and isinstance(node.expression, exp.Interval):
            return moved_by_interval(
                self.read(node.this),
                node.expression,
                semantics,
                is_backward=isinstance(node, exp.Sub),
            )
        if isinstance(node, _ARITHMETIC):
            left, right = self.numbers(node)
            return arithmetic(type(node), left, right, semantics)
        tried = tried_operation(node)
        if tried is not None:
            return self.operator(tried, semantics.tried)
        match node:
            case exp.Neg():
                return negated(self.read(node.this), semantics)
            case exp.Div():
                left, right = self.numbers(node)
                if left.is_integer and right.is_integer:
                    left, right = (
                        converted(operand, pa.float64(), semantics) for operand in (left, right)
                    )
                return quotient(left, right, semantics)
            case exp.IntDiv():
                left, right = self.numbers(node)
                return whole_quotient(left, right, semantics)
            case exp.Mod():
                left, right = self.numbers(node)
                return remainder(left, right, semantics)
            case exp.Abs():
                return magnitude(self.read(node.this), semantics)
            case exp.Round():
                return self.rounded(node)
            case exp.Greatest() | exp.Least():
                return self.extreme(node)
            case exp.IsNan():
                return self.is_nan(node)
        return named_function(node, self.read, semantics)

    def column(self, node: exp.Column) -> Typed:
        if len(node.parts) > 1:
            return struct_field([part.name for part in node.parts], self.columns)
        data_type = self.columns.get(node.name)
        if data_type is None or not is_plain(data_type):
            raise Declined(why=f"the column {node.name}")
        return Typed(exp.column(node.name, quoted=True), data_type)

    def boolean(self, node: exp.Expr) -> Typed:
        value = self.read(node)
        if value.is_null:
            return Typed(cast(value.tree, pa.bool_()), pa.bool_())
        if value.type != pa.bool_():
            raise Declined(why="a condition that is not boolean")
        return value

    def connected(self, node: exp.And | exp.Or) -> Typed:
        """Read a chain; an operand that can fail is computed only where Spark computes it."""
        connector = type(node)
        segments: list[list[exp.Expr]] = []
        for operand in map(self.boolean, operands(node, connector)):
            if operand.can_fail or not segments:
                segments.append([])
            segments[-1].append(enclosed(operand.tree))
        if len(segments) > _MOST_SEGMENTS:
            raise Declined(why="too many operands that can be errors")
        tree = _chain(connector, segments.pop())
        while segments:
            first = exp.paren(_chain(connector, segments.pop()), copy=False)
            is_and = connector is exp.And
            decided = exp.Not(this=first.copy()) if is_and else first.copy()
            connected = connector(this=first, expression=enclosed(tree))
            tree = _lazy((decided, integer(int(not is_and), pa.int32())), connected)
        return Typed(tree, pa.bool_())

    def cast(self, node: exp.Cast) -> Typed:
        target = arrow_type(node.to)
        if target is None or not is_plain(target):
            raise Declined(why=f"a cast to {node.to}")
        value = self.read(node.this)
        if node.args.get("safe"):
            return tried(value, target, self.semantics)
        return converted(value, target, self.semantics)

    def membership(self, node: exp.In) -> Typed:
        if isinstance(node.this, exp.Tuple) and len(node.expressions) > MOST_TUPLES:
            raise Declined(why=f"an IN of more than {MOST_TUPLES} tuples")
        value, *members = self.alike(
            [self.read(expression) for expression in (node.this, *node.expressions)]
        )
        if all(literal_value(member.tree) is not None for member in members):
            listed = [comparable(member) for member in members]
            return Typed(exp.In(this=_enclosed(value), expressions=listed), pa.bool_())
        # DataFusion 54 overlooks a CASE in a list that a CASE is looked for in.
        equal = [compared(exp.EQ, value, member).tree for member in members]
        return Typed(exp.paren(exp.or_(*equal)), pa.bool_())

    def long_membership(self, node: exp.In) -> Typed:
        """Read a long list as a whole: its values have one type, and none is NULL."""
        value, scalars = self.read(node.this), node.args["field"].literals.scalars
        if value.type != scalars[0].type and not (
            value.type == pa.int64() and scalars[0].type == pa.int32()
        ):
            return self.read(written_out(node.copy()))
        tree = exp.In(this=_enclosed(value), field=LiteralList.of(scalars))
        return Typed(tree, pa.bool_())

    def case(
        self, branches: Sequence[tuple[exp.Expr, exp.Expr]], default: exp.Expr | None
    ) -> Typed:
        conditions = [self.boolean(condition) for condition, _ in branches]
        nothing = Typed(exp.Null(), pa.null())
        values = [self.read(value) for _, value in branches]
        values.append(nothing if default is None else self.read(default))
        can_fail = any(condition.can_fail for condition in (*conditions[1:], *values))
        values = self.alike(values)
        data_type = values[-1].type
        is_number = can_fail and data_type == pa.bool_()
        trees = [as_number(value.tree) if is_number else value.tree for value in values]
        pairs = zip([condition.tree for condition in conditions], trees[:-1], strict=True)
        tree = choice(*pairs, default=trees[-1])
        return Typed(is_one(tree) if is_number else tree, data_type)

    def coalesce(self, nodes: Sequence[exp.Expr]) -> Typed:
        first, *others = self.alike([self.read(node) for node in nodes])
        if any(other.can_fail for other in others):
            raise Declined(why="an alternative that can be an error")
        trees = [other.tree for other in others]
        return Typed(exp.Coalesce(this=first.tree, expressions=trees), first.type)

    def rounded(self, node: exp.Round) -> Typed:
        digits = node.args.get("decimals")
        literal = pa.scalar(0) if digits is None else literal_value(digits)
        if literal is None or not (literal.is_valid and pa.types.is_integer(literal.type)):
            raise Declined(why="rounding to a computed digit")
        return rounded(self.read(node.this), int(literal.as_py()), self.semantics)

    def extreme(self, node: exp.Greatest | exp.Least) -> Typed:
        """Read GREATEST and LEAST, which leave NULLs out in both engines."""
        first, *others = self.alike(
            [self.read(expression) for expression in (node.this, *node.expressions)]
        )
        if first.is_float:
            return extreme_float([first, *others], is_greatest=isinstance(node, exp.Greatest))
        tree = type(node)(this=first.tree, expressions=[other.tree for other in others])
        return Typed(tree, first.type)

    def is_nan(self, node: exp.IsNan) -> Typed:
        value = self.read(node.this)
        if not value.is_float:
            raise Declined(why=f"isnan of {value.type}")
        of_value = call("isnan", value.tree)
        return Typed(exp.Coalesce(this=of_value, expressions=[exp.false()]), pa.bool_())

    def numbers(self, node: exp.Expr) -> list[Typed]:
        """Read the operands of arithmetic; Spark has written the casts of its own into a text."""
        sides = [self.read(node.this), self.read(node.expression)]
        types = {side.type for side in sides}
        if len(types) == 1 or all(side.is_decimal for side in sides):
            return sides
        if any(side.is_decimal for side in sides):
            return [self.as_decimal(side) for side in sides]
        return self.alike(sides)

    def as_decimal(self, value: Typed) -> Typed:
        """Cast an integer to the decimal that Spark takes it for."""
        if not value.is_integer:
            return value
        stated = stated_integer(value)
        digits = _DECIMAL_OF_INTEGER[value.type.bit_width]
        if stated is not None:
            digits = len(str(abs(stated)))
        return converted(value, pa.decimal128(digits, 0), self.semantics)

    def alike(self, values: Sequence[Typed]) -> list[Typed]:
        """Give values one type: NULLs that of the others, numbers the one that holds them all."""
        types = list(dict.fromkeys(value.type for value in values if not value.is_null))
        if not types:
            raise Declined(why="only NULLs")
        common = types[0] if len(types) == 1 else _common(types)
        return [converted(value, common, self.semantics) for value in values]


def _common(types: list[pa.DataType]) -> pa.DataType:
    if all(type_ in (NTZ, ZONED, pa.date32()) for type_ in types):
        return ZONED if ZONED in types else NTZ
    return common_number(types)


def _chain(connector: type[exp.And | exp.Or], operands: Sequence[exp.Expr]) -> exp.Expr:
    return reduce(lambda one, other: connector(this=one, expression=other), operands)


def _lazy(decided: tuple[exp.Expr, exp.Expr], otherwise: exp.Expr) -> exp.Expr:
    return is_one(choice(decided, default=as_number(otherwise)))


def _enclosed(value: Typed) -> exp.Expr:
    return enclosed(comparable(value))
