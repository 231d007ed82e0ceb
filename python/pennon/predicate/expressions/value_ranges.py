"""What values an expression can have, which shows that it is no error for any row.

NULL rules: a range is that of the values that are not NULL; of NULL nothing is an error.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from sqlglot import exp

from pennon.predicate.expressions.typed_expression import typed_expression
from pennon.predicate.values.literals import literal_value

if TYPE_CHECKING:
    from pennon.predicate.condition import Semantics

# These are an error only where an operand is.
_TOTAL: Final = (
    *(exp.And, exp.Or, exp.Not, exp.Paren, exp.Is, exp.Between),
    *(exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.NullSafeNEQ),
)


@dataclass(frozen=True, slots=True)
class ValueRange:
    """Numbers that values are not below, and not above.

    Args:
        low: None of the values is less.
        high: None of the values is greater.
    """

    low: Fraction
    high: Fraction

    @classmethod
    def of_type(cls, data_type: pa.DataType) -> ValueRange | None:
        """Give the values that a type has; None where they are no integers and no decimals.

        Example:
            >>> print(ValueRange.of_type(pa.decimal128(3, 1)).high)
            999/10
        """
        if pa.types.is_decimal(data_type):
            high = Fraction(10**data_type.precision - 1, 10**data_type.scale)
            return cls(-high, high)
        if not pa.types.is_signed_integer(data_type):
            return None
        beyond = 2 ** (data_type.bit_width - 1)
        return cls(Fraction(-beyond), Fraction(beyond - 1))

    def within(self, data_type: pa.DataType) -> ValueRange | None:
        """Give the range of the same values in a type; None where one of them may not fit it."""
        every = ValueRange.of_type(data_type)
        if every is None:
            return None
        # What has more digits behind the point than the type is rounded, or cut.
        unit = Fraction(1, 10**data_type.scale) if pa.types.is_decimal(data_type) else Fraction(1)
        is_whole = (self.low / unit).denominator == (self.high / unit).denominator == 1
        moved = Fraction(0) if is_whole and pa.types.is_integer(data_type) else unit
        kept = ValueRange(self.low - moved, self.high + moved)
        return kept if every.low <= kept.low and kept.high <= every.high else None


@dataclass(frozen=True, slots=True)
class ValueRanges:
    """The ranges of expressions over some columns.

    Args:
        columns: The types of the columns.
        semantics: The session's.
        known: The range of a column, by its name; None where nothing is known of it.
    """

    columns: Mapping[str, pa.DataType]
    semantics: Semantics
    known: Callable[[str], ValueRange | None]

    def may_fail(self, node: exp.Expr) -> bool:
        """Whether an expression may be an error for values that its columns can have.

        Args:
            node: The expression, in Spark's SQL.

        Raises:
            Declined: A part of it is not known to be computed as Spark does.
        """
        if not typed_expression(node, self.columns, self.semantics).can_fail:
            return False
        if isinstance(node, _TOTAL):
            return any(map(self.may_fail, node.iter_expressions()))
        return self.range_of(node) is None

    def range_of(self, node: exp.Expr) -> ValueRange | None:
        """Find the values that an expression can have.

        Args:
            node: The expression, in Spark's SQL.

        Returns:
            Their range; None where it is not known, or one of them may be an error.
        """
        literal = literal_value(node)
        if literal is not None:
            return self.of_literal(literal)
        match node:
            case exp.Paren():
                return self.range_of(node.this)
            case exp.Column() if len(node.parts) == 1 and node.name in self.columns:
                every = ValueRange.of_type(self.columns[node.name])
                return every and (self.known(node.name) or every)
            case exp.Cast() if not node.args.get("safe"):
                value = self.range_of(node.this)
            case exp.Add() | exp.Sub() | exp.Mul():
                value = self.of_arithmetic(node)
            case _:
                return None
        if value is None:
            return None
        return value.within(typed_expression(node, self.columns, self.semantics).type)

    def of_literal(self, literal: pa.Scalar) -> ValueRange | None:
        """Give the range of one value, if it is a number."""
        if not literal.is_valid or ValueRange.of_type(literal.type) is None:
            return None
        value = Fraction(literal.as_py())
        return ValueRange(value, value)

    def of_arithmetic(self, node: exp.Add | exp.Sub | exp.Mul) -> ValueRange | None:
        """Compute with the ends of two ranges; the result's type may be too narrow for it."""
        left, right = self.range_of(node.this), self.range_of(node.expression)
        if left is None or right is None:
            return None
        match node:
            case exp.Add():
                return ValueRange(left.low + right.low, left.high + right.high)
            case exp.Sub():
                return ValueRange(left.low - right.high, left.high - right.low)
        ends = [one * other for one in (left.low, left.high) for other in (right.low, right.high)]
        return ValueRange(min(ends), max(ends))
