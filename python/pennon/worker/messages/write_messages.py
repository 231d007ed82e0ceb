"""The requests that change rows, and their replies; ``messages.py`` has all others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from pennon.manifest.format.commit_record import CommitIdentity
from pennon.worker.messages.messages import CatalogRequest, JsonObject, TableRequest


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
