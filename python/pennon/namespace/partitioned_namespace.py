"""A partitioned namespace as a Python object: read, write, evolve, look back.

Each method loads the newest version, does what a statement of Spark SQL would do, and leaves the
object at the version that it made.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from pennon.catalog.ddl import alter
from pennon.catalog.ddl.table_statement import FieldChange
from pennon.catalog.loaded_table import Table, load
from pennon.catalog.write_mode import WriteMode
from pennon.namespace.column_change import added, altered, property_changes, renamed
from pennon.namespace.open_table import OpenTable
from pennon.namespace.row_delete import delete_where
from pennon.namespace.row_scan import Scan
from pennon.namespace.row_source import batches_of
from pennon.namespace.row_write import write_rows
from pennon.transforms.transform_text import parse_transform

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa


__all__ = ["PartitionedNamespace"]

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


class PartitionedNamespace(OpenTable):
    """A table: many Lance datasets under one manifest, or one plain dataset.

    ``pennon.open``, ``pennon.create`` and ``pennon.connect`` make it.

    Args:
        catalog: What names and storage options come from.
        table: The table at the version to begin with.
        is_pinned: Whether it stays at that version, and so is only read.
    """

    def scan(
        self,
        where: str | None = None,
        columns: Sequence[str] | None = None,
        version: int | datetime | None = None,
    ) -> Scan:
        """Describe rows to read; nothing is read yet.

        Args:
            where: A condition in Spark SQL; None for all rows.
            columns: The columns, in this order; None for all.
            version: A version of the table, or a time; None for the version of this object.

        Raises:
            SnapshotNotFound: There is no such version.

        Example:
            >>> import pennon, tempfile
            >>> import pyarrow as pa
            >>> schema = pa.schema({"region": pa.string(), "amount": pa.int64()})
            >>> path = tempfile.mkdtemp() + "/sales"
            >>> sales = pennon.create(path, schema, partition_by=["region"])
            >>> version = sales.append([{"region": "eu", "amount": 7}])
            >>> sales.scan("region = 'eu'", columns=["amount"]).to_arrow().to_pylist()
            [{'amount': 7}]

        Spec: "Partition Pruning", "Read Behavior".
        """
        snapshot = self.snapshot
        if version is not None:
            snapshot = self._at(version).snapshot
        return Scan(snapshot, where, None if columns is None else tuple(columns))

    def append(self, rows: object) -> int:
        """Add rows, in one commit.

        Args:
            rows: A table, record batches or a reader of ``pyarrow``, a data frame of pandas or
                Polars, or a list of dicts. Columns match by name; a missing one is NULL.

        Returns:
            The version that has the rows.

        Raises:
            PennonError: The rows do not fit the columns.

        Example:
            >>> import pennon, tempfile
            >>> import pyarrow as pa
            >>> path = tempfile.mkdtemp() + "/letters"
            >>> letters = pennon.create(path, pa.schema({"letter": pa.string()}))
            >>> version = letters.append(pa.table({"letter": ["a", "b"]}))
            >>> letters.scan().count_rows()
            2

        Spec: "Transaction".
        """
        return self._write("append to", WriteMode.APPEND, rows)

    def overwrite(self, rows: object, where: str | None = None) -> int:
        """Put rows in the place of those that satisfy a condition, in one commit.

        Args:
            rows: As in ``append``.
            where: A condition in Spark SQL that decides whole partitions; None for every row.

        Returns:
            The version that has the rows.

        Raises:
            NotWholePartitions: A partition has rows that stay beside rows that go.
            WriteConflict: Another commit changed what goes.

        Example:
            >>> import pennon, tempfile
            >>> import pyarrow as pa
            >>> path = tempfile.mkdtemp() + "/letters"
            >>> letters = pennon.create(path, pa.schema({"letter": pa.string()}), ["letter"])
            >>> version = letters.append([{"letter": "a"}, {"letter": "b"}])
            >>> version = letters.overwrite([{"letter": "c"}], where="letter = 'a'")
            >>> sorted(letters.scan().to_arrow()["letter"].to_pylist())
            ['b', 'c']
        """
        return self._write("overwrite", WriteMode.OVERWRITE, rows, where)

    def overwrite_partitions(self, rows: object) -> int:
        """Put rows in the place of all rows of the partitions that they belong to; as ``append``.

        Example:
            >>> import pennon, tempfile
            >>> import pyarrow as pa
            >>> schema = pa.schema({"region": pa.string(), "amount": pa.int64()})
            >>> sales = pennon.create(tempfile.mkdtemp() + "/sales", schema, ["region"])
            >>> version = sales.append([{"region": "eu", "amount": 7}, {"region": "us"}])
            >>> version = sales.overwrite_partitions([{"region": "eu", "amount": 8}])
            >>> sorted(sales.scan().to_arrow()["region"].to_pylist())
            ['eu', 'us']
        """
        return self._write("overwrite", WriteMode.OVERWRITE_PARTITIONS, rows)

    def delete(self, where: str) -> int:
        """Delete the rows that satisfy a condition, in one commit.

        Partitions that it decides go as a whole; of others no file is rewritten, the rows are
        marked as deleted. Rows for which the condition is NULL stay.

        Args:
            where: A condition in Spark SQL; ``true`` for every row.

        Returns:
            The version without the rows.

        Raises:
            NotWholePartitions: The condition divides a partition, and needs Spark to be computed
                exactly.
            WriteConflict: Another commit changed rows that the condition is about.

        Example:
            >>> import pennon, tempfile
            >>> import pyarrow as pa
            >>> path = tempfile.mkdtemp() + "/letters"
            >>> letters = pennon.create(path, pa.schema({"letter": pa.string()}))
            >>> version = letters.append([{"letter": "a"}, {"letter": "b"}])
            >>> version = letters.delete("letter = 'a'")
            >>> letters.scan().to_arrow().to_pylist()
            [{'letter': 'b'}]
        """
        table = self._current("delete from")
        delete_where(table, where)
        return self.refresh().version

    def add_partition_field(self, transform: str, name: str | None = None) -> int:
        """Partition the rows to come by one more field; no row is rewritten.

        Args:
            transform: As in PARTITIONED BY: ``bucket(16, customer_id)``, ``days(t)``, a column.
            name: The field's id, or the prefix of its levels' ids; None derives one.

        Returns:
            The version with the new spec.

        Raises:
            PartitionFieldExists: The current spec has it.
            PartitionSourceNotFound: There is no such column.
            UnknownTransform: Lists the known ones.

        Example:
            >>> import pennon, tempfile
            >>> import pyarrow as pa
            >>> path = tempfile.mkdtemp() + "/letters"
            >>> letters = pennon.create(path, pa.schema({"letter": pa.string()}))
            >>> version = letters.add_partition_field("truncate(1, letter)", "initial")
            >>> print(letters.spec.fields[0].field_id)
            initial

        Spec: "Partition Evolution".
        """
        return self._evolve("add", transform=transform, name=name)

    def drop_partition_field(self, field: str) -> int:
        """Partition the rows to come without a field.

        Args:
            field: Its id, or its transform as ``add_partition_field`` takes it.

        Returns:
            The version with the new spec.

        Raises:
            PartitionFieldNotFound: The current spec has no such field; lists those there.
        """
        return self._evolve("drop", field=field)

    def replace_partition_field(self, field: str, transform: str, name: str | None = None) -> int:
        """Partition the rows to come by one field in the place of another.

        Args:
            field: As in ``drop_partition_field``.
            transform: As in ``add_partition_field``.
            name: As in ``add_partition_field``.

        Returns:
            The version with the new spec.
        """
        return self._evolve("replace", field=field, transform=transform, name=name)

    def add_column(
        self,
        name: str,
        type: pa.DataType,  # noqa: A002 - as pyarrow calls it
        *,
        nullable: bool = True,
        default: object = None,
        comment: str | None = None,
    ) -> int:
        """Add a column; rows that are there have its default.

        Args:
            name: The column; a field of a struct by its path, ``address.zip``.
            type: Its Arrow type, which must be one of Spark SQL's.
            nullable: False needs a default, or a table without rows.
            default: What rows that are there, and rows written without the column, have.
            comment: Its comment.

        Returns:
            The version with the column.

        Raises:
            UnsupportedTableChange: There is such a column, or its NOT NULL cannot hold.

        Example:
            >>> import pennon, tempfile
            >>> import pyarrow as pa
            >>> path = tempfile.mkdtemp() + "/letters"
            >>> letters = pennon.create(path, pa.schema({"letter": pa.string()}))
            >>> version = letters.append([{"letter": "a"}])
            >>> version = letters.add_column("size", pa.int32(), default=12)
            >>> letters.scan().to_arrow().to_pylist()
            [{'letter': 'a', 'size': 12}]

        Spec: "Schema".
        """
        return self._change(added(name, type, nullable=nullable, default=default, comment=comment))

    def rename_column(self, name: str, to: str) -> int:
        """Rename a column, which keeps its id and so its values.

        Returns:
            The version with the new name.
        """
        return self._change(renamed(name, to))

    def drop_column(self, name: str) -> int:
        """Drop a column; a later one of its name shows no old values.

        Returns:
            The version without the column.
        """
        return self._change({"change": "delete_column", "column": name.split(".")})

    def alter_column(
        self,
        name: str,
        *,
        type: pa.DataType | None = None,  # noqa: A002 - as pyarrow calls it
        nullable: bool | None = None,
        comment: str | None = None,
    ) -> int:
        """Change a column: promote its type, take NOT NULL from it, comment it.

        Args:
            name: The column.
            type: A type that holds every value of the present one; None leaves it.
            nullable: True takes NOT NULL away; None leaves it.
            comment: A new comment; None leaves it.

        Returns:
            The version with the change.

        Raises:
            UnsupportedTableChange: The change is not safe.
        """
        return self._change(*altered(name, type, nullable=nullable, comment=comment))

    def set_properties(self, properties: Mapping[str, str | None]) -> int:
        """Set table properties; a value of None removes one.

        Returns:
            The version with the properties.
        """
        return self._change(*property_changes(properties))

    def _at(self, version: int | datetime) -> Table:
        identifier = self._table.identifier
        if isinstance(version, int):
            return load(self._catalog, identifier, str(version))
        moment = version if version.tzinfo else version.replace(tzinfo=UTC)
        return load(self._catalog, identifier, None, (moment - _EPOCH) // _MICROSECOND)

    def _current(self, verb: str) -> Table:
        """Load the newest version for a change; what is pinned takes none."""
        self._check_unpinned(verb)
        self.refresh()
        return self._table

    def _write(self, verb: str, mode: WriteMode, rows: object, where: str | None = None) -> int:
        table = self._current(verb)
        write_rows(table, mode, [] if where is None else [where], batches_of(rows))
        return self.refresh().version

    def _evolve(
        self,
        action: str,
        *,
        transform: str | None = None,
        field: str | None = None,
        name: str | None = None,
    ) -> int:
        self._check_unpinned("change the partitioning of")
        change = FieldChange(
            action,
            None if transform is None else parse_transform(transform),
            None if field is None else parse_transform(field),
            name,
        )
        identifier = self._table.identifier
        self._table = alter.alter_partitioning(self._catalog, identifier, change)
        return self.version

    def _change(self, *changes: Mapping[str, object]) -> int:
        self._check_unpinned("change the definition of")
        self._table = alter.alter_table(self._catalog, self._table.identifier, changes)
        return self.version
