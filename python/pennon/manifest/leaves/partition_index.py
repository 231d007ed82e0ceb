"""The partition columns of all leaves in memory, over which partition conditions are evaluated.

The rest of a leaf's row (its name, its directory, its statistics) is six times as large and is
fetched for the chosen leaves alone. 1,000,000 leaves of four partition columns take 32 MB.

The index is put together of *pieces*, one per data fragment of ``__manifest``. A fragment's files
never change and their names are drawn at random, so that a commit costs the fragments that it
wrote: of those that it deleted rows from, only which rows are left is read again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import lance
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from pennon.caching import Cache, TableKey, combined_identity
from pennon.errors import LeafMisnamed, LeafNotLocated, ManifestMetadataLost
from pennon.manifest.dataset.select import ADDRESS, FRAGMENT_SHIFT, fragment_key, in_order
from pennon.manifest.dataset.storage import reading_failure
from pennon.manifest.format.names import SEPARATOR, TABLE_NAME, ObjectId
from pennon.manifest.format.rows import TABLE
from pennon.predicate.dialect import DataFusion
from pennon.spec.partition_spec import PartitionSpec, leaf_prefix, spec_key

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = [
    "SPEC_VERSION",
    "PartitionIndex",
    "check_located",
    "check_no_leaves",
    "equals",
    "leaf_spec_versions",
    "partition_index",
]


# Tells leaves from other tables by their names, and refuses rows that are no whole leaves.


def check_located(rows: pa.Table, *, location: str, version: int) -> None:
    """Hold that the rows of leaves say where their files are.

    Args:
        rows: Rows of ``__manifest``, with ``object_id`` and ``location``.
        location: Of the namespace.
        version: Of its ``__manifest``.

    Raises:
        LeafNotLocated: One does not.

    Spec: "Physical Layout and Naming".
    """
    if rows["location"].null_count:
        leaf = rows["object_id"].filter(pc.is_null(rows["location"]))[0]
        raise LeafNotLocated(location=location, version=version, object_id=leaf)


def leaf_spec_versions(
    names: pa.ChunkedArray, specs: Mapping[int, PartitionSpec]
) -> pa.ChunkedArray:
    """Give the spec version of each table that is called as a leaf: int32, NULL for all others.

    Args:
        names: Object ids of tables.
        specs: Every partition spec, by version.

    Example:
        >>> names = pa.chunked_array([["v1$dataset", "v1$k7m2n9p4q8r5s3t6$dataset", "orders"]])
        >>> leaf_spec_versions(names, {1: PartitionSpec(1, ())}).to_pylist()
        [1, None, None]

    Spec: "Physical Layout and Naming".
    """
    depth = pc.count_substring(names, SEPARATOR)
    is_table = pc.ends_with(names, SEPARATOR + TABLE_NAME)
    versions = pa.chunked_array([pa.nulls(len(names), pa.int32())])
    for version, spec in specs.items():
        has_depth = pc.and_(is_table, pc.equal(depth, len(spec.fields) + 1))
        is_leaf = pc.and_(has_depth, pc.starts_with(names, leaf_prefix(version)))
        versions = pc.if_else(is_leaf, pa.scalar(version, pa.int32()), versions)
    return versions


def check_no_leaves(
    names: Iterable[str], specs: Mapping[int, PartitionSpec], *, location: str, version: int
) -> None:
    """Hold that tables of ``__manifest`` are other objects than leaves.

    Args:
        names: Object ids of tables that are no leaves of the specs.
        specs: Every partition spec, by version.
        location: Of the namespace.
        version: Of its ``__manifest``.

    Raises:
        LeafMisnamed: One is called as a leaf of a spec is not, by its levels or its version.
        ManifestMetadataLost: One is a leaf of a spec that is not there.

    Spec: "Physical Layout and Naming".
    """
    for name in names:
        parsed = ObjectId.parse(name)
        if parsed is None or not parsed.is_table:
            continue
        spec = specs.get(parsed.spec_version)
        if spec is None:
            key = spec_key(parsed.spec_version)
            raise ManifestMetadataLost(
                location=location, version=version, keys=f"{key}, the spec of leaf {name}"
            )
        levels = len(spec.fields)
        raise LeafMisnamed(
            location=location,
            version=version,
            object_id=name,
            expected=f"v{parsed.spec_version}, a name for each of {levels} fields, dataset",
        )


SPEC_VERSION: Final = "spec_version"
_KEPT_BYTES: Final = 256 << 20


@dataclass(frozen=True, slots=True)
class PartitionIndex:
    """The leaves of one version of ``__manifest`` by their partition values.

    Args:
        rows: One row per leaf, in the order of the manifest: spec_version (int32), the partition
            columns, and _rowaddr (uint64), where the manifest has the row.
        num_others: Table rows that are leaves of no spec, which are not in ``rows``.
    """

    rows: pa.Table
    num_others: int

    @property
    def num_leaves(self) -> int:
        """How many leaves there are."""
        return int(self.rows.num_rows)

    @property
    def nbytes(self) -> int:
        """What it weighs, in bytes."""
        return int(self.rows.nbytes)

    def addresses_of(
        self, spec_version: int, tuples: Sequence[pa.RecordBatch]
    ) -> list[pa.ChunkedArray] | None:
        """Give where the rows of each tuple's leaves are; None where a value is a float.

        Args:
            spec_version: The version of their spec.
            tuples: One row with its partition columns each.
        """
        if not all(
            set(partition_tuple.schema.names) <= set(self.rows.column_names)
            for partition_tuple in tuples
        ):
            return None
        of_spec = pc.equal(self.rows[SPEC_VERSION], pa.scalar(spec_version, pa.int32()))
        return [self._addresses_of(of_spec, partition_tuple) for partition_tuple in tuples]

    def _addresses_of(self, mask: pa.ChunkedArray, values: pa.RecordBatch) -> pa.ChunkedArray:
        for name, value in zip(values.schema.names, values.columns, strict=True):
            mask = pc.and_(mask, equals(self.rows[name], value[0]))
        return self.rows[ADDRESS].filter(mask)


def equals(column: pa.ChunkedArray, value: pa.Scalar) -> pa.ChunkedArray:
    """Whether each partition value is a given one; NULL is NULL, and NaN is NaN.

    Example:
        >>> equals(pa.chunked_array([[1, None]]), pa.scalar(None, pa.int64())).to_pylist()
        [False, True]
    """
    if not value.is_valid:
        return pc.is_null(column)
    if pa.types.is_floating(value.type) and value.as_py() != value.as_py():
        return pc.fill_null(pc.is_nan(column), fill_value=False)
    return pc.fill_null(pc.equal(column, value), fill_value=False)


@dataclass(frozen=True, slots=True)
class _Piece:
    """The table rows of one fragment.

    Args:
        rows: As the index has them, and those that are no leaves (spec_version NULL).
        alive: The addresses of all rows, of whatever type, that were not deleted when it was
            read; None for every row.
    """

    rows: pa.Table
    alive: np.ndarray | None

    @property
    def nbytes(self) -> int:
        return int(self.rows.nbytes) + (0 if self.alive is None else int(self.alive.nbytes))


_INDEXES: Final[Cache[PartitionIndex]] = Cache(
    "partition indexes", max_bytes=_KEPT_BYTES, weigh=lambda index: index.nbytes
)
_PIECES: Final[Cache[_Piece]] = Cache(
    "fragments of partition indexes", max_bytes=_KEPT_BYTES, weigh=lambda piece: piece.nbytes
)


def partition_index(
    manifest: lance.LanceDataset,
    key: TableKey,
    specs: Mapping[int, PartitionSpec],
    columns: Sequence[str],
) -> PartitionIndex:
    """Give the index of a version of ``__manifest``, read where it is not kept.

    Args:
        manifest: The ``__manifest`` at the version.
        key: The namespace at that version.
        specs: Every partition spec, by version.
        columns: The partition columns; those of floats are left out.

    Raises:
        StorageFailure: The storage refused.

    Spec: "Manifest Table Schema", "Physical Layout and Naming".
    """
    return _INDEXES.find(key, lambda: _Assembly(manifest, key, specs, columns).index())


class _Assembly:
    """Puts an index together of the pieces that are kept and those that have to be read."""

    def __init__(
        self,
        manifest: lance.LanceDataset,
        key: TableKey,
        specs: Mapping[int, PartitionSpec],
        columns: Sequence[str],
    ) -> None:
        self._manifest = manifest
        self._key = key
        self._specs = specs
        types = {name: manifest.schema.field(name).type for name in columns}
        # DataFusion distinguishes -0.0 from 0.0 and NaN from NaN, Lance's scanner does not.
        self._columns = [name for name in types if not pa.types.is_floating(types[name])]
        layout = [f"v{version}/{len(spec.fields)}" for version, spec in sorted(specs.items())]
        typed = [f"{name}:{types[name]}" for name in self._columns]
        self._layout = combined_identity([*layout, *typed])

    def index(self) -> PartitionIndex:
        fragments = self._manifest.get_fragments()
        keys = [self._piece_key(fragment) for fragment in fragments]
        pieces = [_PIECES.peek(key) for key in keys]
        stale = [
            (fragment, key)
            for fragment, key, piece in zip(fragments, keys, pieces, strict=True)
            if piece is None
        ]
        made = self._made(stale) if stale else {}
        rows = pa.concat_tables(
            [
                (made[key] if piece is None else piece).rows
                for key, piece in zip(keys, pieces, strict=True)
            ]
            or [self._empty()]
        )
        is_leaf = pc.is_valid(rows[SPEC_VERSION])
        leaves = rows if pc.all(is_leaf, min_count=0).as_py() else rows.filter(is_leaf)
        return PartitionIndex(leaves, rows.num_rows - leaves.num_rows)

    def _piece_key(self, fragment: lance.LanceFragment) -> TableKey:
        """The key of a fragment with the rows that are deleted from it in this version."""
        return fragment_key(self._key, fragment, self._layout, is_any_deleted=False)

    def _files_key(self, fragment: lance.LanceFragment) -> TableKey:
        """The key of a fragment with whatever rows deleted: those of the version read last."""
        return fragment_key(self._key, fragment, self._layout, is_any_deleted=True)

    def _made(
        self, stale: Sequence[tuple[lance.LanceFragment, TableKey]]
    ) -> dict[TableKey, _Piece]:
        """Read the fragments that nothing is kept of, and what is left of those with deletions."""
        changed = [fragment for fragment, _ in stale if fragment.metadata.deletion_file is not None]
        alive = self._alive(changed) if changed else {}
        made: dict[TableKey, _Piece] = {}
        unread: list[tuple[lance.LanceFragment, TableKey]] = []
        for fragment, key in stale:
            left = alive.get(fragment.fragment_id)
            whole = _PIECES.peek(self._files_key(fragment))
            if left is None or whole is None or not _holds(whole, left):
                unread.append((fragment, key))
                continue
            is_left = np.isin(whole.rows[ADDRESS].to_numpy(), left, assume_unique=True)
            made[key] = _Piece(whole.rows.filter(pa.array(is_left)).combine_chunks(), left)
        read = self._read([fragment for fragment, _ in unread]) if unread else {}
        for fragment, key in unread:
            piece = _Piece(read[fragment.fragment_id], alive.get(fragment.fragment_id))
            made[key] = piece
            _PIECES.keep(self._files_key(fragment), piece)
        for key, piece in made.items():
            _PIECES.keep(key, piece)
        return made

    def _alive(self, fragments: Sequence[lance.LanceFragment]) -> dict[int, np.ndarray]:
        """Give the addresses of the rows that are not deleted, in order."""
        addresses = self._scan([], None, fragments)[ADDRESS].to_numpy()
        spans = _spans(addresses, fragments)
        return {number: addresses[first:end] for number, (first, end) in spans.items()}

    def _read(self, fragments: Sequence[lance.LanceFragment]) -> dict[int, pa.Table]:
        is_table = exp.column("object_type").eq(exp.Literal.string(TABLE)).sql(dialect=DataFusion)
        rows = self._scan(["object_id", *self._columns], is_table, fragments)
        versions = leaf_spec_versions(rows["object_id"], self._specs)
        rows = rows.set_column(0, SPEC_VERSION, versions).combine_chunks()
        spans = _spans(rows[ADDRESS].to_numpy(), fragments)
        return {number: rows.slice(first, end - first) for number, (first, end) in spans.items()}

    def _scan(
        self, columns: list[str], condition: str | None, fragments: Sequence[lance.LanceFragment]
    ) -> pa.Table:
        try:
            table = self._manifest.scanner(
                columns=columns, filter=condition, fragments=fragments, with_row_address=True
            ).to_table()
        except (pa.ArrowInvalid, OSError) as error:  # Lance raises either of them
            raise reading_failure(self._manifest, error) from error
        return in_order(table)

    def _empty(self) -> pa.Table:
        columns = [self._manifest.schema.field(name) for name in self._columns]
        address = pa.field(ADDRESS, pa.uint64())
        return pa.schema([(SPEC_VERSION, pa.int32()), *columns, address]).empty_table()


def _holds(piece: _Piece, alive: np.ndarray) -> bool:
    """Whether a piece has all of these rows; an older version may have some that it has not."""
    return piece.alive is None or bool(np.isin(alive, piece.alive, assume_unique=True).all())


def _spans(
    addresses: np.ndarray, fragments: Sequence[lance.LanceFragment]
) -> dict[int, tuple[int, int]]:
    """Give the first row of each fragment and the one after its last, in ascending addresses."""
    numbers = np.array([fragment.fragment_id for fragment in fragments], dtype=np.uint64)
    first = np.searchsorted(addresses, numbers << np.uint64(FRAGMENT_SHIFT))
    end = np.searchsorted(addresses, (numbers + np.uint64(1)) << np.uint64(FRAGMENT_SHIFT))
    return dict(zip(numbers.tolist(), zip(first.tolist(), end.tolist(), strict=True), strict=True))
