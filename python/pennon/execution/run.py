"""Runs a fragment as a stream of Arrow batches of exactly the requested types.

A fragment without a query needs no engine: its leaves are scanned one after the other, or merged
where an order is wanted, and Lance applies the residual filter. All others are run by DataFusion.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from pennon.errors import InternalError
from pennon.execution.batches.at_once import at_once
from pennon.execution.batches.batch_stream import BatchStream
from pennon.execution.batches.ordered_merge import merged
from pennon.execution.batches.stream_work import StreamWork
from pennon.execution.fragment import Fragment, LeafRead, Relation
from pennon.leaf import LeafViews

if TYPE_CHECKING:
    import lance

_COALESCED_ROWS: Final = 8_192
_COALESCED_BYTES: Final = 1 << 20


def run(fragment: Fragment) -> BatchStream:
    """Start a fragment.

    Every leaf is opened before the first batch, so that one that is gone is an error at once.

    Raises:
        LeafMissing: A leaf's files are gone.
        LeafTypeMismatch: A stored type does not promote to the wanted one.
        FragmentOverflow: A value does not fit the type that it has in SQL.
        FragmentMemory: The query needs more memory than the process gives it.
        FragmentFailed: DataFusion refuses the query.
    """
    if fragment.query is not None:
        # DataFusion takes a quarter of a second to import, and scans need none of it.
        from pennon.execution.engine import run_query  # noqa: PLC0415

        return run_query(
            fragment.relations,
            fragment.query,
            parts=fragment.parts,
            prunings=fragment.prunings,
            filters=fragment.filters,
            num_threads=fragment.num_threads,
        )
    if len(fragment.relations) != 1:
        raise InternalError(what=f"a scan of {len(fragment.relations)} relations")
    return _scan(fragment.relations[0])


def _scan(relation: Relation) -> BatchStream:
    views = LeafViews(relation.schema, relation.namespace_schema)
    opened = at_once(relation.opened, relation.leaves)
    work = StreamWork()
    if relation.order:
        pieces = list(_fragments_of(zip(relation.leaves, opened, strict=True)))
        streams = [
            leaf.scanned(dataset, views, num_at_once=len(pieces), counted=work.add_scan)
            for leaf, dataset in pieces
        ]
        return BatchStream(views.schema, merged(streams, relation.order), work)
    scans = [
        leaf.scanned(dataset, views, counted=work.add_scan)
        for leaf, dataset in zip(relation.leaves, opened, strict=True)
    ]
    return BatchStream(views.schema, coalesced(_one_after_the_other(scans)), work)


def _fragments_of(
    leaves: Iterable[tuple[LeafRead, lance.LanceDataset]],
) -> Iterator[tuple[LeafRead, lance.LanceDataset]]:
    """Take leaves apart: a fragment's rows are sorted, those of two are not."""
    for leaf, dataset in leaves:
        first, end = leaf.fragments or (0, len(dataset.get_fragments()))
        if end - first == 1 and leaf.fragments is None:
            yield leaf, dataset
            continue
        for at in range(first, end):
            yield replace(leaf, fragments=(at, at + 1)), dataset


def coalesced(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Put small batches together: each costs its reader as much as a thousand rows do.

    The first comes as it is, and how many rows are waited for doubles from there: whoever wants few
    rows does not wait for leaves that he has no use for.

    Args:
        batches: All of one schema, as leaves give them.

    Yields:
        The same rows in their order.

    Example:
        >>> rows = pa.RecordBatch.from_pydict({"a": [1]})
        >>> [batch.num_rows for batch in coalesced([rows] * 6)]
        [1, 2, 3]
    """
    held: list[pa.RecordBatch] = []
    num_rows, num_bytes, target_rows = 0, 0, 1
    for batch in batches:
        held.append(batch)
        num_rows += batch.num_rows
        num_bytes += batch.nbytes
        if num_rows < target_rows and num_bytes < _COALESCED_BYTES:
            continue
        yield held[0] if len(held) == 1 else pa.concat_batches(held)
        target_rows = min(_COALESCED_ROWS, 2 * num_rows)
        held, num_rows, num_bytes = [], 0, 0
    if held:
        yield held[0] if len(held) == 1 else pa.concat_batches(held)


def _one_after_the_other(scans: Sequence[Iterator[pa.RecordBatch]]) -> Iterator[pa.RecordBatch]:
    for scan in scans:
        yield from scan
