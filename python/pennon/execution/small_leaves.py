"""Reads many small leaves into memory at once, as few tables.

A table of its own costs DataFusion 3 ms per leaf (a SELECT, a plan, a scan), and a filter that it
hands to Lance's provider fetches the columns late (``leaf/read/source.py``). Reading the rows
here costs neither, and shows how much a filter leaves. Lance's own filter costs as much as reading
a thousand rows, so DataFusion filters the rows of the smallest leaves, all those of one filter
together, and what is read of these whole is kept for the next query. What is held is bounded by its
real size.
"""

from __future__ import annotations

import re
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, islice
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from pennon.execution.batches import at_once, row_bytes
from pennon.execution.fragment import LeafReading, read_all_of
from pennon.leaf import LeafViews
from pennon.leaf.read.source import LEAF_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sqlglot import exp

    from pennon.execution.batches import StreamWork
    from pennon.execution.fragment import LeafRead, Query, Relation
    from pennon.leaf import LeafSource

__all__ = ["MANY_ROWS", "count_rows", "is_grouped", "may_exceed", "rows_at_once"]

# All that is held of one relation; what a leaf may have; what one may have to be filtered here,
# which pays where its rows are kept.
HELD_BYTES: Final = 64 << 20
SMALL_BYTES: Final = 4 << 20
TINY_BYTES: Final = LEAF_BYTES
_MOST_CONDITIONS: Final = 16
# Together they hold what is held of a relation.
_MOST_AT_ONCE: Final = 16
# Columns that are fetched late for more than one row of so many had better be read as they come.
_FEW: Final = 8


@dataclass(frozen=True, slots=True)
class HeldRows:
    """Rows of small leaves.

    Args:
        schema: Their columns in plain types, without metadata: the requested ones first.
        batches: The rows.
        condition: What they still have to satisfy; None where all of them are requested.
    """

    schema: pa.Schema
    batches: list[pa.RecordBatch] = field(default_factory=list)
    condition: exp.Expr | None = None


@dataclass(frozen=True, slots=True)
class SmallLeaves:
    """What of a relation is in memory, and what is not.

    Args:
        held: The rows, by what they still have to satisfy.
        others: The relation of the other leaves.
        keeps_many: Whether the filters of these keep many rows, as the first of them showed.
    """

    held: Sequence[HeldRows]
    others: Relation
    keeps_many: bool = False


def take_small_leaves(relation: Relation, work: StreamWork) -> SmallLeaves:
    """Read the small leaves of a relation, and those of which a filter leaves little.

    Args:
        relation: What is read; one without columns is left as it is.
        work: Counts what is read here.

    Raises:
        LeafMissing: A leaf's files are gone.
        LeafTypeMismatch: A stored type does not promote to the requested one.
    """
    if not len(relation.schema) or HELD_BYTES <= 0:
        return SmallLeaves((), relation)
    reader = _Reader(relation, work)
    others = reader.take(relation.leaves)
    others = reader.take_filtered(others)
    held = list(reader.held.values())
    return SmallLeaves(held, replace(relation, leaves=tuple(others)), reader.keeps_many)


@dataclass(frozen=True, slots=True)
class _Rows:
    residual: str | None
    batches: list[pa.RecordBatch]
    num_bytes: int
    num_scanned: int


class _Reader:
    """Reads leaves of one relation as long as there is room."""

    def __init__(self, relation: Relation, work: StreamWork) -> None:
        self._relation = relation
        self._work = work
        self._left = HELD_BYTES
        self._most = min(relation.num_at_once, _MOST_AT_ONCE)
        plain = LeafReading(LeafViews(relation.schema, relation.namespace_schema))
        self._ways: dict[str | None, LeafReading] = {None: plain}
        residuals = dict.fromkeys(leaf.residual for leaf in relation.leaves)
        rests = dict.fromkeys(leaf.steps.rest for leaf in relation.leaves if leaf.steps is not None)
        for residual in chain(islice(residuals, _MOST_CONDITIONS), islice(rests, _MOST_CONDITIONS)):
            way = None if residual is None else read_all_of(residual, relation)
            if way is not None:
                self._ways[residual] = way
        self._kept = {
            residual: relation.kept_rows(way.views) for residual, way in self._ways.items()
        }
        self.held: dict[str | None, HeldRows] = {}
        self.keeps_many = False

    def take(self, leaves: Sequence[LeafRead]) -> list[LeafRead]:
        """Read the small leaves, several at once, and return the others."""
        others: list[LeafRead] = []
        kept = [self._find(leaf) for leaf in leaves]
        unknown = [leaf for leaf, rows in zip(leaves, kept, strict=True) if rows is None]
        read = at_once(self._small, unknown, self._most)
        for leaf, known in zip(leaves, kept, strict=True):
            rows = known or next(read)
            if rows is None or not self._hold(rows):
                others.append(leaf)
            elif known is None:
                self._keep(leaf, rows)
        return others

    def take_filtered(self, leaves: Sequence[LeafRead]) -> list[LeafRead]:
        """Read leaves that have a filter, and return the others.

        The first one is a sign for the next: where it keeps much, these are left to DataFusion.
        Where little is left of it, they are read several at once, each within a bound, so that
        what is held for a moment is bounded as well.
        """
        others = [leaf for leaf in leaves if leaf.residual is None]
        filtered = [leaf for leaf in leaves if leaf.residual is not None]
        if not filtered:
            return others
        room = self._left
        first = self._filtered(filtered[0], room)
        self.keeps_many = self._is_many(filtered[0], first, room)
        if first is None or not self._hold(first):
            return [*others, *filtered]
        rest = filtered[1:]
        if 2 * first.num_bytes * len(rest) <= self._left:
            bound = min(self._left, max(SMALL_BYTES, 4 * first.num_bytes))
            work = partial(self._filtered, most_bytes=bound)
            read = at_once(work, rest, self._most)
        elif self.keeps_many:
            return [*others, *rest]
        else:
            read = (self._filtered(leaf, self._left) for leaf in rest)
        with closing(read):
            for at, rows in enumerate(read):
                if rows is None or not self._hold(rows):
                    return [*others, *rest[at:]]
        return others

    def _filtered(self, leaf: LeafRead, most_bytes: int) -> _Rows | None:
        """Read what a filter leaves of a leaf; None where that has too many bytes."""
        source = self._relation.opened(leaf)
        if leaf.steps is not None:
            way = self._ways.get(leaf.steps.rest)
            if way is not None and way.views.of(source.dataset).is_unchecked:
                steps = leaf.steps
                return self._read(source, leaf, steps.rare, steps.rest, most_bytes)
        return self._read(source, leaf, leaf.residual, None, most_bytes)

    def _is_many(self, leaf: LeafRead, rows: _Rows | None, most_bytes: int) -> bool:
        """Whether a filter kept more than a few of a leaf's rows; None: more than fit."""
        if rows is not None:
            return _FEW * sum(batch.num_rows for batch in rows.batches) > rows.num_scanned
        num_rows = self._relation.opened(leaf).num_rows(leaf.fragments)
        return _FEW * most_bytes > num_rows * row_bytes(self._relation.schema.types)

    def _find(self, leaf: LeafRead) -> _Rows | None:
        """Find the kept rows of a leaf, of which its filter has left out none."""
        kept = self._kept.get(leaf.residual)
        rows = None if kept is None else kept.find(leaf.location, leaf.version, leaf.fragments)
        return None if rows is None else _Rows(leaf.residual, [rows], rows.nbytes, rows.num_rows)

    def _keep(self, leaf: LeafRead, rows: _Rows) -> None:
        kept = self._kept.get(leaf.residual)
        if kept is not None and rows.residual == leaf.residual:
            kept.keep(leaf.location, leaf.version, leaf.fragments, rows.batches)

    def _small(self, leaf: LeafRead) -> _Rows | None:
        """Read a leaf that is small; None for any other, and where there is no room left."""
        if self._left <= 0:
            return None
        source = self._relation.opened(leaf)
        num_rows = source.num_rows()
        way = self._ways.get(leaf.residual)
        if way is not None and way.condition is not None:
            num_bytes = num_rows * row_bytes(way.views.schema.types)
            if (
                num_bytes <= min(TINY_BYTES, SMALL_BYTES)
                and way.views.of(source.dataset).is_unchecked
            ):
                return self._read(source, leaf, None, leaf.residual, SMALL_BYTES)
        if num_rows * row_bytes(self._relation.schema.types) > SMALL_BYTES:
            return None
        return self._read(source, leaf, leaf.residual, None, SMALL_BYTES)

    def _read(
        self,
        source: LeafSource,
        leaf: LeafRead,
        residual: str | None,
        left: str | None,
        most_bytes: int,
    ) -> _Rows | None:
        """Read the rows that satisfy a residual, and what is left is asked of them later.

        Returns:
            The rows; None where they have too many bytes.
        """
        views = self._ways[left].views
        schema = views.schema.remove_metadata()
        batches: list[pa.RecordBatch] = []
        num_bytes = 0
        for batch in source.batches(views, residual, fragments=leaf.fragments):
            num_bytes += batch.nbytes
            if num_bytes > most_bytes:
                return None
            batches.append(pa.RecordBatch.from_arrays(batch.columns, schema=schema))
        return _Rows(left, batches, num_bytes, source.num_rows(leaf.fragments))

    def _hold(self, rows: _Rows) -> bool:
        if rows.num_bytes > self._left:
            return False
        self._left -= rows.num_bytes
        self._work.rows_scanned += rows.num_scanned
        self._work.bytes_scanned += rows.num_bytes
        way = self._ways[rows.residual]
        held = self.held.get(rows.residual)
        if held is None:
            held = HeldRows(way.views.schema.remove_metadata(), [], way.condition)
            self.held[rows.residual] = held
        held.batches.extend(rows.batches)
        return True


# How many rows queries read, which bounds how many groups they make, and their batches' size.

MANY_ROWS: Final = 16_384
"""The rows of a batch where nothing has to be spilled."""
_FEW_ROWS: Final = 1_024
_GROUP_BYTES: Final = 96  # of a key and two numbers, with the place in the hash and room to grow
_GROUPED: Final = re.compile(r"\b(?:GROUP BY|DISTINCT)\b")


def is_grouped(query: Query) -> bool:
    """Whether a query makes groups of its rows."""
    return _GROUPED.search(query.sql) is not None


def rows_at_once(relations: Sequence[Relation], query: Query, memory: int) -> int:
    """Give the size of the batches in which a query is computed.

    Args:
        relations: What it reads.
        query: The query.
        memory: Bytes that all queries of the process have together.

    Raises:
        LeafMissing: A leaf's files are gone.
    """
    if not is_grouped(query):
        return MANY_ROWS
    return _FEW_ROWS if may_exceed(relations, _GROUP_BYTES, memory) else MANY_ROWS


def may_exceed(relations: Sequence[Relation], row_bytes: int, memory: int) -> bool:
    """Whether rows may take more than some memory.

    Leaves whose rows the plan knows are not opened for it, nor those behind the answer.

    Args:
        relations: What is read.
        row_bytes: What each row is reckoned with.
        memory: In bytes.

    Raises:
        LeafMissing: A leaf's files are gone.
    """
    left = memory // row_bytes
    for count in _counts(relations):
        left -= count
        if left < 0:
            return True
    return False


def count_rows(relations: Sequence[Relation]) -> int:
    """Count the rows of all leaves.

    Raises:
        LeafMissing: A leaf's files are gone.
    """
    return sum(_counts(relations))


def _counts(relations: Sequence[Relation]) -> Iterator[int]:
    for relation in relations:
        for leaf in relation.leaves:
            yield _count(relation, leaf)


def _count(relation: Relation, leaf: LeafRead) -> int:
    if leaf.num_rows is not None and leaf.fragments is None:
        return leaf.num_rows
    return relation.opened(leaf).num_rows(leaf.fragments)
