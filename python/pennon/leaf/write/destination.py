"""The destination of one partition's rows: its leaf's directory and stored schema."""

from __future__ import annotations

import base64
import contextlib
import json
import tempfile
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, fields, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Final, TypeVar
from weakref import WeakKeyDictionary

import lance
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from pennon.caching import Cache, PerObject, TableKey, storage_identity
from pennon.caching.lance_sessions import file_session, lance_options, lance_session, opening
from pennon.errors import (
    InternalError,
    LeafFolderTaken,
    LeafMissing,
    LeafTypeMismatch,
    NamespaceHasNoManifest,
    PennonError,
    SnapshotNotFound,
    StorageFailure,
    TableNotFound,
)
from pennon.leaf.dataset import (
    FIRST_DETACHED,
    check_is_main,
    leaf_uri,
    leaves_at_once,
    open_leaf,
)
from pennon.leaf.schema.file_layout import columns_by_name, state_field_ids, write_layout
from pennon.leaf.schema.reconciliation import (
    LeafFields,
    leaf_fields,
    leaf_matching,
    plain_schema,
    shared_fields,
)
from pennon.leaf.schema.schema_widening import stating_ids, stored_field, upgrade_of
from pennon.manifest import Snapshot, leaf_name
from pennon.manifest.dataset.storage import is_not_found, storage_failure
from pennon.manifest.leaves.partition_index import equals
from pennon.manifest.table_identity import check_same_table, table_id
from pennon.settings import COMPRESSION
from pennon.spec.partition_spec import leaf_prefix
from pennon.spec.write_properties import codecs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pennon.manifest import LeafName
    from pennon.spec.partition_spec import PartitionSpec

__all__ = [
    "YOUNG_ON_STORE",
    "Destination",
    "Destinations",
    "StagedPartition",
    "WriteTarget",
    "create_leaf",
    "is_unmade",
    "unmade_leaf",
]

YOUNG_ON_STORE: Final = timedelta(hours=1)
"""Files of leaves that are younger are not taken for waste on a store: rows may be on their way."""

# Creates the dataset of a new leaf: an empty version that states the namespace's field ids.
#
# A plain Lance reader of the main branch sees an empty table, never half a transaction. Several
# writers may make the same leaf at once: the first makes it, the others find it.
#
# Columns always state their id; one commit makes the dataset and states them, so that nobody has to
# guess. Nested fields state theirs only where Lance's own number is another: pylance 14 fails to
# filter by a nested column whose fields have metadata ("column types must match schema types"), and
# a leaf is a table for plain Lance readers too.

_ATTEMPTS_TO_MAKE = 5


def create_leaf(
    root: str, location: str, schema: pa.Schema, storage_options: Mapping[str, str] | None = None
) -> lance.LanceDataset:
    """Make a leaf's empty dataset, or open the newest version of the one that is there.

    The manifest names no such leaf. A dataset with other columns, which a foreign tool has written
    over a partition that was deleted, gets a new, empty version: the name is derived from the
    partition's values, and there is no other. A dataset with rows that never was a leaf is left
    as it is: another writer may need it.

    Args:
        root: Path or URL of the namespace.
        location: The leaf's directory.
        schema: The namespace schema, with its ids.
        storage_options: Passed to Lance, never printed.

    Returns:
        The dataset at its newest version of main, whose fields state the namespace's ids.

    Raises:
        LeafFolderTaken: Another writer's rows are there, which never were the table's.

    Spec: "Schema", "Physical Layout and Naming".
    """
    uri = leaf_uri(root, location)
    options = lance_options(storage_options)
    made = _write_empty(uri, schema, 0, options)
    if made is not None and "://" in uri:  # on a disk the shared session of an opened one is faster
        return made
    for _ in range(_ATTEMPTS_TO_MAKE):
        dataset = open_leaf(root, location, None, storage_options)
        if any(field.stated_id is not None for field in leaf_fields(dataset)):
            return dataset
        _check_not_foreign(dataset, root, location)
        missing = _missing_ids(dataset, schema, location)
        if not missing:
            _write_empty(uri, schema, dataset.version, options)
            continue
        try:
            state_field_ids(dataset, missing, detached=False)
        except OSError as error:
            if not _says_made(error):
                raise
    raise InternalError(what=f"the field ids of leaf {location} could not be stated")


# A new leaf of a store gets no version of its main branch: that would be three requests more, of
# which each is waited for. It is written to, and committed to, as if it had a version without rows;
# who wants the main branch makes it (``create_leaf``, ``pennon.leaf.write.leaf_commit.publish``).

_UNMADE: Final[Cache[tuple[int, bytes]]] = Cache(
    "versions of leaves to be made", max_bytes=256, weigh=lambda _: 1
)


def unmade_leaf(
    root: str, location: str, schema: pa.Schema, storage_options: Mapping[str, str] | None = None
) -> lance.LanceDataset | None:
    """Give a leaf of a store of which there is nothing yet, for rows to be written and committed.

    Args:
        root: Path or URL of the namespace.
        location: The leaf's directory.
        schema: The namespace schema, with its ids.
        storage_options: Passed to Lance, never printed.

    Returns:
        The dataset at a detached version without rows that nobody else sees; None where a leaf
        begins with its main branch, as on a disk.
    """
    uri = leaf_uri(root, location)
    opened = opening(uri, storage_options)
    if "://" not in root or "uri" not in opened or "://" in location:
        return None
    text = base64.b64encode(schema.serialize().to_pybytes()).decode()
    version, manifest = _UNMADE.find(TableKey("", 0, "", detail=text), lambda: _empty(schema))
    return lance.LanceDataset(
        uri,
        version,
        storage_options=opened["storage_options"],
        serialized_manifest=manifest,
        session=lance_session(storage_identity(storage_options)),
    )


def is_unmade(root: str, location: str, storage_options: Mapping[str, str] | None = None) -> bool:
    """Whether a leaf's directory has no version of any dataset.

    Raises:
        StorageFailure: The storage refused.
    """
    try:
        return not file_session(root, storage_options).list(f"{location}/_versions")
    except (OSError, ValueError) as error:
        if is_not_found(error):
            return True
        raise storage_failure("list the versions of", leaf_uri(root, location), error) from error


def _empty(schema: pa.Schema) -> tuple[int, bytes]:
    """Let Lance make a detached version without rows, and give its number and its manifest."""
    with tempfile.TemporaryDirectory(prefix="pennon-") as folder:
        made = _write_empty(folder, schema, 0, None)
        if made is None:
            raise InternalError(what="no empty dataset is made")
        same = lance.LanceOperation.Append([])
        beside = lance.LanceDataset.commit(made, same, read_version=made.version, detached=True)
        return int(beside.version), beside._ds.serialized_manifest()  # noqa: SLF001


def _check_not_foreign(dataset: lance.LanceDataset, root: str, location: str) -> None:
    """Refuse rows of a dataset of which no version was a leaf."""
    num_rows = dataset.count_rows()
    if not num_rows:
        return
    oldest = dataset.checkout_version(min(version["version"] for version in dataset.versions()))
    if any(field.stated_id is not None for field in leaf_fields(oldest)):
        return
    raise LeafFolderTaken(
        leaf=location, table=root, num_rows=num_rows, columns=", ".join(dataset.schema.names)
    )


def _missing_ids(dataset: lance.LanceDataset, schema: pa.Schema, leaf: str) -> dict[int, int]:
    """Give the ids to state by Lance's numbers; none where the columns are not the namespace's."""
    try:
        named = columns_by_name(dataset, schema, leaf)
    except LeafTypeMismatch:
        return {}
    return {} if named.unknown else named.ids


def _write_empty(
    uri: str, schema: pa.Schema, version: int, storage_options: dict[str, str] | None
) -> lance.LanceDataset | None:
    """Make an empty version behind a version; where another writer was first its version stays."""
    try:
        # write_dataset's create mode retries as an overwrite when two writers race; on a version,
        # without retries, Lance lets one pass.
        return lance.LanceDataset.commit(
            uri,
            lance.LanceOperation.Overwrite(stating_ids(list(schema)), []),
            read_version=version,
            max_retries=0,
            storage_options=storage_options,
        )
    except OSError as error:
        if not _says_made(error):
            raise
        return None


def _says_made(error: OSError) -> bool:
    text = str(error).lower()
    words = ("already exists", "0.manifest was not found", "conflict", "concurrent", "retryable")
    return any(word in text for word in words)


# The messages of a writing task: its target, and the partitions that it staged.


@dataclass(frozen=True, slots=True)
class WriteTarget:
    """The namespace and the partition spec that a task writes to.

    Args:
        location: Path or URL of the partitioned namespace.
        version: Version of its ``__manifest`` that the write is based on.
        spec_version: The partition spec that the rows are split by.
        storage_options: Passed to Lance, never printed.
        file_bytes: About how large a file becomes; None for Lance's own bound.
        table_id: Which table it is, whatever its version; empty where nobody asks.
    """

    location: str
    version: int
    spec_version: int
    storage_options: Mapping[str, str] = field(default_factory=dict, repr=False)
    file_bytes: int | None = None
    table_id: str = ""


@dataclass(frozen=True, slots=True)
class StagedPartition:
    """The uncommitted fragments that one task wrote for one partition.

    Args:
        spec_version: The partition spec that ``values`` belong to.
        object_id: The leaf's ``object_id`` in the manifest, also when it is not there yet.
        location: The leaf's directory.
        values: One row, one column ``partition_field_<id>`` per partition field, typed.
        fragments: The fragments as Lance's JSON.
        layout: What the fragments' columns are; they fit only a leaf that numbers them the same.
        num_rows: Rows in the fragments.
        num_bytes: Bytes of the fragments' files.
        order: The write order in which each fragment's rows are; None where they are in none.
        statistics: Those of the rows' columns as the manifest has them; None where unknown.
        spec: The identity of that partition spec; None where unknown.
        staged_at: When the task began, in seconds since the epoch; None where unknown.
    """

    spec_version: int
    object_id: str
    location: str
    values: pa.RecordBatch
    fragments: tuple[str, ...]
    layout: str
    num_rows: int
    num_bytes: int
    order: str | None = None
    statistics: str | None = None
    spec: str | None = None
    staged_at: float | None = None

    def to_json(self) -> str:
        """Write the report as text; partition values survive exactly, whatever their type."""
        return json.dumps(
            {
                "spec_version": self.spec_version,
                "object_id": self.object_id,
                "location": self.location,
                "values": _encode(self.values),
                "fragments": list(self.fragments),
                "layout": self.layout,
                "num_rows": self.num_rows,
                "num_bytes": self.num_bytes,
                "order": self.order,
                "statistics": self.statistics,
                "spec": self.spec,
                "staged_at": self.staged_at,
            }
        )

    @classmethod
    def from_json(cls, text: str) -> StagedPartition:
        """Read what ``to_json`` wrote."""
        stored = json.loads(text)
        stored["values"] = _decode(stored["values"])
        stored["fragments"] = tuple(stored["fragments"])
        return cls(**stored)


def _encode(values: pa.RecordBatch) -> str:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, values.schema) as writer:
        writer.write_batch(values)
    return base64.b64encode(sink.getvalue()).decode("ascii")


def _decode(text: str) -> pa.RecordBatch:
    return pa.ipc.open_stream(base64.b64decode(text)).read_next_batch()


# A small append asks for few leaves: by their names that is half as dear as to bring the index of
# all of them to the version before.
_FEW: Final = 4
_ATTEMPTS: Final = 5
T = TypeVar("T")
_LEAVES: Final[Cache[pa.Table]] = Cache(
    "leaves of spec versions", max_bytes=128 << 20, weigh=lambda leaves: int(leaves.nbytes)
)


@dataclass(frozen=True, slots=True)
class Destination:
    """The leaf of one partition, which need not exist yet.

    Args:
        object_id: Its id in the manifest.
        location: Its directory.
        values: The partition's tuple, one row.
        schema: What its files have to be written with.
        layout: Which namespace fields those columns are.
        storage_version: Lance's file format of the leaf; None for a new one.
        read_version: The version at which the manifest reads the leaf; None for a new one.
    """

    object_id: str
    location: str
    values: pa.RecordBatch
    schema: pa.Schema
    layout: str
    storage_version: str | None
    read_version: int | None = None


@dataclass(frozen=True, slots=True)
class _Row:
    """The manifest's row of a leaf."""

    object_id: str
    location: str
    read_version: int | None
    read_branch: str | None = None
    read_tag: str | None = None


def _row_of(leaf_row: pa.Table) -> _Row:
    names = [field.name for field in fields(_Row) if field.name in leaf_row.column_names]
    return _Row(**{name: leaf_row[name][0].as_py() for name in names})


def _is_kept(row: _Row) -> bool:
    """Whether an opened leaf is kept by its version alone."""
    return row.read_version is not None and row.read_version >= FIRST_DETACHED


class Destinations:
    """Finds the leaf of a partition tuple as the snapshot has it.

    Where that has expired since the rows began to come, leaves are looked up in the newest version:
    only their columns' ids and their format are needed, and the commit judges the rest.
    """

    def __init__(self, snapshot: Snapshot, spec: PartitionSpec) -> None:
        self._snapshot = snapshot
        self._spec = spec
        self._schema = compressed(snapshot.schema.arrow, snapshot.properties)
        self._known: pa.Table | None = None
        self._num_asked = 0
        self._expected: dict[str, pa.Table] = {}
        self._new = _NEW.of(self._schema)

    def expect(self, tuples: Sequence[pa.RecordBatch]) -> None:
        """Read of many tuples at once what ``find`` needs of each.

        Args:
            tuples: One row each; what was read of those before them is forgotten.
        """
        self._expected = {}
        if len(tuples) > _FEW:
            rows = self._asked(lambda: self._leaves_of(tuples)) or []
            names = map(self._name_of, tuples)
            self._expected = {
                name.object_id: value for name, value in zip(names, rows, strict=False)
            }
            self._open_ahead()

    def _name_of(self, values: pa.RecordBatch) -> LeafName:
        scalars = [column[0] for column in values.columns]
        return leaf_name(self._snapshot.salt, self._spec.spec_version, scalars)

    def find(self, values: pa.RecordBatch) -> Destination:
        """Find the leaf of a tuple, or name the one to make.

        Raises:
            LeafSchemaMismatch: The leaf cannot take the namespace's rows.
            LeafMissing: The leaf's files are gone.
            LeafReadAtReference: The manifest has it read at a branch or a tag.
            TableNotFound: The table was dropped meanwhile.
            TableMadeAnew: It was, and another one was made in its place.
        """
        return self._asked(lambda: self._destination(values))

    def _asked(self, ask: Callable[[], T]) -> T:
        """Ask for leaves; again in the newest version where files of the one before are gone."""
        for _ in range(_ATTEMPTS):
            try:
                return ask()
            except (LeafMissing, SnapshotNotFound, StorageFailure) as error:
                self._turn_to_newest(error)
        return ask()

    def _turn_to_newest(self, error: PennonError) -> None:
        """Look leaves up in the newest version from now on; raise the error where that is done.

        Raises:
            TableNotFound: There is none any more.
            TableMadeAnew: It is one of another table.
        """
        before = self._snapshot
        location = before.location
        try:
            newest = Snapshot.open(location, storage_options=before.storage_options)
        except NamespaceHasNoManifest:
            raise TableNotFound(table=location, near="it was dropped meanwhile") from error
        check_same_table(newest, table_id(before))
        spec = newest.specs.get(self._spec.spec_version)
        if newest.version <= before.version or spec != self._spec:
            raise error
        self._snapshot, self._known, self._expected = newest, None, {}

    def _destination(self, values: pa.RecordBatch) -> Destination:
        name = self._name_of(values)
        row = self._row(values, name.object_id)
        if row is None:
            schema, layout = self._new
            return Destination(name.object_id, name.directory, values, schema, layout, None)
        check_is_main(self._snapshot.location, row.location, row.read_branch, row.read_tag)
        dataset = open_leaf(
            self._snapshot.location,
            row.location,
            row.read_version,
            self._snapshot.storage_options,
            self._snapshot.identity,
        )
        schema, layout = self._stored(dataset, row.location)
        return Destination(
            row.object_id,
            row.location,
            values,
            schema,
            layout,
            dataset.data_storage_version,
            row.read_version,
        )

    def _row(self, values: pa.RecordBatch, object_id: str) -> _Row | None:
        leaf_row = self._expected.get(object_id)
        if leaf_row is None:
            leaf_row = self._asked_rows(values, object_id)
        return None if leaf_row.num_rows == 0 else _row_of(leaf_row)

    def _open_ahead(self) -> None:
        """Open leaves of a store side by side, for ``find`` to have them at hand."""
        location, options = self._snapshot.location, self._snapshot.storage_options
        most = leaves_at_once(location, on_disk=1)
        rows = [_row_of(row) for row in self._expected.values() if row.num_rows]
        if most == 1 or len(rows) <= 1:
            return

        def open_one(row: _Row) -> None:
            with contextlib.suppress(PennonError, OSError, ValueError):  # ``find`` tells of it
                open_leaf(location, row.location, row.read_version, options)

        with ThreadPoolExecutor(min(most, len(rows))) as pool, contextlib.suppress(RuntimeError):
            # where the process ends, no thread starts any more
            list(pool.map(open_one, [row for row in rows if _is_kept(row)]))

    def _asked_rows(self, values: pa.RecordBatch, object_id: str) -> pa.Table:
        named = self._named_rows(object_id) if self._num_asked < _FEW else None
        self._num_asked += 1
        if named is not None and named.num_rows:
            return named
        # Other writers name leaves in their own way.
        rows = self._leaves_of([values])
        return self._equal_rows(values) if rows is None else rows[0]

    def _leaves_of(self, tuples: Sequence[pa.RecordBatch]) -> list[pa.Table] | None:
        return self._snapshot.leaves_of(self._spec.spec_version, tuples)

    def _named_rows(self, object_id: str) -> pa.Table:
        condition = exp.column("object_id").isin(exp.Literal.string(object_id))
        return self._snapshot.leaves(condition).table

    def _equal_rows(self, values: pa.RecordBatch) -> pa.Table:
        if self._known is None:
            key = replace(self._snapshot.key, detail=self._spec.spec_version)
            self._known = _LEAVES.find(key, self._all_rows)
        rows = self._known
        for name, column in zip(values.schema.names, values.columns, strict=True):
            rows = rows.filter(equals(rows[name], column[0]))
        return rows

    def _all_rows(self) -> pa.Table:
        leaves = self._snapshot.leaves().table
        return leaves.filter(
            pc.starts_with(leaves["object_id"], leaf_prefix(self._spec.spec_version))
        )

    def _stored(self, dataset: lance.LanceDataset, leaf: str) -> tuple[pa.Schema, str]:
        """Give how an existing leaf stores the columns, worked out once for equal leaves."""
        stored, version = shared_fields(dataset), dataset.data_storage_version
        known = _EXISTING.of(self._schema).setdefault(stored, {})
        if version not in known:
            matches = leaf_matching(self._schema, stored).of(self._schema, leaf)
            upgrade_of(self._schema, matches, stored.fields, {}, leaf)
            schema = pa.schema([stored_field(match) for match in matches])
            known[version] = schema, write_layout(list(self._schema), schema, version)
        return known[version]


# The columns of a table as its files are compressed: Lance takes the codec from a field's metadata.

_ENCODING: Final = b"lance-encoding:compression"


def compressed(columns: pa.Schema, properties: Mapping[str, str]) -> pa.Schema:
    """Give a table's columns with the codecs that its property states; one object for both.

    Args:
        columns: The columns; those with fields below have no codec.
        properties: The table's. What they say of a column that is gone counts for nothing.
    """
    text = properties.get(COMPRESSION.name)
    if text is None:
        return columns
    known = _COMPRESSED.of(columns)
    if text not in known:
        chosen, _ = codecs(text, columns)
        fields_of = [
            column.with_metadata((column.metadata or {}) | {_ENCODING: codec.encode()})
            if (codec := chosen.get(column.name)) and not column.type.num_fields
            else column
            for column in columns
        ]
        known[text] = pa.schema(fields_of, columns.metadata)
    return known[text]


_COMPRESSED: Final[PerObject[pa.Schema, dict[str, pa.Schema]]] = PerObject(lambda _: {})


def _new_layout(columns: pa.Schema) -> tuple[pa.Schema, str]:
    schema = plain_schema(columns)
    return schema, write_layout(list(columns), schema)


# How new leaves store a namespace's columns, and how existing ones do.
_NEW: Final[PerObject[pa.Schema, tuple[pa.Schema, str]]] = PerObject(_new_layout)
_Known = WeakKeyDictionary[LeafFields, dict[str, tuple[pa.Schema, str]]]
_EXISTING: Final[PerObject[pa.Schema, _Known]] = PerObject(lambda _: WeakKeyDictionary())
