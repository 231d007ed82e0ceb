"""Turns: a writer that keeps losing races asks the others to let it through.

Who changes hundreds of leaves needs longer from its look at them to its commit than others need
for a commit of one leaf, and while some of these never stop, it would never come to an end. So it
writes into the metadata of ``__manifest`` that it is its turn, for a few seconds. The others read
that at their next look, which opens the manifest anyway, and wait. It is a request and no lock: who
does not know it, or does not wait, commits as ever, and the commit itself says who came first.
"""

from __future__ import annotations

import secrets
import time
from typing import TYPE_CHECKING, Final, Self

from pennon.errors import PennonError
from pennon.manifest.dataset.storage import open_manifest
from pennon.manifest.format.properties import TURN

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pennon.manifest.dataset.storage import StorageOptions
    from pennon.manifest.snapshot import Snapshot

__all__ = ["Turn"]

_PATIENCE: Final = 3
_LASTS_SECONDS: Final = 5.0
_LOOKS_EACH_SECONDS: Final = 0.05


class Turn:
    """One commit's turn; it is given back when the context is left.

    Args:
        location: The namespace.
        storage_options: Given to Lance.
    """

    def __init__(self, location: str, storage_options: StorageOptions | None) -> None:
        self._location = location
        self._options = storage_options
        self._id = secrets.token_hex(8)
        self._ends = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Give it back, if it was taken."""
        if self._ends:
            self._write(None)

    @property
    def is_mine(self) -> bool:
        """Whether it was taken and is not over."""
        return time.time() < self._ends

    def after(self, others: Callable[[], Snapshot]) -> Snapshot:
        """Look at the table; again, while it is another writer's turn.

        Args:
            others: Opens the newest version.
        """
        latest = time.monotonic() + _LASTS_SECONDS
        while True:
            snapshot = others()
            is_free = self.is_mine or not self._is_of_another(snapshot.manifest.metadata)
            if is_free or time.monotonic() > latest:
                return snapshot
            time.sleep(_LOOKS_EACH_SECONDS)

    def take_where_late(self, attempt: int) -> None:
        """Ask for it where many tries were in vain.

        Args:
            attempt: How many have failed before the last one.
        """
        if attempt + 1 >= _PATIENCE and not self.is_mine:
            ends = time.time() + _LASTS_SECONDS
            if self._write(f"{self._id} {int(ends * 1000)}"):
                self._ends = ends

    def _is_of_another(self, metadata: Mapping[str, str]) -> bool:
        name, _, ends = metadata.get(TURN, "").partition(" ")
        return ends.isdecimal() and name != self._id and time.time() * 1000 < int(ends)

    def _write(self, text: str | None) -> bool:
        """Write whose turn it is; whether that could be done, for nothing depends on it."""
        try:
            manifest = open_manifest(self._location, storage_options=self._options)
            if text is not None and self._is_of_another(manifest.metadata):
                return False
            manifest.update_metadata({TURN: text})
        except (PennonError, OSError, RuntimeError, ValueError):
            return False
        return True
