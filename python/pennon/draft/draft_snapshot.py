"""A read-only snapshot of a namespace of the older draft.

Its metadata becomes a schema and specs, its rows a ``__manifest`` in memory with typed partition
columns: what plans, groups and scans need not know. Leaves whose names state the values of the
same columns are one spec version; the last one has all columns that are understood. Each leaf is
pinned at the newest version that there is when the namespace is opened, the one that was looked
at.
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import ClassVar, Final

import lance
import pyarrow as pa

from pennon.caching import (
    LOOK,
    Cache,
    TableKey,
    combined_identity,
    storage_identity,
    version_identity,
)
from pennon.draft.evidence import LeafEvidence, Reading, chosen_readings, examine, readings
from pennon.errors import (
    ChangesNotKept,
    DraftLayout,
    LeafMissing,
    ManifestMetadataLost,
    NamespaceHasNoManifest,
    NotPartitionedNamespace,
    PartitionFieldExists,
    SnapshotNotFound,
)
from pennon.leaf import leaf_uri, open_leaf
from pennon.leaf.write.leaf_commit import LeafCommit
from pennon.manifest import Snapshot, StorageOptions
from pennon.manifest.dataset.storage import open_manifest
from pennon.manifest.draft import DraftLeaf, DraftNamespace, draft_names, draft_of
from pennon.manifest.format.column_statistics import with_statistics
from pennon.manifest.format.names import SEPARATOR
from pennon.manifest.format.rows import TABLE, ManifestRow, manifest_schema, table_of_rows
from pennon.manifest.table_layout import TableLayout
from pennon.spec import NamespaceSchema, PartitionField, PartitionSpec, spec_of
from pennon.spec.partition_spec import leaf_prefix
from pennon.spec.schema import BY_NAME
from pennon.transforms.registry import TransformCall

__all__ = ["DraftSnapshot", "open_snapshot"]

# The partition specs that the names of a draft's leaves imply, as an in-memory manifest.

_numbers: Final = itertools.count()


@dataclass(frozen=True, slots=True)
class DraftPartitioning:
    """The partition fields of the columns that are understood.

    Args:
        fields: All of them, outermost first.
        understood: By partition column: its chosen reading, and the fields that it yields.
    """

    fields: tuple[PartitionField, ...]
    understood: Mapping[int, tuple[int, tuple[PartitionField, ...]]]

    @classmethod
    def of(
        cls,
        schema: NamespaceSchema,
        readings: Sequence[Sequence[Reading]],
        chosen: Sequence[int | None],
    ) -> DraftPartitioning:
        """Build the fields of the chosen readings.

        Args:
            schema: The namespace schema.
            readings: Per partition column its readings.
            chosen: Per partition column the one that its leaves bear out; None for none.
        """
        calls: list[TransformCall] = []
        spec = PartitionSpec(1, ())
        chosen_by_column = {
            at: (own, readings[at][own]) for at, own in enumerate(chosen) if own is not None
        }
        for _, reading in chosen_by_column.values():
            try:
                spec = spec_of(schema, [*calls, reading.call])
            except PartitionFieldExists:
                continue  # its levels are all there already
            calls.append(reading.call)
        understood = {
            at: (
                own,
                tuple(
                    next(
                        partition_field
                        for partition_field in spec.fields
                        if partition_field.derives_as(field)
                    )
                    for field in reading.spec.fields
                ),
            )
            for at, (own, reading) in chosen_by_column.items()
        }
        return cls(spec.fields, understood)

    def values(self, evidence: LeafEvidence | None) -> dict[str, pa.Scalar]:
        """Give the partition values that a leaf's name states, by field id."""
        values: dict[str, pa.Scalar] = {}
        for at, (own, fields) in self.understood.items():
            fit = None if evidence is None else evidence.fits[at][own]
            if fit is not None:
                ids = (field.field_id for field in fields)
                values.update(zip(ids, fit.values, strict=True))
        return values

    def specs(self, leaves: Sequence[ManifestRow]) -> list[PartitionSpec]:
        """Give one spec per set of fields that leaf names state; the last one has all fields."""
        sets = {frozenset(field.field_id for field in self.fields)}
        sets.update(frozenset(leaf.values) for leaf in leaves)
        ordered = sorted(sets, key=lambda set_: (len(set_), sorted(set_)))
        return [
            PartitionSpec(version, tuple(f for f in self.fields if f.field_id in field_ids))
            for version, field_ids in enumerate(ordered, 1)
        ]


def manifest_of(
    leaves: Sequence[ManifestRow], specs: Sequence[PartitionSpec]
) -> lance.LanceDataset:
    """Make a ``__manifest`` in memory.

    Args:
        leaves: The table rows, under the draft's ids.
        specs: Every set of fields that one of them has values of.
    """
    versions = {frozenset(f.field_id for f in spec.fields): spec.spec_version for spec in specs}
    rows = [
        replace(leaf, object_id=leaf_prefix(versions[frozenset(leaf.values)]) + leaf.object_id)
        for leaf in leaves
    ]
    schema = manifest_schema({spec.spec_version: spec for spec in specs}, strong=True)
    return lance.write_dataset(table_of_rows(rows, schema), f"memory://draft-{next(_numbers)}")


_THREADS: Final = 16
_ROWS_IN_ALL: Final = 1_000_000
_LEAST_ROWS: Final = 64
_MOST_LEVELS: Final = 4


@dataclass(frozen=True, slots=True)
class DraftSnapshot(Snapshot):
    """A namespace of the draft at one version of its manifest."""

    layout: ClassVar[TableLayout] = TableLayout.DRAFT

    def at_version(self, version: int) -> Snapshot:
        """Refuse: the leaves of the draft are read as they are now, at each version.

        Raises:
            ChangesNotKept: Always.
        """
        why = "the older draft's leaves are read at their newest version, at each of its own"
        raise ChangesNotKept(location=self.location, version=version, why=why)

    def _opened_again(self) -> Snapshot:
        return open_snapshot(self.location, self.version, None, self.storage_options)

    @property
    def names_leaf_versions(self) -> bool:
        """Each leaf is pinned where it was looked at."""
        return True

    @property
    def _index(self) -> None:
        """The draft's names have no depth by which an index could find leaves."""

    def _only_leaves(self, rows: pa.Table) -> pa.Table:
        """All rows are leaves, under the names that the draft gives them."""
        return rows


_VALUE_BYTES: Final = 2 << 10
_evidence: Final[Cache[LeafEvidence]] = Cache(
    "evidence of drafts' leaves", max_bytes=16 << 20, weigh=lambda _: _VALUE_BYTES
)
_readings: Final[Cache[list[Reading]]] = Cache(
    "readings of drafts",
    max_bytes=1 << 20,
    weigh=lambda readings: _VALUE_BYTES * (1 + len(readings)),
)
_snapshots: Final[Cache[DraftSnapshot]] = Cache(
    "snapshots of drafts",
    max_bytes=64 << 20,
    weigh=lambda snapshot: _VALUE_BYTES * (32 + int(snapshot.manifest.count_rows())),
)


def open_snapshot(
    location: str,
    version: int | None = None,
    timestamp: datetime | None = None,
    storage_options: StorageOptions | None = None,
) -> Snapshot:
    """Open a partitioned namespace of the format or of its older draft.

    Args:
        location: Path or URL of the namespace. One of the draft that is a namespace *within* a
            directory namespace is named below that folder: ``/lake/shop/orders``.
        version: Version of ``__manifest``; None for the newest.
        timestamp: The last version committed at or before this time.
        storage_options: Given to Lance.

    Raises:
        PennonError: As ``Snapshot.open``.
        DraftNotReadable: The metadata of the draft cannot be understood.

    Spec: the draft; "Metadata Definition".
    """
    options = storage_options or {}
    try:
        return Snapshot.open(location, version, timestamp, storage_options)
    except (DraftLayout, NotPartitionedNamespace, ManifestMetadataLost, SnapshotNotFound):
        # The last two also stand for a draft while, and before, it is migrated.
        manifest = open_manifest(location, version, timestamp, options)
        if not draft_names(location, manifest):
            raise
        return _snapshot(location, draft_of(location, manifest), options)
    except NamespaceHasNoManifest:
        draft = _within(location, version, timestamp, options)
        if draft is None:
            raise
        return _snapshot(location, draft, options)


def _within(
    location: str,
    version: int | None,
    timestamp: datetime | None,
    options: StorageOptions,
) -> DraftNamespace | None:
    """Find a namespace of the draft by the folder above and its name there."""
    scheme, separator, path = location.rpartition("://")
    place = PurePosixPath(path)
    for above in list(place.parents)[:_MOST_LEVELS]:
        if len(above.parts) < (1 if separator else 2):
            return None
        root = f"{scheme}{separator}{above}"
        try:
            manifest = open_manifest(root, version, timestamp, options)
        except NamespaceHasNoManifest:
            continue
        name = SEPARATOR.join(place.relative_to(above).parts)
        return draft_of(root, manifest, name) if name in draft_names(root, manifest) else None
    return None


def _snapshot(location: str, draft: DraftNamespace, options: StorageOptions) -> DraftSnapshot:
    schema = NamespaceSchema.with_fresh_ids(draft.schema.arrow, BY_NAME)
    datasets = _newest(draft, options)
    leaves = [
        f"{name} {dataset.version} {version_identity(dataset)}"
        for name, dataset in datasets.items()
    ]
    manifest = _manifest_key(draft, options)
    identity = f"{manifest.table}{LOOK}{combined_identity(leaves)}"
    # A manifest may hold several namespaces, each at a location of its own.
    key = TableKey(location, manifest.version, identity, manifest.storage, draft.location)
    return _snapshots.find(key, lambda: _made(key, draft, schema, datasets, options))


def _manifest_key(
    draft: DraftNamespace, options: StorageOptions, detail: Hashable = None
) -> TableKey:
    return TableKey(
        draft.location,
        int(draft.manifest.version),
        version_identity(draft.manifest),
        storage_identity(options),
        detail,
    )


def _made(
    key: TableKey,
    draft: DraftNamespace,
    schema: NamespaceSchema,
    datasets: Mapping[str, lance.LanceDataset],
    options: StorageOptions,
) -> DraftSnapshot:
    arrow = str(schema.arrow)
    possible = [
        _readings.find(
            _manifest_key(draft, options, (column, arrow)), partial(readings, column, schema)
        )
        for column in draft.columns
    ]
    evidence = _examined(draft, datasets, possible, schema, options)
    chosen = chosen_readings(draft.columns, possible, evidence)
    layout = DraftPartitioning.of(schema, possible, chosen)
    root = "" if key.location == draft.location else draft.location
    leaves = [
        _leaf(
            draft_leaf,
            root,
            datasets.get(draft_leaf.object_id),
            layout.values(evidence.get(draft_leaf.object_id)),
        )
        for draft_leaf in draft.leaves
    ]
    specs = layout.specs(leaves)
    return DraftSnapshot(
        location=key.location,
        version=key.version,
        schema=schema,
        specs=MappingProxyType({spec.spec_version: spec for spec in specs}),
        is_strong=False,
        properties=MappingProxyType({}),
        metadata=MappingProxyType(dict(draft.properties)),
        storage_options=options,
        identity=key.table,
        manifest=manifest_of(leaves, specs),
    )


def _leaf(
    leaf: DraftLeaf,
    root: str,
    dataset: lance.LanceDataset | None,
    values: Mapping[str, pa.Scalar],
) -> ManifestRow:
    """Make a leaf's row; below another name than the manifest's its address is absolute."""
    location = leaf_uri(root, leaf.location) if root else leaf.location
    if dataset is None:
        return ManifestRow(leaf.object_id, TABLE, location)
    counted = LeafCommit.of(dataset)
    statistics = {
        "num_rows": counted.num_rows,
        "num_bytes": counted.num_bytes,
        "num_fragments": counted.num_fragments,
    }
    text = with_statistics(None, statistics)
    return ManifestRow(leaf.object_id, TABLE, location, text, int(dataset.version), values)


def _newest(draft: DraftNamespace, options: StorageOptions) -> dict[str, lance.LanceDataset]:
    """Open every leaf at its newest version; a missing one is an error when it is read."""

    def opened(leaf: DraftLeaf) -> lance.LanceDataset | None:
        try:
            return open_leaf(draft.location, leaf.location, None, options)
        except LeafMissing:
            return None

    with ThreadPoolExecutor(_THREADS) as pool:
        opened_leaves = zip(draft.leaves, pool.map(opened, draft.leaves), strict=True)
        return {leaf.object_id: dataset for leaf, dataset in opened_leaves if dataset is not None}


def _examined(
    draft: DraftNamespace,
    datasets: Mapping[str, lance.LanceDataset],
    possible: Sequence[Sequence[Reading]],
    schema: NamespaceSchema,
    options: StorageOptions,
) -> dict[str, LeafEvidence]:
    """Look at the rows of every leaf; what one version of a leaf says is kept."""
    most = max(_LEAST_ROWS, _ROWS_IN_ALL // max(1, len(draft.leaves)))
    functions = tuple(draft.columns)
    arrow = str(draft.schema.arrow)

    def looked_at(leaf: DraftLeaf) -> LeafEvidence:
        dataset = datasets[leaf.object_id]
        uri = leaf_uri(draft.location, leaf.location)
        key = TableKey(
            uri,
            int(dataset.version),
            version_identity(dataset),
            storage_identity(options),
            (leaf, functions, arrow, most),
        )
        return _evidence.find(key, partial(examine, dataset, leaf, possible, schema, most))

    readable = [draft_leaf for draft_leaf in draft.leaves if draft_leaf.object_id in datasets]
    with ThreadPoolExecutor(_THREADS) as pool:
        examined = zip(readable, pool.map(looked_at, readable), strict=True)
        return {leaf.object_id: evidence for leaf, evidence in examined}
