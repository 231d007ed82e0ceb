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
    """Any use of a table; a version or a time is time travel."""

    op: ClassVar[str] = "load_table"
    version: str | None
    timestamp_micros: int | None


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
