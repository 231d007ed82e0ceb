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

from typing import cast

import pyarrow as pa
from sqlglot import exp

from pennon.predicate.condition import is_not_null, is_null, negation
from pennon.predicate.connectives import and_all, operands, or_all
from pennon.predicate.like import LikeCall, like_call, read_pattern
from pennon.predicate.tuples import equal_fields, one_of_tuples
from pennon.predicate.values.literals import literal_value, to_expression

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
