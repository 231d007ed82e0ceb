"""Reads several leaves concurrently for one reader: in order, within a bound in bytes.

Opening a leaf and reading its first rows is mostly waiting, so a few threads do it ahead of the
reader. Each takes so many bytes of its leaf and leaves the rest to the reader: a small leaf is
there when its turn comes, a large one goes on streaming.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from pennon.errors import PredicateNotEvaluable
from pennon.execution.batches.at_once import at_once
from pennon.execution.batches.batch_stream import BatchStream
from pennon.leaf import LeafViews

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from pennon.execution.fragment import LeafRead, Relation

__all__ = ["run_ahead"]

_BEGUN_BYTES: Final = 8 << 20
_REFUSED: Final = "Invalid user input"


def run_ahead(relation: Relation) -> BatchStream:
    """Stream the rows of a relation, leaf by leaf.

    Args:
        relation: What is read; an order of its is not asked for.

    Returns:
        The rows. A leaf that is gone is an error when its turn comes.

    Raises:
        LeafTypeMismatch: A stored type does not promote to the wanted one.

    While they are read:
        LeafMissing: A leaf's files are gone.
        PredicateNotEvaluable: Lance does not understand a residual.
    """
    views = LeafViews(relation.schema, relation.namespace_schema)
    return BatchStream(views.schema, _batches(relation, views))


def _batches(relation: Relation, views: LeafViews) -> Iterator[pa.RecordBatch]:
    for begun, rest in at_once(partial(_begin, relation, views), relation.leaves):
        yield from begun
        yield from rest


def _begin(
    relation: Relation, views: LeafViews, leaf: LeafRead
) -> tuple[list[pa.RecordBatch], Iterator[pa.RecordBatch]]:
    batches = _scan(relation, views, leaf)
    begun: list[pa.RecordBatch] = []
    num_bytes = 0
    for batch in batches:
        begun.append(batch)
        num_bytes += batch.nbytes
        if num_bytes >= _BEGUN_BYTES:
            break
    return begun, batches


def _scan(relation: Relation, views: LeafViews, leaf: LeafRead) -> Iterator[pa.RecordBatch]:
    try:
        dataset = relation.opened(leaf)
        yield from leaf.scanned(dataset, views)
    except (ValueError, OSError) as error:
        if leaf.residual is None or _REFUSED not in str(error):
            raise
        reason = str(error).splitlines()[0].removeprefix(_REFUSED).partition(", /")[0]
        raise PredicateNotEvaluable(
            predicate=leaf.residual,
            namespace=relation.namespace,
            reason=reason.strip(": .") or str(error),
        ) from error
