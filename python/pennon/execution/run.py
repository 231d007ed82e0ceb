"""Runs a fragment: a stream of Arrow batches in exactly the wanted types.

Nothing is collected here. A fragment of one relation needs no engine: its leaves are scanned one
after the other and Lance applies the residual filter.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from pennon.errors import InternalError
from pennon.execution.fragment import Fragment, LeafRead, Relation
from pennon.leaf import open_leaf, scan_leaf
from pennon.leaf.promotion import stream_schema


@dataclass(frozen=True, slots=True)
class BatchStream:
    """The schema of a stream and its batches; closing the batches stops the scan."""

    schema: pa.Schema
    batches: Iterator[pa.RecordBatch]


def run(fragment: Fragment) -> BatchStream:
    """Start a fragment.

    Every leaf is opened before the first batch, so that one that is gone is an error at once.

    Raises:
        LeafMissing: A leaf's files are gone.
        LeafTypeMismatch: A stored type does not promote to the wanted one.
    """
    match fragment.relations:
        case (relation,):
            return _scan(relation)
        case _:
            raise InternalError(what=f"a fragment has {len(fragment.relations)} relations")


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
