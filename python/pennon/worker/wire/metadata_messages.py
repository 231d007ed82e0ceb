"""The request that reads a metadata table; ``split`` holds storage options and is never printed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pennon.catalog.configured_catalog import Catalog


@dataclass(frozen=True, slots=True)
class ReadMetadata:
    """The rows of a metadata table; an Arrow stream of the columns that ``split`` names."""

    op: ClassVar[str] = "read_metadata"
    table: str
    split: str


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
    """Pairs of what is told and the text."""

    rows: tuple[object, ...]
