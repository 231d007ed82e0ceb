"""The descriptions of a table at a prompt and in a notebook."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from pennon.catalog.partitioning import partitioned_by

if TYPE_CHECKING:
    from pennon.catalog.tables.loaded_table import Table

__all__ = ["described", "described_html"]


def described(table: Table, *, is_pinned: bool) -> str:
    """Describe a table in one line.

    Args:
        table: The table.
        is_pinned: Whether it stays at its version.
    """
    snapshot = table.snapshot
    fields = ", ".join(partitioned_by(snapshot.current_spec, snapshot.schema)) or "nothing"
    version = f"version {snapshot.version}{', read only' if is_pinned else ''}"
    columns = len(snapshot.schema.arrow)
    plural = "" if columns == 1 else "s"
    return (
        f"PartitionedNamespace({table.name}, {version}, {columns} column{plural},"
        f" partitioned by {fields})"
    )


def described_html(table: Table) -> str:
    """Describe a table as HTML: its columns, and how it is partitioned."""
    snapshot = table.snapshot
    fields = ", ".join(partitioned_by(snapshot.current_spec, snapshot.schema)) or "nothing"
    rows = "".join(
        f"<tr><td>{escape(column.name)}</td><td>{escape(str(column.type))}"
        f"{'' if column.nullable else ' not null'}</td></tr>"
        for column in snapshot.schema.arrow
    )
    return (
        f"<p><b>{escape(table.name)}</b>, version {snapshot.version},"
        f" partitioned by {escape(fields)}</p>"
        f"<table><tr><th>column</th><th>type</th></tr>{rows}</table>"
    )
