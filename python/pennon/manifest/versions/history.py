"""The history of a namespace: the commit of each version of ``__manifest`` that is kept.

A commit of Pennon's wrote its record into the version that it made. Other versions are named after
what Lance did: changes of the metadata, maintenance of ``__manifest`` itself, foreign writers.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

import lance
import pyarrow as pa
from lance.file import LanceFileSession

from pennon.caching import version_time
from pennon.caching.lance_sessions import copied_versions, file_session
from pennon.errors import SnapshotNotFound, StorageFailure
from pennon.manifest.dataset.storage import (
    StorageOptions,
    listed_versions,
    open_manifest,
    present_versions,
    storage_failure,
    version_numbers,
)
from pennon.manifest.format.properties import SCHEMA, TURN
from pennon.manifest.format.rows import (
    READ_VERSION,
    TABLE,
    CommitRecord,
    made_together,
    record_of_message,
    records_in,
)
from pennon.manifest.versions.tags import tagged_versions

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pennon.manifest.snapshot import Snapshot

__all__ = [
    "HistoryEntry",
    "committed_at",
    "dataset_history",
    "history",
    "last_changes",
    "leaf_locations",
    "open_present",
    "opened_present",
    "stored_rows",
    "stored_schema",
    "unseen_rows",
    "versions_until",
]

# Reads the rows of many versions of ``__manifest``, each shared fragment only once.

_COLUMNS_OF_ROWS: Final = ("object_id", "object_type", "location", READ_VERSION.name)


def leaf_locations(location: str, storage_options: StorageOptions) -> set[str]:
    """Give the directories of the leaves that any version of the manifest knows.

    Args:
        location: The namespace.
        storage_options: Given to Lance.
    """
    places: set[str] = set()
    seen: set[tuple[str, ...]] = set()
    newest = open_manifest(location, storage_options=storage_options)
    for _, manifest in opened_present(location, version_numbers(newest), storage_options):
        condition = f"object_type = '{TABLE}'"
        rows = unseen_rows(location, manifest, seen, condition, with_deletions=True)
        if rows is not None:
            places.update(place for place in rows["location"].to_pylist() if place is not None)
    return places


def open_present(
    location: str, version: int, storage_options: StorageOptions
) -> lance.LanceDataset | None:
    """Open a version of the manifest; None where it was removed since it was listed."""
    try:
        return open_manifest(
            location, version, storage_options=storage_options, is_expired_too=True
        )
    except SnapshotNotFound:
        return None


def opened_present(
    location: str, versions: Iterable[int], storage_options: StorageOptions
) -> Iterator[tuple[int, lance.LanceDataset]]:
    """Open versions of the manifest to read their rows; those of a store as copies.

    Args:
        location: The namespace.
        versions: Which; one that was removed since it was listed is left out.
        storage_options: Given to Lance.
    """
    asked = list(versions)
    copied: dict[int, lance.LanceDataset] = {}
    if len(asked) > 1 and "://" in location:
        newest = open_manifest(location, storage_options=storage_options)
        copied = copied_versions(newest, asked, storage_options, with_rows=True)
    for version in asked:
        manifest = copied.get(version) or open_present(location, version, storage_options)
        if manifest is not None:
            yield version, manifest


def unseen_rows(
    location: str,
    manifest: lance.LanceDataset,
    seen: set[tuple[str, ...]],
    condition: str,
    *,
    with_deletions: bool,
) -> pa.Table | None:
    """Read the rows of the fragments that no version before had in this state.

    Args:
        location: The namespace, for errors.
        manifest: Its ``__manifest`` at a version.
        seen: The states of fragments that were read; those of this version are added.
        condition: Which rows.
        with_deletions: Whether a fragment with other deletions is read again.

    Returns:
        Ids, types, locations and read versions; None where every fragment was seen before, or
        where the version has expired since it was opened, or is about to.

    Raises:
        StorageFailure: The storage refused.
    """
    fresh, states = [], set()
    for fragment in manifest.get_fragments():
        metadata = fragment.metadata
        state = tuple(file.path for file in metadata.files)
        if with_deletions and metadata.deletion_file is not None:
            state = (*state, metadata.deletion_file.path(fragment.fragment_id))
        if state not in seen:
            states.add(state)
            fresh.append(fragment)
    if not fresh:
        return None
    names = [name for name in _COLUMNS_OF_ROWS if name in manifest.schema.names]
    try:
        rows = manifest.scanner(columns=names, filter=condition, fragments=fresh).to_table()
    except (OSError, RuntimeError, ValueError) as error:
        if _is_expiring(manifest, error):
            return None  # and its fragments are read with a later version that has them
        raise storage_failure("read", location, error) from error
    seen.update(states)
    if READ_VERSION.name not in names:
        rows = rows.append_column(READ_VERSION.name, pa.nulls(len(rows), READ_VERSION.type))
    return rows


def _is_expiring(manifest: lance.LanceDataset, error: Exception) -> bool:
    """Whether rows of a version are gone because it expires.

    Lance removes the files of a version before the version itself, and whoever did so may have been
    killed in between: nobody reads that version any more. The newest and tagged ones never expire.
    """
    versions = [int(entry["version"]) for entry in present_versions(manifest)]
    if manifest.version not in versions:
        return True
    kept = {max(versions), *tagged_versions(manifest)}
    return manifest.version not in kept and "not found" in str(error).lower()


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
    files = file_session(str(manifest.uri), storage_options)

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
    copied = copied_versions(manifest, times, storage_options or {}, with_rows=False)
    transactions = {
        version: _stated_in(copied, version)
        or if_there(version, partial(_transaction, manifest, location, version))
        for version in times
    }
    with ThreadPoolExecutor(_MAX_THREADS) as pool:
        return [made for made in pool.map(entry, times) if made is not None]


def _stated_in(
    copied: Mapping[int, lance.LanceDataset], version: int
) -> tuple[lance.Transaction | None] | None:
    """Give what a copy of a version says that made it; None where it says nothing."""
    made_by = None
    if version in copied:
        with contextlib.suppress(OSError, RuntimeError, ValueError):  # it is in a file of its own
            made_by = copied[version].read_transaction(version)
    return None if made_by is None else (made_by,)


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


# The history of a plain dataset: what Lance recorded of the versions that are kept.
#
# No commit has a record of Pennon's there, and so neither a user nor numbers of rows.

# By Lance's operations; others, which write rows or values of columns, are a write.
_NAMES_IN_LANCE: Final[Mapping[str, str]] = {
    "Append": "append",
    "BaseOperation": "maintenance",  # Lance reserves the ids of fragments
    "Clone": "create",
    "CreateIndex": "maintenance",
    "Delete": "delete",
    "Overwrite": "overwrite",
    "Project": "alter",
    "Restore": "rollback",
    "Rewrite": "compact",
    "Update": "update",
    "UpdateConfig": "alter",
}


def dataset_history(
    dataset: lance.LanceDataset, location: str, *, limit: int | None = None
) -> list[HistoryEntry]:
    """Tell what made the versions of a plain dataset.

    Args:
        dataset: The dataset, at any version.
        location: Its path or URL, for errors.
        limit: How many of the newest versions; None for all that have not expired.

    Returns:
        The versions, oldest first; one that expires while they are read is left out.

    Raises:
        StorageFailure: The storage refused.

    Example:
        >>> import pyarrow as pa, tempfile
        >>> letters = lance.write_dataset(pa.table({"a": [1]}), tempfile.mkdtemp() + "/letters")
        >>> letters.delete("a = 1")["num_deleted_rows"]
        1
        >>> [entry.operation for entry in dataset_history(letters, "letters")]
        ['create', 'delete']
    """
    try:
        # Lance reads a transaction with the dataset borrowed for itself.
        newest = dataset.checkout_version(dataset.latest_version)
    except (OSError, RuntimeError, ValueError) as error:
        raise storage_failure("read", location, error) from error
    times = {int(listed["version"]): version_time(listed) for listed in listed_versions(newest)}
    versions = sorted(times)
    if limit is not None:
        versions = versions[len(versions) - min(limit, len(versions)) :]
    entries = []
    for version in versions:
        try:
            transaction = newest.read_transaction(version)
        except (OSError, RuntimeError, ValueError) as error:
            if version in version_numbers(newest):
                raise storage_failure("read", location, error) from error
            continue
        entries.append(HistoryEntry(version, times[version], _name(version, transaction)))
    return entries


def _name(version: int, transaction: lance.Transaction | None) -> str:
    kind = "" if transaction is None else type(transaction.operation).__name__
    return "create" if version == 1 else _NAMES_IN_LANCE.get(kind, "write")


# The history of a namespace's ``__manifest``: its versions, and its rows as stored.

_TIME = pa.timestamp("us", "UTC")


def committed_at(snapshot: Snapshot) -> datetime:
    """Tell when a version was committed, in UTC and without I/O.

    Args:
        snapshot: Of a partitioned namespace, or of a plain dataset.
    """
    return version_time(snapshot.manifest.get_version())


def versions_until(snapshot: Snapshot) -> pa.Table:
    """List the versions up to the snapshot's that are still there, the first one first.

    Args:
        snapshot: Of a partitioned namespace, or of a plain dataset.

    Returns:
        A table of ``version`` (int64) and ``committed_at`` (microseconds, UTC).
    """
    entries = [
        version
        for version in listed_versions(snapshot.manifest)
        if version["version"] <= snapshot.version
    ]
    entries.sort(key=lambda entry: int(entry["version"]))
    return pa.table(
        {
            "version": pa.array([int(entry["version"]) for entry in entries], pa.int64()),
            # Lance gives the local time without saying so.
            "committed_at": pa.array([version_time(entry) for entry in entries], _TIME),
        }
    )


def stored_schema(snapshot: Snapshot) -> pa.Schema:
    """Give the columns of ``__manifest`` as they are stored."""
    return snapshot.manifest.schema


def stored_rows(snapshot: Snapshot, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Stream the rows of ``__manifest`` as they are stored.

    Args:
        snapshot: Of a partitioned namespace.
        columns: Of ``stored_schema``.

    Spec: "Manifest Table Schema".
    """
    yield from snapshot.manifest.scanner(columns=list(columns)).to_reader()


# The version of a namespace at which each of its leaves last changed.
#
# The versions that are still there are gone through in their order; each is read as far as it has
# fragments that none before had. A leaf changes where it is read at another version or place. What
# was so in the first version that is left may have been so for longer: such a value has no known
# change.

_FIRST = 1


def last_changes(snapshot: Snapshot) -> Mapping[str, int]:
    """Find the last change of each leaf.

    Args:
        snapshot: Of a partitioned namespace.

    Returns:
        Object id → version of ``__manifest``, that of a rollback for what it put back. Leaves are
        missing whose last change has expired, and all where the manifest leaves versions open.

    Raises:
        StorageFailure: The storage refused.

    Spec: "Multi-Partition Transaction (Strong)".
    """
    if not snapshot.names_leaf_versions:
        return {}
    states: dict[str, tuple[str, int]] = {}
    changed: dict[str, int] = {}
    seen: set[tuple[str, ...]] = set()
    listed = version_numbers(snapshot.manifest)
    for number in listed:
        if number > snapshot.version:
            break
        manifest = open_present(snapshot.location, number, snapshot.storage_options)
        if manifest is None:
            continue
        condition = f"object_type = '{TABLE}'"
        rows = unseen_rows(snapshot.location, manifest, seen, condition, with_deletions=False)
        if rows is None:
            continue
        columns = (rows[name].to_pylist() for name in ("object_id", "location", "read_version"))
        for leaf, *state in zip(*columns, strict=True):
            if states.get(leaf) != tuple(state):
                states[leaf] = (state[0], state[1])
                changed[leaf] = number
    table = snapshot.leaves().table
    columns = (table[name].to_pylist() for name in ("object_id", "location", "read_version"))
    is_complete = listed[:1] == [_FIRST]
    return {
        leaf: changed[leaf]
        for leaf, *state in zip(*columns, strict=True)
        if states.get(leaf) == tuple(state) and (is_complete or changed[leaf] > listed[0])
    }
