"""The commits by which a namespace gets the other transaction mode; readers notice none of them.

Lance has no commit that changes rows and metadata at once. So the first one says in the metadata
that the mode changes, and every writer that looks behind it stops. Then the rows get or lose their
``read_version`` by a commit that is refused after any other change of rows: whoever looked before
it commits before it, and is seen, or is refused. The last one states the new mode.

Each change has a name of its own, and says how long it may take; a long one is renewed. A second
one takes over from a first, which then can change no row and cannot end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import lance
import pyarrow as pa
import pyarrow.compute as pc

from pennon.caching.lance_sessions import lance_options
from pennon.errors import TransactionModeChanged
from pennon.manifest.commits.manifest_commit import (
    ConcurrentChange,
    ManifestCommitted,
    ManifestOutcome,
    exclusive,
    wait_for_others,
)
from pennon.manifest.commits.root_change import commit_metadata
from pennon.manifest.dataset.storage import (
    StorageOptions,
    is_conflict,
    open_manifest,
    storage_failure,
)
from pennon.manifest.format.properties import TRANSACTION, ChangeNotice, NamedAt
from pennon.manifest.format.rows import READ_VERSION, TABLE_VERSION
from pennon.manifest.snapshot import Snapshot
from pennon.manifest.table_identity import open_commit_base

if TYPE_CHECKING:
    from collections.abc import Callable

    from pennon.manifest.format.rows import CommitRecord

__all__ = [
    "add_read_versions",
    "begin_change",
    "end_change",
    "forget_read_versions",
    "opened_in_change",
    "refuse_older",
    "renew_change",
]

_ATTEMPTS: Final = 40


def begin_change(snapshot: Snapshot, target: str, named_at: NamedAt | None = None) -> str:
    """Stop the writers of a namespace.

    Args:
        snapshot: The newest one.
        target: What the transactions are to become, or ``ALTERED`` or ``REPLACED``.
        named_at: The name that another table is about to get.

    Returns:
        The name of the change; another one that was under way can end no more.

    Raises:
        StorageFailure: The storage refused.
        TransactionModeChanged: Another change began at the same moment.
    """
    change = str(ChangeNotice.of_this_process(target, named_at))
    _state(open_commit_base(snapshot), snapshot.location, change, snapshot.storage_options)
    return change


def opened_in_change(
    location: str, change: str, storage_options: StorageOptions | None = None
) -> Snapshot:
    """Open the newest version, in which a change is under way.

    Raises:
        TransactionModeChanged: Another one has taken over.
    """
    newest = Snapshot.open(location, storage_options=storage_options)
    _check_same(newest.metadata.get(TRANSACTION, ""), change, location)
    return newest


def renew_change(location: str, change: str, storage_options: StorageOptions | None = None) -> None:
    """Say that a change is still under way, so that nobody takes it for abandoned.

    Args:
        location: The namespace.
        change: The name of the change.
        storage_options: Given to Lance.

    Raises:
        StorageFailure: The storage refused.
        TransactionModeChanged: It has ended, or another one has taken over.
    """
    manifest = open_manifest(location, storage_options=storage_options)
    notice = _check_same(manifest.metadata.get(TRANSACTION, ""), change, location)
    _state(manifest, location, str(notice.renewed()), storage_options)


def refuse_older(opened: Callable[[], Snapshot]) -> Snapshot:
    """Refuse every commit of rows that was begun before, by one that changes none.

    Args:
        opened: Gives the newest version.

    Returns:
        The version whose rows are the last.

    Raises:
        StorageFailure: The storage refused.
        TransactionModeChanged: Others came first each time.
    """
    for attempt in range(_ATTEMPTS):
        snapshot = opened()
        base = open_commit_base(snapshot)
        nothing = lance.LanceOperation.Update(
            removed_fragment_ids=[], updated_fragments=[], new_fragments=[]
        )
        try:
            operation = exclusive(base, nothing, snapshot.storage_options)
            lance.LanceDataset.commit(base, operation, base.version, max_retries=0)
        except (OSError, RuntimeError, ValueError) as error:
            if not is_conflict(error):
                raise storage_failure("commit to", snapshot.location, error) from error
            wait_for_others(attempt)
            continue
        return opened()
    raise _taken_over(opened().location)


def add_read_versions(snapshot: Snapshot) -> ManifestOutcome:
    """Add the column that names the versions of leaves; it names none.

    Args:
        snapshot: The newest one.

    Returns:
        The version, or that another commit came first.

    Raises:
        StorageFailure: The storage refused.
    """
    base = open_commit_base(snapshot)
    try:
        base.add_columns([READ_VERSION])
    except (OSError, RuntimeError, ValueError) as error:
        if not is_conflict(error):
            raise storage_failure("commit to", snapshot.location, error) from error
        return ConcurrentChange()
    return ManifestCommitted(base.version)


def forget_read_versions(snapshot: Snapshot, record: CommitRecord) -> ManifestOutcome:
    """Let every leaf be read at the newest version of its main branch.

    Args:
        snapshot: The newest one.
        record: What the commit does.

    Returns:
        The version, or that another commit came first.

    Raises:
        StorageFailure: The storage refused.
    """
    base = open_commit_base(snapshot)
    options = lance_options(snapshot.storage_options)
    try:
        rows = base.to_table(columns=list(base.schema.names))
        rows = rows.filter(pc.not_equal(rows["object_type"], TABLE_VERSION))
        at = rows.column_names.index(READ_VERSION.name)
        rows = rows.set_column(at, rows.field(at), pa.nulls(len(rows), READ_VERSION.type))
        fragments = lance.fragment.write_fragments(
            rows.cast(base.schema), base, storage_options=options
        )
        replaced = lance.LanceOperation.Update(
            removed_fragment_ids=[fragment.fragment_id for fragment in base.get_fragments()],
            updated_fragments=[],
            new_fragments=fragments,
        )
        operation = exclusive(base, replaced, snapshot.storage_options)
        made = lance.LanceDataset.commit(
            base,
            operation,
            base.version,
            storage_options=options,
            max_retries=0,
            # The rows that are written have the records of older commits among them.
            commit_message=record.to_json(),
        )
    except (OSError, RuntimeError, ValueError) as error:
        if not is_conflict(error):
            raise storage_failure("commit to", snapshot.location, error) from error
        return ConcurrentChange()
    return ManifestCommitted(made.version)


def end_change(
    location: str, change: str, mode: str, storage_options: StorageOptions | None = None
) -> int:
    """Let writers go on, in the new mode.

    Args:
        location: The namespace.
        change: The name of the change.
        mode: The mode.
        storage_options: Given to Lance.

    Returns:
        The version.

    Raises:
        StorageFailure: The storage refused.
        TransactionModeChanged: Another change has taken over.
    """
    manifest = open_manifest(location, storage_options=storage_options)
    _check_same(manifest.metadata.get(TRANSACTION, ""), change, location)
    return _state(manifest, location, mode, storage_options)


def _check_same(stated: str, change: str, location: str) -> ChangeNotice:
    """See that a change is under way, which may have been renewed since it began."""
    now, begun = ChangeNotice.read(stated), ChangeNotice.read(change)
    if now is None or begun is None or now.name != begun.name:
        raise _taken_over(location)
    return now


def _state(
    manifest: lance.LanceDataset, location: str, text: str, options: StorageOptions | None
) -> int:
    """Write the mode; of two writers at once Lance lets one pass."""
    try:
        made = commit_metadata(manifest, {TRANSACTION: text}, storage_options=options)
    except (OSError, RuntimeError, ValueError) as error:
        if not is_conflict(error):
            raise storage_failure("change the transactions of", location, error) from error
        raise _taken_over(location) from error
    return int(made.version)


def _taken_over(location: str) -> TransactionModeChanged:
    why = "another process changes its transactions at this moment"
    return TransactionModeChanged(table=location, why=why, advice="Run it again if need be")
