"""The requests about metadata tables; ``split`` holds storage options and is never printed."""

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
