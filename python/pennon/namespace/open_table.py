"""What is known of an open table: its location, version, columns, partitioning and history."""

from __future__ import annotations

import logging
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from html import escape
from typing import TYPE_CHECKING, Final, Self

import pyarrow as pa

from pennon.arguments import as_names, check_least, checked_methods
from pennon.catalog.columns.spark_types import arrow_type, declarations, spark_schema
from pennon.catalog.layouts.stored_tables import check_is_there, missed_by_name
from pennon.catalog.partitioning import partitioned_by
from pennon.catalog.table_name import by_name, storage_of
from pennon.catalog.tables.loaded_table import (
    Table,
    load,
    read_changes,
    reopen_newest,
)
from pennon.errors import (
    ArgumentRefused,
    DefaultNotOfType,
    NamespacePinned,
    PennonError,
    TableNotFound,
)
from pennon.maintenance.read_failures import naming_causes_at
from pennon.manifest.versions.history import HistoryEntry, dataset_history, history
from pennon.manifest.versions.tags import Tag, tags_of
from pennon.metadata_tables import Selection, tables_of
from pennon.namespace.upkeep import Maintenance
from pennon.notebook import Bar, html_table
from pennon.planning import plan_scan
from pennon.predicate.values.literals import to_expression, type_named
from pennon.predicate.values.time_units import EPOCH
from pennon.spec.arrow_json import storage_field
from pennon.spec.column_defaults import value_to_json
from pennon.spec.column_names import column_path

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pennon.catalog.configured_catalog import Catalog
    from pennon.manifest import Snapshot
    from pennon.spec.partition_spec import PartitionSpec

__all__ = ["OpenTable", "added", "altered", "property_changes", "renamed"]

# Changes of columns and properties in the form that ``catalog.ddl.alter`` takes.

_Change = dict[str, object]


def added(
    name: str,
    data_type: pa.DataType,
    *,
    nullable: bool,
    default: object,
    comment: str | None,
) -> _Change:
    """Describe a column that is added.

    Args:
        name: Its path, with dots; a name that has one itself in backquotes.
        data_type: Its type.
        nullable: Whether it may be NULL.
        default: Its value in rows that are there; None for NULL.
        comment: Its comment.

    Raises:
        DefaultNotOfType: The default is no value of the type.
        ArgumentRefused: The type is nested, which only Spark SQL writes a default of.
    """
    spark_type = _spark_type(name, data_type)
    change: _Change = {
        "change": "add_column",
        "column": column_path(name),
        "type": spark_type,
        "nullable": nullable,
        "comment": comment,
        "declared": declarations(
            pa.schema([storage_field(pa.field(column_path(name)[-1], data_type))])
        ),
    }
    if default is not None:
        value = _default(name, data_type, arrow_type(spark_type, name), default)
        change["default"] = _spark_literal(value)
        change["initial"] = value_to_json(value)
    return change


def renamed(name: str, to: str) -> _Change:
    """Describe a column that gets another name."""
    return {"change": "rename_column", "column": column_path(name), "new_name": to}


def altered(
    name: str, data_type: pa.DataType | None, *, nullable: bool | None, comment: str | None
) -> Iterator[_Change]:
    """Describe what changes of a column.

    Raises:
        ArgumentRefused: Nothing does.
    """
    if data_type is None and nullable is None and comment is None:
        raise ArgumentRefused(
            function="alter_column",
            parameter="type",
            why="it is None, and so are nullable and comment",
            expected="one of them",
        )
    column = column_path(name)
    if data_type is not None:
        yield {"change": "update_type", "column": column, "type": _spark_type(name, data_type)}
    if nullable is not None:
        yield {"change": "update_nullability", "column": column, "nullable": nullable}
    if comment is not None:
        yield {"change": "update_comment", "column": column, "comment": comment}


def property_changes(properties: Mapping[str, str | None]) -> Iterator[_Change]:
    """Describe properties that are set, or with None removed."""
    for name, value in properties.items():
        if value is None:
            yield {"change": "remove_property", "property": name}
        else:
            yield {"change": "set_property", "property": name, "value": value}


def _default(
    name: str, data_type: pa.DataType, stored_type: pa.DataType, default: object
) -> pa.Scalar:
    """Give a default as the column stores it, which may have another unit or width."""
    if pa.types.is_nested(data_type):
        raise ArgumentRefused(
            function="add_column",
            parameter="default",
            why=f"column {name} is of type {data_type}, and a default is a single value",
            expected="none, and update the rows that are there",
        )
    try:
        return pa.scalar(default, data_type).cast(stored_type)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        raise DefaultNotOfType(column=name, default=repr(default), type=data_type) from error


def _spark_literal(value: pa.Scalar) -> str:
    literal = to_expression(value)
    if pa.types.is_timestamp(value.type) and value.type.tz is None:
        # What DataFusion calls so has no zone; in Spark it has the session's.
        literal.set("to", type_named("TIMESTAMP_NTZ"))
    return literal.sql(dialect="spark")


def _spark_type(name: str, data_type: pa.DataType) -> object:
    struct = spark_schema(pa.schema([pa.field(name, data_type)]))
    fields = struct["fields"]
    return fields[0]["type"] if isinstance(fields, list) else None


# The descriptions of a table at a prompt and in a notebook.


def described(table: Table, *, is_pinned: bool) -> str:
    """Describe a table in one line.

    Args:
        table: The table.
        is_pinned: Whether it stays at its version.
    """
    snapshot = table.snapshot
    fields = ", ".join(partitioned_by(snapshot.current_spec, snapshot.schema)) or "nothing"
    version = f"version {snapshot.version}{', read only' if is_pinned else ''}"
    columns = len(snapshot.schema.arrow)
    plural = "" if columns == 1 else "s"
    return (
        f"PartitionedNamespace({table.name}, {version}, {columns} column{plural},"
        f" partitioned by {fields})"
    )


# Of more partitions than these a notebook shows none: they would have to be read.
_MOST_PLANNED: Final = 10_000


def described_html(table: Table) -> str:
    """Describe a table as HTML: its columns, how it is partitioned, and its first partitions."""
    snapshot = table.snapshot
    columns = (
        (
            column.name,
            f"{column.type}{'' if column.nullable else ' not null'}",
            (column.metadata or {}).get(b"comment", b"").decode(),
        )
        for column in snapshot.schema.arrow
    )
    fields = ", ".join(partitioned_by(snapshot.current_spec, snapshot.schema)) or "nothing"
    is_small = snapshot.num_leaves <= _MOST_PLANNED
    return (
        f"<p><b>{escape(table.name)}</b>, version {snapshot.version},"
        f" partitioned by {escape(fields)}</p>"
        + html_table(("column", "type", "comment"), columns)
        + (plan_scan(snapshot).partitions_html() if is_small else "")
    )


class History(list[HistoryEntry]):
    """The versions of a table, oldest first; a notebook shows them as a table."""

    def _repr_html_(self) -> str:
        most = max((entry.record.added_rows or 0 for entry in self if entry.record), default=0)
        header = ("version", "committed at", "operation", "rows added", "rows removed")
        return html_table(header, (_cells(entry, most) for entry in self))


def _cells(entry: HistoryEntry, most: int) -> tuple[object, ...]:
    at = f"{entry.committed_at:%Y-%m-%d %H:%M:%S}"
    record = entry.record
    added, removed = (record.added_rows, record.removed_rows) if record else (None, None)
    return entry.version, at, entry.operation, Bar(added, most), "" if removed is None else removed


# Metadata tables read as Arrow tables, without Spark.


def read_metadata_table(table: Table, name: str) -> pa.Table:
    """Read all rows of a metadata table.

    Args:
        table: The table at a version.
        name: The metadata table.

    Raises:
        TableNotFound: There is none of that name; lists those there are. Or the table was dropped.
        TableMadeAnew: It was, and another one was made in its place.
        SnapshotExpired: The version has expired.
    """
    metadata_tables = tables_of(has_manifest=table.stored.has_manifest)
    definition = metadata_tables.get(name.lower())
    if definition is None:
        near = f"the metadata tables of {table.name} are {', '.join(sorted(metadata_tables))}"
        raise TableNotFound(table=f"{table.name}.{name}", near=near)
    with by_name(table.name), naming_causes_at(table.snapshot):
        schema = definition.schema(table.snapshot)
        parts = definition.rows(table.snapshot, Selection(tuple(schema.names)))
        tables = [part.select(schema.names).cast(schema) for part in parts]
    return pa.concat_tables(tables) if tables else schema.empty_table()


_LOG: Final = logging.getLogger(__name__)
_MICROSECOND: Final = timedelta(microseconds=1)


@checked_methods
class OpenTable:
    """A table at a version; ``refresh`` moves it to the newest one.

    Args:
        catalog: What names and storage options come from.
        table: The table at its first version.
        is_pinned: Whether it stays at that version, and so is only read.
    """

    def __init__(self, catalog: Catalog, table: Table, *, is_pinned: bool = False) -> None:
        self._catalog = catalog
        self._loaded = table
        self._is_behind = False
        self._is_pinned = is_pinned

    @property
    def _table(self) -> Table:
        """The table; at the newest version where a commit of this object has made one meanwhile."""
        self._catch_up()
        return self._loaded

    @_table.setter
    def _table(self, table: Table) -> None:
        self._loaded, self._is_behind = table, False

    @property
    def snapshot(self) -> Snapshot:
        """The table at the version that the object is at.

        Example:
            >>> import pennon, tempfile
            >>> import pyarrow as pa
            >>> path = tempfile.mkdtemp() + "/letters"
            >>> letters = pennon.create(path, pa.schema({"letter": pa.string()}))
            >>> letters.snapshot.version == letters.version
            True
        """
        return self._table.snapshot

    @property
    def name(self) -> str:
        """The table's name in its catalog, or its path.

        Example:
            >>> import pennon, tempfile
            >>> import pyarrow as pa
            >>> lake = pennon.connect(tempfile.mkdtemp())
            >>> lake.create_namespace("shop")
            >>> orders = lake.create_table("shop.orders", pa.schema({"id": pa.int64()}))
            >>> orders.name
            'lance.shop.orders'
        """
        return self._loaded.name

    @property
    def location(self) -> str:
        """Path or URL of the namespace.

        Example:
            >>> import pennon, tempfile
            >>> import pyarrow as pa
            >>> path = tempfile.mkdtemp() + "/letters"
            >>> letters = pennon.create(path, pa.schema({"letter": pa.string()}))
            >>> letters.location == path
            True
        """
        return self.snapshot.location

    @property
    def version(self) -> int:
        """Version of ``__manifest``.

        Example:
            >>> import pennon, tempfile
            >>> import pyarrow as pa
            >>> path = tempfile.mkdtemp() + "/letters"
            >>> letters = pennon.create(path, pa.schema({"letter": pa.string()}))
            >>> before = letters.version
            >>> letters.append([{"letter": "a"}]) == letters.version > before
            True
        """
        return self.snapshot.version

    @property
    def is_draft(self) -> bool:
        """Whether it has the layout of the older draft, which is only read.

        Example:
            >>> import pennon, tempfile
            >>> import pyarrow as pa
            >>> path = tempfile.mkdtemp() + "/letters"
            >>> letters = pennon.create(path, pa.schema({"letter": pa.string()}))
            >>> letters.is_draft
            False
        """
        return self.snapshot.layout.is_only_read

    @property
    def schema(self) -> pa.Schema:
        """The columns; each carries its id under ``lance:field_id``.

        Example:
            >>> import pennon, tempfile
            >>> import pyarrow as pa
            >>> path = tempfile.mkdtemp() + "/letters"
            >>> letters = pennon.create(path, pa.schema({"letter": pa.string()}))
            >>> letters.schema.names
            ['letter']
        """
        return self.snapshot.schema.arrow

    @property
    def spec(self) -> PartitionSpec:
        """The partition spec that new rows are written with.

        Example:
            >>> import pennon, tempfile
            >>> import pyarrow as pa
            >>> path = tempfile.mkdtemp() + "/letters"
            >>> letters = pennon.create(path, pa.schema({"letter": pa.string()}))
            >>> version = letters.add_partition_field("truncate(1, letter)", "initial")
            >>> [field.field_id for field in letters.spec.fields]
            ['initial']
        """
        return self.snapshot.current_spec

    @property
    def specs(self) -> Mapping[int, PartitionSpec]:
        """Every partition spec by version.

        Example:
            >>> import pennon, tempfile
            >>> import pyarrow as pa
            >>> path = tempfile.mkdtemp() + "/letters"
            >>> letters = pennon.create(path, pa.schema({"letter": pa.string()}))
            >>> version = letters.add_partition_field("letter")
            >>> {number: len(spec.fields) for number, spec in letters.specs.items()}
            {1: 0, 2: 1}
        """
        return self.snapshot.specs

    @property
    def properties(self) -> Mapping[str, str]:
        """The user's table properties.

        Example:
            >>> import pennon, tempfile
            >>> import pyarrow as pa
            >>> path = tempfile.mkdtemp() + "/letters"
            >>> letters = pennon.create(path, pa.schema({"letter": pa.string()}))
            >>> version = letters.set_properties({"team": "shop"})
            >>> letters.properties["team"]
            'shop'
        """
        return self.snapshot.properties

    @property
    def maintenance(self) -> Maintenance:
        """Checks, repairs and clean-up of the table.

        Example:
            >>> import pennon, tempfile
            >>> import pyarrow as pa
            >>> path = tempfile.mkdtemp() + "/letters"
            >>> letters = pennon.create(path, pa.schema({"letter": pa.string()}))
            >>> letters.maintenance.check().is_valid
            True
        """
        return Maintenance(
            self.name, self.location, storage_of(self._catalog, self.name), self._follow
        )

    def history(self, limit: int | None = None) -> History:
        """List the commits that made the versions of the table that can still be read.

        Args:
            limit: How many of the newest versions; None for all.

        Returns:
            ``version``, ``committed_at``, ``operation`` and ``record`` of each, oldest first. A
            plain Lance dataset has no records.

        Example:
            >>> import pennon, tempfile
            >>> import pyarrow as pa
            >>> path = tempfile.mkdtemp() + "/letters"
            >>> letters = pennon.create(path, pa.schema({"letter": pa.string()}))
            >>> version = letters.append([{"letter": "a"}])
            >>> newest = letters.history()[-1]
            >>> (newest.version == version, newest.operation, newest.record.added_rows)
            (True, 'append', 1)
        """
        check_least("history", "limit", limit, 0)
        if not self._table.stored.has_manifest:
            check_is_there(self.name, self.location, storage_of(self._catalog, self.name))
            manifest = self.snapshot.manifest
            return History(dataset_history(manifest, self.location, limit=limit))
        with missed_by_name(self.name, self.location, storage_of(self._catalog, self.name)):
            storage = storage_of(self._catalog, self.name)
            return History(history(self.location, storage, limit=limit))

    def tags(self) -> dict[str, Tag]:
        """Give the tags of the table: ``version``, ``set_at`` and ``retain`` of each, by name.

        Example:
            >>> import pennon, tempfile
            >>> import pyarrow as pa
            >>> path = tempfile.mkdtemp() + "/letters"
            >>> letters = pennon.create(path, pa.schema({"letter": pa.string()}))
            >>> letters.create_tag("empty") == letters.tags()["empty"].version
            True
        """
        tags = tags_of(self.snapshot.manifest)
        if not tags:  # as of a folder that is gone
            check_is_there(self.name, self.location, storage_of(self._catalog, self.name))
        return tags

    def snapshots(self) -> pa.Table:
        """Give the versions that can be read, as SQL's metadata table ``snapshots``.

        Returns:
            ``committed_at``, ``snapshot_id``, ``parent_id``, ``operation`` and ``summary`` of each.

        Example:
            >>> import pennon, tempfile
            >>> import pyarrow as pa
            >>> path = tempfile.mkdtemp() + "/letters"
            >>> letters = pennon.create(path, pa.schema({"letter": pa.string()}))
            >>> version = letters.append([{"letter": "a"}])
            >>> letters.snapshots()["operation"].to_pylist()[-1]
            'append'
        """
        return self.metadata("snapshots")

    def changes(
        self,
        since: int | str,
        until: int | str | None = None,
        *,
        key: Sequence[str] = (),
    ) -> pa.Table:
        """Read the rows that each commit between two versions deleted, inserted and updated.

        A commit that only moves rows, such as a compaction, has none.

        Args:
            since: The version, or the tag, whose rows are the beginning.
            until: The version, or the tag, at the end; None for that of this object.
            key: Columns whose values identify a row, so that an update is reported as one; with
                none, an update is a deletion and an insertion.

        Returns:
            The columns as they are at the end, ``_change_type`` (``insert``, ``delete``,
            ``update_preimage``, ``update_postimage``), ``_commit_version`` and
            ``_commit_timestamp``.

        Raises:
            SnapshotNotFound: A version has expired.
            ChangesNotKept: The table has weak transactions, and its versions hold no rows.
            ChangesNotPaired: Several rows of one commit have the same key.
            ChangeRangeReversed: ``since`` is behind ``until``.
            UnknownColumn: A column of the key is not there.

        Example:
            >>> import pennon, tempfile
            >>> import pyarrow as pa
            >>> schema = pa.schema({"id": pa.int64(), "v": pa.int64()})
            >>> table = pennon.create(tempfile.mkdtemp() + "/t", schema)
            >>> version = table.append([{"id": 1, "v": 1}, {"id": 2, "v": 2}])
            >>> later = table.update({"v": 5}, where="id = 2")
            >>> changes = table.changes(version, key=["id"])
            >>> list(zip(changes["_change_type"].to_pylist(), changes["v"].to_pylist()))
            [('update_preimage', 2), ('update_postimage', 5)]
        """
        end = self._table if until is None else self._at(until)
        return read_changes(end, self._at(since), as_names(key))

    def _at(self, version: int | str | datetime) -> Table:
        identifier = self._table.identifier
        if isinstance(version, int | str):
            return load(self._catalog, identifier, str(version))
        moment = version if version.tzinfo else version.replace(tzinfo=UTC)
        return load(self._catalog, identifier, None, (moment - EPOCH) // _MICROSECOND)

    def _snapshot_at(self, version: int | str | datetime | None) -> Snapshot:
        return self.snapshot if version is None else self._at(version).snapshot

    def metadata(self, name: str) -> pa.Table:
        """Read a metadata table of the version that the object is at.

        Args:
            name: ``partitions``, ``files``, ``specs``, ``snapshots``, ``history``, ``refs``, ….

        Raises:
            TableNotFound: There is none of that name; lists those there are.

        Example:
            >>> import pennon, tempfile
            >>> import pyarrow as pa
            >>> path = tempfile.mkdtemp() + "/letters"
            >>> letters = pennon.create(path, pa.schema({"letter": pa.string()}))
            >>> letters.metadata("partitions").num_rows
            0
        """
        with missed_by_name(self.name, self.location, storage_of(self._catalog, self.name)):
            rows = read_metadata_table(self._table, name)
        if not rows.num_rows:  # as of a folder that is gone
            check_is_there(self.name, self.location, storage_of(self._catalog, self.name))
        return rows

    def refresh(self) -> Self:
        """Go to the newest version.

        Returns:
            This object.

        Raises:
            NamespacePinned: It was opened at a version.

        Example:
            >>> import pennon, tempfile
            >>> import pyarrow as pa
            >>> path = tempfile.mkdtemp() + "/letters"
            >>> letters = pennon.create(path, pa.schema({"letter": pa.string()}))
            >>> version = pennon.open(path).append([{"letter": "a"}])
            >>> (letters.scan().count_rows(), letters.refresh().scan().count_rows())
            (0, 1)
        """
        self._check_unpinned("refresh")
        self._table = load(self._catalog, self._loaded.identifier)
        return self

    def __repr__(self) -> str:
        """Describe the table in one line."""
        return described(self._table, is_pinned=self._is_pinned)

    def _repr_html_(self) -> str:
        return described_html(self._table)

    def _follow(self) -> None:
        """Go to what a commit has made, but where it stays at its version; of a store when asked.

        The commit stands. What fails here would tell that it failed, and is met by the next use.
        """
        self._is_behind = not self._is_pinned
        if self._catalog.is_local:
            self._catch_up()

    def _catch_up(self) -> None:
        if not self._is_behind:
            return
        self._is_behind, before = False, self._loaded
        try:
            try:
                self._loaded = load(self._catalog, before.identifier)
            except TableNotFound:  # it was renamed since
                place, identity = before.snapshot.location, before.table_id or ""
                newest = reopen_newest(self._catalog, before.name, place, identity)
                self._loaded = replace(before, snapshot=newest)
        except (PennonError, OSError) as error:
            _LOG.warning("the newest version of %s is not opened: %s", before.name, error)

    def _check_unpinned(self, verb: str) -> None:
        if self._is_pinned:
            raise NamespacePinned(verb=verb, name=self.name, version=self.version)

    def _current(self, verb: str) -> Table:
        """Load the newest version for a change; what is pinned takes none."""
        self._check_unpinned(verb)
        self.refresh()
        return self._table
