"""Normalises predicates, so that pruning handles few forms.

The result is used as a filter: a row passes where it is TRUE. So NULL and FALSE need not be kept
apart, once no NOT stands above them. What comes out consists of

* AND and OR over leaves, one inside the other in parentheses; NOT only directly above IN,
  IS NULL, the tests of texts and, in parentheses, what is not understood;
* ``column operator literal`` with the literal on the right, typed, and never NULL; a boolean
  column alone is ``column = TRUE``;
* BETWEEN as two comparisons; IN without NULLs and duplicates, as ``=`` when one is left;
* ``LIKE 'p%'`` as STARTS WITH, ``'%p'`` as ENDS WITH, ``'%p%'`` as CONTAINS, none of an empty text;
  other LIKEs with a backslash as their escape;
* ``<=>`` as null-safe equality, with NULL as IS NULL; calendar functions as EXTRACT;
* equality of tuples, and IN of a few, as that of their fields;
* TRUE or FALSE alone where that is all.

This is the one place where predicates are rewritten into fewer forms: ``planning.binding.bind``
relies on them, and takes whatever else it meets for a condition that only a computation decides.

NULL rules: NOT is pushed down under three-valued logic (``NOT c < 5`` is ``c >= 5``: both are
NULL for NULL). A comparison with NULL is never true, nor is its negation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, cast

import pyarrow as pa
from sqlglot import exp

from pennon.predicate.condition import and_all, is_not_null, is_null, negation, operands, or_all
from pennon.predicate.values.literals import literal_value, to_expression

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["MOST_TUPLES"]

# LIKE: read with its escape, its patterns as the simplest test, one escape character for all.
#
# NULL rules: a pattern that every string matches still asks IS NOT NULL.

_ESCAPE = "\\"
_WILDCARDS = ("%", "_")


@dataclass(frozen=True, slots=True)
class LikePattern:
    """A pattern in parts: literal text, and the wildcards ``%`` and ``_``.

    Args:
        parts: Texts; a wildcard stands alone and is marked.
    """

    parts: tuple[tuple[str, bool], ...]

    def test(self, subject: exp.Expr) -> exp.Expression:
        """Write what the pattern asks of a text: its start, end or part, or LIKE for all else.

        Args:
            subject: As it may stand beside an operator; it becomes a part of the test.

        Returns:
            A call of STARTS WITH, ENDS WITH or CONTAINS; an equality for a text without wildcards.

        Example:
            >>> from pennon.predicate.dialect import DataFusion
            >>> for pattern in ("p", "p%", "%p", "%p%", "p_"):
            ...     test = read_pattern(pattern).test(exp.column("s", quoted=True))
            ...     print(test.sql(dialect=DataFusion))
            `s` = 'p'
            starts_with(`s`, 'p')
            ends_with(`s`, 'p')
            contains(`s`, 'p')
            `s` LIKE 'p_'
        """
        kinds: tuple[tuple[str | None, type[exp.Expression]], ...] = (
            (self.exact, exp.EQ),
            (self.prefix, exp.StartsWith),
            (self.suffix, exp.EndsWith),
            (self.infix, exp.Contains),
            (str(self), exp.Like),
        )
        text, kind = next(pair for pair in kinds if pair[0] is not None)
        return kind(this=subject, expression=exp.Literal.string(text))

    @property
    def exact(self) -> str | None:
        """The only string that matches, if there are no wildcards."""
        has_wildcard = any(is_wildcard for _, is_wildcard in self.parts)
        return None if has_wildcard else "".join(text for text, _ in self.parts)

    @property
    def prefix(self) -> str | None:
        """The prefix, if that is all that is asked."""
        wildcards = [text for text, is_wildcard in self.parts if is_wildcard]
        if not wildcards or set(wildcards) != {"%"} or not self.parts[-1][1]:
            return None
        head = self.parts[: len(self.parts) - len(wildcards)]
        if any(is_wildcard for _, is_wildcard in head):
            return None
        return "".join(text for text, _ in head)

    @property
    def suffix(self) -> str | None:
        """The suffix, if that is all that is asked."""
        start = self._wildcards_at(self.parts)
        return None if not start or not self._is_text(self.parts[start:]) else self._text(start, 0)

    @property
    def infix(self) -> str | None:
        """The part that has to be somewhere, if that is all that is asked."""
        start, end = self._wildcards_at(self.parts), self._wildcards_at(self.parts[::-1])
        inner = self.parts[start : len(self.parts) - end]
        return None if not start or not end or not self._is_text(inner) else self._text(start, end)

    @property
    def leading_text(self) -> str:
        """The text with which every match starts."""
        leading = ""
        for text, is_wildcard in self.parts:
            if is_wildcard:
                break
            leading += text
        return leading

    @staticmethod
    def _wildcards_at(parts: tuple[tuple[str, bool], ...]) -> int:
        """Count the ``%`` with which parts begin."""
        return next((at for at, part in enumerate(parts) if part != ("%", True)), len(parts))

    @staticmethod
    def _is_text(parts: tuple[tuple[str, bool], ...]) -> bool:
        return not any(is_wildcard for _, is_wildcard in parts)

    def _text(self, start: int, end: int) -> str:
        return "".join(text for text, _ in self.parts[start : len(self.parts) - end])

    def __str__(self) -> str:
        return "".join(
            text if is_wildcard or text not in (*_WILDCARDS, _ESCAPE) else _ESCAPE + text
            for text, is_wildcard in self.parts
        )


@dataclass(frozen=True, slots=True)
class LikeCall:
    """LIKE or NOT LIKE as the parser has it.

    Args:
        subject: What is matched.
        pattern: Any expression.
        escape: The character before a wildcard that stands for itself.
        is_negated: Whether it is NOT LIKE, which the parser keeps in the node.
    """

    subject: exp.Expression
    pattern: exp.Expression
    escape: str
    is_negated: bool


def like_call(node: exp.Expr) -> LikeCall | None:
    """Read LIKE, with its ESCAPE; None for all else.

    Example:
        >>> from sqlglot import parse_one
        >>> call = like_call(parse_one("s NOT LIKE 'a!%' ESCAPE '!'", read="spark").unnest())
        >>> call.pattern.sql(), call.escape
        ("'a!%'", '!')
    """
    escape = _ESCAPE
    if isinstance(node, exp.Escape):
        node, escape = node.this, node.expression.name
    if not isinstance(node, exp.Like):
        return None
    return LikeCall(node.this, node.expression, escape, bool(node.args.get("negate")))


def read_pattern(pattern: str, escape: str = _ESCAPE) -> LikePattern | None:
    r"""Read a pattern; None when its escapes are not those that Spark accepts.

    Example:
        >>> read_pattern("p%").prefix
        'p'
        >>> print(read_pattern("a!%_", escape="!"))
        a\%_
    """
    parts: list[tuple[str, bool]] = []
    characters = iter(pattern)
    for character in characters:
        if character == escape:
            escaped = next(characters, "")
            if escaped not in (*_WILDCARDS, escape):
                return None
            parts.append((escaped, False))
        else:
            parts.append((character, character in _WILDCARDS))
    return LikePattern(tuple(parts))


# Comparisons of tuples as comparisons of their fields.
#
# ``(c, a) IN (('x', 2))`` is ``c <=> 'x' AND a <=> 2``: tuples are structs to Spark.
#
# NULL rules: structs are equal where their fields are, and a NULL field equals a NULL field. No
# tuple is NULL.

# Each becomes a comparison per field, which the rewriting, the projection and the engine walk, in
# trees that grow with them: this many are planned in some 0.2 s.
MOST_TUPLES: Final = 500


def equal_fields(left: exp.Expr, right: exp.Expr) -> exp.Expression | None:
    """Write that two tuples are equal; None where one is no tuple, or has other fields.

    Example:
        >>> from sqlglot import parse_one
        >>> comparison = parse_one("(a, b) = (1, 2)")
        >>> equal_fields(comparison.this, comparison.expression).sql()
        'a IS NOT DISTINCT FROM 1 AND b IS NOT DISTINCT FROM 2'
    """
    fields, others = _fields(left), _fields(right)
    if not fields or len(fields) != len(others):
        return None
    equal = [
        exp.NullSafeEQ(this=field.copy(), expression=other.copy())
        for field, other in zip(fields, others, strict=True)
    ]
    return cast("exp.Expression", exp.and_(*equal, copy=False))


def one_of_tuples(subject: exp.Expr, listed: Sequence[exp.Expr]) -> exp.Expression | None:
    """Write that a tuple is one of a few; None where one is no tuple of as many fields."""
    if not _fields(subject) or len(listed) > MOST_TUPLES:
        return None
    equal = [equal_fields(subject, member) for member in listed]
    comparisons = [one for one in equal if one is not None]
    if len(comparisons) < len(equal):
        return None
    return cast("exp.Expression", exp.or_(*comparisons, copy=False))


def _fields(node: exp.Expr) -> list[exp.Expression]:
    node = node.unnest()
    if not isinstance(node, exp.Tuple | exp.Struct):
        return []
    fields = [
        field.expression if isinstance(field, exp.PropertyEQ) else field
        for field in node.expressions
    ]
    return cast("list[exp.Expression]", fields)


_FLIPPED: dict[type[exp.Expression], type[exp.Expression]] = {
    exp.EQ: exp.EQ,
    exp.NEQ: exp.NEQ,
    exp.LT: exp.GT,
    exp.LTE: exp.GTE,
    exp.GT: exp.LT,
    exp.GTE: exp.LTE,
    exp.NullSafeEQ: exp.NullSafeEQ,
    exp.NullSafeNEQ: exp.NullSafeNEQ,
}
_CALENDAR: dict[type[exp.Expression], str] = {
    exp.Year: "YEAR",
    exp.Month: "MONTH",
    exp.Day: "DAY",
    exp.DayOfMonth: "DAY",
    exp.Hour: "HOUR",
}
_OPAQUE = (exp.DataType, exp.Interval, exp.Identifier, exp.Column, exp.Var)


def normalize(tree: exp.Expression) -> exp.Expression:
    """Give the normal form of a predicate that is used as a filter."""
    return _normalize(tree, negate=False)


def _normalize(node: exp.Expr, *, negate: bool) -> exp.Expression:
    match node:
        case exp.Paren():
            return _normalize(node.this, negate=negate)
        case exp.Not():
            return _normalize(node.this, negate=not negate)
        case exp.And() | exp.Or():
            parts = [_normalize(operand, negate=negate) for operand in operands(node, type(node))]
            is_and = isinstance(node, exp.And) is not negate
            return and_all(parts) if is_and else or_all(parts)
        case exp.Boolean():
            return exp.Boolean(this=bool(node.this) is not negate)
        case exp.Null():
            return _never()
        case exp.Between():
            return _between(node, negate=negate)
        case exp.In():
            return _membership(node, negate=negate)
        case exp.Is():
            return _is(node, negate=negate)
        case exp.Like() | exp.Escape() if (call := like_call(node)) is not None:
            return _like(call, negate=call.is_negated is not negate)
        case exp.Column() | exp.Dot():
            return exp.EQ(this=node.copy(), expression=exp.Boolean(this=not negate))
        case exp.StartsWith() | exp.EndsWith() | exp.Contains():
            return _text_test(type(node), node.this, node.expression, negate=negate)
        case exp.EQ() | exp.NEQ() | exp.NullSafeEQ() | exp.NullSafeNEQ() if (
            fields := equal_fields(node.this, node.expression)
        ) is not None:
            is_equality = isinstance(node, exp.EQ | exp.NullSafeEQ)
            return _normalize(fields, negate=negate is is_equality)
        case exp.NullSafeEQ() | exp.NullSafeNEQ():
            is_equality = isinstance(node, exp.NullSafeEQ) is not negate
            return _null_safe(typed(node.this), typed(node.expression), is_equality=is_equality)
        case exp.EQ() | exp.NEQ() | exp.LT() | exp.LTE() | exp.GT() | exp.GTE():
            return _comparison(node, negate=negate)
        case _:
            normal = typed(cast("exp.Expression", node))
            if isinstance(normal, exp.Null):
                return _never()
            if isinstance(normal, exp.Boolean):
                return exp.Boolean(this=bool(normal.this) is not negate)
            return exp.Not(this=exp.Paren(this=normal)) if negate else normal


def _never() -> exp.Expression:
    return exp.Boolean(this=False)


def _is_literal(node: exp.Expression) -> bool:
    return literal_value(node) is not None


def _is_null_literal(node: exp.Expression) -> bool:
    scalar = literal_value(node)
    return scalar is not None and not scalar.is_valid


def _comparison(node: exp.Expression, *, negate: bool) -> exp.Expression:
    left, right = typed(node.this), typed(node.expression)
    if _is_null_literal(left) or _is_null_literal(right):
        return _never()
    kind: type[exp.Expression] = type(node)
    if _is_literal(left) and not _is_literal(right):
        left, right, kind = right, left, _FLIPPED[kind]
    comparison = kind(this=left, expression=right)
    return negation(comparison) if negate else comparison


def _null_safe(left: exp.Expression, right: exp.Expression, *, is_equality: bool) -> exp.Expression:
    if _is_literal(left):
        left, right = right, left
    if _is_null_literal(right):
        return is_null(left) if is_equality else is_not_null(left)
    if is_equality:
        return exp.NullSafeEQ(this=left, expression=right)
    if _is_literal(right):
        return or_all([exp.NEQ(this=left.copy(), expression=right), is_null(left)])
    return exp.NullSafeNEQ(this=left, expression=right)


def _between(node: exp.Between, *, negate: bool) -> exp.Expression:
    low, high = node.args["low"], node.args["high"]
    bounds = [
        _comparison(exp.GTE(this=node.this.copy(), expression=low), negate=negate),
        _comparison(exp.LTE(this=node.this.copy(), expression=high), negate=negate),
    ]
    return or_all(bounds) if negate else and_all(bounds)


def _membership(node: exp.In, *, negate: bool) -> exp.Expression:
    tuples = one_of_tuples(node.this, node.expressions) if node.expressions else None
    if tuples is not None:
        return _normalize(tuples, negate=negate)
    subject = typed(node.this)
    if node.args.get("query") or not node.expressions or _is_null_literal(subject):
        if _is_null_literal(subject):
            return _never()
        return exp.Not(this=node.copy()) if negate else node.copy()
    elements = [typed(element) for element in node.expressions]
    kept = [element for element in elements if not _is_null_literal(element)]
    if not kept or (negate and len(kept) < len(elements)):
        return _never()
    distinct = list(dict.fromkeys(kept))
    if len(distinct) == 1:
        return _comparison(exp.EQ(this=subject, expression=distinct[0]), negate=negate)
    membership = exp.In(this=subject, expressions=distinct)
    return exp.Not(this=membership) if negate else membership


def _is(node: exp.Is, *, negate: bool) -> exp.Expression:
    subject = typed(node.this)
    if isinstance(node.expression, exp.Boolean):
        return _is_truth(node, negate=negate)
    if not isinstance(node.expression, exp.Null):
        test: exp.Expression = exp.Is(this=subject, expression=node.expression.copy())
        return exp.Not(this=test) if negate else test
    if _is_literal(subject):
        return exp.Boolean(this=_is_null_literal(subject) is not negate)
    return is_not_null(subject) if negate else is_null(subject)


def _is_truth(node: exp.Is, *, negate: bool) -> exp.Expression:
    """IS TRUE is what a filter asks anyway; IS NOT TRUE takes the NULLs too."""
    is_true = bool(node.expression.this)
    if not negate:
        return _normalize(node.this, negate=not is_true)
    return or_all([_normalize(node.this, negate=is_true), is_null(typed(node.this))])


def _like(call: LikeCall, *, negate: bool) -> exp.Expression:
    subject, text = typed(call.subject), literal_value(call.pattern)
    if text is not None and not text.is_valid:
        return _never()
    is_text = text is not None and pa.types.is_string(text.type)
    pattern = read_pattern(text.as_py(), call.escape) if text is not None and is_text else None
    if pattern is None:
        plain: exp.Expression = exp.Like(this=subject, expression=typed(call.pattern))
        if call.escape != "\\":
            plain = exp.Escape(this=plain, expression=exp.Literal.string(call.escape))
        return exp.Not(this=plain) if negate else plain
    test = pattern.test(subject)
    if not isinstance(test, exp.Like):
        return _normalize(test, negate=negate)
    return exp.Not(this=test) if negate else test


def _text_test(
    test: type[exp.Expression], subject: exp.Expression, text: exp.Expression, *, negate: bool
) -> exp.Expression:
    subject, text = typed(subject), typed(text)
    if _is_null_literal(text):
        return _never()
    if isinstance(text, exp.Literal) and text.name == "":
        return _never() if negate else is_not_null(subject)
    tested = test(this=subject, expression=text)
    return exp.Not(this=tested) if negate else tested


def typed(node: exp.Expression) -> exp.Expression:
    """Copy an operand with its literals typed, and calendar functions as EXTRACT."""
    scalar = literal_value(node)
    return to_expression(scalar) if scalar is not None else _typed(node.copy())


def _typed(node: exp.Expression) -> exp.Expression:
    """Change an operand that is nobody else's; one copy of it all is enough."""
    scalar = literal_value(node)
    if scalar is not None:
        return to_expression(scalar)
    if isinstance(node, exp.Paren) and isinstance(node.this, exp.Column | exp.Dot | exp.Paren):
        return _typed(node.this.pop())
    part = _CALENDAR.get(type(node))
    source = node.this
    # The parser puts it around what has a date; the hour of a date is another.
    if isinstance(source, exp.TsOrDsToDate) and part != "HOUR":
        source = source.this
    if part is not None and isinstance(source, exp.Expression):
        return exp.Extract(this=exp.var(part), expression=_typed(source.pop()))
    for child in list(node.iter_expressions()):
        if not isinstance(child, _OPAQUE):
            changed = _typed(child)
            if changed is not child:
                child.replace(changed)
    return node
