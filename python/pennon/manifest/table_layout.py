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

    @property
    def has_manifest(self) -> bool:
        """Whether a ``__manifest`` says of each leaf what its partition is.

        Example:
            >>> [layout.value for layout in TableLayout if layout.has_manifest]
            ['partitioned', 'draft']
        """
        return self is not TableLayout.PLAIN

    @property
    def records_commits(self) -> bool:
        """Whether the manifest keeps what each commit did, and statistics of its rows.

        Example:
            >>> [layout.value for layout in TableLayout if layout.records_commits]
            ['partitioned']
        """
        return self is TableLayout.PARTITIONED

    @property
    def is_only_read(self) -> bool:
        """Whether nobody writes it any more.

        Example:
            >>> [layout.value for layout in TableLayout if layout.is_only_read]
            ['draft']
        """
        return self is TableLayout.DRAFT
