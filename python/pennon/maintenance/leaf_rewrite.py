"""Rewrites the files of leaves without conflicting with concurrent writers.

A rewrite names the fragments that it takes the rows of. It stands beside appends and changes of
other fragments, and yields to a commit that changes one of its own. The record of its commit says
that the new version of a leaf has the rows of the old one, and rows that another statement wants to
delete are found in their new files.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from pennon.errors import InternalError, PennonError
from pennon.leaf import LeafViews, StagedPartition, WriteTarget, clustered, leaf_uri, scan_view
from pennon.leaf.changes.moved_rows import forget_places, record_places
from pennon.leaf.dataset import open_leaf
from pennon.leaf.write.partition_writer import write_partitions
from pennon.manifest import ObjectId, Snapshot
from pennon.manifest.dataset.storage import is_of_storage, storage_failure
from pennon.spec.write_order import WriteOrder
from pennon.transaction import Committed, Outcome, Transaction
from pennon.transaction.staging.staged import by_leaf

if TYPE_CHECKING:
    import lance

    from pennon.transaction.staging.leaf_state import LeafState

__all__ = ["LeafRewrite", "rewrite_leaves"]

_PIECE_BYTES: Final = 128 << 20


@dataclass(frozen=True, slots=True)
class LeafRewrite:
    """Fragments of a leaf to put together.

    Args:
        object_id: The leaf's id in the manifest.
        location: Its directory.
        version: The Lance version that the fragments are of.
        fragments: Their numbers, in the leaf's order.
        num_rows: The rows that they have.
    """

    object_id: str
    location: str
    version: int
    fragments: tuple[int, ...]
    num_rows: int

    @classmethod
    def of(
        cls, state: LeafState, version: int, fragments: Sequence[lance.LanceFragment]
    ) -> LeafRewrite:
        """Put fragments of a leaf together, all of one version of it."""
        numbers = tuple(fragment.fragment_id for fragment in fragments)
        num_rows = sum(fragment.count_rows() for fragment in fragments)
        return cls(state.object_id, state.location, version, numbers, num_rows)


def rewrite_leaves(
    snapshot: Snapshot,
    rewrites: Sequence[LeafRewrite],
    target_bytes: int,
) -> tuple[Outcome, int]:
    """Rewrite fragments of several leaves with one commit.

    Rows are brought into the table's write order where it has one, a bounded piece at a time.

    Args:
        snapshot: The table that they were found in.
        rewrites: At most one per leaf.
        target_bytes: About how large a file becomes.

    Returns:
        How the commit ended, and how many fragments it made; without a commit no file is left.

    Raises:
        InternalError: A leaf has rows of another partition.
        StorageFailure: The storage refused.
    """
    transaction = Transaction(snapshot, operation="compact")
    staged: list[StagedPartition] = []
    with contextlib.ExitStack() as undo:
        undo.callback(_undo, transaction, staged)
        for rewrite in rewrites:
            first = len(staged)
            try:
                _stage(snapshot, rewrite, target_bytes, staged)
            except (OSError, RuntimeError) as error:
                if not is_of_storage(error):
                    raise
                raise storage_failure("compact", snapshot.location, error) from error
            transaction.rewrite(staged[first:], rewrite.fragments, rewrite.version)
        outcome = transaction.commit()
        if isinstance(outcome, Committed):
            undo.pop_all()
    return outcome, sum(len(partition.fragments) for partition in staged)


def _undo(transaction: Transaction, staged: Sequence[StagedPartition]) -> None:
    """Remove what was written; what cannot be removed is left to vacuum."""
    snapshot = transaction.snapshot
    with contextlib.suppress(PennonError, OSError):
        if transaction.abort(staged):
            for own in by_leaf(staged).values():
                uri = leaf_uri(snapshot.location, own[0].location)
                forget_places(uri, own, snapshot.storage_options)


def _stage(
    snapshot: Snapshot, leaf: LeafRewrite, target_bytes: int, written: list[StagedPartition]
) -> None:
    """Write the rows of some fragments of a leaf again, and add to what is written."""
    parsed = ObjectId.parse(leaf.object_id)
    if parsed is None:
        raise InternalError(what=f"{leaf.object_id} is no leaf")
    spec = snapshot.specs[parsed.spec_version]
    options = snapshot.storage_options
    target = WriteTarget(
        snapshot.location, snapshot.version, spec.spec_version, options, target_bytes
    )
    order = WriteOrder.of(snapshot.properties, snapshot.schema)
    rows = _rows(snapshot, leaf)
    first = len(written)
    places: list[pa.Array] = []
    num_seen = 0
    if order is None:
        written += write_partitions(rows, target)
    for piece in () if order is None else _pieces(rows):
        # Each piece has files of its own, so that the rows of every file are sorted.
        places_in_piece: list[pa.Array] = []
        ordered = clustered(
            piece,
            snapshot,
            spec,
            order,
            gathered_bytes=2 * _PIECE_BYTES,
            observe=places_in_piece.append,
        )
        written += write_partitions(ordered, target)
        places += [
            pa.array(in_piece.to_numpy().astype("int64") + num_seen) for in_piece in places_in_piece
        ]
        num_seen += sum(fragment.num_rows for fragment in piece)
    staged = written[first:]
    _check(leaf, staged)
    if staged:
        all_places = pa.chunked_array(places, pa.int64())
        record_places(leaf_uri(snapshot.location, leaf.location), staged, all_places, options)


def _check(leaf: LeafRewrite, staged: Sequence[StagedPartition]) -> None:
    num_rows = sum(partition.num_rows for partition in staged)
    if num_rows != leaf.num_rows or any(
        partition.object_id != leaf.object_id for partition in staged
    ):
        what = f"leaf {leaf.location} has rows of other partitions or not {leaf.num_rows} rows"
        raise InternalError(what=f"{what}: check the table")


def _pieces(rows: Iterable[pa.RecordBatch]) -> Iterator[list[pa.RecordBatch]]:
    piece: list[pa.RecordBatch] = []
    num_bytes = 0
    for batch in rows:
        piece.append(batch)
        num_bytes += batch.nbytes
        if num_bytes >= _PIECE_BYTES:
            yield piece
            piece, num_bytes = [], 0
    if piece:
        yield piece


def _rows(snapshot: Snapshot, leaf: LeafRewrite) -> Iterator[pa.RecordBatch]:
    """Read the rows of the fragments in the leaf's order."""
    options = snapshot.storage_options
    dataset = open_leaf(snapshot.location, leaf.location, leaf.version, options)
    views = LeafViews(snapshot.schema.arrow)
    for run in _runs(dataset, set(leaf.fragments)):
        yield from scan_view(dataset, views, fragments=run)


def _runs(dataset: lance.LanceDataset, chosen: set[int]) -> Iterator[tuple[int, int]]:
    """Give the positions of chosen fragments as ranges, each from its first to behind its last."""
    is_chosen = [fragment.fragment_id in chosen for fragment in dataset.get_fragments()]
    edges = [
        at
        for at, (before, after) in enumerate(pairwise([False, *is_chosen, False]))
        if before != after
    ]
    yield from zip(edges[::2], edges[1::2], strict=True)
