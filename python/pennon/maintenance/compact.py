"""Compacts leaves: puts many small files together into few large ones.

A compaction yields: where another commit changes rows of its files meanwhile, it looks at the leaf
again, and after a few such meetings leaves it as that commit made it. And it is invisible to the
others: an overwrite, a delete or a change of rows that was based on the files before goes on as if
nothing had happened.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Final

import pyarrow as pa

from pennon.errors import InternalError, LeafMissing, NamespaceHasNoManifest, PennonError
from pennon.leaf import LeafSource, LeafViews, StagedPartition, WriteTarget, clustered, leaf_uri
from pennon.leaf.changes.row_changes import forget_places, record_places
from pennon.leaf.dataset import open_leaf
from pennon.leaf.write.partition_writer import write_partitions
from pennon.maintenance.calls.procedure_declaration import Column, Procedure, columns_of, planned
from pennon.maintenance.leaves.chosen_leaves import chosen_leaves
from pennon.maintenance.leaves.leaf_files import Progress, no_progress
from pennon.maintenance.plain_upkeep import compact_fragments, plain_dataset
from pennon.manifest import ObjectId, Snapshot
from pennon.manifest.dataset.storage import StorageOptions, is_of_storage, storage_failure
from pennon.manifest.format.column_statistics import order_at
from pennon.manifest.format.properties import index_definitions
from pennon.search import refresh_indexes
from pennon.spec.write_properties import WriteOrder
from pennon.transaction import Committed, Conflicted, Outcome, Retryable, Transaction
from pennon.transaction.staging.staged import LeafState, by_leaf, leaf_states, partition_text

if TYPE_CHECKING:
    import lance

    from pennon.catalog.layouts.plain_snapshot import PlainSnapshot

__all__ = [
    "COMPACT",
    "Compacted",
    "LeafRewrite",
    "compact",
    "fragments_below",
    "reindexed",
    "rewrite_leaves",
]

# Rewrites the files of leaves without conflicting with concurrent writers.
#
# A rewrite names the fragments that it takes the rows of. It stands beside appends and changes of
# other fragments, and yields to a commit that changes one of its own. The record of its commit says
# that the new version of a leaf has the rows of the old one, and rows that another statement wants
# to delete are found in their new files.

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
        yield from LeafSource(dataset).batches(views, fragments=run)


def _runs(dataset: lance.LanceDataset, chosen: set[int]) -> Iterator[tuple[int, int]]:
    """Give the positions of chosen fragments as ranges, each from its first to behind its last."""
    is_chosen = [fragment.fragment_id in chosen for fragment in dataset.get_fragments()]
    edges = [
        at
        for at, (before, after) in enumerate(pairwise([False, *is_chosen, False]))
        if before != after
    ]
    yield from zip(edges[::2], edges[1::2], strict=True)


DEFAULT_TARGET_BYTES: Final = 256 << 20
STRATEGIES: Final = ("binpack", "sort", "all")
_LEAVES_AT_ONCE: Final = 20
_MEETINGS: Final = 3
# Lance's files have so many rows at most, however small they are.
_MOST_ROWS: Final = 1 << 20
_WORN_SHARE: Final = 0.3


@dataclass(slots=True)
class Compacted:
    """What was put together, or would be.

    Args:
        leaves: How many leaves, with those that went because they had no row.
        files_before: Their rewritten fragments.
        files_after: What these became.
        num_rows: The rows of these.
        version: The version of ``__manifest`` that has the last of them.
        partitions: Those leaves as their partition values.
        notes: What was left alone, and why.
    """

    leaves: int = 0
    files_before: int = 0
    files_after: int = 0
    num_rows: Annotated[int, Column("rows")] = 0
    version: int = 0
    partitions: Annotated[list[str], planned("partitions")] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def compact(
    location: str,
    storage_options: StorageOptions | None = None,
    *,
    where: str | None = None,
    time_zone: str = "UTC",
    target_bytes: int = DEFAULT_TARGET_BYTES,
    strategy: str = "binpack",
    dry_run: bool = False,
    progress: Progress = no_progress,
) -> Compacted:
    """Rewrite the small files of leaves, and those of which many rows are deleted.

    A partition without a row goes. Rows are brought into the table's write order where it has one.

    Args:
        location: The namespace, in strong mode; or a plain dataset, which Lance compacts.
        storage_options: Given to Lance.
        where: A Spark SQL condition: only partitions that may have a row that satisfies it.
        time_zone: Of times in it without a zone, as Spark's session has one.
        target_bytes: How large files shall be; those of less than half of it are put together.
        strategy: ``binpack``; ``sort``: all files of the leaves whose rows are not in the table's
            write order; or ``all``: every file, which ``write.compression`` asks for.
        dry_run: Whether to list only.
        progress: Called with how far it is.

    Raises:
        NotPartitionedNamespace: It is none.
        StorageFailure: The storage refused.

    Example:
        >>> compact("/data/lake/orders", where="day >= DATE '2026-01-01'")  # doctest: +SKIP

    Spec: "Multi-Partition Transaction (Strong)".
    """
    try:
        snapshot = Snapshot.open(location, storage_options=storage_options)
    except NamespaceHasNoManifest as error:
        plain = plain_dataset(location, storage_options, error)
        chosen = chosen_leaves(plain, where, time_zone)
        done = Compacted(version=plain.version)
        if strategy == "sort":
            done.notes.append("a plain dataset has no write order")
        elif chosen:
            _compact_plain(plain, target_bytes, done, is_dry=dry_run)
        return done
    done = Compacted(version=snapshot.version)
    if not snapshot.is_strong:
        done.notes.append("the table is in weak mode: its leaves are for Lance's own compaction")
        return done
    if strategy == "sort" and WriteOrder.of(snapshot.properties, snapshot.schema) is None:
        done.notes.append("the table has no write order: ALTER TABLE … WRITE ORDERED BY sets one")
        return done
    work = _Compaction(target_bytes, strategy, done)
    chosen = chosen_leaves(snapshot, where, time_zone)
    for at in range(0, len(chosen), _LEAVES_AT_ONCE):
        some = chosen[at : at + _LEAVES_AT_ONCE]
        work.run(snapshot, some, is_dry=dry_run)
        progress("leaves compacted", at + len(some), len(chosen))
    if done.leaves and not dry_run:
        done.version = reindexed(location, storage_options, chosen) or done.version
    return done


def reindexed(
    location: str,
    storage_options: StorageOptions | None,
    leaves: Collection[str] | None,
    least_share: float = 0.0,
) -> int | None:
    """Bring the rows of leaves into the table's indexes: a rewrite takes them out.

    Args:
        location: The namespace.
        storage_options: Given to Lance.
        leaves: Their object ids; None for all of the table.
        least_share: Leaves of which a smaller share of the rows is in no index stay as they are.

    Returns:
        The version that has them; None where the table has no index.
    """
    snapshot = Snapshot.open(location, storage_options=storage_options)
    if not index_definitions(snapshot.metadata):
        return None
    among = None if leaves is None else set(leaves)
    return refresh_indexes(snapshot, location, among=among, least_share=least_share)


COMPACT: Final = Procedure(
    compact,
    "Rewrite leaves of many small files into few large ones.",
    columns_of(Compacted),
    least={"target_bytes": 1},
    choices={"strategy": STRATEGIES},
    renews_table=True,
    command="compact",
    said="{location} is at version {version}: {leaves} leaves with {rows} rows compacted,"
    " {files_before} files became {files_after}",
    planned="{location} is at version {version}: {leaves} leaves with {rows} rows to compact,"
    " {files_before} files",
)


def _compact_plain(
    snapshot: PlainSnapshot, target_bytes: int, done: Compacted, *, is_dry: bool
) -> None:
    small = {
        fragment.fragment_id for fragment in fragments_below(snapshot.manifest, target_bytes // 2)
    }
    numbers = {fragment.fragment_id for fragment in snapshot.manifest.get_fragments()}
    made = compact_fragments(snapshot, target_bytes, sorted(numbers - small), dry_run=is_dry)
    done.version, done.num_rows = made.version, made.num_rows
    done.files_before, done.files_after = made.files_before, made.files_after
    if made.files_before:
        done.leaves = 1
        done.partitions.append(partition_text({}))


def fragments_below(dataset: lance.LanceDataset, num_bytes: int) -> list[lance.LanceFragment]:
    """Choose the fragments of a leaf that are small, or of which many rows are deleted.

    Args:
        dataset: The leaf at a version.
        num_bytes: What is smaller is small.
    """
    small = [
        fragment for fragment in dataset.get_fragments() if _is_small(fragment.metadata, num_bytes)
    ]
    worn = [fragment for fragment in dataset.get_fragments() if _is_worn(fragment.metadata)]
    numbers = {fragment.fragment_id for fragment in (*(small if len(small) > 1 else ()), *worn)}
    return [fragment for fragment in dataset.get_fragments() if fragment.fragment_id in numbers]


def _is_small(fragment: lance.FragmentMetadata, num_bytes: int) -> bool:
    sizes = [file.file_size_bytes for file in fragment.files]
    recorded = [size for size in sizes if size is not None]
    if len(recorded) < len(sizes) or fragment.physical_rows >= _MOST_ROWS // 2:
        return False
    return bool(sum(recorded) < num_bytes)


def _is_worn(fragment: lance.FragmentMetadata) -> bool:
    return bool(fragment.num_deletions > fragment.physical_rows * _WORN_SHARE)


@dataclass(frozen=True, slots=True)
class _Planned:
    partition: str
    rewrite: LeafRewrite


@dataclass(slots=True)
class _Compaction:
    target_bytes: int
    strategy: str
    done: Compacted

    def run(self, snapshot: Snapshot, leaves: Sequence[str], *, is_dry: bool = False) -> None:
        """Rewrite some leaves with one commit; one after the other where that meets another."""
        emptied = [
            state
            for state in leaf_states(snapshot, leaves).values()
            if self._is_empty(state, snapshot)
        ]
        self._drop(snapshot, emptied, is_dry=is_dry)
        rewrites = self._rewrites(snapshot, leaves)
        if is_dry:
            self._count(rewrites, 0)
            return
        if not rewrites or self._try(snapshot, rewrites):
            return
        for leaf in leaves:
            self._alone(snapshot, leaf)

    def _is_empty(self, state: LeafState, snapshot: Snapshot) -> bool:
        if state.num_rows or state.read_version is None or state.is_elsewhere:
            return False
        try:
            return state.opened(snapshot).count_rows() == 0
        except LeafMissing:  # noted where it is to be rewritten
            return False

    def _drop(self, snapshot: Snapshot, emptied: Sequence[LeafState], *, is_dry: bool) -> None:
        """Take leaves without a row out of the manifest; where one has rows by now, all stay."""
        if not emptied:
            return
        if not is_dry:
            transaction = Transaction(snapshot, operation="compact")
            transaction.drop(state.object_id for state in emptied)
            outcome = transaction.commit()
            if not isinstance(outcome, Committed):
                return
            self.done.version = outcome.version
        self.done.leaves += len(emptied)
        self.done.partitions += [partition_text(state.values) for state in emptied]

    def _alone(self, snapshot: Snapshot, object_id: str) -> None:
        """Rewrite one leaf as it is now, and look again where another commit changes it."""
        location, options = snapshot.location, snapshot.storage_options
        text = object_id
        for _ in range(_MEETINGS):
            newest = Snapshot.open(location, storage_options=options)
            rewrites = self._rewrites(newest, [object_id])
            if not rewrites or self._try(newest, rewrites):
                return
            text = rewrites[0].partition
        self.done.notes.append(f"partition {text} is left alone: other commits change its rows")

    def _try(self, snapshot: Snapshot, rewrites: Sequence[_Planned]) -> bool:
        leaf_rewrites = [planned.rewrite for planned in rewrites]
        outcome, files_after = rewrite_leaves(snapshot, leaf_rewrites, self.target_bytes)
        match outcome:
            case Committed(version):
                self.done.version = version
                self._count(rewrites, files_after)
                return True
            case Conflicted() | Retryable():
                return False

    def _count(self, rewrites: Sequence[_Planned], files_after: int) -> None:
        self.done.leaves += len(rewrites)
        self.done.partitions += [planned.partition for planned in rewrites]
        self.done.files_before += sum(len(planned.rewrite.fragments) for planned in rewrites)
        self.done.files_after += files_after
        self.done.num_rows += sum(planned.rewrite.num_rows for planned in rewrites)

    def _rewrites(self, snapshot: Snapshot, leaves: Sequence[str]) -> list[_Planned]:
        """Find what to rewrite; partitions of several specs may have equal values."""
        return [
            _Planned(partition_text(state.values), rewrite)
            for state in leaf_states(snapshot, leaves).values()
            if (rewrite := self._of(snapshot, state)) is not None
        ]

    def _of(self, snapshot: Snapshot, state: LeafState) -> LeafRewrite | None:
        if state.read_version is None or state.is_elsewhere:
            return None
        try:
            dataset = state.opened(snapshot)
        except LeafMissing as error:
            self.done.notes.append(error.message)
            return None
        if self.strategy != "binpack":
            stays = self.strategy == "sort" and _is_sorted(snapshot, state)
            chosen = [] if stays else list(dataset.get_fragments())
        else:
            chosen = fragments_below(dataset, self.target_bytes // 2)
        rewrite = LeafRewrite.of(state, state.read_version, chosen)
        return rewrite if rewrite.num_rows else None


def _is_sorted(snapshot: Snapshot, state: LeafState) -> bool:
    """Whether the manifest records that the rows of each file are in the table's write order."""
    order = WriteOrder.of(snapshot.properties, snapshot.schema)
    if order is None or state.read_version is None:
        return True
    return order_at(state.write_order, state.read_version) == order.identity
