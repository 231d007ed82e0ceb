"""The folders of tables that are dropped, and of those that a query fills before they are there.

A folder is renamed before its files are deleted, so that who still reads the table misses it as a
whole, and not one file of it after the other. A process that is killed meanwhile leaves a folder
``dropped-<hex>``, which nobody reads any more: whoever drops or makes the next table beside it
removes it.
"""

from __future__ import annotations

import contextlib
import logging
import re
import secrets
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pennon.catalog.configured_catalog import is_local
from pennon.errors import PennonError
from pennon.leaf import forget_leaves

if TYPE_CHECKING:
    from pennon.catalog.configured_catalog import Catalog
    from pennon.catalog.layouts import StoredTable

__all__ = ["delete_files", "remove_dropped_beside"]

_LOG = logging.getLogger(__name__)
_DROPPED: Final = re.compile(r"dropped-[0-9a-f]{16}")


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
            remove_dropped_beside(catalog, location)
            return
        table.delete_datasets()
        if is_local(location):
            with contextlib.suppress(OSError):
                Path(location).rmdir()
    except (OSError, ValueError, PennonError) as error:
        _LOG.warning("files of %s could not be deleted: %s", location, error)


def remove_dropped_beside(catalog: Catalog, location: str) -> None:
    """Remove the folders of dropped tables in the folder that a table below the root is in.

    Args:
        catalog: The catalog.
        location: Where the table is, or was.
    """
    if not (is_local(location) and catalog.is_below_root(location)):
        return
    try:
        for folder in Path(location).parent.glob("dropped-*"):
            if _DROPPED.fullmatch(folder.name):
                _remove(folder)
    except OSError as error:
        _LOG.warning("files of dropped tables beside %s stay: %s", location, error)


def _remove(folder: Path) -> None:
    """Remove a folder that another process may be removing, too."""
    while folder.exists():
        with contextlib.suppress(FileNotFoundError):
            shutil.rmtree(folder)
