"""``PartitionedNamespace``: the rows, partitioning, columns and history of a table in Python.

Each method loads the newest version, does what a statement of Spark SQL would do, and leaves the
object at the version that it made.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pyarrow as pa

from pennon.arguments import as_names, checked_methods
from pennon.catalog.configured_catalog import WriteMode
from pennon.catalog.ddl import alter
from pennon.catalog.ddl.table_statement import TagChange, change_tag
from pennon.catalog.partitioning import FieldChange
from pennon.catalog.tables.loaded_table import Table
from pennon.errors import ArgumentRefused
from pennon.namespace.open_table import added, altered, property_changes, renamed
from pennon.namespace.rows.row_merge import Merge
from pennon.namespace.rows.row_scan import Scan
from pennon.namespace.rows.row_update import delete_where, run_beside_maintenance, update_where
from pennon.namespace.rows.row_write import batches_of, write_rows
from pennon.namespace.searched_table import SearchedTable
from pennon.spec.column_names import column_path
from pennon.transforms.registry import parse_transform

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

__all__ = ["PartitionedNamespace"]


# The rows of a table in Python: read, append, overwrite, delete, update, merge.


@checked_methods
class TableRows(SearchedTable):
    """A table whose rows are read and written.

    Each method that writes loads the newest version, makes one commit, and leaves the object at the
    version that it made.
    """

    def scan(
        self,
        where: str | None = None,
        columns: Sequence[str] | None = None,
        version: int | str | datetime | None = None,
    ) -> Scan:
        """Describe rows to read; nothing is read yet.

        Args:
            where: A condition in Spark SQL; None for all rows.
            columns: The columns, in this order; None for all.
            version: A version of the table, a tag, or a time; None for the version of this object.

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
        chosen = None if columns is None else as_names(columns)
        return Scan(self._snapshot_at(version), where, chosen, table=self.name)

    def append(self, rows: object) -> int:
        """Add rows, in one commit.

        Args:
            rows: A table, record batches or a reader of ``pyarrow``, a data frame of pandas or
                Polars, or a list of dicts. Columns match by name; a missing one has its
                DEFAULT, or else NULL.

        Returns:
            The version that has the rows.

        Raises:
            PennonError: The rows do not fit the columns.
            DefaultNotComputed: Only Spark computes the default of a column that is missing.

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
        """Put rows in the place of all rows of the partitions that they belong to.

        Args:
            rows: As ``append`` takes them; the partitions that they belong to are replaced whole.

        Returns:
            The version with the rows.

        Raises:
            PennonError: The rows do not fit the columns.
            WriteConflict: Another commit changed a partition that is replaced.

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
            PredicateNotEvaluable: Only Spark computes the condition exactly.
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
        version = run_beside_maintenance(
            lambda: self._current("delete from"), lambda table: delete_where(table, where)
        )
        self._follow()
        return version

    def update(self, values: Mapping[str, object], where: str | None = None) -> int:
        """Change columns of the rows that satisfy a condition, in one commit.

        No file is rewritten: the old rows are marked as deleted, and the new ones added. A row
        whose partition value changes moves.

        Args:
            values: By column. A text is a Spark SQL expression over the row as it was, ``"v + 1"``,
                ``"'eu'"``; anything else is the value itself.
            where: A condition in Spark SQL; None for every row.

        Returns:
            The version with the new values.

        Raises:
            WriteColumnUnknown: There is no such column.
            WriteTypeMismatch: A value does not fit its column.
            PredicateNotEvaluable: Only Spark computes an expression, or the condition, exactly.
            WriteConflict: Another commit changed rows that the condition is about.

        Example:
            >>> import pennon, tempfile
            >>> import pyarrow as pa
            >>> schema = pa.schema({"region": pa.string(), "amount": pa.int64()})
            >>> sales = pennon.create(tempfile.mkdtemp() + "/sales", schema, ["region"])
            >>> version = sales.append(
            ...     [{"region": "eu", "amount": 7}, {"region": "us", "amount": 1}]
            ... )
            >>> version = sales.update({"amount": "amount * 2"}, where="region = 'eu'")
            >>> sorted(sales.scan().to_arrow()["amount"].to_pylist())
            [1, 14]

        Spec: "Transaction".
        """
        if not values:
            raise ArgumentRefused(
                function="update", parameter="values", why="it is empty", expected="a column"
            )
        version = run_beside_maintenance(
            lambda: self._current("update"), lambda table: update_where(table, values, where)
        )
        self._follow()
        return version

    def merge(self, source: object, on: str | Sequence[str]) -> Merge:
        """Describe a merge of rows into the table; ``execute`` on what comes back runs it.

        Args:
            source: Rows as in ``append``; they are held in memory.
            on: The column, or the columns, by which rows are the same. NULL equals nothing.

        Raises:
            MergeCardinality: Several rows of the source are to update the same row.
            MergeKeyRefused: A column of ``on`` is missing, or of a type that is no key.
            WriteConflict: Another commit changed rows that the keys are about.

        Example:
            >>> import pennon, tempfile
            >>> import pyarrow as pa
            >>> schema = pa.schema({"id": pa.int64(), "region": pa.string()})
            >>> path = tempfile.mkdtemp() + "/users"
            >>> users = pennon.create(path, schema, partition_by=["region"])
            >>> version = users.append([{"id": 1, "region": "eu"}, {"id": 2, "region": "us"}])
            >>> merge = users.merge([{"id": 2, "region": "eu"}, {"id": 3, "region": "us"}], on="id")
            >>> done = merge.when_matched_update_all().when_not_matched_insert_all().execute()
            >>> (done.num_updated_rows, done.num_inserted_rows, done.num_deleted_rows)
            (1, 1, 0)
            >>> users.scan("region = 'eu'").to_arrow()["id"].to_pylist()
            [1, 2]

        Spec: "Transaction".
        """
        self._check_unpinned("merge into")
        return Merge(source, as_names(on), lambda: self._current("merge into"), self._follow)

    def _write(self, verb: str, mode: WriteMode, rows: object, where: str | None = None) -> int:
        predicates = [] if where is None else [where]

        def written(table: Table) -> int:
            return write_rows(table, mode, predicates, batches_of(rows, table.snapshot.schema))

        if isinstance(rows, list | pa.Table):  # which can be read a second time
            version = run_beside_maintenance(lambda: self._current(verb), written)
        else:
            version = written(self._current(verb))
        self._follow()  # to what may be a later version: other writers have theirs
        return version


@checked_methods
class PartitionedNamespace(TableRows):
    """A table: many Lance datasets under one manifest, or one plain dataset.

    ``pennon.open``, ``pennon.create`` and ``pennon.connect`` make it.

    Args:
        catalog: What names and storage options come from.
        table: The table at the version to begin with.
        is_pinned: Whether it stays at that version, and so is only read.
    """

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

        Example:
            >>> import pennon, tempfile
            >>> import pyarrow as pa
            >>> path = tempfile.mkdtemp() + "/letters"
            >>> letters = pennon.create(path, pa.schema({"letter": pa.string()}), ["letter"])
            >>> version = letters.drop_partition_field("letter")
            >>> letters.spec.fields
            ()
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

        Example:
            >>> import pennon, tempfile
            >>> import pyarrow as pa
            >>> path = tempfile.mkdtemp() + "/letters"
            >>> letters = pennon.create(path, pa.schema({"letter": pa.string()}), ["letter"])
            >>> version = letters.replace_partition_field("letter", "bucket(4, letter)", "shard")
            >>> [field.field_id for field in letters.spec.fields]
            ['shard']
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
            default: What rows that are there have, and those of a write without the column; None
                for NULL.
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

        Args:
            name: The column; a field of a struct by its path, with dots: ``s.`a.b` ``.
            to: The new name of the column, or of the field.

        Returns:
            The version with the new name.

        Raises:
            UnknownColumn: There is no such column.
            UnsupportedTableChange: Another column has the new name.

        Example:
            >>> import pennon, tempfile
            >>> import pyarrow as pa
            >>> path = tempfile.mkdtemp() + "/letters"
            >>> letters = pennon.create(path, pa.schema({"letter": pa.string()}))
            >>> version = letters.rename_column("letter", "sign")
            >>> letters.schema.names
            ['sign']
        """
        return self._change(renamed(name, to))

    def drop_column(self, name: str) -> int:
        """Drop a column; a later one of its name shows no old values.

        Args:
            name: The column; a field of a struct by its path, with dots: ``s.`a.b` ``.

        Returns:
            The version without the column.

        Raises:
            UnknownColumn: There is no such column.
            UnsupportedTableChange: The table is partitioned by it.

        Example:
            >>> import pennon, tempfile
            >>> import pyarrow as pa
            >>> path = tempfile.mkdtemp() + "/letters"
            >>> letters = pennon.create(path, pa.schema({"letter": pa.string()}))
            >>> version = letters.add_column("size", pa.int32())
            >>> version = letters.drop_column("size")
            >>> letters.schema.names
            ['letter']
        """
        return self._change({"change": "delete_column", "column": column_path(name)})

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
            ArgumentRefused: No change is given.

        Example:
            >>> import pennon, tempfile
            >>> import pyarrow as pa
            >>> path = tempfile.mkdtemp() + "/letters"
            >>> letters = pennon.create(path, pa.schema({"letter": pa.string()}))
            >>> version = letters.add_column("size", pa.int32())
            >>> version = letters.alter_column("size", type=pa.int64(), comment="in points")
            >>> letters.schema.field("size").type
            DataType(int64)
        """
        return self._change(*altered(name, type, nullable=nullable, comment=comment))

    def set_properties(self, properties: Mapping[str, str | None]) -> int:
        """Set table properties, or remove them.

        Args:
            properties: By name; None removes one.

        Returns:
            The version with the properties.

        Raises:
            UnsupportedTableChange: A property cannot be changed, as ``location``.

        Example:
            >>> import pennon, tempfile
            >>> import pyarrow as pa
            >>> path = tempfile.mkdtemp() + "/letters"
            >>> letters = pennon.create(path, pa.schema({"letter": pa.string()}))
            >>> version = letters.set_properties({"team": "shop"})
            >>> version = letters.set_properties({"team": None})
            >>> "team" in letters.properties
            False
        """
        return self._change(*property_changes(properties))

    def create_tag(
        self,
        name: str,
        version: int | None = None,
        *,
        retain: timedelta | None = None,
        replace: bool = False,
    ) -> int:
        """Give a version a name, which keeps it and all its rows; ``open`` and SQL read it by that.

        Args:
            name: Letters, digits, ``.``, ``_`` and ``-``; not digits alone.
            version: The version; None for the newest.
            retain: After this time ``expire_snapshots`` drops the tag; None keeps it for ever.
            replace: Whether a tag of this name is moved.

        Returns:
            The version that the tag names.

        Raises:
            TagAlreadyExists: There is one, and ``replace`` is not set.
            TagRefused: No tag can have this name, or the table's versions do not hold its rows.
            SnapshotNotFound: There is no such version.

        Example:
            >>> import pennon, tempfile
            >>> import pyarrow as pa
            >>> path = tempfile.mkdtemp() + "/letters"
            >>> letters = pennon.create(path, pa.schema({"letter": pa.string()}))
            >>> before = letters.create_tag("before")
            >>> version = letters.append([{"letter": "a"}])
            >>> (letters.scan().count_rows(), pennon.open(path, "before").scan().count_rows())
            (1, 0)
        """
        self._check_unpinned("change the tags of")
        if retain is not None and retain <= timedelta():
            raise ArgumentRefused(
                function="create_tag",
                parameter="retain",
                why=f"it is {retain}",
                expected="a timedelta above zero",
            )
        action = "create_or_replace" if replace else "create"
        change = TagChange(action, name, version, retain)
        tag = change_tag(self._catalog, self._loaded.identifier, change)
        return self.version if tag is None else tag.version

    def drop_tag(self, name: str) -> None:
        """Remove a tag; its version expires as those around it.

        Args:
            name: Its name.

        Raises:
            TagNotFound: There is none of that name; lists those there are.

        Example:
            >>> import pennon, tempfile
            >>> import pyarrow as pa
            >>> path = tempfile.mkdtemp() + "/letters"
            >>> letters = pennon.create(path, pa.schema({"letter": pa.string()}))
            >>> tagged = letters.create_tag("empty")
            >>> letters.drop_tag("empty")
            >>> letters.tags()
            {}
        """
        self._check_unpinned("change the tags of")
        change_tag(self._catalog, self._loaded.identifier, TagChange("drop", name))

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
        identifier = self._loaded.identifier
        self._table = alter.alter_partitioning(self._catalog, identifier, change)
        return self.version

    def _change(self, *changes: Mapping[str, object]) -> int:
        self._check_unpinned("change the definition of")
        self._table = alter.alter_table(self._catalog, self._loaded.identifier, changes)
        return self.version
