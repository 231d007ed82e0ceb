"""Reads the long IN lists of a predicate's text without the parser.

The parser takes 35 us for each literal; 100,000 of them took longer than all else. So a list of
plain integers, texts or dates behind a column's ``IN`` is cut out, and stands in the tree as one
leaf.

NULL rules: a list with NULL is not plain, and is read as any other.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from sqlglot import exp

from pennon.predicate.values.literals import LiteralList, to_expression

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["with_lists", "with_short_lists", "without_long_lists", "written_out"]

# Lists of values beside each other, written so that DataFusion keeps SQL's third value.
#
# DataFusion 54 merges lists on one operand as sets: ``NOT (a IN (1, 2, 3, 4) AND a IN (5, 6, 7,
# 8))`` and ``a NOT IN (…) OR a NOT IN (…)`` become TRUE, also where ``a`` is NULL and the condition
# is NULL. It makes a list of ``a = 1 OR a = 2 OR …`` as well. Lance's filters do the same.
#
# So where one operand has several lists in a condition, each is written as ``(list AND a IS NOT
# NULL) OR (a IS NULL AND NULL)``: whatever the list becomes, NULL stays NULL.

_FEWEST_NULLS: Final = 2
# A union of types is made anew each time that it is written, and is asked slowly.
_LISTS_AND_ORS: Final = (exp.In, exp.Or)


def with_null_safe_lists(tree: exp.Expr) -> exp.Expr:
    """Rewrite the lists that DataFusion would merge.

    Returns:
        The tree itself where no operand has two lists, else a copy.

    Example:
        >>> from sqlglot import parse_one
        >>> print(with_null_safe_lists(parse_one("a IN (1, 2) OR b IN (1, 2)")))
        a IN (1, 2) OR b IN (1, 2)
    """
    counts: Counter[exp.Expr] = Counter()
    for node in _lists_and_ors(tree):
        if isinstance(node, exp.In):
            if not _is_safe(node):
                counts[node.this] += 1
        elif not isinstance(_above(node), exp.Or):
            compared = Counter(operand.this for operand in _operands(node) if _is_equality(operand))
            counts.update(value for value, count in compared.items() if count >= _FEWEST_NULLS)
    risky = {value for value, count in counts.items() if count >= _FEWEST_NULLS}
    return tree.transform(lambda node: _rewritten(node, risky)) if risky else tree


def _lists_and_ors(tree: exp.Expr) -> Iterator[exp.Expr]:
    """Walk a tree that may be all of a query: sqlglot's own walk takes a third of writing it."""
    waiting: list[object] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, list):
            waiting += node
        elif isinstance(node, exp.Expr):
            if isinstance(node, _LISTS_AND_ORS):
                yield node
            waiting += node.args.values()


def _rewritten(node: exp.Expr, risky: set[exp.Expr]) -> exp.Expr:
    is_list = isinstance(node, exp.In) or _is_equality(node)
    if not is_list or node.this not in risky or _is_safe(node):
        return node
    operand = node.this
    is_null = exp.Is(this=operand.copy(), expression=exp.Null())
    certain = exp.And(this=node.copy(), expression=exp.Not(this=is_null.copy()))
    unknown = exp.And(this=is_null, expression=exp.Null())
    return exp.paren(
        exp.Or(this=exp.paren(certain, copy=False), expression=exp.paren(unknown, copy=False)),
        copy=False,
    )


def _is_equality(node: exp.Expr) -> bool:
    return isinstance(node, exp.EQ) and not node.expression.find(exp.Column)


def _is_safe(node: exp.Expr) -> bool:
    """Whether a list has been rewritten already."""
    above = _above(node)
    other = above.expression if isinstance(above, exp.And) else None
    if not isinstance(other, exp.Not) or not isinstance(other.this, exp.Is):
        return False
    is_same: bool = other.this.this == node.this
    return is_same


def _operands(node: exp.Expr) -> Iterator[exp.Expr]:
    waiting = [node]
    while waiting:
        tree = waiting.pop()
        while isinstance(tree, exp.Paren):
            tree = tree.this
        if isinstance(tree, exp.Or):
            waiting += [tree.this, tree.expression]
        else:
            yield tree


def _above(node: exp.Expr) -> exp.Expr | None:
    above = node.parent
    while isinstance(above, exp.Paren):
        above = above.parent
    return above


_PLACE: Final = "_PENNON_LIST_"
_FEWEST: Final = 50
_MORE: Final = f"{{{_FEWEST - 1},}}"
_INTEGERS: Final = rf"-?\d{{1,18}}(?:\s*,\s*-?\d{{1,18}}){_MORE}"
_TEXTS: Final = rf"'[^'\\]*'(?:\s*,\s*'[^'\\]*'){_MORE}"
_DATE: Final = r"DATE\s*'\d{4}-\d\d-\d\d'"
_DATES: Final = rf"{_DATE}(?:\s*,\s*{_DATE}){_MORE}"
_LIST: Final = re.compile(rf"\bIN\s*\(\s*({_INTEGERS}|{_TEXTS}|{_DATES})\s*\)", re.IGNORECASE)
# A sign that begins a text, a name, or a comment, in which a list would be none.
_QUOTED: Final = re.compile(r"'(?:[^'\\]|\\.|'')*'|\"(?:[^\"\\]|\\.)*\"|`[^`]*`|--|/\*")
_VALUE: Final = re.compile(r"(?:DATE\s*)?'[^']*'|-?\d+", re.IGNORECASE)
_MOST_SHOWN: Final = 3
_FOUR_BYTES: Final = 1 << 31


def without_long_lists(sql: str) -> tuple[str, list[tuple[pa.Scalar, ...]]]:
    """Cut the long plain lists out of a text.

    Args:
        sql: A predicate of Spark SQL.

    Returns:
        The text with a call in the place of each list, and the lists.

    Example:
        >>> text, [values] = without_long_lists(f"a IN ({', '.join(map(str, range(60)))})")
        >>> text, len(values)
        ('a IN (_PENNON_LIST_(0))', 60)
    """
    if len(sql) < 2 * _FEWEST or _PLACE in sql:
        return sql, []
    lists: list[tuple[pa.Scalar, ...]] = []
    parts: list[str] = []
    end = 0
    for match in _LIST.finditer(sql):
        values = _values(match[1]) if _is_outside(sql, end, match.start()) else None
        if values is None:
            return sql, []
        parts.append(f"{sql[end : match.start()]}IN ({_PLACE}({len(lists)}))")
        lists.append(values)
        end = match.end()
    return "".join([*parts, sql[end:]]), lists


def with_lists(tree: exp.Expression, lists: list[tuple[pa.Scalar, ...]]) -> exp.Expression:
    """Put the lists back: as one leaf behind a column, as literals behind all else.

    Args:
        tree: What was parsed of the text.
        lists: Of ``without_long_lists``.
    """
    if not lists:
        return tree
    for node in list(tree.find_all(exp.In)):
        match node.expressions:
            case [exp.Anonymous() as place] if place.name == _PLACE:
                values = lists[int(place.expressions[0].name)]
                if isinstance(node.this, exp.Column | exp.Dot):
                    node.set("expressions", None)
                    node.set("field", LiteralList.of(values))
                else:
                    node.set("expressions", list(map(to_expression, values)))
    return tree


def written_out(tree: exp.Expression) -> exp.Expression:
    """Write lists as literals again, for who takes a list apart; in place."""
    for node in list(tree.find_all(exp.In)):
        listed = node.args.get("field")
        if isinstance(listed, LiteralList):
            node.set("field", None)
            node.set("expressions", list(map(to_expression, listed.literals.scalars)))
    return tree


def with_short_lists(sql: str) -> str:
    """Cut the long plain lists of a text that people read down to their first values.

    Example:
        >>> with_short_lists(f"a NOT IN ({', '.join(map(str, range(60)))}) AND b IN (1, 2)")
        'a NOT IN (0, 1, 2, … 57 more) AND b IN (1, 2)'
    """
    return _LIST.sub(_first_values, sql)


def _first_values(match: re.Match[str]) -> str:
    values = _VALUE.findall(match[1])
    return f"IN ({', '.join(values[:_MOST_SHOWN])}, … {len(values) - _MOST_SHOWN:,} more)"


def _is_outside(sql: str, start: int, end: int) -> bool:
    """Whether a place is within no text, name or comment that begins behind another place."""
    for match in _QUOTED.finditer(sql, start):
        if match.start() >= end:
            return True
        if match.end() > end or match[0] in ("--", "/*"):
            return False
    return True


def _values(text: str) -> tuple[pa.Scalar, ...] | None:
    """Read the values of a list; None where one is no day of the calendar."""
    if text.endswith("'"):
        texts = pa.array(list(dict.fromkeys(re.findall(r"'([^']*)'", text))), pa.utf8())
        try:
            return tuple(texts if text.startswith("'") else texts.cast(pa.date32()))
        except pa.ArrowInvalid:
            return None
    numbers = dict.fromkeys(map(int, text.split(",")))
    widest = max(map(abs, numbers))
    kind = pa.int32() if widest < _FOUR_BYTES else pa.int64()
    return tuple(pa.array(list(numbers), kind))
