"""The library's door: open a partitioned namespace and plan scans, without Spark and Java."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pennon.catalog.configured_catalog import plain_path
from pennon.draft import DraftSnapshot, open_snapshot
from pennon.manifest import Snapshot
from pennon.planning import ScanPlan, plan_scan

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa

    from pennon.spec.partition_spec import PartitionSpec

__all__ = ["PartitionedNamespace", "open_namespace"]


@dataclass(frozen=True, slots=True)
class PartitionedNamespace:
    """A partitioned namespace at one version.

    Args:
        snapshot: The view of its ``__manifest``.
    """

    snapshot: Snapshot

    @property
    def location(self) -> str:
        """Path or URL of the namespace."""
        return self.snapshot.location

    @property
    def version(self) -> int:
        """Version of ``__manifest``."""
        return self.snapshot.version

    @property
    def is_draft(self) -> bool:
        """Whether it has the layout of the older draft, which is only read."""
        return isinstance(self.snapshot, DraftSnapshot)

    @property
    def schema(self) -> pa.Schema:
        """The columns; each carries its id under ``lance:field_id``."""
        return self.snapshot.schema.arrow

    @property
    def specs(self) -> Mapping[int, PartitionSpec]:
        """Every partition spec by version."""
        return self.snapshot.specs

    def plan_scan(
        self, predicate: str | None = None, columns: Sequence[str] | None = None
    ) -> ScanPlan:
        """Choose the partitions that a query needs.

        Args:
            predicate: Spark SQL of one condition; None for all rows.
            columns: The columns to read, in this order; None for all.

        Returns:
            A plan: ``manifest_sql``, ``partitions``, ``to_arrow()`` and ``to_batches()``.

        Raises:
            PennonError: The predicate is no SQL, or names no column of the table.

        Spec: "Partition Pruning".
        """
        return plan_scan(self.snapshot, predicate, columns)


def open_namespace(
    path: str | os.PathLike[str],
    version: int | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> PartitionedNamespace:
    """Open a partitioned namespace; ``pennon.open`` is this function.

    Args:
        path: Path or URL of the folder that holds ``__manifest``.
        version: A version of ``__manifest``; None for the newest.
        storage_options: Given to Lance; never printed.

    Raises:
        PennonError: There is no partitioned namespace, or it is damaged.

    Example:
        >>> import pennon
        >>> flights = pennon.open("lake/flights")  # doctest: +SKIP
        >>> flights.plan_scan("time_hour >= TIMESTAMP '2013-07-01'").to_arrow()  # doctest: +SKIP

    Spec: "Metadata Definition".
    """
    location = plain_path(os.fspath(path))
    location = location.rstrip("/") or location
    return PartitionedNamespace(open_snapshot(location, version, None, storage_options))
