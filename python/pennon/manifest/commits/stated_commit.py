"""Commits of ``__manifest`` that write no rows: their record is Lance's commit message.

They read no file of the table either, so that Lance makes one where the table was dropped since it
was opened, in a folder that is made anew. Such a commit is found out, and removed.
"""

from __future__ import annotations

import contextlib
import hashlib
import time
from typing import TYPE_CHECKING

import lance

from pennon.errors import NamespaceHasNoManifest
from pennon.manifest.dataset.storage import MANIFEST
from pennon.manifest.format.commit_record import CommitIdentity, CommitRecord
from pennon.manifest.format.properties import SCHEMA

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pennon.manifest.dataset.storage import StorageOptions

__all__ = ["commit_metadata", "confirm_schema", "restore_version", "schema_id"]


def schema_id(metadata: Mapping[str, str]) -> str:
    """Tell the schema of a version from others: equal schemas have equal ids.

    Args:
        metadata: The metadata of ``__manifest`` at the version.

    Example:
        >>> schema_id({"schema": "{}"})
        'd905e156'
    """
    text = metadata.get(SCHEMA, "")
    return hashlib.blake2b(text.encode(), digest_size=4).hexdigest()


def commit_metadata(
    base: lance.LanceDataset,
    written: Mapping[str, str | None],
    spec_version: int = 0,
    storage_options: StorageOptions | None = None,
) -> lance.LanceDataset:
    """Change keys of the metadata; Lance refuses it where another commit changes one of them.

    Args:
        base: ``__manifest`` at the version that the change was made for.
        written: Values by key; None removes it.
        spec_version: The newest partition spec at that version.
        storage_options: Given to Lance.

    Raises:
        NamespaceHasNoManifest: The table was dropped meanwhile.
        OSError: Another commit came first, or the storage refused.
    """
    updates = lance.LanceOperation.UpdateMap(dict(written))
    changed = lance.LanceOperation.UpdateConfig(table_metadata_updates=updates)
    return _committed(base, changed, "alter", base, spec_version, storage_options)


def restore_version(
    newest: lance.LanceDataset,
    restored: int,
    older: lance.LanceDataset,
    spec_version: int = 0,
    storage_options: StorageOptions | None = None,
) -> lance.LanceDataset:
    """Make a version the newest one, whatever others commit meanwhile.

    Args:
        newest: ``__manifest`` at its newest version.
        restored: The version, detached or not.
        older: The version of the main branch that it is a copy of.
        spec_version: The newest partition spec at that version.
        storage_options: Given to Lance.

    Raises:
        NamespaceHasNoManifest: The table was dropped meanwhile.
        OSError: The storage refused.
    """
    brought = lance.LanceOperation.Restore(restored)
    return _committed(newest, brought, "rollback", older, spec_version, storage_options)


def confirm_schema(
    restored: lance.LanceDataset, storage_options: StorageOptions | None = None
) -> lance.LanceDataset:
    """Write the schema of a restored version once more, which every change of it conflicts with.

    It changes nothing and has no record: in the history it is maintenance.

    Args:
        restored: ``__manifest`` at the version that ``restore_version`` has made.
        storage_options: Given to Lance.

    Raises:
        OSError: Another commit has changed the schema since, or the storage refused.
    """
    written = lance.LanceOperation.UpdateMap({SCHEMA: restored.metadata[SCHEMA]})
    return lance.LanceDataset.commit(
        restored,
        lance.LanceOperation.UpdateConfig(table_metadata_updates=written),
        read_version=restored.version,
        storage_options=dict(storage_options or {}) or None,
    )


def _committed(  # noqa: PLR0917
    dataset: lance.LanceDataset,
    operation: lance.LanceOperation.BaseOperation,
    name: str,
    base: lance.LanceDataset,
    spec_version: int,
    storage_options: StorageOptions | None,
) -> lance.LanceDataset:
    record = CommitRecord(
        CommitIdentity.fresh(),
        name,
        base_version=int(base.version),
        spec_version=spec_version,
        schema_id=schema_id(base.metadata),
        made_at=int(time.time()),
    )
    options = dict(storage_options or {})
    made = lance.LanceDataset.commit(
        dataset,
        operation,
        read_version=dataset.version,
        commit_message=record.to_json(),
        storage_options=options or None,
    )
    if _is_dropped(dataset, made, options):
        location = str(made.uri).rstrip("/").removesuffix(f"/{MANIFEST}")
        raise NamespaceHasNoManifest(location=location)
    return made


def _is_dropped(
    before: lance.LanceDataset, made: lance.LanceDataset, options: dict[str, str]
) -> bool:
    """Whether a commit stands where nothing is left of the table; it is removed then.

    The version before may merely have expired, where others stand or the rows can be read.
    """
    try:
        lance.dataset(before.uri, version=before.version, storage_options=options or None)
    except (OSError, ValueError):
        if [int(entry["version"]) for entry in made.versions()] != [int(made.version)]:
            return False
    else:
        return False
    try:
        is_read = bool(made.get_fragments()) and made.to_table(limit=1).num_rows >= 0
    except (OSError, ValueError, RuntimeError):
        with contextlib.suppress(OSError, ValueError):
            lance.LanceDataset.drop(made.uri, storage_options=options or None)
        return True
    return not is_read
