"""The history of a plain dataset: what Lance recorded of the versions that are kept.

No commit has a record of Pennon's there, and so neither a user nor numbers of rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import lance

from pennon.caching import version_time
from pennon.manifest.dataset.storage import listed_versions, storage_failure, version_numbers
from pennon.manifest.versions.history import HistoryEntry

__all__ = ["dataset_history"]

# By Lance's operations; others, which write rows or values of columns, are a write.
_NAMES: Final[Mapping[str, str]] = {
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
    return "create" if version == 1 else _NAMES.get(kind, "write")
