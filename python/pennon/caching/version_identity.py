"""What distinguishes a dataset's version from the same version of another dataset at its place."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, cast

if TYPE_CHECKING:
    import lance
    from lance.dataset import Version

__all__ = ["LOOK", "combined_identity", "version_identity", "version_time"]

# In an identity: what comes behind says how the leaves looked, not which table it is.
LOOK: Final = "-"
_DIGEST_BYTES: Final = 8


def version_identity(dataset: lance.LanceDataset) -> str:
    """Give the identity of an opened version, without I/O.

    Lance numbers the versions of every dataset from 1. What differs is the time of the commit,
    kept in microseconds, and the names of its data files, which are drawn at random. Both are in
    the version's own manifest, so that a folder restored from a copy is distinguished as well.

    Args:
        dataset: A dataset at a version, detached or not.

    Example:
        >>> import lance, pyarrow as pa, tempfile
        >>> place = tempfile.mkdtemp()
        >>> first = lance.write_dataset(pa.table({"a": [1]}), place, mode="overwrite")
        >>> version_identity(first) == version_identity(lance.dataset(place, version=1))
        True
    """
    version = dataset.get_version()
    names = [
        file.path for fragment in dataset.get_fragments()[:1] for file in fragment.data_files()
    ]
    counts = sorted(version["metadata"].items())
    return combined_identity([str(version_time(version).timestamp()), *names, repr(counts)])


def version_time(version: Version) -> datetime:
    """Tell when a version was committed, in UTC; Lance gives its time as a naive local one.

    Example:
        >>> from datetime import timedelta
        >>> local = datetime(2026, 1, 1)
        >>> utc = version_time({"version": 1, "timestamp": local, "metadata": {}})
        >>> utc.timestamp() == local.timestamp(), utc.utcoffset() == timedelta(0)
        (True, True)
    """
    return cast("datetime", version["timestamp"]).astimezone(UTC)


def combined_identity(identities: Iterable[str]) -> str:
    """Make one identity of several.

    Example:
        >>> combined_identity(["a", "b"]) == combined_identity(["b", "a"])
        False
    """
    digest = hashlib.blake2b(digest_size=_DIGEST_BYTES)
    for identity in identities:
        digest.update(f"{len(identity)}:{identity}".encode())
    return digest.hexdigest()
