"""The table property ``write.statistics.columns`` of a statement: it has to name columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pennon.errors import TablePropertyRefused
from pennon.leaf.write.column_counting import counted_fields
from pennon.spec.counted_columns import STATISTICS_COLUMNS, CountedColumns

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pennon.spec.schema import NamespaceSchema

__all__ = ["check_counted_columns"]


def check_counted_columns(
    table: str, properties: Mapping[str, str], schema: NamespaceSchema
) -> None:
    """Refuse names under which nothing would be counted.

    A column that is named and dropped later is no error: the property is looked at when it is set.

    Args:
        table: The table's full name, for errors.
        properties: Those that are set.
        schema: The table's columns.

    Raises:
        TablePropertyRefused: It lists the columns that can be counted.

    Example:
        >>> import pyarrow as pa
        >>> from pennon.spec import NamespaceSchema
        >>> schema = NamespaceSchema.with_fresh_ids(pa.schema({"id": pa.int64()}))
        >>> check_counted_columns("lance.shop.t", {"write.statistics.columns": "idd"}, schema)
        Traceback (most recent call last):
            ...
        pennon.errors.TablePropertyRefused: [TABLE_PROPERTY_REFUSED] Cannot set the \
property write.statistics.columns = 'idd' of table lance.shop.t: no column idd has statistics. \
Write a number, or some of: id.
    """
    stated = CountedColumns.of(properties).names
    if stated is None:
        return
    can_be = list(counted_fields({STATISTICS_COLUMNS: str(len(schema.fields))}, schema))
    heads = {".".join(path[:end]).lower() for path in can_be for end in range(1, len(path) + 1)}
    missing = sorted(stated - heads)
    if missing:
        raise TablePropertyRefused(
            property=STATISTICS_COLUMNS,
            value=properties[STATISTICS_COLUMNS],
            table=table,
            why=f"no column {' or '.join(missing)} has statistics",
            advice=f"Write a number, or some of: {', '.join('.'.join(path) for path in can_be)}",
        )
