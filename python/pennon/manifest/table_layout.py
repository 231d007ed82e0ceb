"""The layouts of a table: partitioned, plain, draft."""

from __future__ import annotations

from enum import StrEnum

__all__ = ["TableLayout"]


class TableLayout(StrEnum):
    """How a table's rows and its metadata lie in the storage."""

    PARTITIONED = "partitioned"
    """A partitioned namespace: ``__manifest`` and a dataset per partition."""
    PLAIN = "plain"
    """One Lance dataset, without a manifest."""
    DRAFT = "draft"
    """A partitioned namespace of the specification's older draft; it is only read."""
