"""Write options of other formats, which are refused because they would be ignored."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pennon.errors import WriteOptionNotSupported

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["check_options"]

_OVERWRITE: Final = (
    "Call df.writeTo(…).overwrite(condition) or .overwritePartitions(), or set"
    " spark.sql.sources.partitionOverwriteMode for INSERT OVERWRITE"
)
_ONCE: Final = "Write by writeStream.toTable(…), whose batches are written once"
_ISOLATION: Final = "Set the table property write.<statement>.isolation-level"
_INSTEAD: Final[Mapping[str, str]] = {
    "branch": "The format has no branches: write to a copy made by CREATE TABLE … AS SELECT",
    "tag": "Tags name versions and are not written to: leave it out",
    "replacewhere": "Call df.writeTo(…).overwrite(condition), or write INSERT INTO … REPLACE WHERE",
    "overwrite-mode": _OVERWRITE,
    "partitionoverwritemode": _OVERWRITE,
    "txnappid": _ONCE,
    "txnversion": _ONCE,
    "isolation-level": _ISOLATION,
    "validate-from-snapshot-id": _ISOLATION,
}


def check_options(table: str, options: Mapping[str, str]) -> None:
    """Refuse options that say which rows are replaced, where, or how often.

    Args:
        table: The table's name.
        options: Of the write; others than those of Iceberg and Delta are passed over.

    Raises:
        WriteOptionNotSupported: It says what to write instead.

    Example:
        >>> check_options("lance.shop.orders", {"path": "…"})
    """
    for option in options:
        advice = _INSTEAD.get(option.lower())
        if advice is not None:
            raise WriteOptionNotSupported(table=table, option=option, advice=advice)
