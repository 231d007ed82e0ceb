"""Which columns of a leaf are read late: for the rows that satisfy a filter, and not for all.

On a local disk Lance fetches everything wider than eight bytes late. Of decimals that takes twice
the time even where one row of 200 satisfies the filter, and four times where most do; of texts it
is the faster way up to one row of eight.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import lance
    import pyarrow as pa

    from pennon.leaf.read.leaf_view import LeafView

__all__ = ["late_columns"]

_EARLY_BYTES: Final = 64


def late_columns(dataset: lance.LanceDataset, view: LeafView) -> list[str] | bool | None:
    """Choose the columns that are read late.

    Args:
        dataset: The leaf.
        view: What is requested of it.

    Returns:
        Their names; False for none; None where Lance's own choice is as good: on remote storage,
        and of rows that are wide.
    """
    # pylance 14 cannot fetch late a nested column whose inner fields have metadata
    if view.states_nested_ids:
        return False
    if "://" in str(dataset.uri):
        return None
    stored = [match.stored for match in view.matches if match.stored is not None]
    widths = {field.name: _width(field.arrow.type) for field in stored}
    if sum(width or 0 for width in widths.values()) > _EARLY_BYTES:
        return None
    return [name for name, width in widths.items() if width is None] or False


def _width(stored: pa.DataType) -> int | None:
    """Bytes of a value; None where they differ."""
    try:
        return -(-int(stored.bit_width) // 8)
    except ValueError:
        return None
