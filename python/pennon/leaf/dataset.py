"""Opening one leaf: a Lance dataset at a version, detached or not.

In strong mode the manifest names the version; in weak mode it is the newest of the main branch.
A dataset at a version never changes, so opened ones are kept for all threads of the process.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TYPE_CHECKING

import lance

from pennon.errors import LeafMissing

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["forget_leaves", "leaf_uri", "open_leaf"]

_OPEN_LIMIT = 128
_opened: OrderedDict[tuple[str, int], lance.LanceDataset] = OrderedDict()
_lock = threading.Lock()


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
        dataset = lance.dataset(uri, version=version, storage_options=options)
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


def forget_leaves() -> None:
    """Drop the opened datasets, for example after their storage options changed."""
    with _lock:
        _opened.clear()


def _says_missing(error: Exception) -> bool:
    text = str(error).lower()
    return any(word in text for word in ("not found", "was not found", "no such file"))
