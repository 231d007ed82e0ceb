"""An immutable view of one partitioned namespace at one version of its ``__manifest``.

Opening a snapshot and asking it for leaves reads ``__manifest`` alone, never a leaf.

Which version of a leaf is read: the ``read_version`` of its table row; where that is NULL, the one
of its newest ``table_version`` row; where there is none, or the manifest has no ``read_version``
column at all, the latest version of the leaf's main branch (NULL here). A table row that names a
branch or a tag (columns of the published specification) is read there: ``leaves`` tells
them, and ``pennon.planning`` looks up what they mean.
"""

from __future__ import annotations

import hashlib
import time
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from functools import reduce
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar, Final

import lance
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from pennon.arguments import check_process
from pennon.caching import LOOK, Cache, TableKey, storage_identity, version_identity
from pennon.caching.lance_sessions import lance_options, near
from pennon.errors import SnapshotNotFound, TableMadeAnew
from pennon.manifest.dataset.select import LeafQuery, newest_versions
from pennon.manifest.dataset.storage import (
    StorageOptions,
    address,
    open_manifest,
    version_numbers,
)
from pennon.manifest.format.column_statistics import (
    RECORDED_ORDER,
    order_column,
    statistics_columns,
)
from pennon.manifest.format.names import SEPARATOR, TABLE_NAME
from pennon.manifest.format.properties import (
    COMMENT,
    SALT,
    SCHEMA,
    STRONG,
    TRANSACTION,
    WEAK,
    has_specs,
    read_schema,
    read_specs,
    user_properties,
)
from pennon.manifest.format.rows import (
    PARTITION_PREFIX,
    READ_BRANCH,
    READ_TAG,
    READ_VERSION,
    TABLE,
    partition_columns,
)
from pennon.manifest.leaves.leaf_rows import (
    MayMatch,
    check_single,
    fetched_lists,
    is_for_index,
    leaf_rows,
)
from pennon.manifest.leaves.partition_index import (
    PartitionIndex,
    check_located,
    check_no_leaves,
    leaf_spec_versions,
    partition_index,
)
from pennon.manifest.repair import check_columns, check_metadata_is_there
from pennon.manifest.table_layout import TableLayout
from pennon.predicate.dialect import DataFusion
from pennon.spec.arrow_json import object_from_text
from pennon.spec.partition_spec import PartitionSpec
from pennon.spec.schema import NamespaceSchema, field_id_of
from pennon.spec.write_properties import WRITE_ORDER

__all__ = ["Snapshot", "when_made"]

# Schema columns declared as bare ``timestamp``: unit and zone are taken from the leaves.
#
# The JSON type of the specification has no place for them, and upstream's client writes the bare
# name for every timestamp. Pennon states both. So for a bare one a leaf is looked at, once per
# version of ``__manifest``; without a leaf it is one of microseconds without a zone.

_MOST_LEAVES: Final = 8
_BARE: Final = "timestamp"


def with_stored_timestamps(
    schema: NamespaceSchema,
    metadata: Mapping[str, str],
    location: str,
    manifest: lance.LanceDataset,
    storage_options: StorageOptions,
) -> NamespaceSchema:
    """Give top-level columns of a bare timestamp type the type that a leaf stores them in.

    Args:
        schema: As the metadata has it.
        metadata: The namespace's metadata map.
        location: The namespace.
        manifest: Its ``__manifest``.
        storage_options: Given to Lance.

    Spec: "Schema" (JsonArrowDataType).
    """
    bare = _bare_columns(metadata)
    if not bare:
        return schema
    for stored in _leaf_schemas(location, manifest, storage_options):
        columns = [
            _typed(column, stored) if column.name in bare else column for column in schema.arrow
        ]
        return replace(schema, arrow=pa.schema(columns, schema.arrow.metadata))
    return schema


def _bare_columns(metadata: Mapping[str, str]) -> set[str]:
    columns = object_from_text(metadata[SCHEMA], SCHEMA).get("fields")
    names = set()
    for column in columns if isinstance(columns, list) else []:
        kind = column.get("type")
        name = kind.get("type") if isinstance(kind, Mapping) else kind
        if isinstance(name, str) and name.strip().lower() == _BARE:
            names.add(str(column["name"]))
    return names


def _leaf_schemas(
    location: str, manifest: lance.LanceDataset, storage_options: StorageOptions
) -> Iterator[pa.Schema]:
    """Open a few leaves, one after the other; one that is not there is an error when it is read."""
    names = [
        "location",
        *([READ_VERSION.name] if READ_VERSION.name in manifest.schema.names else []),
    ]
    is_table = exp.column("object_type").eq(exp.Literal.string(TABLE))
    is_named = exp.column("object_id").like(exp.Literal.string(f"v%{SEPARATOR}{TABLE_NAME}"))
    condition = exp.and_(is_table, is_named).sql(dialect=DataFusion)
    rows = manifest.to_table(columns=names, filter=condition, limit=_MOST_LEAVES)
    for row in rows.to_pylist():
        place = row["location"] or ""
        is_whole = "://" in place or place.startswith("/")
        uri = address(place) if is_whole else f"{location.rstrip('/')}/{place}"
        try:
            yield lance.dataset(
                uri,
                version=row.get(READ_VERSION.name),
                storage_options=lance_options(storage_options),
            ).schema
        except (OSError, ValueError):
            continue


def _typed(column: pa.Field, stored: pa.Schema) -> pa.Field:
    """Take a stored timestamp's type: by the id that the field states, else by its name."""
    field_id = field_id_of(column)
    named = [field for field in stored if field.name == column.name]
    own = [field for field in stored if field_id_of(field) == field_id] or named
    is_told = bool(own) and pa.types.is_timestamp(own[0].type)
    return column.with_type(own[0].type) if is_told else column


# Versions of ``__manifest`` from before it was a partitioned namespace.


def when_made(
    location: str, manifest: lance.LanceDataset, storage_options: StorageOptions
) -> lance.LanceDataset:
    """Give the version that made a namespace a partitioned one, for the version just before it.

    Lance takes rows and metadata in two commits, so a creation leaves one version in between. It
    has no table yet, and neither has the one that completes it.

    Args:
        location: The namespace.
        manifest: A version of its manifest without any partition spec.
        storage_options: Given to Lance.

    Returns:
        The next version; the given one where the namespace is none now either.

    Raises:
        SnapshotNotFound: It had tables then, or became partitioned only later.
    """
    latest = open_manifest(location, storage_options=storage_options)
    if not has_specs(latest.metadata):
        return manifest
    listed = version_numbers(latest)

    def is_made(version: int) -> bool:
        return has_specs(open_manifest(location, version, None, storage_options).metadata)

    first = listed[bisect_left(listed, True, key=is_made)]
    if first == manifest.version + 1 and not manifest.count_rows(f"object_type = '{TABLE}'"):
        return open_manifest(location, first, None, storage_options)
    raise SnapshotNotFound(
        location=location,
        asked=f"at version {manifest.version}",
        existing="it is a partitioned namespace since version"
        f" {first}, and its versions from there are {first} to {listed[-1]}",
    )


_NO_OPTIONS: StorageOptions = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One partitioned namespace as it was at one version of its manifest.

    Args:
        location: Path or URL of the namespace.
        version: Version of ``__manifest``.
        schema: The namespace schema.
        specs: Every partition spec, by version.
        is_strong: Whether new writes are multi-partition transactions over ``read_version``.
        properties: The user's table properties.
        metadata: The whole metadata map, Pennon's own keys included; not shown.
        storage_options: Given to Lance; not shown.
        identity: Tells this version from the same one of another namespace that was, or will be,
            at the location.
        manifest: The Lance table at ``version``; only ``pennon.manifest`` uses it.

    Spec: "Metadata Definition", "Read Behavior".
    """

    location: str
    version: int
    schema: NamespaceSchema
    specs: Mapping[int, PartitionSpec]
    is_strong: bool
    properties: Mapping[str, str]
    metadata: Mapping[str, str] = field(repr=False, compare=False)
    storage_options: StorageOptions = field(repr=False, compare=False)
    identity: str = field(repr=False, compare=False)
    manifest: lance.LanceDataset = field(repr=False, compare=False)

    layout: ClassVar[TableLayout] = TableLayout.PARTITIONED

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle where it is, its version, and the storage options as they were given."""
        options = dict(self.storage_options)
        return _unopened, (type(self), self.location, self.version, options, self.identity)

    if not TYPE_CHECKING:  # else every name would be one of its attributes

        def __getattr__(self, name: str) -> object:
            """Open it where it was unpickled: what fails there would end a worker of a pool."""
            names = [attribute.name for attribute in fields(self)]
            if name not in names:
                raise AttributeError(name)
            check_process(f"a method of the table {self.location}")
            opened = self._opened_again()
            if _of_table(opened.identity) != _of_table(self.identity):
                raise TableMadeAnew(table=self.location, location=self.location)
            for attribute in names:
                object.__setattr__(self, attribute, getattr(opened, attribute))
            return getattr(self, name)

    def _opened_again(self) -> Snapshot:
        """Open the same version of what is at its location now."""
        return Snapshot.open(self.location, self.version, storage_options=self.storage_options)

    @staticmethod
    def open(
        location: str,
        version: int | None = None,
        timestamp: datetime | None = None,
        storage_options: StorageOptions | None = None,
    ) -> Snapshot:
        """Open a namespace at its latest version, at a version, or as of a time.

        Its creation takes two versions of ``__manifest``; at the first it reads as the empty table
        that it is at the second.

        Args:
            location: Path or URL of the namespace.
            version: Version of ``__manifest``, or None.
            timestamp: The last version committed at or before this time; zone-less means UTC.
            storage_options: Given to Lance.

        Raises:
            NamespaceHasNoManifest: The location has no ``__manifest``.
            NotPartitionedNamespace: Its metadata has no partition spec.
            NamespaceSchemaMissing: Its metadata has no schema.
            ManifestMetadataLost: Its metadata had a partition spec.
            CorruptJson: A text of the metadata is not JSON.
            InvalidPartitionSpec: A spec breaks a rule.
            ManifestColumnsLost: A foreign writer dropped partition columns.
            SnapshotNotFound: There is no such version, none that old, or it was no partitioned
                namespace then.

        Spec: "Metadata Definition".
        """
        manifest = open_manifest(location, version, timestamp, storage_options, is_read_only=True)
        options = storage_options or _NO_OPTIONS
        if (version is not None or timestamp is not None) and not has_specs(manifest.metadata):
            manifest = when_made(location, manifest, options)
        snapshot = _snapshot_of(location, manifest, options)
        _SEEN.keep(replace(snapshot.key, table=""), (snapshot, time.monotonic()))
        return snapshot

    @staticmethod
    def seen(location: str, version: int, storage_options: StorageOptions) -> Snapshot | None:
        """Give a version that this process has opened within the last minute.

        Args:
            location: Path or URL of the namespace.
            version: Version of ``__manifest``.
            storage_options: What it was opened with.

        Returns:
            The last one of that number at the location, whatever table it is of.
        """
        key = TableKey(location, version, "", storage_identity(storage_options))
        snapshot, opened = _SEEN.peek(key) or (None, 0.0)
        return snapshot if time.monotonic() - opened < _SEEN_SECONDS else None

    @property
    def key(self) -> TableKey:
        """The key of what is kept of this version."""
        storage = storage_identity(self.storage_options)
        return TableKey(self.location, self.version, self.identity, storage)

    @property
    def rows(self) -> lance.LanceDataset:
        """The Lance table at ``version`` to read rows of; of a store mostly a copy."""
        if "://" not in self.location:
            return self.manifest
        return near(self.manifest, self.key, self.storage_options)

    @property
    def names_leaf_versions(self) -> bool:
        """Whether the manifest says of every leaf at which version it is read.

        Else another writer can move a leaf on, and each query has to look anew. A table that does
        not say its mode is not trusted here, though it is written to as a strong one
        (``is_strong``).
        """
        return self.metadata.get(TRANSACTION) == STRONG

    def at_version(self, version: int) -> Snapshot:
        """Open another version of the same table; as ``open``."""
        return Snapshot.open(self.location, version, storage_options=self.storage_options)

    @property
    def current_spec(self) -> PartitionSpec:
        """The spec that new data is written with: the one of the highest version."""
        return self.specs[max(self.specs)]

    @property
    def has_read_version_column(self) -> bool:
        """Whether the manifest names the versions of leaves (column ``read_version``)."""
        return READ_VERSION.name in self.manifest.schema.names

    @property
    def comment(self) -> str | None:
        """The table's comment."""
        return self.metadata.get(COMMENT)

    @property
    def salt(self) -> bytes:
        """The key of partition names; a namespace of another writer has one made of its specs."""
        kept = self.metadata.get(SALT)
        if kept is not None:
            return bytes.fromhex(kept)
        # Specs never change once written, so that every writer derives the same.
        first = self.specs[min(self.specs)].to_json()
        return hashlib.blake2b(first.encode(), digest_size=16).digest()

    @property
    def partition_columns(self) -> tuple[str, ...]:
        """The columns of partition values of all specs, in order of first use."""
        return tuple(partition_columns(self.specs.values()))

    def partition_type(self, field_id: str) -> pa.DataType:
        """Give the Arrow type of a partition field's column in this manifest.

        It is as wide as the widest ``result_type`` that a spec declares for the field.
        """
        return self.manifest.schema.field(PARTITION_PREFIX + field_id).type

    def leaves(
        self,
        condition: exp.Expr | None = None,
        flags: Sequence[exp.Expr] = (),
        beside: Sequence[str] = (),
        may_match: MayMatch | None = None,
    ) -> LeafQuery:
        """Find leaves with one SQL over ``__manifest``.

        Args:
            condition: On ``object_id`` and the partition columns; None for all leaves.
            flags: Conditions to evaluate per leaf, returned as ``flag_0``, ``flag_1``, ….
            beside: More columns to return of the rows: ``metadata``, ``_rowaddr``.
            may_match: As ``leaf_rows``; it is asked where that saves the reading of many rows.

        Returns:
            The SQL and a table with ``object_id``, ``location``, ``read_version`` (NULL: latest of
            main), ``num_rows``, ``num_bytes``, ``num_fragments`` (NULL: unknown), ``is_counted``
            (whether these are known to be those of the version), the partition columns and the
            flags; of leaves at a branch or a tag ``read_branch`` and ``read_tag``; of a table with
            a write order ``write_order``, as recorded. What is no leaf of a spec is left out.

        Raises:
            LeafMisnamed: A leaf is called as none of its spec.
            LeafNotLocated: A leaf's row does not say where it is.
            ManifestMetadataLost: A leaf belongs to a spec version that is not there.

        Spec: "Partition Pruning", Appendix D.
        """
        index = self._index if is_for_index(condition, may_match) else None
        selected = leaf_rows(
            self.rows,
            index,
            self._row_columns,
            condition,
            flags,
            key=self.key,
            may_match=may_match,
            is_brief="metadata" not in beside,
        )
        names = [f"flag_{at}" for at in range(len(flags))]
        return replace(selected, table=self._shown(selected.table, [*names, *beside]))

    def leaves_of(
        self, spec_version: int, tuples: Sequence[pa.RecordBatch]
    ) -> list[pa.Table] | None:
        """Find the leaves of partition tuples without a pass over all leaves' rows.

        Args:
            spec_version: The version of their spec.
            tuples: One row with its partition columns each.

        Returns:
            As ``leaves``, for each tuple; None where that has to be asked, for floats among them.
        """
        index = self._index
        addresses = None if index is None else index.addresses_of(spec_version, tuples)
        if addresses is None:
            return None
        return fetched_lists(self.rows, addresses, self._row_columns, self._shown)

    @property
    def _row_columns(self) -> list[str]:
        versions = [READ_VERSION.name] if self.has_read_version_column else []
        own = ["object_id", "location", *versions, *self._reference_columns, "metadata"]
        return [*own, *self.partition_columns]

    def _shown(self, rows: pa.Table, others: Sequence[str]) -> pa.Table:
        """Make what ``leaves`` returns of rows of the manifest."""
        rows = self._only_leaves(rows)
        check_single(rows["object_id"], self.location, self.version)
        check_located(rows, location=self.location, version=self.version)
        references = self._references(rows)
        metadata = rows["metadata"]
        silent = pc.is_null(rows[READ_VERSION.name]) if self.has_read_version_column else None
        if references:
            elsewhere = pc.invert(reduce(pc.and_, map(pc.is_null, references.values())))
            # The statistics are those of the version that Pennon wrote.
            metadata = pc.if_else(elsewhere, pa.scalar(None, metadata.type), metadata)
            silent = silent if silent is None else pc.and_not(silent, elsewhere)
        versions = self._read_versions(rows, silent)
        shown: dict[str, pa.ChunkedArray] = {
            "object_id": rows["object_id"],
            "location": rows["location"],
            READ_VERSION.name: versions,
            **references,
            **statistics_columns(metadata, versions),
        }
        if WRITE_ORDER in self.properties:
            shown[RECORDED_ORDER] = order_column(metadata)
        shown.update({name: rows[name] for name in (*self.partition_columns, *others)})
        return pa.table(shown)

    @property
    def num_leaves(self) -> int:
        """How many leaves there are."""
        index = self._index
        if index is None or index.num_others:
            return len(self.leaves().table)
        return index.num_leaves

    @property
    def _index(self) -> PartitionIndex | None:
        """The partition index; None where rows have no addresses that stay."""
        if self.manifest.has_stable_row_ids:
            return None
        return partition_index(self.rows, self.key, self.specs, self.partition_columns)

    @property
    def _reference_columns(self) -> list[str]:
        return [name for name in (READ_BRANCH, READ_TAG) if name in self.manifest.schema.names]

    def _references(self, rows: pa.Table) -> dict[str, pa.ChunkedArray]:
        """Give the branch and the tag of each leaf; nothing where no leaf has one."""
        null = pa.chunked_array([pa.nulls(len(rows), pa.utf8())])
        references = {name: rows[name] for name in self._reference_columns}
        if all(column.null_count == len(rows) for column in references.values()):
            return {}
        return {name: references.get(name, null) for name in (READ_BRANCH, READ_TAG)}

    def _only_leaves(self, rows: pa.Table) -> pa.Table:
        names = rows["object_id"]
        is_leaf = pc.is_valid(leaf_spec_versions(names, self.specs))
        if not pc.all(is_leaf, min_count=0).as_py():
            others = names.filter(pc.invert(is_leaf)).to_pylist()
            check_no_leaves(others, self.specs, location=self.location, version=self.version)
        return rows.filter(is_leaf)

    def _read_versions(self, rows: pa.Table, silent: pa.ChunkedArray | None) -> pa.ChunkedArray:
        """Fill in the newest recorded version of the silent rows."""
        if silent is None:
            return pa.chunked_array([pa.nulls(len(rows), pa.uint64())])
        stated = rows[READ_VERSION.name]
        leaves = rows["object_id"].filter(silent).to_pylist()
        newest = newest_versions(self.rows, leaves) if leaves else {}
        if not newest:
            return stated
        at = pc.index_in(rows["object_id"], value_set=pa.array(newest.keys(), pa.utf8()))
        current = pa.array(newest.values(), pa.uint64())
        return pc.coalesce(stated, pc.take(current, at))


def _unopened(
    kind: type[Snapshot], location: str, version: int, options: StorageOptions, identity: str
) -> Snapshot:
    """Make a snapshot that is opened when it is first asked for more than these."""
    snapshot = object.__new__(kind)
    given = {"location": location, "version": version, "storage_options": options}
    for name, value in {**given, "identity": identity}.items():
        object.__setattr__(snapshot, name, value)
    return snapshot


def _of_table(identity: str) -> str:
    """Leave away how the leaves looked."""
    return identity.partition(LOOK)[0]


# The parsed metadata, mostly, and what Lance remembers of the manifest's files.
_SNAPSHOT_BYTES = 64 << 10
_SNAPSHOTS: Cache[Snapshot] = Cache(
    "snapshots",
    max_bytes=64 * _SNAPSHOT_BYTES,
    weigh=lambda snapshot: _SNAPSHOT_BYTES + sum(map(len, snapshot.metadata.values())),
)
_SEEN_SECONDS: Final = 60
_SEEN: Final[Cache[tuple[Snapshot, float]]] = Cache(
    "versions seen", max_bytes=64, weigh=lambda _: 1
)


def _snapshot_of(
    location: str, manifest: lance.LanceDataset, storage_options: StorageOptions
) -> Snapshot:
    storage = storage_identity(storage_options)
    key = TableKey(location, int(manifest.version), version_identity(manifest), storage)
    return _SNAPSHOTS.find(key, lambda: _read(location, manifest, storage_options, key))


def _read(
    location: str,
    manifest: lance.LanceDataset,
    storage_options: StorageOptions,
    key: TableKey,
) -> Snapshot:
    metadata: Mapping[str, str] = MappingProxyType(dict(manifest.metadata))
    check_metadata_is_there(location, manifest)
    specs = read_specs(metadata, location)
    schema = read_schema(metadata, location)
    schema = with_stored_timestamps(schema, metadata, location, manifest, storage_options)
    for spec in specs.values():
        spec.check(schema)
    check_columns(location, manifest, specs, metadata)
    has_versions = READ_VERSION.name in manifest.schema.names
    return Snapshot(
        location=location,
        version=key.version,
        schema=schema,
        specs=specs,
        is_strong=has_versions and metadata.get(TRANSACTION, STRONG) != WEAK,
        properties=user_properties(metadata),
        metadata=metadata,
        storage_options=storage_options,
        identity=key.table,
        manifest=manifest,
    )
