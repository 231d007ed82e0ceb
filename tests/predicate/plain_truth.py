"""What a predicate of Spark SQL is for one row, in plain Python: an oracle that rewrites nothing.

The text is read by sqlglot alone; truth is three-valued, with None for NULL.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from typing import Any

import sqlglot
from sqlglot import exp

_COMPARED: dict[type[exp.Expr], Callable[[Any, Any], object]] = {
    exp.EQ: operator.eq,
    exp.NEQ: operator.ne,
    exp.LT: operator.lt,
    exp.LTE: operator.le,
    exp.GT: operator.gt,
    exp.GTE: operator.ge,
}
_ARITHMETIC: dict[type[exp.Expr], Callable[[Any, Any], object]] = {
    exp.Add: operator.add,
    exp.Mul: operator.mul,
}
_TEXT_TESTS: dict[type[exp.Expr], Callable[[str, str], bool]] = {
    exp.StartsWith: str.startswith,
    exp.EndsWith: str.endswith,
    exp.Contains: lambda text, part: part in text,
}


def is_true(sql: str, row: Mapping[str, object]) -> bool:
    """Whether a filter keeps a row."""
    return _value(sqlglot.parse_one(sql, read="spark"), row) is True


def _value(node: exp.Expr, row: Mapping[str, object]) -> object:
    match node:
        case exp.Paren():
            return _value(node.this, row)
        case exp.Null():
            return None
        case exp.Boolean():
            return node.this
        case exp.Neg():
            return -_value(node.this, row)  # type: ignore[operator]
        case exp.Literal():
            return node.name if node.is_string else int(node.name)
        case exp.Column():
            return row[node.name]
        case exp.Cast():
            return _value(node.this, row)  # only NULLs and columns of the type are cast here
        case exp.Not():
            return _not(_value(node.this, row))
        case exp.And():
            return _and(_value(node.left, row), _value(node.right, row))
        case exp.Or():
            return _not(_and(_not(_value(node.left, row)), _not(_value(node.right, row))))
        case exp.Is():
            return _value(node.this, row) is _value(node.expression, row)
        case exp.NullSafeEQ() | exp.NullSafeNEQ():
            is_same = _value(node.left, row) == _value(node.right, row)
            return is_same == isinstance(node, exp.NullSafeEQ)
    return _of_operands(node, row)


def _of_operands(node: exp.Expr, row: Mapping[str, object]) -> object:
    """The operators that are NULL for a NULL."""
    subject = _value(node.this, row)
    match node:
        case exp.In():
            return _in(subject, [_value(item, row) for item in node.expressions])
        case exp.Between():
            low, high = _value(node.args["low"], row), _value(node.args["high"], row)
            return _and(_strict(operator.ge, subject, low), _strict(operator.le, subject, high))
        case exp.Escape():
            like = node.this
            subject, pattern = _value(like.this, row), _value(like.expression, row)
            found = _strict(_like(node.expression.name), subject, pattern)
            return _not(found) if like.args.get("negate") else found
        case exp.Like():
            found = _strict(_like("\\"), subject, _value(node.expression, row))
            return _not(found) if node.args.get("negate") else found
    computed = {**_COMPARED, **_ARITHMETIC, **_TEXT_TESTS}[type(node)]
    return _strict(computed, subject, _value(node.expression, row))


def _strict(function: Callable[..., object], left: object, right: object) -> object:
    return None if left is None or right is None else function(left, right)


def _not(value: object) -> object:
    return None if value is None else not value


def _and(left: object, right: object) -> object:
    if left is False or right is False:
        return False
    return None if left is None or right is None else True


def _in(subject: object, members: list[object]) -> object:
    if subject is None:
        return None
    return True if subject in members else (None if None in members else False)


def _like(escape: str) -> Callable[[str, str], bool]:
    def matches(text: str, pattern: str) -> bool:
        parts, characters = [], iter(pattern)
        for sign in characters:
            wild = {"%": ".*", "_": "."}.get(sign)
            taken = next(characters) if sign == escape else sign
            parts.append(re.escape(taken) if wild is None else wild)
        return re.fullmatch("".join(parts), text, re.DOTALL) is not None

    return matches
