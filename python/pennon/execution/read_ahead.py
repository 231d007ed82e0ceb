"""Reads several leaves concurrently for one reader: in order, within a bound in bytes.

Opening a leaf and reading its first rows is mostly waiting, so a few threads do it ahead of the
reader. Each takes so many bytes of its leaf and leaves the rest to the reader: a small leaf is
there when its turn comes, a large one goes on streaming.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from sqlglot import exp

from pennon.errors import PredicateNotEvaluable
from pennon.execution.batches.at_once import at_once
from pennon.execution.batches.batch_stream import BatchStream
from pennon.execution.late_conditions import LeafReading, read_by_lance
from pennon.leaf import LeafViews
from pennon.predicate.dialect import DataFusion
from pennon.predicate.predicate_text import shortened_predicate

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pennon.execution.fragment import LeafRead, Relation

__all__ = ["run_ahead"]

_BEGUN_BYTES: Final = 8 << 20
_REFUSED: Final = "Invalid user input"
_ROWS: Final = "rows"
_HOLDS: Final = "holds"


def run_ahead(relation: Relation) -> BatchStream:
    """Stream the rows of a relation, leaf by leaf.

    Args:
        relation: What is read; an order of its is not asked for.

    Returns:
        The rows. A leaf that is gone is an error when its turn comes.

    Raises:
        LeafTypeMismatch: A stored type does not promote to the requested one.

    While they are read:
        LeafMissing: A leaf's files are gone.
        PredicateNotEvaluable: Lance does not understand a residual.
    """
    residuals = dict.fromkeys(leaf.residual for leaf in relation.leaves)
    ways = {residual: _Way.of(read_by_lance(residual, relation)) for residual in residuals}
    return BatchStream(
        LeafViews(relation.schema, relation.namespace_schema).schema, _batches(relation, ways)
    )


@dataclass(frozen=True, slots=True)
class _Way:
    """A way to read leaves, and its condition as a query, which takes longer than to read one."""

    reading: LeafReading
    query: str | None

    @classmethod
    def of(cls, reading: LeafReading) -> _Way:
        if reading.condition is None:
            return cls(reading, None)
        holds = exp.alias_(reading.condition.copy(), _HOLDS, quoted=True)
        return cls(reading, exp.select(holds).from_(_ROWS).sql(dialect=DataFusion))


def _batches(relation: Relation, ways: Mapping[str | None, _Way]) -> Iterator[pa.RecordBatch]:
    for begun, rest in at_once(partial(_begin, relation, ways), relation.leaves):
        yield from begun
        yield from rest


def _begin(
    relation: Relation, ways: Mapping[str | None, _Way], leaf: LeafRead
) -> tuple[list[pa.RecordBatch], Iterator[pa.RecordBatch]]:
    batches = _scan(relation, ways[leaf.residual], leaf)
    begun: list[pa.RecordBatch] = []
    num_bytes = 0
    for batch in batches:
        begun.append(batch)
        num_bytes += batch.nbytes
        if num_bytes >= _BEGUN_BYTES:
            break
    return begun, batches


def _scan(relation: Relation, way: _Way, leaf: LeafRead) -> Iterator[pa.RecordBatch]:
    try:
        dataset = relation.opened(leaf)
        reading = way.reading
        batches = replace(leaf, residual=reading.residual).scanned(dataset, reading.views)
        if way.query is None:
            yield from batches
            return
        names = relation.schema.names
        for batch in batches:
            yield batch.filter(_holds(way.query, batch)).select(names)
    except (ValueError, OSError) as error:
        if leaf.residual is None or _REFUSED not in str(error):
            raise
        reason = str(error).splitlines()[0].removeprefix(_REFUSED).partition(", /")[0]
        raise PredicateNotEvaluable(
            predicate=shortened_predicate(leaf.residual),
            namespace=relation.namespace,
            reason=reason.strip(": .") or str(error),
        ) from error


def _holds(query: str, batch: pa.RecordBatch) -> pa.Array:
    """Compute a condition for each row of a batch."""
    from pennon.execution.engine import rows_over  # noqa: PLC0415 - DataFusion takes long to import

    rows = pa.Table.from_batches([batch.replace_schema_metadata()])
    return rows_over(query, {_ROWS: rows})[_HOLDS].combine_chunks()
