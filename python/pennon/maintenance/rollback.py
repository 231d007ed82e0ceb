"""Rolls a namespace back: makes an older version the newest one again.

What is brought back is the version and the records of all commits since: a commit whose answer was
lost stays one that was made, and is not made a second time by whoever asks for it again. They are
added beside the main branch, so that one commit brings both back. So is the highest field id that
was ever given: a column that is added later does not get the id of one that was rolled back.

The version may expire meanwhile. So it gets a tag first, and its rows are written anew: an expiry
that did not see the tag before it removed the version sees it before it removes what the version
reads of leaves.
"""

from __future__ import annotations

import contextlib
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Final

import lance

from pennon.catalog.layouts.plain_snapshot import open_plain
from pennon.errors import (
    NamespaceHasNoManifest,
    PennonError,
    RollbackRefused,
    SnapshotNotFound,
    StorageFailure,
    TagRefused,
)
from pennon.maintenance.calls.procedure_declaration import Arguments, Column, Procedure
from pennon.maintenance.plain_upkeep import plain_dataset, restore_dataset
from pennon.manifest.commits.commit_lookup import add_records, copy_with_records
from pennon.manifest.commits.root_change import confirm_schema, restore_version
from pennon.manifest.dataset.storage import (
    StorageOptions,
    is_conflict,
    open_manifest,
    storage_failure,
)
from pennon.manifest.format.properties import (
    SCHEMA,
    TRANSACTION,
    has_specs,
    read_schema,
    read_specs,
)
from pennon.manifest.snapshot import when_made
from pennon.manifest.table_identity import STRONG
from pennon.manifest.versions.tags import HELD, drop_tag, holding_name, set_tag

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["ROLLBACK", "ROLLBACK_TO_TIMESTAMP", "rollback"]

_ATTEMPTS: Final = 20


def rollback(
    location: str,
    version: int | None = None,
    storage_options: StorageOptions | None = None,
    *,
    timestamp: datetime | None = None,
) -> int:
    """Make rows, schema and partition specs those of an older version, as a new version.

    Nothing is lost: the versions between stay readable until they expire. A statement that was
    based on one of them and commits later is judged against the version that was brought back.

    Args:
        location: The namespace, or a plain dataset.
        version: The version of ``__manifest`` to bring back.
        storage_options: Given to Lance.
        timestamp: Instead of a version: what was there at this time.

    Returns:
        The new version.

    Raises:
        SnapshotNotFound: There is no such version, or none that old.
        TableVersionNotFound: Of a plain dataset.
        NotPartitionedNamespace: It was none at that version.
        RollbackRefused: Its transactions are weak, or were; or older versions are being removed.
        StorageFailure: The storage refused.

    Example:
        >>> rollback("/data/lake/orders", 12)  # doctest: +SKIP
        31

    Spec: "Read Behavior".
    """
    try:
        target = open_manifest(location, version, timestamp, storage_options)
    except NamespaceHasNoManifest as error:
        plain = plain_dataset(location, storage_options, error)
        older = open_plain(location, version, timestamp, storage_options or {})
        return plain.version if older is None else restore_dataset(plain, older)
    if not has_specs(target.metadata):
        target = when_made(location, target, storage_options or {})
    specs = read_specs(target.metadata, location)
    newest = open_manifest(location, storage_options=storage_options)
    if target.version == newest.version:
        return int(newest.version)
    _check_modes(target, newest, location)
    with _held(target, location, storage_options):
        try:
            for _ in range(_ATTEMPTS):
                last = _restored(target, newest, max(specs), location, storage_options)
                if last is not None:
                    return last  # and not the newest one, which another writer may have made
                newest = open_manifest(location, storage_options=storage_options)
        except (OSError, RuntimeError, ValueError) as error:
            raise storage_failure("roll back", location, error) from error
    raise _changed_each_time(location)


def _said(location: str, version: int, arguments: Arguments) -> Iterator[str]:
    source = f"version {arguments.get('version')}"
    if isinstance(timestamp := arguments.get("timestamp"), datetime):
        source = f"{timestamp:%Y-%m-%d %H:%M:%S %Z}"
    yield f"{location} is at version {version}, with the rows of {source}"


ROLLBACK: Final = Procedure(
    rollback,
    "Make a table as it was at a version, or at a time, as a new version.",
    (Column("version", "long"),),
    one_of=("version", "timestamp"),
    renews_table=True,
    command="rollback",
    said=_said,
)
ROLLBACK_TO_TIMESTAMP: Final = replace(
    ROLLBACK,
    description="Make a table as it was at a time, as a new version.",
    name="rollback_to_timestamp",
    one_of=("timestamp",),
    left_out=("version",),
    command="",
)


def _restored(
    target: lance.LanceDataset,
    newest: lance.LanceDataset,
    spec_version: int,
    location: str,
    storage_options: StorageOptions | None,
) -> int | None:
    """Make a version the newest one, with what was recorded and which ids were given since.

    Args:
        target: The version.
        newest: The newest one, as it was looked at.
        spec_version: The newest partition spec of the version.
        location: The namespace.
        storage_options: Given to Lance.

    Returns:
        As ``_last_version``.
    """
    restored = copy_with_records(target, newest, storage_options)
    restored = _with_ids_given(restored, newest, location)
    made = restore_version(newest, int(restored.version), target, spec_version, storage_options)
    last = _last_version(newest, made, storage_options)
    if made.version > newest.version + 1:  # others came first; what they recorded went
        # Where that version has expired since, what it read has gone with it. The rollback is
        # made, and nothing behind that may tell that it failed.
        with contextlib.suppress(SnapshotNotFound):
            add_records(location, int(made.version) - 1, storage_options)
            _keep_ids_of(location, int(made.version) - 1, storage_options)
    return last


def _last_version(
    newest: lance.LanceDataset,
    made: lance.LanceDataset,
    storage_options: StorageOptions | None,
) -> int | None:
    """Let no change of columns or partition fields that was begun before come behind a rollback.

    Lance commits metadata behind a Restore, and would bring back what was rolled back. It refuses
    a second change of one key. A change that came at once is undone by the next rollback.

    Args:
        newest: What was the newest version.
        made: The version that was brought back, as it was made.
        storage_options: Given to Lance.

    Returns:
        The last version with exactly what was brought back; None where such a change came.
    """
    version = int(made.version)
    is_alone = version == newest.version + 1 and made.metadata == newest.metadata
    if is_alone or SCHEMA not in made.metadata:
        return version
    try:
        confirmed = int(confirm_schema(made, storage_options).version)
    except (OSError, RuntimeError, ValueError) as error:
        if not is_conflict(error):
            raise
        return None
    return confirmed if confirmed == version + 1 else version


def _check_modes(target: lance.LanceDataset, newest: lance.LanceDataset, location: str) -> None:
    """Refuse a version that would not have the rows that it had.

    Raises:
        RollbackRefused: The version, or the newest one, is not of strong transactions. In weak mode
            a version names no version of a leaf, and its writers commit to leaves.
    """
    of_target = target.metadata.get(TRANSACTION, STRONG)
    of_newest = newest.metadata.get(TRANSACTION, STRONG)
    if of_target == of_newest == STRONG:
        return
    why = "its transactions are weak, so that partitions are read at their newest rows"
    advice = "Write back the rows that you miss"
    if of_newest != STRONG and of_target == STRONG:
        advice += f", which VERSION AS OF {target.version} still reads"
    if of_newest == STRONG:
        why = "its transactions were weak then, and no version says which rows partitions had"
    raise RollbackRefused(table=location, version=target.version, why=why, advice=advice)


@contextlib.contextmanager
def _held(
    version: lance.LanceDataset, location: str, storage_options: StorageOptions | None
) -> Iterator[None]:
    """Keep a version by a tag while the context is open; of a killed one, the tag goes by expiry.

    Raises:
        SnapshotNotFound: It has expired.
        RollbackRefused: It may be about to: older versions are being removed.
    """
    name, number = holding_name(), int(version.version)
    try:
        set_tag(version, name, number, HELD, table=location)
    except TagRefused as error:
        open_manifest(location, number, storage_options=storage_options)
        why, advice = error.parameters["why"], error.parameters["advice"]
        raise RollbackRefused(table=location, version=number, why=why, advice=advice) from error
    try:
        yield
    finally:
        with contextlib.suppress(PennonError):  # it goes with the next expiry after its time
            drop_tag(version, name, table=location)


def _with_ids_given(
    older: lance.LanceDataset, newer: lance.LanceDataset, location: str
) -> lance.LanceDataset:
    """Add the highest field id that a newer version knows to an older one, beside the main branch.

    Args:
        older: A version of ``__manifest``, or one with more that is based on it.
        newer: A later one.
        location: The namespace, for messages.

    Raises:
        OSError: The storage refused.
    """
    text = _remembering(older, newer, location)
    if text is None:
        return older
    update = lance.LanceOperation.UpdateMap({SCHEMA: text})
    changed = lance.LanceOperation.UpdateConfig(table_metadata_updates=update)
    return lance.LanceDataset.commit(older, changed, read_version=older.version, detached=True)


def _remembering(
    manifest: lance.LanceDataset, other: lance.LanceDataset, location: str
) -> str | None:
    """Write a version's schema with the ids that another knows; None where it knows them, too."""
    if SCHEMA not in manifest.metadata or SCHEMA not in other.metadata:
        return None  # metadata that was lost is what a rollback may bring back
    schema = read_schema(manifest.metadata, location)
    remembering = schema.with_ids_given(read_schema(other.metadata, location).highest_id)
    return None if remembering is schema else remembering.to_json()


def _keep_ids_of(location: str, version: int, storage_options: StorageOptions | None) -> None:
    """Make the newest version remember the ids that a version gave, which it was made without.

    Raises:
        StorageFailure: The storage refused, or others changed the columns each time.
    """
    given = open_manifest(location, version, storage_options=storage_options)
    for _ in range(_ATTEMPTS):
        newest = open_manifest(location, storage_options=storage_options)
        text = _remembering(newest, given, location)
        if text is None:
            return
        try:
            newest.update_metadata({SCHEMA: text})
        except (OSError, RuntimeError, ValueError) as error:
            if not is_conflict(error):
                raise
        else:
            return
    raise _changed_each_time(location)


def _changed_each_time(location: str) -> StorageFailure:
    return StorageFailure(
        verb="roll back",
        location=location,
        problem="others changed its columns each time",
        advice="Run it again before a column is added",
    )
