"""The table property ``write.order`` in CREATE and ALTER TABLE: validated, and kept up to date.

A renamed column keeps its place in the order. A column of the order cannot be dropped. A promoted
one stays: what was written before in the narrower type no longer counts as sorted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pennon.errors import UnsupportedTableChange
from pennon.spec.write_order import WRITE_ORDER, WriteOrder

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pennon.spec.schema import NamespaceSchema

__all__ = ["checked_order", "followed_order"]


def checked_order(properties: Mapping[str, str], schema: NamespaceSchema) -> dict[str, str]:
    """Give the properties with a write order in full words.

    Raises:
        WriteOrderSyntax: The order is no list of columns.
        WriteOrderColumnNotFound: It names a column that is not there.
        WriteOrderTypeNotSupported: A column cannot be ordered by.
    """
    order = WriteOrder.of(properties, schema)
    return dict(properties) if order is None else {**properties, WRITE_ORDER: str(order)}


def followed_order(
    table: str, stored: Mapping[str, str], before: NamespaceSchema, after: NamespaceSchema
) -> dict[str, str]:
    """Give what the stored order becomes under a change of columns; nothing where it stays.

    Args:
        table: The table's name for errors.
        stored: The table's properties.
        before: The columns that the order was made for.
        after: The columns as they become.

    Raises:
        UnsupportedTableChange: A column of the order is dropped.
    """
    order = WriteOrder.known(stored, before)
    if order is None:
        return {}
    renamed = order.renamed(after)
    if renamed is None:
        dropped = next(field for field in order.fields if after.field_by_id(field.id) is None)
        raise UnsupportedTableChange(
            change=f"drop column {dropped}",
            table=table,
            why=f"writes are ordered by {order}",
            advice="Change the order first: ALTER TABLE … WRITE ORDERED BY, or WRITE UNORDERED",
        )
    return {} if str(renamed) == stored[WRITE_ORDER] else {WRITE_ORDER: str(renamed)}
