"""The rows of ``__manifest``: namespaces, leaf tables and their versions, as an Arrow table.

| object_type | object_id | metadata | read_version | partition columns |
|---|---|---|---|---|
| ``namespace`` | ``v<N>`` and below | ``{}`` | NULL | the values of its levels |
| ``table`` | ``…$dataset`` | statistics | the Lance version to read | all values |
| ``table_version`` | ``…$dataset$<n>`` | the version's file | a Lance version | NULL |
"""

from __future__ import annotations

import dataclasses
import getpass
import json
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import ClassVar, Final

import pyarrow as pa

from pennon.caching.lance_sessions import FIRST_DETACHED, version_path
from pennon.manifest.format.names import SEPARATOR
from pennon.spec.partition_spec import PARTITION_PREFIX, PartitionSpec
from pennon.starting_jvm import starting_jvm

__all__ = [
    "BASE_COLUMNS",
    "COMMIT",
    "GIVEN_UP",
    "NAMESPACE",
    "PARTITION_PREFIX",
    "PRIMARY_KEY",
    "READ_BRANCH",
    "READ_TAG",
    "READ_VERSION",
    "TABLE",
    "TABLE_VERSION",
    "CommitIdentity",
    "CommitRecord",
    "ManifestRow",
    "commit_key",
    "made_together",
    "manifest_schema",
    "partition_columns",
    "record_of_message",
    "records_in",
    "table_of_rows",
    "version_row",
]

# The columns of ``__manifest``: upstream's five, ``read_version``, one per partition field.
#
# The first five are exactly what upstream's directory namespace V2 makes, down to the name of the
# list's child and the primary-key metadata: ``merge_insert`` compares schemas strictly.

PRIMARY_KEY: Final = b"lance-schema:unenforced-primary-key:position"
READ_VERSION: Final = pa.field("read_version", pa.uint64())
# The published specification has these; Pennon honours them and makes none.
READ_BRANCH: Final = "read_branch"
READ_TAG: Final = "read_tag"
BASE_COLUMNS: Final = (
    pa.field(
        "object_id",
        pa.utf8(),
        nullable=False,
        metadata={PRIMARY_KEY: b"0"},
    ),
    pa.field("object_type", pa.utf8(), nullable=False),
    pa.field("location", pa.utf8()),
    pa.field("metadata", pa.utf8()),
    pa.field("base_objects", pa.list_(pa.field("object_id", pa.utf8()))),
)


def partition_columns(specs: Iterable[PartitionSpec]) -> dict[str, pa.DataType]:
    """Give the partition columns that specs need and their types, in order of first use.

    A field id that later versions declare wider (its source was promoted) has the latest type.

    Example:
        >>> partition_columns([])
        {}

    Spec: "Manifest Table Schema".
    """
    types: dict[str, pa.DataType] = {}
    for spec in sorted(specs, key=lambda spec: spec.spec_version):
        for field in spec.fields:
            types[field.column] = field.result_type
    return types


def manifest_schema(specs: Mapping[int, PartitionSpec], *, strong: bool) -> pa.Schema:
    """Give the schema of a new ``__manifest``.

    Args:
        specs: The spec versions of the namespace.
        strong: Whether leaves are read at a recorded version (column ``read_version``).

    Spec: "Manifest Table Schema", "Multi-Partition Transaction (Strong)".
    """
    partition = [pa.field(name, kind) for name, kind in partition_columns(specs.values()).items()]
    return pa.schema([*BASE_COLUMNS, *([READ_VERSION] if strong else []), *partition])


NAMESPACE: Final = "namespace"
TABLE: Final = "table"
TABLE_VERSION: Final = "table_version"


@dataclass(frozen=True, slots=True)
class ManifestRow:
    """One row to write.

    Args:
        object_id: The primary key.
        object_type: ``namespace``, ``table`` or ``table_version``.
        location: A leaf's directory, relative to the namespace's location.
        metadata: JSON text.
        read_version: A Lance version of the leaf.
        values: Partition values by field id; a field that is left out is NULL.

    Spec: "Manifest Table Schema", Appendix C.
    """

    object_id: str
    object_type: str
    location: str | None = None
    metadata: str = "{}"
    read_version: int | None = None
    values: Mapping[str, pa.Scalar] = dataclasses.field(default_factory=dict, hash=False)


def version_row(leaf: str, number: int, version: int | None) -> ManifestRow:
    """Record a version of a leaf, with the path of its file as upstream's catalogs have it.

    Args:
        leaf: The leaf's object id.
        number: The sequence number of the record.
        version: The Lance version; None where it is not stated.

    Example:
        >>> version_row("v1$dataset", 1, 9223372036854775811).metadata
        '{"manifest_path": "_versions/d9223372036854775811.manifest", "naming_scheme": "V2"}'

    Spec: "Multi-Partition Transaction (Strong)".
    """
    place = {"manifest_path": version_path(version or 0), "naming_scheme": "V2"}
    # How the files of main are called depends on who made the dataset.
    text = json.dumps(place) if (version or 0) >= FIRST_DETACHED else "{}"
    return ManifestRow(
        f"{leaf}{SEPARATOR}{number}", TABLE_VERSION, metadata=text, read_version=version
    )


def table_of_rows(rows: Sequence[ManifestRow], schema: pa.Schema) -> pa.Table:
    """Make the Arrow table of rows, with exactly the columns of ``__manifest``.

    Args:
        rows: The rows.
        schema: The schema of ``__manifest``; columns that Pennon does not know get NULL.

    Spec: "Manifest Table Schema".
    """
    columns = [_column(rows, field) for field in schema]
    return pa.table(columns, schema=schema)


def _column(rows: Sequence[ManifestRow], column: pa.Field) -> pa.Array:
    if column.name in ManifestRow.__slots__ and column.name != "values":
        return pa.array([getattr(row, column.name) for row in rows], column.type)
    if column.name.startswith(PARTITION_PREFIX):
        field_id = column.name.removeprefix(PARTITION_PREFIX)
        values = [row.values.get(field_id) for row in rows]
        if any(value is not None and value.is_valid for value in values):
            return _cast(values, column.type)
    return pa.nulls(len(rows), column.type)


def _cast(values: Sequence[pa.Scalar | None], target: pa.DataType) -> pa.Array:
    null = pa.scalar(None, target)
    alike = [null if value is None else _as(value, target) for value in values]
    # as_py would lose nanoseconds and the exact bits of floats.
    return pa.array(alike, target)


def _as(value: pa.Scalar, target: pa.DataType) -> pa.Scalar:
    return value if value.type == target else value.cast(target)


# The record of a commit: a row of ``__manifest`` that is written by the very commit it describes.
#
# Its key is the commit's id, and the key is what makes a commit happen once. A commit whose answer
# was lost is made again with the same id: it finds its record. Of two tries at once Lance lets one
# pass, as two inserts of one primary key. A write that is given up claims the id as well, so that a
# try which is still under way somewhere cannot pass any more, and its files may go.
#
# The specification knows no such rows. Upstream's readers list and describe the objects whose types
# they know, and leave these alone (tested with pylance 14); Pennon's readers never see them.

COMMIT: Final = "pennon_commit"
GIVEN_UP: Final = "given up"
_PREFIX: Final = "pennon$commit$"


@dataclass(frozen=True, slots=True)
class CommitIdentity:
    """Which commit it is, and whose: the same at every try.

    Args:
        id: Unique among all commits of the namespace.
        user: Who commits.
        application: The program: Spark's application id.
        query_id: Spark's id of the query that writes.
        epoch: The number of the micro batch; None outside of streams.
    """

    id: str
    user: str = ""
    application: str = ""
    query_id: str = ""
    epoch: int | None = None
    is_new: ClassVar[bool] = False
    """Whether nothing was asked to commit it yet: no record of it has to be looked for."""

    def tried(self) -> CommitIdentity:
        """Give the identity of a commit that may have been made."""
        return CommitIdentity(**asdict(self))

    @staticmethod
    def fresh() -> CommitIdentity:
        """Give the identity of a commit that this process starts."""
        user, application = _committer()
        return _NewIdentity(str(uuid.uuid4()), user, application)


@dataclass(frozen=True, slots=True)
class _NewIdentity(CommitIdentity):
    is_new: ClassVar[bool] = True


def _committer() -> tuple[str, str]:
    jvm = starting_jvm()
    if jvm.user:
        return jvm.user, jvm.application
    try:
        return getpass.getuser(), "python"
    except (KeyError, OSError):  # a user id without a name, as containers have
        return "", "python"


@dataclass(frozen=True, slots=True)
class CommitRecord:
    """What one commit did.

    Args:
        identity: Which commit it is.
        operation: ``append``, ``overwrite``, ``delete``, …; ``given up`` where it never will be.
        base_version: The version of ``__manifest`` that its statement read.
        spec_version: The newest partition spec at that version.
        schema_id: Tells the namespace schema at that version from others.
        partitions: How many partitions it changed.
        added_rows: Rows that it added; None where unknown.
        removed_rows: Rows that it removed; None where unknown.
        made_at: When it was asked for first, in seconds since 1970 by its writer's clock.
        rewrites: Leaves whose rows it put into other files: object id → version before and after.

    Example:
        >>> record = CommitRecord(CommitIdentity("c1", "ada"), "append", 3, 1, added_rows=2)
        >>> CommitRecord.from_json(record.to_json()) == record
        True
    """

    identity: CommitIdentity
    operation: str
    base_version: int = 0
    spec_version: int = 0
    schema_id: str = ""
    partitions: int = 0
    added_rows: int | None = None
    removed_rows: int | None = None
    made_at: int = 0
    rewrites: Mapping[str, Sequence[int]] = dataclasses.field(default_factory=dict, hash=False)

    @property
    def object_id(self) -> str:
        """The primary key of its row."""
        return commit_key(self.identity.id)

    @property
    def is_given_up(self) -> bool:
        """Whether the commit was not made and never will be."""
        return self.operation == GIVEN_UP

    def row(self) -> ManifestRow:
        """Give its row."""
        return ManifestRow(self.object_id, COMMIT, metadata=self.to_json())

    def to_json(self) -> str:
        """Write the record; what is unknown is left out."""
        stored = {**asdict(self.identity), **asdict(self)}
        del stored["identity"]
        return json.dumps(
            {name: value for name, value in stored.items() if value not in (None, "", {})}
        )

    @classmethod
    def from_json(cls, text: str) -> CommitRecord:
        """Read what ``to_json`` wrote; fields that only another release knows are ignored.

        Example:
            >>> CommitRecord.from_json('{"id": "c1", "operation": "append", "later": 1}').operation
            'append'
        """
        stored = json.loads(text)
        who = {name: stored[name] for name in CommitIdentity.__slots__ if name in stored}
        what = {name: stored[name] for name in cls.__slots__ if name in stored}
        return cls(CommitIdentity(**who), **what)


def record_of_message(text: str | None) -> CommitRecord | None:
    """Read the record that Lance's commit message holds where the commit writes no rows.

    Args:
        text: The message; another writer may have any.

    Example:
        >>> record = CommitRecord(CommitIdentity("c1", "ada"), "alter", 3)
        >>> record_of_message(record.to_json()) == record, record_of_message("nightly job")
        (True, None)
    """
    try:
        stored = json.loads(text or "")
    except ValueError:
        return None
    is_record = isinstance(stored, dict) and {"id", "operation"} <= stored.keys()
    return CommitRecord.from_json(text) if is_record and text else None


def commit_key(commit_id: str) -> str:
    """Give the primary key of a commit's row.

    Example:
        >>> commit_key("c1")
        'pennon$commit$c1'
    """
    return _PREFIX + commit_id


def made_together(records: Sequence[CommitRecord]) -> CommitRecord:
    """Describe what several writes did with one commit: all their ids, users and rows.

    Example:
        >>> two = [CommitRecord(CommitIdentity(n, "ada"), "append", added_rows=2) for n in "ab"]
        >>> record = made_together(two)
        >>> (record.identity.id, record.identity.user, record.added_rows)
        ('a, b', 'ada', 4)
    """
    if len(records) == 1:
        return records[0]
    id_, user, application, query = (
        ", ".join(dict.fromkeys(getattr(record.identity, name) for record in records))
        for name in ("id", "user", "application", "query_id")
    )
    added = [record.added_rows for record in records]
    counts = [number for number in added if number is not None]
    return replace(
        records[0],
        identity=CommitIdentity(id_, user, application, query),
        partitions=max(record.partitions for record in records),
        added_rows=sum(counts) if len(counts) == len(added) else None,
        base_version=max(record.base_version for record in records),
    )


def records_in(rows: pa.Table) -> list[CommitRecord]:
    """Give the records among rows of ``__manifest``."""
    return [
        CommitRecord.from_json(text)
        for kind, text in zip(
            rows["object_type"].to_pylist(), rows["metadata"].to_pylist(), strict=True
        )
        if kind == COMMIT and text
    ]
