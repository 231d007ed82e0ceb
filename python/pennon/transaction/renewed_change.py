"""Renews the notice of a change while its process works on it, so that it may take any time.

A process that is killed, or that a failure has left without an end, renews nothing: soon the next
writer may end what it began.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from typing import TYPE_CHECKING, Final

from pennon.errors import PennonError, TransactionModeChanged
from pennon.manifest.commits.mode_commit import renew_change
from pennon.manifest.format.change_notice import ChangeNotice

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pennon.manifest.dataset.storage import StorageOptions

__all__ = ["renewed"]

_LOG = logging.getLogger(__name__)
# So many times in the time that it lasts: a store that fails once is asked again before it is over.
_TIMES: Final = 4


@contextlib.contextmanager
def renewed(location: str, change: str, storage_options: StorageOptions) -> Iterator[None]:
    """Renew a change now and then while the context is open.

    Args:
        location: The namespace.
        change: The name of the change.
        storage_options: Given to Lance.
    """
    notice = ChangeNotice.read(change)
    pause = 0.0 if notice is None else notice.lasts_seconds / _TIMES
    is_over = threading.Event()

    def renew() -> None:
        while not is_over.wait(pause):
            try:
                renew_change(location, change, storage_options)
            except TransactionModeChanged:  # the next look of the one that works tells him
                return
            except PennonError as error:
                _LOG.warning("the change of %s is not renewed: %s", location, error)

    thread = threading.Thread(target=renew, name="pennon-renewal", daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()
