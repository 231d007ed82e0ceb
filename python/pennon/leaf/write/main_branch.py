"""What is done to a leaf's main branch where the table's transactions become strong or weak."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import lance

from pennon.leaf.dataset import open_own_leaf
from pennon.leaf.write.leaf_commit import commit_operation

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["fence", "publish", "stop_auto_cleanup"]

_AUTO_CLEANUP: Final = "lance.auto_cleanup."


def fence(dataset: lance.LanceDataset) -> lance.LanceDataset:
    """Make a version of the same rows that no commit is rebased over.

    Whoever opened the leaf before, and commits behind it, is refused by Lance: appends, changes of
    rows, and changes of the schema. The fence is refused itself where another commit came first.

    Args:
        dataset: The leaf at the newest version of its main branch.

    Returns:
        The version.

    Raises:
        OSError: Another commit came first, or the storage refused.

    Spec: "Multi-Partition Transaction (Strong)".
    """
    fragments = [fragment.metadata for fragment in dataset.get_fragments()]
    same = lance.LanceOperation.Merge(fragments, dataset.lance_schema)
    return commit_operation(dataset, same, detached=False)


def publish(
    root: str, location: str, version: int, storage_options: Mapping[str, str] | None = None
) -> None:
    """Make a version of a leaf the newest one of its main branch.

    Args:
        root: Path or URL of the namespace.
        location: The leaf's directory.
        version: A version of it, detached or not.
        storage_options: Given to Lance.

    Raises:
        LeafMissing: The version's files are gone.
        OSError: The storage refused.
    """
    if int(open_own_leaf(root, location, None, storage_options).version) != version:
        open_own_leaf(root, location, version, storage_options).restore()  # type: ignore[no-untyped-call]


def stop_auto_cleanup(dataset: lance.LanceDataset) -> None:
    """Take out what has Lance clean up behind its commits: it deletes detached versions."""
    keys = [key for key in dataset.config() if key.startswith(_AUTO_CLEANUP)]
    if keys:
        dataset.delete_config_keys(keys)
