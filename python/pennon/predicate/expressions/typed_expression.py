"""Spark's expression texts → typed expressions of DataFusion that compute exactly the same.

What is not listed here is declined. NULL rules: AND, OR, NOT, comparisons, IN, CASE and COALESCE
have SQL's three values on both sides; ``<=>`` is IS NOT DISTINCT FROM.

Spark computes an operand of AND and OR, and a branch of CASE, only where the others leave the
result open. DataFusion may compute all of them, so what can be an error there is written as a
CASE of numbers, which it leaves as it is.

Columns of nested types pass through a query as they are; of structs fields are read, too, and a
field of a NULL struct is NULL.

| DataFusion | Spark | guard |
|---|---|---|
| the field of a NULL struct is what lies there | NULL | CASE |
| a field that is read below a UNION has another's type | its own | ``execution.engine`` |
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from sqlglot import exp

from pennon.predicate.condition import Declined, operands
from pennon.predicate.expressions.casts import converted, tried
from pennon.predicate.expressions.floats import comparable, compared, is_zero
from pennon.predicate.expressions.functions import (
    Nulls,
    Order,
    compiled,
    function_of,
    interval_of,
    is_total,
)
from pennon.predicate.expressions.intervals import Interval
from pennon.predicate.expressions.number_functions import common_number
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
    from collections.abc import Callable, Mapping, Sequence

    from pennon.predicate.condition import Semantics
    from pennon.predicate.expressions.intervals import Ends

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


def may_fail(
    node: exp.Expr,
    columns: Mapping[str, pa.DataType],
    semantics: Semantics,
    known: Callable[[str], Ends | None],
) -> bool:
    """Whether an expression may be an error for values that its columns can have.

    Args:
        node: The expression, in Spark's SQL.
        columns: The types of the columns.
        semantics: The session's.
        known: The least and the greatest value of a column, by its name; None where nothing is
            known of it but its type.

    Raises:
        Declined: A part of it is not known to be computed as Spark does.
    """
    value = typed_expression(node, columns, semantics)
    if not value.can_fail:
        return False
    if is_total(node):
        parts = node.iter_expressions()
        return any(may_fail(part, columns, semantics, known) for part in parts)
    names = {column.name for column in value.tree.find_all(exp.Column) if column.name in columns}
    given: dict[tuple[str, ...], Interval] = {}
    for name in names:
        column = Interval.of_range(columns[name], known(name))
        if column is not None:
            given[(name,)] = column
    interval = interval_of(value.tree, given, 1)
    return interval is None or bool(interval.is_open[0])


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
        return self.operator(node)

    def operator(self, node: exp.Expr) -> Typed:
        """Compile what the table of functions has; what is tried is NULL where it is an error."""
        operation = tried_operation(node)
        if operation is None:
            return compiled(node, self)
        return compiled(
            operation, _Tried(self.read, self.numbers, self.alike, self.semantics.tried)
        )

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


# Operands that Spark does not compute where another one is NULL.
#
# An operator on NULL is NULL; Spark computes its operands one after the other, and stops at the
# first NULL. An error of a later one is none then. DataFusion computes all of them: hence a CASE.

_TRIED: Final = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.Bracket)
# What is asked for NULL is computed twice, and what stands in it twice as often.
_MOST_ASKED: Final = 1_000


class Operands:
    """The operands of an operator, as they are read one after the other.

    Args:
        node: The operator, in Spark's SQL.
        is_ansi: Whether a division by zero is an error, and not NULL.

    Example:
        >>> from pennon.predicate.dialect import DataFusion
        >>> sides = Operands(exp.Add(), is_ansi=True)
        >>> for name, can_fail in (("a", False), ("b", True)):
        ...     side = sides.add(Typed(exp.column(name), pa.int64(), can_fail))
        >>> print(side.tree.sql(dialect=DataFusion))
        CASE WHEN `a` IS NULL THEN NULL ELSE `b` END
    """

    def __init__(self, node: exp.Expr, *, is_ansi: bool) -> None:
        tried = tried_operation(node)
        self._node = node if tried is None else tried
        self._is_tried = tried is not None
        self._is_ansi = is_ansi
        function = function_of(self._node)
        self._order = Order.UNKNOWN if function is None else function.facts.order
        self._computed: list[Typed] = []
        self._nulls: list[exp.Expr] = []

    def add(self, operand: Typed, nulls: Sequence[exp.Expr] | None = None) -> Typed:
        """Add what was read, and compute it where Spark does.

        Args:
            operand: The next operand.
            nulls: It is NULL where one of these is, and nowhere else; None for itself.

        Raises:
            Declined: It is not known in which order Spark computes the operands.
        """
        if literal_value(operand.tree) is not None:
            return operand
        if self._computed and self._order in (Order.UNKNOWN, Order.LEFT_FIRST):
            is_in_order = self._order is Order.LEFT_FIRST
            if not is_in_order and self._is_unordered(operand):
                raise Declined(why="what can be an error beside what may be NULL")
            if is_in_order and operand.can_fail and self._nulls:
                operand = _guarded(operand, [is_null(tree.copy()) for tree in self._nulls])
        self._computed.append(operand)
        own = [operand.tree] if nulls is None else nulls
        self._nulls += [tree for tree in own if tree not in self._nulls]
        return operand

    def operator(self, value: Typed) -> Typed:
        """Compute an operator where Spark computes its operands: of a division the divisor first.

        Args:
            value: The operator as DataFusion computes it.
        """
        match self._computed:
            case [dividend, divisor] if self._order is Order.DIVISOR_FIRST and dividend.can_fail:
                conditions = [is_null(divisor.tree.copy())]
                if self._is_tried:
                    conditions.append(is_zero(divisor))
                return _guarded(value, conditions)
        return value

    def nulls_of(self, value: Typed) -> Sequence[exp.Expr] | None:
        """Give what tells that an operator is NULL, where that is less than the operator itself.

        Args:
            value: The operator as DataFusion computes it.
        """
        node = self._node
        # Without ANSI a decimal that does not fit is NULL, too.
        function = function_of(node)
        is_exact = function is not None and function.facts.nulls is Nulls.EXACT
        is_null_by_operands = is_exact and (self._is_ansi or not value.is_decimal)
        if self._is_ansi and isinstance(node, exp.Cast):
            is_tried = bool(node.args.get("safe"))
            is_null_by_operands = not is_tried and _is_number_of_integer(value, self._computed)
        elif self._is_ansi and self._order is Order.DIVISOR_FIRST:
            is_null_by_operands = True
        return self._nulls if is_null_by_operands and not self._is_tried else None

    def _is_unordered(self, operand: Typed) -> bool:
        node = self._node
        if isinstance(node, exp.Anonymous) and len(node.expressions) == 1:
            return False  # its one argument is read more than once
        is_first_asked = isinstance(node, exp.In)  # a list is asked for what is not NULL
        before = not is_first_asked and any(other.can_fail for other in self._computed)
        return before or operand.can_fail


def _is_number_of_integer(value: Typed, operands: Sequence[Typed]) -> bool:
    is_number = value.is_integer or value.is_float or value.is_decimal
    return is_number and all(operand.is_integer for operand in operands)


def _guarded(value: Typed, are_null: Sequence[exp.Expr]) -> Typed:
    """Compute an expression where no condition is true, and give NULL elsewhere."""
    is_left_out = reduce(lambda left, right: exp.Or(this=left, expression=right), are_null)
    if has_more_nodes(is_left_out, _MOST_ASKED):
        raise Declined(why="what can be an error beside many terms")
    if not pa.types.is_boolean(value.type):
        tree = choice((is_left_out, exp.Null()), default=value.tree)
        return Typed(tree, value.type, can_fail=value.can_fail)
    tree = choice((is_left_out, exp.Null()), default=as_number(value.tree))
    return Typed(is_one(tree), value.type, can_fail=value.can_fail)


def tried_operation(node: exp.Expr) -> exp.Expr | None:
    """Give the operator of ``tried(…)``: it is NULL where it would be an error (``try_add``).

    Returns:
        None for any other expression.
    """
    if not (isinstance(node, exp.Anonymous) and node.name == "tried"):
        return None
    operation = node.expressions[0].unnest()
    return operation if isinstance(operation, _TRIED) else None


@dataclass(frozen=True, slots=True)
class _Tried:
    """Reads operands as ever, for an operator that is NULL where it would be an error."""

    read: Callable[[exp.Expr], Typed]
    numbers: Callable[[exp.Expr], Sequence[Typed]]
    alike: Callable[[Sequence[Typed]], Sequence[Typed]]
    semantics: Semantics
