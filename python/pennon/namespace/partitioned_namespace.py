"""``PartitionedNamespace``: the rows, partitioning, columns and history of a table in Python.

Each method loads the newest version, does what a statement of Spark SQL would do, and leaves the
object at the version that it made.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from pennon.arguments import checked_methods
from pennon.catalog.ddl import alter
from pennon.catalog.ddl.table_statement import TagChange, change_tag
from pennon.catalog.partitioning import FieldChange
from pennon.errors import ArgumentRefused
from pennon.namespace.open_table import added, altered, property_changes, renamed
from pennon.namespace.table_rows import TableRows
from pennon.spec.column_names import column_path
from pennon.transforms.registry import parse_transform

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa


__all__ = ["PartitionedNamespace"]


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
        tag = change_tag(self._catalog, self._table.identifier, change)
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
        change_tag(self._catalog, self._table.identifier, TagChange("drop", name))

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
