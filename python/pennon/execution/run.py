"""Runs a fragment: a stream of Arrow batches in exactly the wanted types.

A fragment without a query needs no engine: its leaves are scanned one after the other and Lance
applies the residual filter. All others are run by DataFusion.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from pennon.errors import InternalError
from pennon.execution.batch_stream import BatchStream
from pennon.execution.fragment import Fragment, LeafRead, Relation
from pennon.leaf import open_leaf, scan_leaf
from pennon.leaf.promotion import stream_schema


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

        return run_query(fragment.relations, fragment.query)
    if len(fragment.relations) != 1:
        raise InternalError(what=f"a scan of {len(fragment.relations)} relations")
    return _scan(fragment.relations[0])


def _scan(relation: Relation) -> BatchStream:
    scans = [_scan_leaf(relation, leaf) for leaf in relation.leaves]
    return BatchStream(stream_schema(relation.schema), _one_after_the_other(scans))


def _one_after_the_other(scans: Sequence[Iterator[pa.RecordBatch]]) -> Iterator[pa.RecordBatch]:
    for scan in scans:
        yield from scan


def _scan_leaf(relation: Relation, leaf: LeafRead) -> Iterator[pa.RecordBatch]:
    dataset = open_leaf(relation.namespace, leaf.location, leaf.version, relation.storage_options)
    return scan_leaf(
        dataset,
        relation.schema,
        leaf.residual,
        namespace_schema=relation.namespace_schema,
        fragments=leaf.fragments,
    )
