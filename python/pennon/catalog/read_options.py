"""Read options of other formats, and misspelt ones: not the rows that they mean would be read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pennon.catalog.near_names import misspelling_of
from pennon.errors import ReadOptionNotSupported
from pennon.streams.stream_options import STREAM_OPTIONS

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["check_read_options"]

_VERSION: Final = "Write option('versionAsOf', …) with a version or a tag"
_TIME: Final = "Write option('timestampAsOf', …)"
_CHANGES: Final = "Read {table}.changes WHERE _commit_version BETWEEN … AND …"
_INSTEAD: Final[Mapping[str, str]] = {
    "version": _VERSION,
    "snapshot-id": _VERSION,
    "tag": _VERSION,
    "timestamp": _TIME,
    "as-of-timestamp": _TIME,
    "branch": "The format has no branches: leave it out",
    "start-snapshot-id": _CHANGES,
    "end-snapshot-id": _CHANGES,
    "start-timestamp": _CHANGES,
    "end-timestamp": _CHANGES,
    "readchangefeed": _CHANGES,
    "readchangedata": _CHANGES,
}
_OWN: Final = ("versionAsOf", "timestampAsOf", *STREAM_OPTIONS)


def check_read_options(table: str, options: Mapping[str, str]) -> None:
    """Refuse options that choose rows in another format, or would if they were spelt right.

    Args:
        table: The table's name.
        options: Of the read; what is near to no option that is known is passed over.

    Raises:
        ReadOptionNotSupported: It says what to write instead.

    Example:
        >>> check_read_options("lance.shop.orders", {"versionAsOf": "3"})
    """
    for option in options:
        advice = _advice(option.lower())
        if advice is not None:
            raise ReadOptionNotSupported(
                table=table, option=option, advice=advice.format(table=table)
            )


def _advice(option: str) -> str | None:
    own = {name.lower(): name for name in _OWN}
    if option in own:
        return None
    meant = misspelling_of(option, [*_INSTEAD, *own])
    if meant is None:
        return None
    return _INSTEAD.get(meant) or f"Write {own[meant]} if that is meant"
