"""Read options of other formats, which are refused because other rows would be read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pennon.errors import ReadOptionNotSupported

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["check_read_options"]

_VERSION: Final = "Write option('versionAsOf', …) with a version or a tag"
_TIME: Final = "Write option('timestampAsOf', …)"
_CHANGES: Final = "Read {table}.changes WHERE _commit_version BETWEEN … AND …"
_INSTEAD: Final[Mapping[str, str]] = {
    "snapshot-id": _VERSION,
    "tag": _VERSION,
    "as-of-timestamp": _TIME,
    "branch": "The format has no branches: leave it out",
    "start-snapshot-id": _CHANGES,
    "end-snapshot-id": _CHANGES,
    "start-timestamp": _CHANGES,
    "end-timestamp": _CHANGES,
    "readchangefeed": _CHANGES,
    "readchangedata": _CHANGES,
}


def check_read_options(table: str, options: Mapping[str, str]) -> None:
    """Refuse options that choose rows in another format.

    Args:
        table: The table's name.
        options: Of the read; others than those of Iceberg and Delta are passed over.

    Raises:
        ReadOptionNotSupported: It says what to write instead.

    Example:
        >>> check_read_options("lance.shop.orders", {"versionAsOf": "3"})
    """
    for option in options:
        advice = _INSTEAD.get(option.lower())
        if advice is not None:
            raise ReadOptionNotSupported(
                table=table, option=option, advice=advice.format(table=table)
            )
