"""Planning a scan: the partitions that a predicate needs and what each still has to filter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import pyarrow as pa
    from sqlglot import exp

    from pennon.manifest.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class PlannedPartition:
    """One partition that a scan reads."""

    object_id: str
    location: str
    version: int | None
    values: Mapping[str, object]
    residual: str | None
    num_rows: int | None
    num_bytes: int | None


@dataclass(frozen=True, slots=True)
class ScanPlan:
    """What a scan reads.

    Args:
        snapshot: The namespace at the version that was planned.
        schema: The projected schema.
        manifest_sql: The one query over ``__manifest`` that chose the partitions.
        table: One row per partition: object_id, location, read_version (uint64, resolved and
            pinned), num_rows, num_bytes, num_fragments, partition_field_*, residual (int32 index
            into ``residuals``, -1 for none) and row_filter (the same into ``row_filters``).
        residuals: The distinct residual filters of exact conjuncts, in the DataFusion dialect.
        row_filters: The distinct complete residual filters, for readers without Spark behind them.
    """

    snapshot: Snapshot
    schema: pa.Schema
    manifest_sql: str
    table: pa.Table
    residuals: tuple[str, ...]
    row_filters: tuple[str, ...]

    @property
    def partitions(self) -> Sequence[PlannedPartition]:
        """The chosen partitions, made on demand."""
        raise NotImplementedError

    @property
    def partitions_total(self) -> int:
        """How many partitions the snapshot has."""
        raise NotImplementedError

    @property
    def num_rows(self) -> int | None:
        """Rows of the chosen partitions before any filter; None when one does not say."""
        raise NotImplementedError

    @property
    def num_bytes(self) -> int | None:
        """Bytes of the chosen partitions; None when one does not say."""
        raise NotImplementedError

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Read the rows that satisfy the whole predicate."""
        raise NotImplementedError

    def to_arrow(self) -> pa.Table:
        """Read the rows that satisfy the whole predicate."""
        raise NotImplementedError


def plan_scan(
    snapshot: Snapshot,
    predicate: str | exp.Expression | Sequence[str] | None = None,
    columns: Sequence[str] | None = None,
) -> ScanPlan:
    """Plan a scan."""
    raise NotImplementedError
