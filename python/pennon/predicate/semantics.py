"""The settings of a session that change what an expression means."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

_UTC: Final = frozenset(
    {"UTC", "Z", "GMT", "ETC/UTC", "ETC/GMT", "UCT", "ZULU", "+00:00", "UTC+00:00", "GMT+00:00"}
)


class Declined(Exception):
    """DataFusion is not known to compute this as Spark does: Spark computes it itself.

    Args:
        why: What is not known.
    """

    def __init__(self, *, why: str) -> None:
        super().__init__(why)


@dataclass(frozen=True, slots=True)
class Semantics:
    """What a session means by its expressions.

    Args:
        ansi: Whether an overflow is an error; otherwise it wraps or is NULL.
        is_utc: Whether timestamps with a zone turn into dates, and their parts, in UTC.
        is_tried: Whether an overflow is NULL (``try_add``), also where it would wrap.
        zone_offsets: The offsets of the session's zone, as ``ZoneOffsets`` takes them, where what
            is computed may use them.
        in_fragments: Whether it is computed where the functions of fragments are known.
    """

    ansi: bool = True
    is_utc: bool = False
    is_tried: bool = False
    zone_offsets: tuple[int, ...] = ()
    in_fragments: bool = False

    @property
    def tried(self) -> Semantics:
        """What an operator means that is NULL where it would be an error."""
        return replace(self, ansi=False, is_tried=True)


def is_utc_zone(time_zone: str) -> bool:
    """Whether a session's time zone is UTC by any of its usual names.

    Example:
        >>> is_utc_zone("Etc/UTC"), is_utc_zone("Europe/London")
        (True, False)
    """
    return time_zone.upper() in _UTC
