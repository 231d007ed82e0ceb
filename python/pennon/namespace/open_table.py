"""What is known of an open table: its location, version, columns, partitioning and history."""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final, Self

from pennon.arguments import as_names, check_least, checked_methods
from pennon.catalog.tables.loaded_table import Table, load
from pennon.catalog.tables.opened_location import check_is_there, missed_by_name
from pennon.catalog.tables.row_history import read_changes
from pennon.errors import NamespacePinned, PennonError
from pennon.manifest.versions.dataset_history import dataset_history
from pennon.manifest.versions.history import HistoryEntry, history
from pennon.manifest.versions.tags import Tag, tags_of
from pennon.namespace.description import described, described_html
from pennon.namespace.metadata_read import read_metadata_table
from pennon.namespace.upkeep import Maintenance
from pennon.predicate.values.time_units import EPOCH

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa

    from pennon.catalog.configured_catalog import Catalog
    from pennon.manifest import Snapshot
    from pennon.spec.partition_spec import PartitionSpec

__all__ = ["OpenTable"]

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
        self._table = table
        self._is_pinned = is_pinned

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
        return self._table.name

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
        return Maintenance(self.name, self.location, self._catalog.storage, self._follow)

    def history(self, limit: int | None = None) -> list[HistoryEntry]:
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
            check_is_there(self.name, self.location, self._catalog.storage)
            return dataset_history(self.snapshot.manifest, self.location, limit=limit)
        with missed_by_name(self.name, self.location, self._catalog.storage):
            return history(self.location, self._catalog.storage, limit=limit)

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
            check_is_there(self.name, self.location, self._catalog.storage)
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
        with missed_by_name(self.name, self.location, self._catalog.storage):
            rows = read_metadata_table(self._table, name)
        if not rows.num_rows:  # as of a folder that is gone
            check_is_there(self.name, self.location, self._catalog.storage)
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
        self._table = load(self._catalog, self._table.identifier)
        return self

    def __repr__(self) -> str:
        """Describe the table in one line."""
        return described(self._table, is_pinned=self._is_pinned)

    def _repr_html_(self) -> str:
        return described_html(self._table)

    def _follow(self) -> None:
        """Go to what a commit has made, but for an object that stays at its version.

        The commit stands. What fails here would tell that it failed, and is met by the next use.
        """
        if not self._is_pinned:
            try:
                self.refresh()
            except (PennonError, OSError) as error:
                _LOG.warning("the newest version of %s is not opened: %s", self.name, error)

    def _check_unpinned(self, verb: str) -> None:
        if self._is_pinned:
            raise NamespacePinned(verb=verb, name=self.name, version=self.version)
