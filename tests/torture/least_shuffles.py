"""How few shuffles a query needs: an oracle with arithmetic of its own.

It reads the partition fields of the tables and the shape of the query, never a plan: two rows
that an operator brings together lie in the same group of partitions if a function of columns
that the operator compares has the same value for both. What Spark's optimizer may make of a
query (an outer join that is an inner one, a predicate that leaves one spec version) it ignores,
so a plan may need fewer shuffles still.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import assert_never

from tests.strategies.query_tree import (
    Beside,
    Grouped,
    Joined,
    Leaf,
    Renamed,
    Tree,
    United,
    Windowed,
)
from tests.strategies.random_tables import Field, Table
from tests.torture.field_meeting import meet

_KEEPS_LEFT = ("inner", "left", "semi", "anti")
_KEEPS_RIGHT = ("inner", "right")
_UNSEEN: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Lying:
    """A function by whose value rows lie together, and the names under which its columns are seen.

    The function ``hash`` is what a shuffle of Spark leaves behind.
    """

    field: Field
    names: tuple[frozenset[str], ...]


@dataclass(frozen=True, slots=True)
class Needed:
    """What a part of a query needs.

    Args:
        shuffles: The least number of shuffles.
        by: The functions by which its rows lie together.
        costly: The operators that shuffle, in words.
    """

    shuffles: int
    by: tuple[Lying, ...]
    costly: tuple[str, ...] = ()


def least_shuffles(tree: Tree, tables: Sequence[Table]) -> Needed:
    """Count the shuffles that a query cannot do without."""
    match tree:
        case Leaf(table, columns):
            return Needed(0, tuple(_of_leaf(tables[table], columns)))
        case Joined():
            return _joined(tree, tables)
        case Grouped(child, keys):
            below = least_shuffles(child, tables)
            price = 2 if tree.counts_distinct else 1
            found = _gathered(below, [old for _, old in keys], price, "aggregate")
            return replace(found, by=tuple(_renamed(found.by, keys)))
        case Windowed(child, keys):
            return _gathered(least_shuffles(child, tables), keys, 1, "window")
        case Renamed(child, columns):
            below = least_shuffles(child, tables)
            return replace(below, by=tuple(_renamed(below.by, columns.items())))
        case United(children):
            parts = [least_shuffles(child, tables) for child in children]
            return _with(parts, 0, (), "")
        case Beside(child, other):
            parts = [least_shuffles(input_, tables) for input_ in (child, other)]
            return _with(parts, 0, parts[0].by, "")
        case unknown:
            assert_never(unknown)


def _of_leaf(table: Table, columns: Mapping[str, str]) -> list[Lying]:
    return [
        Lying(
            field,
            tuple(
                frozenset(name for name, own in columns.items() if own == column)
                for column in field.columns
            ),
        )
        for field in table.common
    ]


def _joined(join: Joined, tables: Sequence[Table]) -> Needed:
    left, right = (least_shuffles(side, tables) for side in (join.left, join.right))
    common = [
        Lying(field, _merged(join.kind, mine.names, theirs.names))
        for mine in (*left.by, *_composed(left, right, join.pairs))
        for theirs in (*right.by, *_composed(right, left, _flipped(join.pairs)))
        if _are_compared(mine, theirs, join.pairs)
        and (field := meet(mine.field, theirs.field)) is not None
        and "hash" not in (mine.field.function, theirs.field.function)
    ]
    if common:
        return _with([left, right], 0, tuple(common), "")
    for stays, moves in ((left, right), (right, left)):
        kept = _one_sided(stays, join, is_left=stays is left)
        if kept:
            why = "unpartitioned" if not moves.by else "incompatible"
            return _with([left, right], 1, kept, f"join with {why} side")
    names = tuple(
        _merged(join.kind, (frozenset({mine}),), (frozenset({theirs}),))[0]
        if (mine, theirs) not in join.null_safe
        else _UNSEEN
        for mine, theirs in join.pairs
    )
    field = Field("hash", tuple("?" for _ in names), -1)
    return _with([left, right], 2, (Lying(field, names),), "join of two")


def _one_sided(stays: Needed, join: Joined, *, is_left: bool) -> tuple[Lying, ...]:
    """List the functions by which the other side can be shuffled onto one that stays."""
    found: list[Lying] = []
    for lying in stays.by:
        is_hash = lying.field.function == "hash"
        seen = [pair for pair in join.pairs if not is_hash or pair not in join.null_safe]
        pairs = seen if is_left else _flipped(seen)
        partners = [
            frozenset(theirs for mine, theirs in pairs if mine in names) for names in lying.names
        ]
        if all(partners) and lying.field.function != "expression":
            sides = (lying.names, tuple(partners))
            merged = _merged(join.kind, *(sides if is_left else sides[::-1]))
            found.append(Lying(lying.field, merged))
    return tuple(found)


def _composed(ours: Needed, theirs: Needed, pairs: Sequence[tuple[str, str]]) -> list[Lying]:
    """List functions of several columns on the other side that follow from our columns."""
    single = [key for key in ours.by if key.field.function == "identity"]
    found: list[Lying] = []
    for wanted in theirs.by:
        if len(wanted.names) < 2 or wanted.field.function == "hash":
            continue
        parts = [
            next(
                (one.names[0] for one in single if _meets(one.names[0], names, pairs)), frozenset()
            )
            for names in wanted.names
        ]
        if all(parts):
            found.append(Lying(wanted.field, tuple(parts)))
    return found


def _are_compared(mine: Lying, theirs: Lying, pairs: Sequence[tuple[str, str]]) -> bool:
    return len(mine.names) == len(theirs.names) and all(
        _meets(left, right, pairs) for left, right in zip(mine.names, theirs.names, strict=True)
    )


def _meets(left: frozenset[str], right: frozenset[str], pairs: Sequence[tuple[str, str]]) -> bool:
    return any(mine in left and theirs in right for mine, theirs in pairs)


def _merged(
    kind: str, left: Sequence[frozenset[str]], right: Sequence[frozenset[str]]
) -> tuple[frozenset[str], ...]:
    """Say under which names a column is seen above a join with its value of below."""
    return tuple(
        (mine if kind in _KEEPS_LEFT else _UNSEEN) | (theirs if kind in _KEEPS_RIGHT else _UNSEEN)
        for mine, theirs in zip(left, right, strict=True)
    )


def _gathered(below: Needed, keys: Sequence[str], price: int, operator: str) -> Needed:
    """Bring together the rows of equal keys."""
    kept = tuple(
        lying for lying in below.by if all(not names.isdisjoint(keys) for names in lying.names)
    )
    if kept:
        return replace(below, by=kept)
    field = Field("hash", tuple("?" for _ in keys), -1)
    lying = Lying(field, tuple(frozenset({key}) for key in keys))
    return _with([below], price, (lying,), operator)


def _renamed(by: Iterable[Lying], columns: Iterable[tuple[str, str]]) -> Iterable[Lying]:
    pairs = list(columns)
    for lying in by:
        names = tuple(frozenset(new for new, old in pairs if old in name) for name in lying.names)
        yield replace(lying, names=names)


def _flipped(pairs: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    return [(theirs, mine) for mine, theirs in pairs]


def _with(parts: Sequence[Needed], price: int, by: tuple[Lying, ...], word: str) -> Needed:
    costly = tuple(join for part in parts for join in part.costly)
    total = sum(part.shuffles for part in parts) + price
    return Needed(total, by, (*costly, word) if price else costly)
