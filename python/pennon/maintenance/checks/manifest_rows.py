"""The rows of ``__manifest`` as a check or repair reads them: raw, damaged ones included."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import lance
import pyarrow as pa

from pennon.manifest.dataset.storage import storage_failure
from pennon.manifest.format.columns import PARTITION_PREFIX, READ_BRANCH, READ_TAG
from pennon.manifest.format.names import SEPARATOR, ObjectId
from pennon.manifest.format.rows import TABLE_VERSION

__all__ = ["RawRow", "RawRows", "newest_version", "version_row_of"]


@dataclass(frozen=True, slots=True)
class RawRow:
    """One row, columns that are missing as None.

    Args:
        at: Its position in the table.
        object_id: Its id.
        object_type: Its type.
        location: A leaf's directory.
        metadata: JSON text.
        read_version: A Lance version.
        parsed: The id taken apart; None for what is no object of a partitioned namespace.
        reference: The branch and the tag that the row names.
    """

    at: int
    object_id: str
    object_type: str
    location: str | None
    metadata: str | None
    read_version: int | None
    parsed: ObjectId | None
    reference: tuple[str | None, str | None] = (None, None)

    @property
    def is_elsewhere(self) -> bool:
        """Whether a leaf is read at a branch or a tag."""
        return self.reference != (None, None)


@dataclass(frozen=True, slots=True)
class RawRows:
    """All rows of one version of the manifest.

    Args:
        table: The rows as they are stored.
        rows: The same, one value per row.
    """

    table: pa.Table
    rows: Sequence[RawRow]

    @classmethod
    def read(cls, location: str, manifest: lance.LanceDataset) -> RawRows:
        """Read the whole manifest.

        Raises:
            StorageFailure: Its files are damaged or gone.
        """
        try:
            table = manifest.to_table()
        except (OSError, RuntimeError, ValueError) as error:
            raise storage_failure("read", location, error) from error
        return cls.of(table)

    @classmethod
    def of(cls, table: pa.Table) -> RawRows:
        """Take rows that have been read."""

        def column(name: str) -> list[Any]:
            has = name in table.column_names
            return table[name].to_pylist() if has else [None] * table.num_rows

        ids = [object_id or "" for object_id in column("object_id")]
        types = [object_type or "" for object_type in column("object_type")]
        others = (column("location"), column("metadata"), column("read_version"))
        references = list(zip(column(READ_BRANCH), column(READ_TAG), strict=True))
        rows = [
            RawRow(at, name, kind, location, metadata, version, ObjectId.parse(name), reference)
            for at, (name, kind, location, metadata, version, reference) in enumerate(
                zip(ids, types, *others, references, strict=True)
            )
        ]
        return cls(table, rows)

    @property
    def partition_columns(self) -> tuple[str, ...]:
        """The columns of partition values that are there."""
        return tuple(name for name in self.table.column_names if name.startswith(PARTITION_PREFIX))

    def of_type(self, object_type: str) -> dict[str, RawRow]:
        """Give the rows of a type by object id."""
        return {row.object_id: row for row in self.rows if row.object_type == object_type}

    def codes(self) -> Mapping[str, Sequence[int | None]]:
        """Give every partition column as numbers that are equal where its values are."""
        codes: dict[str, Sequence[int | None]] = {}
        for name in self.partition_columns:
            encoded = self.table[name].combine_chunks().dictionary_encode()
            codes[name] = encoded.indices.to_pylist()
        return codes

    def version_rows(self) -> dict[str, dict[int, RawRow]]:
        """Give the ``table_version`` rows by table and by sequence number."""
        rows_by_leaf: dict[str, dict[int, RawRow]] = {}
        for row in self.rows:
            leaf_and_version = (
                version_row_of(row.object_id) if row.object_type == TABLE_VERSION else None
            )
            if leaf_and_version is not None:
                rows_by_leaf.setdefault(leaf_and_version[0], {})[leaf_and_version[1]] = row
        return rows_by_leaf


def version_row_of(object_id: str) -> tuple[str, int] | None:
    """Take the id of a ``table_version`` row apart: its table and the sequence number.

    Example:
        >>> version_row_of("v1$dataset$12")
        ('v1$dataset', 12)
    """
    table, _, number = object_id.rpartition(SEPARATOR)
    if not table or not (number.isascii() and number.isdecimal()):
        return None
    return table, int(number)


def newest_version(row: RawRow, versions: Mapping[int, RawRow]) -> int | None:
    """Give the version that readers read: the row's own, else that of its newest version row."""
    if row.read_version is not None or row.is_elsewhere or not versions:
        return row.read_version
    return versions[max(versions)].read_version
