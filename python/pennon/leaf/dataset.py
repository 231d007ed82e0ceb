"""Opening one leaf: a Lance dataset at a version, detached or not.

In strong mode the manifest names the version; in weak mode it is the newest of the main branch.
A dataset at a version never changes, so opened ones are kept for all threads of the process. A
kept one costs about 50 KB and saves half of the time in which a small leaf is read; what Lance
remembers of the files of all of them has one bound.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TYPE_CHECKING

import lance

from pennon.errors import LeafMissing, LeafReadAtReference

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["check_is_main", "forget_leaves", "leaf_uri", "open_leaf", "resolve_reference"]

_OPEN_LIMIT = 1024
_METADATA_BYTES = 256 << 20
_INDEX_BYTES = 512 << 20
_MAIN = "main"
_opened: OrderedDict[tuple[str, int], lance.LanceDataset] = OrderedDict()
_lock = threading.Lock()


def _new_session() -> lance.Session:
    return lance.Session(
        metadata_cache_size_bytes=_METADATA_BYTES, index_cache_size_bytes=_INDEX_BYTES
    )


_session = _new_session()


def leaf_uri(root: str, location: str) -> str:
    """Give the address of a leaf: the manifest's locations are relative to the namespace.

    Args:
        root: Path or URL of the partitioned namespace.
        location: The leaf's ``location`` in the manifest.

    Returns:
        Path or URL of the leaf's dataset.

    Example:
        >>> leaf_uri("/data/orders/", "1a2b3c4d_v1$dataset")
        '/data/orders/1a2b3c4d_v1$dataset'
    """
    if "://" in location or location.startswith("/"):
        return location
    return f"{root.rstrip('/')}/{location}"


def open_leaf(
    root: str,
    location: str,
    version: int | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> lance.LanceDataset:
    """Open a leaf at a version.

    Args:
        root: Path or URL of the partitioned namespace.
        location: The leaf's ``location`` in the manifest.
        version: The manifest's ``read_version``; None for the newest of the main branch.
        storage_options: Passed to Lance, never printed.

    Returns:
        The dataset, which other threads may share: treat it as a value.

    Raises:
        LeafMissing: The files are gone, or were never there.

    Spec: "Transaction", "Physical Layout and Naming".
    """
    uri = leaf_uri(root, location)
    if version is not None:
        with _lock:
            known = _opened.get((uri, version))
            if known is not None:
                _opened.move_to_end((uri, version))
                return known
    options = dict(storage_options) if storage_options else None
    try:
        dataset = lance.dataset(uri, version=version, storage_options=options, session=_session)
    except (ValueError, OSError) as error:
        if not _says_missing(error):
            raise
        at = "its newest version" if version is None else f"version {version}"
        raise LeafMissing(leaf=location, table=root, version=at) from error
    if version is not None:
        with _lock:
            _opened[uri, version] = dataset
            while len(_opened) > _OPEN_LIMIT:
                _opened.popitem(last=False)
    return dataset


def resolve_reference(
    root: str,
    location: str,
    reference: tuple[str | None, str | None],
    version: int | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> tuple[str, int]:
    """Look up where a branch or a tag of a leaf is, as of now.

    Args:
        root: Path or URL of the partitioned namespace.
        location: The leaf's ``location`` in the manifest.
        reference: Branch and tag; the tag decides where both are there. No branch is main.
        version: The version to read, of that branch; None for its newest. A tag has its own.
        storage_options: Passed to Lance, never printed.

    Returns:
        The location of the branch, which opens as a dataset of its own, and the version.

    Raises:
        LeafMissing: There is no such branch or tag.
    """
    branch, tag = reference
    if tag is not None:
        tags = open_leaf(root, location, None, storage_options).tags.list()
        if tag not in tags:
            raise LeafMissing(leaf=location, table=root, version=f"tag '{tag}'")
        branch, version = tags[tag]["branch"], int(tags[tag]["version"])
    if branch is not None and branch != _MAIN:
        location = f"{location}/tree/{branch}"
    if version is None:
        version = int(open_leaf(root, location, None, storage_options).version)
    return location, version


def check_is_main(root: str, location: str, branch: str | None, tag: str | None) -> None:
    """Check that a leaf is read on its main branch, where alone Pennon writes.

    Raises:
        LeafReadAtReference: The manifest names a branch or a tag of it.
    """
    if tag is not None:
        raise LeafReadAtReference(leaf=location, table=root, reference=f"tag '{tag}'")
    if branch is not None and branch != _MAIN:
        raise LeafReadAtReference(leaf=location, table=root, reference=f"branch '{branch}'")


def forget_leaves() -> None:
    """Drop the opened datasets, for example after their storage options changed."""
    global _session  # noqa: PLW0603 - it is this module's cache, as the datasets are
    with _lock:
        _opened.clear()
        _session = _new_session()


def _says_missing(error: Exception) -> bool:
    text = str(error).lower()
    return any(word in text for word in ("not found", "was not found", "no such file"))
