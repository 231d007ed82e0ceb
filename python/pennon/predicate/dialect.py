"""The SQL that DataFusion and Lance's filters both read, written from sqlglot trees.

Identifiers are always in backquotes: Lance takes double quotes for a string, and both fold the
case of bare names. Timestamps are microseconds: the plain literal is nanoseconds in DataFusion,
which end in 2262. ``WITH TIME ZONE`` is refused by Lance and loses the zone in DataFusion, so
zoned values are written with ``arrow_cast``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import ClassVar, Final, TypeVar, cast

import pyarrow as pa
import sqlglot
from sqlglot import exp, generator, parser, tokens
from sqlglot.dialects.dialect import Dialect

from pennon.errors import CompiledSqlglot
from pennon.predicate.values.literals import LiteralList, to_expression
from pennon.predicate.values.long_lists import (
    with_lists,
    with_null_safe_lists,
    with_short_lists,
    without_long_lists,
)

# The text of a predicate as an error cites it: short, whatever was asked.

_LONGEST: Final = 200


def shortened_predicate(sql: str) -> str:
    """Cut a predicate to what people read of one in an error, its long lists first.

    Args:
        sql: Of any length.

    Returns:
        At most 200 characters, and a sign that there is more.

    Example:
        >>> shortened_predicate("k = 3"), len(shortened_predicate("k = " + "x" * 1000))
        ('k = 3', 201)
        >>> shortened_predicate(f"k IN ({', '.join(map(str, range(60)))}) AND j")
        'k IN (0, 1, 2, … 57 more) AND j'
    """
    text = with_short_lists(sql)
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "…"


if not generator.__file__.endswith(".py"):  # a class of C, of which instances of ours cannot be
    raise CompiledSqlglot(place=generator.__file__)

_Equality = TypeVar("_Equality", bound=exp.Binary)
_ZONED_MICROS = 'Timestamp(Microsecond, Some("UTC"))'
_ARROW_NAMES = {
    exp.DType.TIMESTAMPTZ: _ZONED_MICROS,
    exp.DType.TIMESTAMPLTZ: _ZONED_MICROS,
    exp.DType.BINARY: "Binary",
}
_ZONELESS = (exp.DType.TIMESTAMP, exp.DType.TIMESTAMPNTZ)
# Lance reads the digits of the least number before its sign.
_LEAST_PLAIN: Final = -(1 << 63)
# Since 1970, of the years 1 to 9999, which Python has.
_PLAIN_DAYS: Final = range(-719_162, 2_932_897)
_FIELD_NAMES = {"DAYOFMONTH": "day", "DAY_OF_MONTH": "day"}


def _literal(written: generator.Generator, scalar: pa.Scalar) -> str:
    if pa.types.is_integer(scalar.type) and scalar.as_py() > _LEAST_PLAIN:
        return str(scalar.as_py())
    if pa.types.is_date32(scalar.type) and scalar.value in _PLAIN_DAYS:
        return f"DATE '{scalar.as_py()}'"
    return written.sql(to_expression(scalar))


def _value_last(equality: _Equality) -> _Equality:
    """Put a value on the right: of ``DATE '…' = a AND a = DATE '…'`` DataFusion 54 finds no row.

    It looks for values that exclude each other, and one that it has computed is another to it than
    the same one that was on the right.
    """
    left, right = equality.this, equality.expression
    if left.find(exp.Column) is not None or right.find(exp.Column) is None:
        return equality
    return type(equality)(this=right.copy(), expression=left.copy())


class DataFusion(Dialect):
    """DataFusion's SQL: ``tree.sql(dialect=DataFusion)``.

    Example:
        >>> from sqlglot import column
        >>> print(column("a").eq(5).sql(dialect=DataFusion))
        `a` = 5
    """

    NORMALIZE_FUNCTIONS = "lower"
    NULL_ORDERING = "nulls_are_large"

    class Tokenizer(tokens.Tokenizer):
        """Backquotes first, since the first kind is the one that is written."""

        IDENTIFIERS: ClassVar[list[str | tuple[str, str]]] = ["`", '"']
        HEX_STRINGS: ClassVar[list[str | tuple[str, str]]] = [("x'", "'"), ("X'", "'")]

    class Parser(parser.Parser):
        """Functions that sqlglot would write by other names, or without their second argument."""

        FUNCTIONS: ClassVar[dict[str, Callable[..., exp.Expr]]] = {
            name: function
            for name, function in parser.Parser.FUNCTIONS.items()
            if name not in ("CHARACTER_LENGTH", "SIGNUM", "TO_CHAR")
        }

    class Generator(generator.Generator):
        """The functions and types that differ."""

        TRANSFORMS: ClassVar[dict[type[exp.Expr], Callable[..., str]]] = {
            **generator.Generator.TRANSFORMS,
            LiteralList: lambda self, node: f"({node.literals.text(partial(_literal, self))})",
        }

        TYPE_MAPPING: ClassVar[dict[exp.DType, str]] = {
            **generator.Generator.TYPE_MAPPING,
            exp.DType.TEXT: "STRING",
            exp.DType.UTINYINT: "TINYINT UNSIGNED",
            exp.DType.USMALLINT: "SMALLINT UNSIGNED",
            exp.DType.UINT: "INT UNSIGNED",
            exp.DType.UBIGINT: "BIGINT UNSIGNED",
        }

        def eq_sql(self, expression: exp.EQ) -> str:
            """Write a value behind what is compared with it."""
            return super().eq_sql(_value_last(expression))

        def neq_sql(self, expression: exp.NEQ) -> str:
            """Write a value behind what is compared with it: below a NOT this is an equality."""
            return super().neq_sql(_value_last(expression))

        def preprocess(self, expression: exp.Expr) -> exp.Expr:
            """Write lists on one operand so that NULL stays NULL."""
            return with_null_safe_lists(super().preprocess(expression))

        def datatype_sql(self, expression: exp.DataType) -> str:
            """Write zoneless timestamps as microseconds, whatever precision was read."""
            if expression.this in _ZONELESS:
                return "TIMESTAMP(6)"
            return super().datatype_sql(expression)

        def identifier_sql(self, expression: exp.Identifier) -> str:
            """Quote every name."""
            return "`" + expression.name.replace("`", "``") + "`"

        def hexstring_sql(
            self, expression: exp.HexString, binary_function_repr: str | None = None
        ) -> str:
            """Write binary as X'00FF'."""
            del binary_function_repr
            return f"X'{expression.name}'"

        def cast_sql(self, expression: exp.Cast, safe_prefix: str | None = None) -> str:
            """Cast to a zoned timestamp, and to bytes, which have no name in SQL, by arrow_cast."""
            name = _ARROW_NAMES.get(expression.to.this)
            if name is not None:
                return self.func("arrow_cast", expression.this, exp.Literal.string(name))
            if isinstance(expression.this, exp.Literal) and expression.to.this is _DATE:
                return f"DATE {self.sql(expression.this)}"
            return super().cast_sql(expression, safe_prefix)

        def extract_sql(self, expression: exp.Extract) -> str:
            """Write EXTRACT as date_part."""
            part = expression.this.name.upper()
            name = exp.Literal.string(_FIELD_NAMES.get(part, part.lower()))
            return self.func("date_part", name, expression.expression)

        def timestamptrunc_sql(self, expression: exp.TimestampTrunc) -> str:
            """Write date_trunc with its unit first."""
            unit = exp.Literal.string(expression.text("unit").lower())
            return self.func("date_trunc", unit, expression.this)

        def nullsafeeq_sql(self, expression: exp.NullSafeEQ) -> str:
            """Write parentheses: DataFusion reads a following AND into the right side."""
            return f"({super().nullsafeeq_sql(_value_last(expression))})"

        def nullsafeneq_sql(self, expression: exp.NullSafeNEQ) -> str:
            """Write its negation, in parentheses too."""
            return f"({super().nullsafeneq_sql(_value_last(expression))})"

        def isnan_sql(self, expression: exp.IsNan) -> str:
            """Write a test for NaN without the underscore."""
            return self.func("isnan", expression.this)

        def hex_sql(self, expression: exp.Hex) -> str:
            """Write a number's hexadecimal digits."""
            return self.func("to_hex", expression.this)

        def substring_sql(self, expression: exp.Substring) -> str:
            """Write a part of a text as a call of a quoted name: Lance does not read the others."""
            start, length = expression.args.get("start"), expression.args.get("length")
            return self.func("`substr`", expression.this, start, length)

        def strposition_sql(self, expression: exp.StrPosition) -> str:
            """Write the place of a part of a text."""
            return self.func("strpos", expression.this, expression.args.get("substr"))

        def startswith_sql(self, expression: exp.StartsWith) -> str:
            """Write a test of the first characters."""
            return self.func("starts_with", expression.this, expression.expression)

        def endswith_sql(self, expression: exp.EndsWith) -> str:
            """Write a test of the last characters."""
            return self.func("ends_with", expression.this, expression.expression)

        def contains_sql(self, expression: exp.Contains) -> str:
            """Write a test for a part of a text."""
            return self.func("contains", expression.this, expression.expression)


_DATE = exp.DType.DATE


def read_condition(sql: str) -> exp.Expression:
    """Read a condition that was written in this dialect, the long lists in it as one leaf each.

    Args:
        sql: For example the residual of a leaf.

    Example:
        >>> print(read_condition("`a` > 5").sql(dialect=DataFusion))
        `a` > 5
    """
    # Only where texts have a backslash do they end elsewhere than those of Spark.
    text, lists = (sql, []) if "\\" in sql else without_long_lists(sql)
    tree = cast("exp.Expression", sqlglot.parse_one(text, dialect=DataFusion))
    return with_lists(tree, lists)
