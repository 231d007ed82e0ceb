"""The files of a leaf: what is there, and what some of its versions need.

A version's files are those that its transaction added and those of the version it was built on. So
of a set of versions only those are read whole whose parent is not in it: of a chain of a thousand
appends one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

import lance
import pyarrow as pa
from lance.file import LanceFileSession

from pennon.caching.lance_sessions import (
    FIRST_DETACHED,
    copied_versions,
    file_session,
    lance_options,
    version_path,
)
from pennon.errors import InternalError, LeafMissing, StorageFailure
from pennon.leaf import LeafSource, leaf_uri, open_leaf
from pennon.leaf.dataset import leaf_missing, open_own_leaf
from pennon.manifest.dataset.storage import (
    StorageOptions,
    is_damaged,
    is_not_found,
    present_numbers,
    storage_failure,
)
from pennon.manifest.versions.tags import tagged_versions

__all__ = [
    "INDICES",
    "LeafFiles",
    "Progress",
    "broken_fragments",
    "detached_versions",
    "files_of_version",
    "newest_of_main",
    "no_progress",
]

# The callback by which maintenance reports its progress.

Progress = Callable[[str, int, int], None]
"""Told what is done, how many of it are done, and how many there are."""


def no_progress(what: str, done: int, total: int) -> None:
    """Show nothing."""
    del what, done, total


INDICES: Final = "_indices/"
"""Where the segments of indexes are, each in a folder that is named by its id."""
_LISTINGS: Final = 8
_DELETED_AT_ONCE: Final = 8
_DETACHED: Final = re.compile(r"(?:.*/)?d(\d+)\.manifest")
_LAST_VERSION: Final = 2**64 - 1
_ADDED: Final = {"Append": "fragments", "Update": "new_fragments"}
_CHANGED: Final = {"Update": "updated_fragments", "Delete": "updated_fragments"}


@dataclass(slots=True)
class LeafFiles:
    """One leaf's directory.

    Args:
        root: The namespace.
        place: The leaf's directory.
        storage_options: Given to Lance.
        main: The newest version of its main branch; where there is none, as a leaf of a store
            begins, a detached one.
        sizes: Bytes of each file that is there, by its path in the directory.
        changed_at: When each was last changed, in UTC.
    """

    root: str
    place: str
    storage_options: StorageOptions
    main: lance.LanceDataset
    sizes: dict[str, int] = field(default_factory=dict)
    changed_at: dict[str, datetime] = field(default_factory=dict)

    @classmethod
    def open(cls, root: str, place: str, storage_options: StorageOptions) -> LeafFiles:
        """List the files of a leaf.

        Raises:
            LeafMissing: It is gone.
            StorageFailure: The storage refused.
        """
        leaf = cls(root, place, storage_options, newest_of_main(root, place, storage_options))
        listed = _listed(leaf.main)
        paths = listed["path"].to_pylist()
        leaf.sizes = dict(zip(paths, listed["size_bytes"].to_pylist(), strict=True))
        leaf.changed_at = dict(zip(paths, listed["last_modified"].to_pylist(), strict=True))
        return leaf

    def made_at(self, version: int) -> datetime:
        """When a version of the main branch was made, by the storage's clock; now if it is gone."""
        names = (version, _LAST_VERSION - version)
        paths = (f"_versions/{name}.manifest" for name in names)
        known = (self.changed_at[path] for path in paths if path in self.changed_at)
        return next(known, max(self.changed_at.values()))

    @property
    def detached(self) -> set[int]:
        """The detached versions that are there."""
        paths = (path for path in self.sizes if path.startswith("_versions/"))
        matches = map(_DETACHED.fullmatch, paths)
        numbers = {int(match_.group(1)) for match_ in matches if match_ is not None}
        return {number for number in numbers if number >= FIRST_DETACHED}

    @property
    def tagged(self) -> set[int]:
        """The versions that have a tag."""
        return tagged_versions(self.main) if self._has("_refs/tags/") else set()

    @property
    def has_branches(self) -> bool:
        """Whether there are branches, which may share files."""
        return self._has("_refs/branches/") and bool(self.main.branches.list())

    def _has(self, start: str) -> bool:
        return any(path.startswith(start) for path in self.sizes)

    def of_main(self) -> set[str]:
        """Give the files of all versions of the main branch."""
        needed: set[str] = set()
        for version in sorted(present_numbers(self.main)):
            needed.update(self._read(self.main.checkout_version(version)))
        # Readers of main look for its manifests and transactions by themselves.
        by_version = ("data/", "_deletions/", INDICES)
        tables = {path for path in self.sizes if not path.startswith(by_version)}
        detached = {version_path(version) for version in self.detached}
        own = {path for path in tables if not path.startswith("_transactions/")} - detached
        return needed | own | self._transactions_of_main()

    def _transactions_of_main(self) -> set[str]:
        versions = sorted(present_numbers(self.main))
        return {
            transaction_path(transaction)
            for version in versions
            if (transaction := self.main.read_transaction(version)) is not None
        }

    def of(self, versions: Iterable[int]) -> set[str]:
        """Give the files of some detached versions, their manifests and transactions included.

        Raises:
            LeafMissing: One is gone, or torn.
        """
        chosen = set(versions)
        needed: set[str] = set()
        copied = copied_versions(self.main, sorted(chosen), self.storage_options, with_rows=False)
        for version in sorted(chosen):
            dataset = copied.get(version) or self._opened(version)
            try:
                made_by = dataset.read_transaction(version)
            except OSError as error:  # Lance opens the version a second time
                if not is_not_found(error):
                    raise storage_failure("read", str(dataset.uri), error) from error
                raise leaf_missing(dataset) from error
            needed.add(version_path(version))
            if made_by is not None:
                needed.add(transaction_path(made_by))
            kind = "" if made_by is None else type(made_by.operation).__name__
            is_known = kind in _ADDED or kind in _CHANGED
            if made_by is None or not is_known or made_by.read_version not in chosen:
                needed.update(self._read(dataset))
            else:
                needed.update(_introduced(made_by.operation, kind))
        return needed

    def with_blobs(self, files: set[str]) -> set[str]:
        """Add the blobs beside data files, which Lance keeps in a folder of the file's name."""
        beside = (path for path in self.sizes if path.count("/") > 1 and path.startswith("data/"))
        return files | {path for path in beside if f"{path.rpartition('/')[0]}.lance" in files}

    def _read(self, dataset: lance.LanceDataset) -> set[str]:
        """Give the files of a version's rows, and those of its indexes."""
        folders = {
            f"{INDICES}{segment.uuid}"
            for index in dataset.describe_indices()
            for segment in index.segments
        }
        of_indexes = {
            path
            for path in self.sizes
            if path.startswith(INDICES) and "/".join(path.split("/")[:2]) in folders
        }
        return {*files_of_version(dataset), *of_indexes}

    def _opened(self, version: int) -> lance.LanceDataset:
        try:
            return open_own_leaf(self.root, self.place, version, self.storage_options)
        except StorageFailure as error:
            if not is_damaged(error):
                raise
            at = f"version {version}"
            raise LeafMissing(leaf=self.place, table=self.root, version=at) from error

    def remove_all(self, paths: Sequence[str]) -> int:
        """Delete files, of a store several at a time; as ``remove``."""
        if "://" not in self.root or len(paths) <= 1:
            return sum(map(self.remove, paths))
        with ThreadPoolExecutor(_DELETED_AT_ONCE) as pool:
            return sum(pool.map(self.remove, paths))

    def remove(self, path: str) -> int:
        """Delete a file, which another expiry may have taken; gives its bytes.

        Raises:
            StorageFailure: The storage refused.
        """
        uri = leaf_uri(self.root, self.place)
        try:
            file_session(uri, self.storage_options).delete_file(path)
        except (OSError, ValueError) as error:
            if not is_not_found(error):
                raise storage_failure("delete a file of", uri, error) from error
        return self.sizes.pop(path, 0)


def newest_of_main(root: str, place: str, storage_options: StorageOptions) -> lance.LanceDataset:
    """Open a leaf at the newest version of its main branch, or else at a detached one.

    Raises:
        LeafMissing: There is neither.
        StorageFailure: The storage refused.
    """
    try:
        return open_leaf(root, place, None, storage_options)
    except LeafMissing:
        detached = detached_versions(leaf_uri(root, place), storage_options)
        if not detached:
            raise
        return open_own_leaf(root, place, detached[0], storage_options)


def detached_versions(uri: str, storage_options: StorageOptions) -> list[int]:
    """List the detached versions of a leaf, by the files that hold them."""
    files = LanceFileSession(uri, storage_options=lance_options(storage_options)).list("_versions")
    matches = (_DETACHED.fullmatch(name) for name in files)
    return sorted(int(match_.group(1)) for match_ in matches if match_ is not None)


def _listed(dataset: lance.LanceDataset) -> pa.Table:
    """List all files; again where one went while they were listed."""
    for attempt in range(_LISTINGS):
        try:
            return dataset.all_files().read_all()
        except (OSError, RuntimeError, ValueError) as error:
            if not is_not_found(error) or attempt == _LISTINGS - 1:
                raise storage_failure("list the files of", str(dataset.uri), error) from error
    raise InternalError(what="no files are listed")


def broken_fragments(dataset: lance.LanceDataset) -> dict[int, str]:
    """Tell which fragments of a leaf have a file that is gone, or torn.

    Names and sizes are looked at, and the marks of deleted rows: the rows themselves are not read.

    Args:
        dataset: The leaf at a version.

    Returns:
        What is wrong with which fragment.

    Raises:
        StorageFailure: The storage refused.
    """
    listed = _listed(dataset)
    sizes = dict(zip(listed["path"].to_pylist(), listed["size_bytes"].to_pylist(), strict=True))
    broken: dict[int, str] = {}
    for fragment in dataset.get_fragments():
        metadata, number = fragment.metadata, fragment.fragment_id
        stated = {f"data/{file.path}": file.file_size_bytes for file in metadata.files}
        for path in _files_of(metadata, number):
            if path not in sizes:
                broken[number] = f"{path} is gone"
            elif sizes[path] != (stated.get(path) or sizes[path]):
                broken[number] = f"{path} has {sizes[path]} bytes of {stated[path]}"
        if number not in broken and metadata.deletion_file is not None:
            try:
                source = LeafSource(dataset)
                next(source.stored_batches([], fragments=[fragment], limit=1, has_addresses=True))
            except (OSError, RuntimeError, ValueError) as error:
                if not is_damaged(error):
                    raise storage_failure("read", str(dataset.uri), error) from error
                broken[number] = f"{metadata.deletion_file.path(number)} cannot be read"
    return broken


def transaction_path(transaction: lance.Transaction) -> str:
    """Give the file of a transaction."""
    return f"_transactions/{transaction.read_version}-{transaction.uuid}.txn"


def _introduced(operation: object, kind: str) -> Iterator[str]:
    for name in filter(None, (_ADDED.get(kind), _CHANGED.get(kind))):
        for fragment in getattr(operation, name):
            yield from _files_of(fragment, fragment.id)


def files_of_version(dataset: lance.LanceDataset) -> Iterator[str]:
    """Give the data and deletion files that a version reads, by their paths in its directory."""
    for fragment in dataset.get_fragments():
        yield from _files_of(fragment.metadata, fragment.fragment_id)


def _files_of(fragment: lance.FragmentMetadata, fragment_id: int) -> Iterator[str]:
    """Give the data and deletion files in the leaf's own directory."""
    for file in fragment.files:
        if file.base_id is None:
            yield f"data/{file.path}"
    if fragment.deletion_file is not None:
        yield fragment.deletion_file.path(fragment_id)
