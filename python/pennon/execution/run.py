"""Runs a fragment as a stream of Arrow batches of exactly the requested types.

A fragment without a query needs no engine: its leaves are scanned one after the other, or merged
where an order is requested, and Lance applies the residual filter. DataFusion runs all others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from pennon.errors import InternalError
from pennon.execution.batches.at_once import at_once
from pennon.execution.batches.batch_stream import BatchStream
from pennon.execution.batches.ordered_merge import merged
from pennon.execution.batches.stream_work import StreamWork
from pennon.execution.fragment import Fragment, LeafRead, Relation
from pennon.leaf import LeafViews
from pennon.leaf.read.kept_rows import LEAF_BYTES

if TYPE_CHECKING:
    import lance

    from pennon.leaf import KeptRows

_COALESCED_ROWS: Final = 8_192
_COALESCED_BYTES: Final = 1 << 20


def run(fragment: Fragment) -> BatchStream:
    """Start a fragment.

    Every leaf is opened before the first batch, so that one that is gone is an error at once.

    Raises:
        LeafMissing: A leaf's files are gone.
        LeafTypeMismatch: A stored type does not promote to the requested one.
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
    work = StreamWork()
    if relation.order:
        opened = at_once(relation.opened, relation.leaves)
        pieces = list(_fragments_of(zip(relation.leaves, opened, strict=True)))
        streams = [
            leaf.scanned(
                dataset,
                views,
                num_at_once=len(pieces),
                counted=work.add_scan,
                keys=relation.keys,
            )
            for leaf, dataset in pieces
        ]
        return BatchStream(views.schema, merged(streams, relation.order), work)
    kept = relation.kept_rows(views)
    known = [_known(leaf, kept) for leaf in relation.leaves]
    unknown = [leaf for leaf, rows in zip(relation.leaves, known, strict=True) if rows is None]
    opened = at_once(relation.opened, unknown)
    scans = [
        _keeping(
            leaf,
            leaf.scanned(next(opened), views, counted=work.add_scan, keys=relation.keys),
            kept,
        )
        if rows is None
        else _counted(rows, views.schema, work)
        for leaf, rows in zip(relation.leaves, known, strict=True)
    ]
    return BatchStream(views.schema, coalesced(chain.from_iterable(scans)), work)


def _known(leaf: LeafRead, kept: KeptRows | None) -> pa.RecordBatch | None:
    """Find the kept rows of a leaf that is read whole."""
    if kept is None or leaf.residual is not None:
        return None
    return kept.find(leaf.location, leaf.version, leaf.fragments)


def _counted(rows: pa.RecordBatch, schema: pa.Schema, work: StreamWork) -> Iterator[pa.RecordBatch]:
    """Count kept rows when their turn comes, which may be never."""
    work.add_scan(rows.num_rows, rows.nbytes)
    yield pa.RecordBatch.from_arrays(rows.columns, schema=schema)


def _keeping(
    leaf: LeafRead, scan: Iterator[pa.RecordBatch], kept: KeptRows | None
) -> Iterator[pa.RecordBatch]:
    """Keep the rows of a small leaf that is read whole, as they come."""
    if kept is None or leaf.residual is not None:
        yield from scan
        return
    read: list[pa.RecordBatch] = []
    num_bytes = 0
    for batch in scan:
        num_bytes += batch.nbytes
        if num_bytes <= LEAF_BYTES:
            read.append(batch)
        else:
            read.clear()
        yield batch
    kept.keep(leaf.location, leaf.version, leaf.fragments, read)


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
