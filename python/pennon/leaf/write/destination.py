"""The destination of one partition's rows: its leaf's directory and stored schema."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Final, TypeVar
from weakref import WeakKeyDictionary

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from pennon.caching import Cache, PerObject
from pennon.errors import (
    LeafMissing,
    NamespaceHasNoManifest,
    PennonError,
    SnapshotNotFound,
    StorageFailure,
    TableNotFound,
)
from pennon.leaf.dataset import check_is_main, open_leaf
from pennon.leaf.schema.file_layout import write_layout
from pennon.leaf.schema.leaf_upgrade import stored_field, upgrade_of
from pennon.leaf.schema.plain_field import plain_schema
from pennon.leaf.schema.reconciliation import LeafFields, leaf_matching, shared_fields
from pennon.manifest import Snapshot, leaf_name
from pennon.manifest.leaves.partition_index import equals
from pennon.manifest.table_identity import check_same_table, table_id
from pennon.spec.partition_spec import leaf_prefix

if TYPE_CHECKING:
    from collections.abc import Sequence

    import lance

    from pennon.manifest import LeafName
    from pennon.spec.partition_spec import PartitionSpec

__all__ = ["Destination", "Destinations"]

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
    """

    object_id: str
    location: str
    values: pa.RecordBatch
    schema: pa.Schema
    layout: str
    storage_version: str | None


@dataclass(frozen=True, slots=True)
class _Row:
    """The manifest's row of a leaf."""

    object_id: str
    location: str
    read_version: int | None
    read_branch: str | None = None
    read_tag: str | None = None


class Destinations:
    """Finds the leaf of a partition tuple as the snapshot has it.

    Where that has expired since the rows began to come, leaves are looked up in the newest version:
    only their columns' ids and their format are needed, and the commit judges the rest.
    """

    def __init__(self, snapshot: Snapshot, spec: PartitionSpec) -> None:
        self._snapshot = snapshot
        self._spec = spec
        self._schema = snapshot.schema.arrow
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
        )

    def _row(self, values: pa.RecordBatch, object_id: str) -> _Row | None:
        leaf_row = self._expected.get(object_id)
        if leaf_row is None:
            leaf_row = self._asked_rows(values, object_id)
        if leaf_row.num_rows == 0:
            return None
        names = [field.name for field in fields(_Row) if field.name in leaf_row.column_names]
        return _Row(**{name: leaf_row[name][0].as_py() for name in names})

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
        stored = shared_fields(dataset)
        known = _EXISTING.of(self._schema)
        if stored not in known:
            matches = leaf_matching(self._schema, stored).of(self._schema, leaf)
            upgrade_of(self._schema, matches, stored.fields, {}, leaf)
            schema = pa.schema([stored_field(match) for match in matches])
            is_plain = schema.equals(self._new[0], check_metadata=True)
            layout = self._new[1] if is_plain else write_layout(list(self._schema), schema)
            known[stored] = schema, layout
        return known[stored]


def _new_layout(columns: pa.Schema) -> tuple[pa.Schema, str]:
    schema = plain_schema(columns)
    return schema, write_layout(list(columns), schema)


# How new leaves store a namespace's columns, and how existing ones do.
_NEW: Final[PerObject[pa.Schema, tuple[pa.Schema, str]]] = PerObject(_new_layout)
_EXISTING: Final[PerObject[pa.Schema, WeakKeyDictionary[LeafFields, tuple[pa.Schema, str]]]] = (
    PerObject(lambda _: WeakKeyDictionary())
)
