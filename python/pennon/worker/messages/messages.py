"""Every request and reply of the socket as a frozen dataclass, in the order of the protocol.

Others stand in the modules beside it. This is the only declaration: ``make wire`` writes what the
jar checks messages by, and the golden ones. ``table``, ``scan``, ``split`` and ``write`` are opaque
to the jar: ``tokens.py``. ``write`` and ``catalog`` hold storage options, never printed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from pennon.catalog.configured_catalog import Catalog
from pennon.catalog.ddl.statements import RewrittenStatement
from pennon.manifest.format.rows import CommitIdentity
from pennon.metadata_tables.metadata_table import SearchCall

JsonObject = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class CatalogRequest:
    """A request about something in a catalog; ``catalog`` brings the storage options."""

    catalog: Catalog


@dataclass(frozen=True, slots=True)
class NamespaceRequest(CatalogRequest):
    """A request about a namespace, named from the catalog's root on."""

    namespace: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NamedTableRequest(CatalogRequest):
    """A request about a table by its name: namespaces and name, or one path."""

    identifier: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TableRequest(CatalogRequest):
    """A request about a table that was loaded: ``table`` is its token."""

    table: str


@dataclass(frozen=True, slots=True)
class RewriteStatements:
    """A text that may have statements which are Pennon's, as the tokens of Spark's lexer.

    Each has a blank before it where it stands apart from the one before.
    """

    op: ClassVar[str] = "rewrite_statements"
    tokens: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RewriteStatementsReply:
    """What stands for each of them, in their order, if the table that it names is Pennon's."""

    statements: tuple[RewrittenStatement, ...]


@dataclass(frozen=True, slots=True)
class ListNamespaces(NamespaceRequest):
    """SHOW NAMESPACES."""

    op: ClassVar[str] = "list_namespaces"


@dataclass(frozen=True, slots=True)
class ListNamespacesReply:
    """The names, each from the catalog's root on."""

    namespaces: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class DescribeNamespace(NamespaceRequest):
    """DESCRIBE NAMESPACE, and whether there is one; tables hold namespaces to DESCRIBE alone."""

    op: ClassVar[str] = "describe_namespace"
    in_tables: bool


@dataclass(frozen=True, slots=True)
class PropertiesReply:
    """The properties of a namespace."""

    properties: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class CreateNamespace(NamespaceRequest):
    """CREATE NAMESPACE; Spark itself keeps to IF NOT EXISTS where there is one."""

    op: ClassVar[str] = "create_namespace"
    properties: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class DropNamespace(NamespaceRequest):
    """DROP NAMESPACE."""

    op: ClassVar[str] = "drop_namespace"
    cascade: bool


@dataclass(frozen=True, slots=True)
class DroppedReply:
    """Whether there was something to drop."""

    dropped: bool


@dataclass(frozen=True, slots=True)
class AlterNamespace(NamespaceRequest):
    """ALTER NAMESPACE SET PROPERTIES."""

    op: ClassVar[str] = "alter_namespace"
    set_properties: Mapping[str, str] = field(metadata={"key": "set"})
    remove_properties: tuple[str, ...] = field(metadata={"key": "remove"})


@dataclass(frozen=True, slots=True)
class EmptyReply:
    """Done, and nothing to say."""


@dataclass(frozen=True, slots=True)
class ListTables(NamespaceRequest):
    """SHOW TABLES."""

    op: ClassVar[str] = "list_tables"


@dataclass(frozen=True, slots=True)
class ListTablesReply:
    """Names of plain tables and of partitioned namespaces."""

    tables: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LoadTable(NamedTableRequest):
    """Any use of a table; a version or a time is time travel.

    A query loads it when it is analysed, and again before it is run: then it is ``named`` already.
    """

    op: ClassVar[str] = "load_table"
    version: str | None
    timestamp_micros: int | None
    named: bool


@dataclass(frozen=True, slots=True)
class TableReply:
    """A table as Spark sees it."""

    table: str
    name: str
    schema: JsonObject
    hidden_columns: JsonObject
    partitioning: tuple[JsonObject, ...]
    properties: Mapping[str, str]
    identity: str | None
    version: str
    is_metadata: bool
    metadata_columns: JsonObject
    row_id: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LoadTables(CatalogRequest):
    """Several tables at once, for JDBC."""

    op: ClassVar[str] = "load_tables"
    tables: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class LoadTablesReply:
    """Each of them; None for one that cannot be loaded."""

    tables: tuple[TableReply | None, ...]


@dataclass(frozen=True, slots=True)
class CreateTable(NamedTableRequest):
    """CREATE TABLE, REPLACE TABLE, CREATE OR REPLACE TABLE (``mode``)."""

    op: ClassVar[str] = "create_table"
    schema: object
    partitioning: tuple[JsonObject, ...]
    properties: Mapping[str, str]
    mode: str


@dataclass(frozen=True, slots=True)
class StageTable(NamedTableRequest):
    """CREATE or REPLACE TABLE AS SELECT: the table to write to, which has no name yet."""

    op: ClassVar[str] = "stage_table"
    schema: object
    partitioning: tuple[JsonObject, ...]
    properties: Mapping[str, str]
    mode: str


@dataclass(frozen=True, slots=True)
class PublishTable(NamedTableRequest):
    """The rows of a staged table are there, made of other tables: give it its name."""

    op: ClassVar[str] = "publish_table"
    table: str
    mode: str
    reads: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DiscardTable(NamedTableRequest):
    """The query of a staged table failed: delete its files."""

    op: ClassVar[str] = "discard_table"
    table: str


@dataclass(frozen=True, slots=True)
class DropTable(NamedTableRequest):
    """DROP TABLE, with or without PURGE: its files are deleted either way."""

    op: ClassVar[str] = "drop_table"


@dataclass(frozen=True, slots=True)
class RenameTable(NamedTableRequest):
    """ALTER TABLE RENAME TO."""

    op: ClassVar[str] = "rename_table"
    to: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AlterTable(NamedTableRequest):
    """ALTER TABLE; a statement that Spark lacks comes as a property (``table_statement.py``)."""

    op: ClassVar[str] = "alter_table"
    changes: tuple[JsonObject, ...]


@dataclass(frozen=True, slots=True)
class ListProcedures(CatalogRequest):
    """The procedures that CALL knows, or the one of a name."""

    op: ClassVar[str] = "list_procedures"
    name: str | None


@dataclass(frozen=True, slots=True)
class ProcedureParameter:
    """A parameter; ``type`` is Spark's, as its DDL spells it."""

    name: str
    type: str
    is_required: bool = field(metadata={"key": "required"})


@dataclass(frozen=True, slots=True)
class ProcedureSignature:
    """A procedure, its parameters in the order of positional arguments."""

    name: str
    description: str
    parameters: tuple[ProcedureParameter, ...]


@dataclass(frozen=True, slots=True)
class ListProceduresReply:
    """Every procedure."""

    procedures: tuple[ProcedureSignature, ...]


@dataclass(frozen=True, slots=True)
class Call(NamespaceRequest):
    """CALL of a procedure; namespace and time zone are the session's, its catalog comes first."""

    op: ClassVar[str] = "call"
    procedure: str
    arguments: JsonObject
    time_zone: str


@dataclass(frozen=True, slots=True)
class CallReply:
    """The columns of a procedure's rows, which follow as an Arrow stream.

    ``renewed`` names the tables whose rows, where a session keeps them, are to be read anew.
    """

    schema: JsonObject
    renewed: tuple[str, ...]
    arrow: bool


# The requests about metadata tables; ``split`` holds storage options and is never printed.


@dataclass(frozen=True, slots=True)
class ReadMetadata:
    """The rows of a metadata table; an Arrow stream of the columns that ``split`` names."""

    op: ClassVar[str] = "read_metadata"
    table: str
    split: str


@dataclass(frozen=True, slots=True)
class LoadChanges(NamedTableRequest):
    """``FROM t CHANGES FROM … TO …``: a range of versions or of times, open where an end is null.

    ``deduplication`` is Spark's: ``none``, ``dropCarryovers`` or ``netChanges``.
    """

    op: ClassVar[str] = "load_changes"
    start_version: str | None
    end_version: str | None
    start_micros: int | None
    end_micros: int | None
    start_inclusive: bool
    end_inclusive: bool
    compute_updates: bool
    deduplication: str
    options: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class LoadSearch(NamedTableRequest):
    """``FROM vector_search(t, …)``: what a search of a table finds, as a table."""

    op: ClassVar[str] = "load_search"
    version: str | None
    search: SearchCall


@dataclass(frozen=True, slots=True)
class PlanNearest(TableRequest):
    """``JOIN t NEAREST k BY …``: rows of ``table`` beside those of a stream.

    ``schema`` is Spark's of the whole join, of which the last columns are ``columns`` of the table.
    """

    op: ClassVar[str] = "plan_nearest"
    column: str
    k: int
    function: str
    distance: bool
    exact: bool
    keeps_unmatched: bool
    where: tuple[str, ...]
    time_zone: str
    columns: tuple[str, ...]
    schema: object


@dataclass(frozen=True, slots=True)
class PlanNearestReply:
    """The join as PySpark's own function over Arrow batches: its pickle in Base64.

    ``detail`` tells people what is searched.
    """

    function: str
    python: str
    detail: str


@dataclass(frozen=True, slots=True)
class MetadataRows:
    """What ``split`` of ``read_metadata`` says; an executor knows no catalog otherwise."""

    catalog: Catalog
    columns: tuple[str, ...]
    predicates: tuple[str, ...]


# The requests of a stream that reads a table; positions are opaque to the jar.


@dataclass(frozen=True, slots=True)
class StreamRequest(TableRequest):
    """A request of a stream: ``table`` as it was when the stream began, and the user's options."""

    options: Mapping[str, str]
    time_zone: str


@dataclass(frozen=True, slots=True)
class StartStream(StreamRequest):
    """Where a stream without a checkpoint begins."""

    op: ClassVar[str] = "start_stream"


@dataclass(frozen=True, slots=True)
class FindBatchEnd(StreamRequest):
    """How far the batch behind a position goes.

    ``until`` is where the stream ends, if it does; ``takes_all`` says that the batch is the only
    one, so that it has all there is, however much the options give a batch.
    """

    op: ClassVar[str] = "find_batch_end"
    start: str
    until: str | None
    takes_all: bool


@dataclass(frozen=True, slots=True)
class PositionReply:
    """A position, which Spark keeps in the checkpoint."""

    position: str


@dataclass(frozen=True, slots=True)
class PlanBatch(StreamRequest):
    """The splits of the rows between two positions."""

    op: ClassVar[str] = "plan_batch"
    start: str
    end: str
    plan: str
    num_tasks: int
    max_bytes: int


# The requests that change rows, and their replies; ``messages.py`` has all others.


@dataclass(frozen=True, slots=True)
class PlanWrite(TableRequest):
    """A write before its tasks start.

    ``mode`` is ``append``, ``overwrite`` (the rows that satisfy the predicates, all without any),
    ``overwrite_partitions`` (those that the new rows fall into), or the statement that changes
    single rows: ``delete``, ``update`` or ``merge``.
    """

    op: ClassVar[str] = "plan_write"
    schema: object
    mode: str
    predicates: tuple[str, ...]
    options: Mapping[str, str]
    query_id: str
    is_stream: bool


@dataclass(frozen=True, slots=True)
class PlanWriteReply:
    """How Spark has to distribute and sort the rows; ``task_bytes`` of its shuffle make a task."""

    write: str
    distribution: tuple[JsonObject, ...]
    ordering: tuple[JsonObject, ...]
    description: str
    task_bytes: int


@dataclass(frozen=True, slots=True)
class Write:
    """One task's rows, which follow upward as an Arrow stream."""

    op: ClassVar[str] = "write"
    write: str


@dataclass(frozen=True, slots=True)
class WriteReply:
    """What the task staged, for the commit."""

    staged: tuple[str, ...]
    rows: int
    bytes: int


@dataclass(frozen=True, slots=True)
class WriteDeletes:
    """The ids of one task's rows that go, which follow upward as an Arrow stream."""

    op: ClassVar[str] = "write_deletes"
    write: str


@dataclass(frozen=True, slots=True)
class WriteDeletesReply:
    """The rows that go, leaf by leaf, for the commit."""

    staged: tuple[str, ...]
    rows: int


@dataclass(frozen=True, slots=True)
class CommitWrite(CatalogRequest):
    """All tasks ended: make their rows visible together.

    ``reads`` has the predicates of each scan of the same table that the rows are made of.
    """

    op: ClassVar[str] = "commit_write"
    write: str
    staged: tuple[str, ...]
    commit: CommitIdentity
    deleted: tuple[str, ...]
    reads: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class CommitWriteReply:
    """The version of the table with the rows, and what of partitions and files was written."""

    snapshot: int
    partitions: int
    files: int
    bytes: int


@dataclass(frozen=True, slots=True)
class AbortWrite(CatalogRequest):
    """The write failed: remove what its tasks staged.

    ``was_sent`` says whether its commit was ever asked for: then it may have been made.
    """

    op: ClassVar[str] = "abort_write"
    write: str
    staged: tuple[str, ...]
    commit: CommitIdentity
    was_sent: bool


@dataclass(frozen=True, slots=True)
class CheckDelete(TableRequest):
    """Whether DELETE can be done with whole partitions, without a look at rows."""

    op: ClassVar[str] = "check_delete"
    predicates: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CheckDeleteReply:
    """Whether it can; else the rows are found and deleted one by one."""

    possible: bool


@dataclass(frozen=True, slots=True)
class CheckChange(TableRequest):
    """Whether a statement WITH SCHEMA EVOLUTION changes a column so, or casts its values."""

    op: ClassVar[str] = "check_change"
    change: JsonObject


@dataclass(frozen=True, slots=True)
class CheckChangeReply:
    """Whether it does; else the column stays as it is."""

    possible: bool


@dataclass(frozen=True, slots=True)
class DeleteRows(TableRequest):
    """DELETE of whole partitions, and TRUNCATE TABLE (no predicates)."""

    op: ClassVar[str] = "delete_rows"
    predicates: tuple[str, ...]
    commit: CommitIdentity
