"""LIKE: read with its escape, its patterns as the simplest test, one escape character for all.

NULL rules: a pattern that every string matches still asks IS NOT NULL.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

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
