"""Expressions that are made of an example: its literals become columns, and other literals."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

from tests.torture.examples.example_rows import COLUMNS, EDGES, columns_of

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator, Sequence

    from tests.torture.examples.literals import Example

__all__ = ["Variations"]

_NUMBERS: Final = ("bigint", "smallint", "tinyint", "double", "float", "decimal")
_TIMES: Final = ("timestamp", "ntz", "date")
# Whose columns stand in for a literal of a kind, beside those of its own.
_STAND_INS: Final = {
    "int": _NUMBERS,
    "decimal": ("double", "float", "int"),
    "double": ("float", "decimal", "int"),
    "bigint": ("int", "decimal"),
    "string": ("binary",),
    "time text": ("string", *_TIMES),
    "date": _TIMES,
    "timestamp": _TIMES,
    "ntz": _TIMES,
}
# A value is as long as an argument of theirs says, and two billion signs are no test of it.
_LENGTHENING: Final = ("repeat", "space", "pad(", "sequence", "randstr", "format_number")
_SHORT: Final = ("0", "1", "-1", "3", "7", "NULL")
_AT_RANDOM: Final = 1_000
_EDGES: Final = "edges"
_ALL_COLUMNS: Final = frozenset(column for kind in COLUMNS for column in columns_of(kind))


class Variations:
    """What becomes of examples, the same for the same source of random numbers.

    Args:
        examples: All of them: the literals of one are drawn for the others, too.
        rng: The source.
    """

    def __init__(self, examples: Sequence[Example], rng: random.Random) -> None:
        self._rng = rng
        literals: dict[tuple[str, str], dict[str, None]] = defaultdict(dict)
        for kind, edges in EDGES.items():
            literals[_EDGES, kind] |= dict.fromkeys(edges)
        for example in examples:
            for literal in example.literals:
                for scope in _scopes(example):
                    literals[scope, literal.kind][example.written(literal)] = None
        self._literals = {key: list(drawn) for key, drawn in literals.items()}

    def of(self, example: Example) -> Iterator[str]:
        """Give a column for one literal at a time, then for all, then anything."""
        seen = {example.text}
        for text in self._made(example):
            if text not in seen:
                seen.add(text)
                yield text

    def _made(self, example: Example) -> Iterator[str]:
        places = range(len(example.literals))
        stated = [example.written(literal) for literal in example.literals]
        own = [self._columns(example, at) for at in places]
        for at in places:
            for column in own[at]:
                yield example.with_parts([*stated[:at], column, *stated[at + 1 :]])
        yield example.with_parts([columns[0] for columns in own])
        yield example.with_parts([columns[-1] for columns in own])
        for _ in range(_AT_RANDOM):
            yield self._at_random(example, own)

    def _columns(self, example: Example, at: int) -> list[str]:
        """Name the columns for a literal: one of its type, and a timestamp for its text."""
        kind = example.literals[at].kind
        if _is_length(example, kind):
            return [example.written(example.literals[at])]
        before = sum(literal.kind == kind for literal in example.literals[:at])
        kinds = ("string", "timestamp") if kind == "time text" else (kind,)
        of_kinds = [columns_of(named) for named in kinds]
        columns = [columns[before % len(columns)] for columns in of_kinds if columns]
        return columns or [example.written(example.literals[at])]

    def _at_random(self, example: Example, own: Sequence[Sequence[str]]) -> str:
        parts = []
        for literal, columns in zip(example.literals, own, strict=True):
            kind, stated = literal.kind, example.written(literal)
            scope = self._rng.choices((*_scopes(example), _EDGES), weights=(4, 2, 1, 2))[0]
            alike = self._literals.get((scope, kind), [stated])
            kinds = (kind, *_STAND_INS.get(kind, ()))
            stand_ins = [column for other in kinds for column in columns_of(other)] or [stated]
            if _is_length(example, kind):
                alike = stand_ins = [*_SHORT]
            ways = [stated, self._rng.choice(columns), self._rng.choice(alike)]
            ways += [self._rng.choice(stand_ins), "NULL"]
            parts += self._rng.choices(ways, weights=(3, 3, 4, 2, 0.3))
        # Of literals alone Spark would compute the value before any worker could.
        at = self._rng.randrange(len(parts))
        if not any(part in _ALL_COLUMNS for part in parts):
            parts[at] = self._rng.choice(own[at])
        return example.with_parts(parts)


def _scopes(example: Example) -> tuple[str, ...]:
    """Say whose literals are like an example's: its function's, its group's, and all."""
    return f"{example.scope}(", example.group, "all"


def _is_length(example: Example, kind: str) -> bool:
    is_lengthening = any(name in example.text.lower() for name in _LENGTHENING)
    return is_lengthening and kind in ("int", *_NUMBERS)
