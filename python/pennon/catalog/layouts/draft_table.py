"""A read-only table over a namespace of the older draft."""

from __future__ import annotations

from dataclasses import dataclass

from pennon.catalog.layouts.partitioned_table import PartitionedTable
from pennon.errors import DraftLayout

__all__ = ["DraftTable"]


@dataclass(frozen=True, slots=True)
class DraftTable(PartitionedTable):
    """A namespace of the draft at one version of its manifest."""

    def check_writable(self, verb: str) -> None:
        """Refuse every change.

        Raises:
            DraftLayout: Always; it names the command that makes the table writable.
        """
        raise DraftLayout(verb=verb, location=self.snapshot.location)
