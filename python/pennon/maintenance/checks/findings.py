"""What a check finds: violations, warnings and notes, as values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any

import lance
import pyarrow as pa

from pennon.maintenance.calls.procedure_declaration import Column
from pennon.manifest.dataset.storage import storage_failure
from pennon.manifest.format.names import SEPARATOR, ObjectId
from pennon.manifest.format.rows import PARTITION_PREFIX, READ_BRANCH, READ_TAG, TABLE_VERSION

__all__ = [
    "CheckReport",
    "Finding",
    "RawRow",
    "RawRows",
    "Severity",
    "newest_version",
    "version_row_of",
]


# The rows of ``__manifest`` as a check or repair reads them: raw, damaged ones included.


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


class Severity(StrEnum):
    """How much a finding matters."""

    VIOLATION = "violation"
    """A rule of the specification is broken."""
    WARNING = "warning"
    """Legal to read, but not what a writer should leave."""
    NOTE = "note"
    """Nothing wrong: an object of another writer, or what could not be checked."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that a check found.

    Args:
        severity: Violation, warning or note.
        section: The section of the specification, by its title.
        where: The metadata key, manifest row or leaf.
        problem: What is there and what should be.

    Example:
        >>> print(Finding(Severity.NOTE, "Schema", "leaf a", "it has one more column"))
        note: leaf a: it has one more column [Schema]
    """

    severity: Severity
    section: str
    where: Annotated[str, Column("object")]
    problem: str

    def __str__(self) -> str:
        return f"{self.severity}: {self.where}: {self.problem} [{self.section}]"

    def to_object(self) -> dict[str, str]:
        """Give the JSON object."""
        return {
            "severity": str(self.severity),
            "section": self.section,
            "where": self.where,
            "problem": self.problem,
        }


@dataclass(frozen=True, slots=True)
class CheckReport:
    """The result of checking one namespace.

    Args:
        location: The namespace.
        version: The checked version of its manifest; None where it could not be opened.
        leaves: Leaves that were checked.
        rows: Rows whose partition values were computed again.
        findings: What was found, in the order of the check.
    """

    location: str
    version: int | None
    leaves: int
    rows: int
    findings: Sequence[Finding]

    @property
    def violations(self) -> tuple[Finding, ...]:
        """The findings that break a rule."""
        return tuple(finding for finding in self.findings if finding.severity is Severity.VIOLATION)

    @property
    def is_valid(self) -> bool:
        """Whether no rule is broken."""
        return not self.violations

    def to_object(self) -> dict[str, object]:
        """Give the JSON object."""
        return {
            "location": self.location,
            "version": self.version,
            "valid": self.is_valid,
            "leaves": self.leaves,
            "rows": self.rows,
            "findings": [finding.to_object() for finding in self.findings],
        }


def violation(section: str, where: str, problem: str) -> Finding:
    """Make a violation."""
    return Finding(Severity.VIOLATION, section, where, problem)


def warning(section: str, where: str, problem: str) -> Finding:
    """Make a warning."""
    return Finding(Severity.WARNING, section, where, problem)


def note(section: str, where: str, problem: str) -> Finding:
    """Make a note."""
    return Finding(Severity.NOTE, section, where, problem)
