"""The history of a namespace: the commit of each version of ``__manifest`` that is kept.

A commit of Pennon's wrote its record into the version that it made. Other versions are named after
what Lance did: changes of the metadata, maintenance of ``__manifest`` itself, foreign writers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Final, TypeVar

import lance
from lance.file import LanceFileSession

from pennon.caching import version_time
from pennon.errors import StorageFailure
from pennon.manifest.dataset.storage import (
    StorageOptions,
    listed_versions,
    open_manifest,
    storage_failure,
)
from pennon.manifest.format.commit_record import (
    CommitRecord,
    made_together,
    record_of_message,
    records_in,
)
from pennon.manifest.format.properties import SCHEMA, TURN
from pennon.manifest.versions.shared_fragments import open_present

__all__ = ["HistoryEntry", "history"]

T = TypeVar("T")

_COLUMNS: Final = ["object_type", "metadata"]
_MAX_THREADS: Final = 8
# Under it Lance keeps the message of a commit.
_MESSAGE: Final = "__lance_commit_message"
_NAMES: Final[Mapping[str, str]] = {
    "Overwrite": "create",
    "UpdateConfig": "alter",
    "Merge": "alter",
    "Project": "alter",
    "Rewrite": "maintenance",
    "BaseOperation": "maintenance",
    "Delete": "maintenance",
    "Restore": "rollback",
}


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """One version of a namespace.

    Args:
        version: The version of ``__manifest``.
        committed_at: When it was committed, in UTC.
        operation: What made it: ``append``, ``overwrite``, ``delete``, … as its record says;
            ``create``, ``alter``, ``rollback``, ``maintenance`` (of ``__manifest`` alone) or
            ``write`` where it has none.
        record: The commit's record; None where the version was made without one.
    """

    version: int
    committed_at: datetime
    operation: str
    record: CommitRecord | None = None


def history(
    location: str,
    storage_options: StorageOptions | None = None,
    *,
    limit: int | None = None,
    after: int = 0,
) -> list[HistoryEntry]:
    """Tell what made the versions of a namespace.

    Args:
        location: The namespace.
        storage_options: Given to Lance.
        limit: How many of the newest versions; None for all that have not expired.
        after: Only what came behind this version.

    Returns:
        The versions, oldest first; one that expires while they are read is left out.

    Raises:
        NamespaceHasNoManifest: There is no namespace.
        StorageFailure: The storage refused.

    Example:
        >>> [entry.operation for entry in history("/data/lake/orders", limit=2)]  # doctest: +SKIP
        ['append', 'delete']

    Spec: "Multi-Partition Transaction (Strong)".
    """
    manifest = open_manifest(location, storage_options=storage_options)
    versions = sorted(listed_versions(manifest), key=lambda listed: int(listed["version"]))
    versions = [listed for listed in versions if int(listed["version"]) > after]
    if limit is not None:
        versions = versions[len(versions) - min(limit, len(versions)) :]
    times = {int(listed["version"]): version_time(listed) for listed in versions}
    files = LanceFileSession(str(manifest.uri), storage_options=dict(storage_options or {}) or None)

    def read_entry(version: int, transaction: lance.Transaction | None) -> HistoryEntry:
        added = _added(location, version, transaction, storage_options)
        operation, record = _maker(transaction, added, files, location)
        return HistoryEntry(version, times[version], operation, record)

    def if_there(version: int, read: Callable[[], T]) -> T | None:
        try:
            return read()
        except StorageFailure:
            if open_present(location, version, storage_options or {}) is not None:
                raise
            return None

    def entry(version: int) -> HistoryEntry | None:
        made = transactions[version]
        return None if made is None else if_there(version, lambda: read_entry(version, *made))

    # Lance reads the transactions of one dataset from one thread at a time.
    transactions = {
        version: if_there(version, partial(_transaction, manifest, location, version))
        for version in times
    }
    with ThreadPoolExecutor(_MAX_THREADS) as pool:
        return [made for made in pool.map(entry, times) if made is not None]


def _transaction(
    manifest: lance.LanceDataset, location: str, version: int
) -> tuple[lance.Transaction | None]:
    """Read what made a version, if Lance recorded it."""
    try:
        return (manifest.read_transaction(version),)
    except (OSError, RuntimeError, ValueError) as error:
        raise storage_failure("read", location, error) from error


def _added(
    location: str,
    version: int,
    transaction: lance.Transaction | None,
    storage_options: StorageOptions | None,
) -> Sequence[lance.FragmentMetadata]:
    """Give the fragments that a commit of rows added."""
    operation = None if transaction is None else transaction.operation
    if isinstance(operation, lance.LanceOperation.Update):
        return list(operation.new_fragments)
    if not isinstance(operation, lance.LanceOperation.Merge):
        return ()
    # A commit that stands alone states every fragment; a change of the columns adds none.
    before = open_present(location, version - 1, storage_options or {})
    if before is None:
        return ()
    earlier = {fragment.fragment_id for fragment in before.get_fragments()}
    return [fragment for fragment in operation.fragments if fragment.id not in earlier]


def _maker(
    transaction: lance.Transaction | None,
    added: Sequence[lance.FragmentMetadata],
    files: LanceFileSession,
    location: str,
) -> tuple[str, CommitRecord | None]:
    """Name what made a version, and give its record."""
    if transaction is None:
        return "write", None
    kind = type(transaction.operation).__name__
    stated = record_of_message((transaction.transaction_properties or {}).get(_MESSAGE))
    if stated is not None:
        return stated.operation, stated
    records: list[CommitRecord] = []
    for fragment in added:
        for file in fragment.files:
            try:
                reader = files.open_reader(f"data/{file.path}", _COLUMNS)
                rows = reader.read_all().to_table()
            except (OSError, RuntimeError, ValueError) as error:
                raise storage_failure("read", location, error) from error
            records += records_in(rows)
    if not records:
        return ("maintenance" if _is_upkeep(transaction) else _NAMES.get(kind, "write")), None
    return records[0].operation, made_together(records)


def _is_upkeep(transaction: lance.Transaction) -> bool:
    """Whether a version only says which commit is to be let through, or what its schema was."""
    operation = transaction.operation
    if not isinstance(operation, lance.LanceOperation.UpdateConfig):
        return False
    changed = operation.table_metadata_updates
    return changed is not None and set(changed.updates) <= {TURN, SCHEMA}
