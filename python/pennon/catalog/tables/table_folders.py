"""The folders of tables that are dropped, and of those that a query fills before they are there.

A folder is renamed before its files are deleted, so that who still reads the table misses it as a
whole, and not one file of it after the other. A table that is filled by a query is filled in a
folder beside its place, which it gets as a whole: at a path there is no empty table meanwhile, and
where the process was killed neither a table nor a folder that looks like one.

What a killed process left, ``dropped-<hex>`` and ``pennon-staged-<hex>``, goes with the next table
that is made or dropped beside it; a staged one, which a query may be filling, when it is old.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import secrets
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pennon.catalog.configured_catalog import is_local
from pennon.errors import PennonError, TableAlreadyExists
from pennon.leaf import forget_leaves
from pennon.manifest.dataset.storage import MANIFEST, storage_failure
from pennon.manifest.format.properties import DEFAULT_AGE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pennon.catalog.configured_catalog import Catalog
    from pennon.catalog.layouts import StoredTable

__all__ = [
    "delete_files",
    "give_place_back",
    "place_of_name",
    "remove_left_beside",
    "staging_place",
    "staging_place_of_name",
    "take_place",
]

_LOG = logging.getLogger(__name__)
_DROPPED: Final = re.compile(r"dropped-[0-9a-f]{16}")
_STAGED: Final = re.compile(r"pennon-staged-([0-9a-f]{8})[0-9a-f]{8}")
_NOT_IN_FOLDERS: Final = re.compile(r"[^\w$.-]", re.ASCII)


def delete_files(catalog: Catalog, table: StoredTable) -> None:
    """Delete the table's datasets, and its whole folder where Pennon made that.

    Files that cannot be deleted are logged: the table is gone all the same.

    Args:
        catalog: The catalog.
        table: One whose name is forgotten already.
    """
    location = table.snapshot.location
    forget_leaves()
    try:
        if is_local(location) and catalog.is_below_root(location):
            Path(location).rename(Path(location).with_name(f"dropped-{secrets.token_hex(8)}"))
            remove_left_beside(catalog, location)
            return
        table.delete_datasets()
        if is_local(location):
            with contextlib.suppress(OSError):
                Path(location).rmdir()
    except (OSError, ValueError, PennonError) as error:
        _LOG.warning("files of %s could not be deleted: %s", location, error)


def staging_place(location: str) -> str:
    """Choose where a query fills a table that is named by its path.

    Returns:
        A folder beside it; the place itself where something is there already, or in an object
        store, which renames no folder.
    """
    place = Path(location)
    if not is_local(location) or os.path.lexists(place):
        return location
    return str(place.with_name(f"pennon-staged-{secrets.token_hex(8)}"))


def staging_place_of_name(catalog: Catalog, identifier: Sequence[str]) -> str:
    """Choose where a query fills a table that has a name.

    Args:
        catalog: The catalog.
        identifier: Namespaces and name.

    Returns:
        A folder below the root; in an object store the one that the table keeps.
    """
    staged = catalog.address(f"pennon-staged-{secrets.token_hex(8)}")
    return staged if catalog.is_local else place_of_name(catalog, identifier, staged)


def place_of_name(catalog: Catalog, identifier: Sequence[str], staged: str) -> str:
    """Give the folder that a table gets with its name, always the same for a staged one.

    Args:
        catalog: The catalog.
        identifier: Namespaces and name.
        staged: Where it was filled.

    Returns:
        A folder below the root; the place itself where that is the table's own already.
    """
    digits = _STAGED.fullmatch(staged.removeprefix(catalog.prefix))
    if digits is None:
        return staged
    folder = _NOT_IN_FOLDERS.sub("_", "$".join(identifier))
    return catalog.address(f"{digits[1]}_{folder}")


def take_place(staged: str, location: str) -> None:
    """Put a table that a query has filled at its place. It may be called again.

    Args:
        staged: As ``staging_place`` chose it.
        location: The place.

    Raises:
        TableAlreadyExists: Something was put there meanwhile.
        StorageFailure: The folder cannot be renamed.
    """
    if staged == location:
        return
    forget_leaves()
    try:
        Path(staged).rename(location)
    except FileNotFoundError as error:
        if not (Path(location) / MANIFEST).exists():
            raise storage_failure("create", location, error) from error
    except OSError as error:
        if os.path.lexists(location):
            raise TableAlreadyExists(table=location, kind="a folder") from error
        raise storage_failure("create", location, error) from error


def give_place_back(staged: str, location: str) -> None:
    """Take a table from its place again, for it did not get its name.

    Args:
        staged: Where it was filled.
        location: The place.
    """
    if staged == location:
        return
    forget_leaves()
    try:
        Path(location).rename(staged)
    except FileNotFoundError:  # it was refused before it got its place
        return
    except OSError as error:
        _LOG.warning("the files of a table without a name stay in %s: %s", location, error)


def remove_left_beside(catalog: Catalog, location: str) -> None:
    """Remove what killed processes left of tables in the folder that a table is in.

    Args:
        catalog: The catalog.
        location: Where the table is, or was.
    """
    if not is_local(location):
        return
    beside = Path(location).parent
    try:
        if catalog.is_below_root(location):
            for folder in beside.glob("dropped-*"):
                if _DROPPED.fullmatch(folder.name):
                    _remove(folder)
        for folder in beside.glob("pennon-staged-*"):
            if _STAGED.fullmatch(folder.name) and _is_old(folder):
                _remove(folder)
    except OSError as error:
        _LOG.warning("files that killed processes left beside %s stay: %s", location, error)


def _is_old(folder: Path) -> bool:
    """Whether no query can be filling a folder any more."""
    limit = (datetime.now(UTC) - DEFAULT_AGE).timestamp()
    return all(path.stat().st_mtime < limit for path in (folder, *folder.rglob("*")))


def _remove(folder: Path) -> None:
    """Remove a folder that another process may be removing, too."""
    while folder.exists():
        with contextlib.suppress(FileNotFoundError):
            shutil.rmtree(folder)
