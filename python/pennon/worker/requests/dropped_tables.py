"""Tells a task's failure by its cause where the table that it reads was dropped meanwhile.

A task knows the place of the table alone. Its files go one by one, so that any of many errors may
come first, and each would send its reader to look for lost files.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from pennon.catalog.layouts.plain_snapshot import open_plain
from pennon.errors import NamespaceHasNoManifest, PennonError, TableNotFound
from pennon.manifest.dataset.storage import open_manifest
from pennon.worker.wire.framing import ConnectionClosed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pennon.worker.wire.tokens import ScanToken

__all__ = ["naming_dropped_tables"]

_DROPPED: Final = "it was dropped or replaced while it was read"


@contextmanager
def naming_dropped_tables(scans: Iterable[ScanToken]) -> Iterator[None]:
    """Raise failures of the statements within as that of a table which is not there any more.

    Args:
        scans: What the task reads.

    Raises:
        TableNotFound: Nothing is at the place of one of the tables.
    """
    try:
        yield
    except ConnectionClosed:
        raise
    except (PennonError, OSError, ValueError) as error:
        dropped = next((scan for scan in scans if not _is_there(scan)), None)
        if dropped is None:
            raise
        raise TableNotFound(table=dropped.location, near=_DROPPED) from error


def _is_there(scan: ScanToken) -> bool:
    """Whether a table is at the place of a scan; so it is where the storage does not say."""
    try:
        open_manifest(scan.location, None, None, scan.storage_options)
    except NamespaceHasNoManifest:
        try:
            return open_plain(scan.location, None, None, scan.storage_options) is not None
        except (PennonError, OSError):
            return True
    except (PennonError, OSError):
        return True
    return True
