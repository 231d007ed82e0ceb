"""Which version a table had at a time, as far as the versions that are left show it.

Versions are numbered without gaps, so that a number which is missing is of a version that has
expired. A tag keeps an old version alone: what came behind it is gone, and the tagged version is
not what the table had until the next one that is there.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from pennon.caching import version_time

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    from lance.dataset import Version

__all__ = ["VersionTimes"]

_MOST_RANGES: Final = 5


@dataclass(frozen=True, slots=True)
class VersionTimes:
    """The versions that are left, at least one of them.

    Args:
        committed_at: When each was committed, zoned.
    """

    committed_at: Mapping[int, datetime]

    @staticmethod
    def of(versions: Iterable[Version]) -> VersionTimes:
        """Take what Lance lists."""
        return VersionTimes(
            {int(version["version"]): version_time(version) for version in versions}
        )

    def at(self, asked: datetime) -> int | None:
        """Find the newest version at a time; None where it has expired, or there was none yet.

        Args:
            asked: The time; without a zone in UTC.

        Example:
            >>> from datetime import datetime
            >>> days = {at: datetime(2024, 1, at, tzinfo=UTC) for at in (1, 4, 5)}
            >>> [VersionTimes(days).at(datetime(2024, 1, at)) for at in (1, 2, 4, 9)]
            [1, None, 4, 5]
        """
        asked = _zoned(asked)
        past = [version for version, made in self.committed_at.items() if made <= asked]
        if not past or (self._after_gap(max(past)) and self.committed_at[max(past)] != asked):
            return None
        return max(past)

    def _after_gap(self, version: int) -> int | None:
        """Give the next version that is there; None where none between has expired."""
        later = [existing for existing in self.committed_at if existing > version]
        return min(later) if later and min(later) > version + 1 else None

    def why_none(self, asked: datetime) -> str:
        """Say why no version is known for a time, as a clause."""
        asked = _zoned(asked)
        past = [version for version, made in self.committed_at.items() if made <= asked]
        if not past:
            first = min(self.committed_at.values())
            return f"its first version is of {first.isoformat()}"
        kept, following = max(past), self._after_gap(max(past))
        between = [kept] if following is None else [kept, following]
        nearest = " and ".join(
            f"{version} of {self.committed_at[version].isoformat()}" for version in between
        )
        return f"the versions of that time have expired, those around them are {nearest}"

    def existing(self, version: int) -> str:
        """Say which versions there are, for one that is not among them, as a clause.

        Example:
            >>> from datetime import datetime
            >>> kept = VersionTimes(dict.fromkeys((2, 6, 7, 8), datetime(2024, 1, 1)))
            >>> kept.existing(3)
            'it has expired, and its versions are 2 and 6 to 8'
            >>> kept.existing(9)
            'its versions are 2 and 6 to 8'
        """
        versions = sorted(self.committed_at)
        starts = [
            versions[0],
            *(after for before, after in pairwise(versions) if after > before + 1),
        ]
        ends = [
            *(before for before, after in pairwise(versions) if after > before + 1),
            versions[-1],
        ]
        ranges = [
            str(first) if first == last else f"{first} to {last}"
            for first, last in zip(starts, ends, strict=True)
        ]
        more = ["…"] if len(ranges) > _MOST_RANGES else []
        *before, last = [*more, *ranges[-_MOST_RANGES:]]
        listed = f"{', '.join(before)} and {last}" if before else last
        is_expired = 0 < version < versions[-1]
        return f"{'it has expired, and ' if is_expired else ''}its versions are {listed}"


def _zoned(asked: datetime) -> datetime:
    return asked if asked.tzinfo is not None else asked.replace(tzinfo=UTC)
