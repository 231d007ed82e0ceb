"""The request that reads a metadata table; ``split`` holds storage options and is never printed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from pennon.catalog.configured_catalog import Catalog
from pennon.worker.messages.messages import NamedTableRequest


@dataclass(frozen=True, slots=True)
class ReadMetadata:
    """The rows of a metadata table; an Arrow stream of the columns that ``split`` names."""

    op: ClassVar[str] = "read_metadata"
    table: str
    split: str


@dataclass(frozen=True, slots=True)
class LoadChanges(NamedTableRequest):
    """``FROM t CHANGES FROM … TO …``: a range of versions or of times, open where an end is null.

    ``deduplication`` is Spark's: ``none``, ``dropCarryovers`` or ``netChanges``.
    """

    op: ClassVar[str] = "load_changes"
    start_version: str | None
    end_version: str | None
    start_micros: int | None
    end_micros: int | None
    start_inclusive: bool
    end_inclusive: bool
    compute_updates: bool
    deduplication: str
    options: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class MetadataRows:
    """What ``split`` of ``read_metadata`` says; an executor knows no catalog otherwise."""

    catalog: Catalog
    columns: tuple[str, ...]
    predicates: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ExplainScan:
    """What a planned scan reads, and why."""

    op: ClassVar[str] = "explain_scan"
    catalog: Catalog
    plan: str


@dataclass(frozen=True, slots=True)
class ExplainScanReply:
    """Pairs of a line's title and its text."""

    rows: tuple[object, ...]


@dataclass(frozen=True, slots=True)
class SummarizeColumns:
    """What is known of columns over all partitions of a planned scan."""

    op: ClassVar[str] = "summarize_columns"
    catalog: Catalog
    plan: str
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ColumnSummaryText:
    """That of a column; bounds as Spark writes them for its own catalog, null where unknown."""

    name: str
    lower: str | None
    upper: str | None
    null_count: int
    distinct_count: int | None


@dataclass(frozen=True, slots=True)
class SummarizeColumnsReply:
    """Those columns of which something is known, and about how many rows the scan gives."""

    rows: int | None
    columns: tuple[ColumnSummaryText, ...]


@dataclass(frozen=True, slots=True)
class PartitionTuples:
    """The values that the partitions of a planned scan have of columns."""

    op: ClassVar[str] = "partition_tuples"
    catalog: Catalog
    plan: str
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PartitionTuplesReply:
    """Goes before a table of the columns, each tuple once; without rows for too many."""

    arrow: bool
