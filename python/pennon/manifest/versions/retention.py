"""How long the versions of a table are kept, by Iceberg's table properties."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from pennon.errors import InvalidRetention
from pennon.predicate.values.time_units import MILLIS_PER_DAY
from pennon.settings import KEPT_AGE, KEPT_VERSIONS, WRITER_GRACE

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "DEFAULT_AGE",
    "Retention",
    "check_retention",
    "kept_age",
    "kept_versions",
    "retention_of",
    "writer_grace",
]

DEFAULT_AGE: Final = timedelta(days=5)
_LONGEST_DAYS: Final = 36_500


@dataclass(frozen=True, slots=True)
class Retention:
    """Which versions may expire.

    Args:
        age: Those that are older.
        versions: Of these not the newest so many.
        is_automatic: Whether they do by themselves, behind commits; else they wait to be expired.
    """

    age: timedelta = DEFAULT_AGE
    versions: int = 1
    is_automatic: bool = False


def retention_of(properties: Mapping[str, str]) -> Retention:
    """Read how long a table keeps its versions.

    A table that says nothing keeps each until somebody calls ``expire_snapshots``, as Iceberg does.

    Args:
        properties: The table's properties.

    Raises:
        InvalidRetention: A property is no number that it can be.

    Example:
        >>> retention_of({"history.expire.max-snapshot-age-ms": "3600000"})
        Retention(age=datetime.timedelta(seconds=3600), versions=1, is_automatic=True)
    """
    return Retention(
        kept_age(properties), kept_versions(properties), is_automatic=KEPT_AGE.name in properties
    )


def kept_age(properties: Mapping[str, str]) -> timedelta:
    """Read the age up to which versions are kept; five days where the table does not say.

    Raises:
        InvalidRetention: The property is no number that it can be.
    """
    age = _number(properties, KEPT_AGE.name, 0)
    return DEFAULT_AGE if age is None else timedelta(milliseconds=age)


def kept_versions(properties: Mapping[str, str]) -> int:
    """Read how many of the newest versions are kept; one where the table does not say.

    Raises:
        InvalidRetention: The property is no number that it can be.
    """
    versions = _number(properties, KEPT_VERSIONS.name, 1)
    return 1 if versions is None else versions


def check_retention(properties: Mapping[str, str]) -> None:
    """Check what properties that are set say of it.

    Raises:
        InvalidRetention: A property is no number that it can be.
    """
    retention_of(properties)
    writer_grace(properties)


def writer_grace(properties: Mapping[str, str]) -> timedelta:
    """Read how long a commit may stand still beside expiries; an hour where the table does not say.

    Raises:
        InvalidRetention: The property is no number that it can be.

    Example:
        >>> writer_grace({})
        datetime.timedelta(seconds=3600)
    """
    millis = _number(properties, WRITER_GRACE.name, 0)
    return timedelta(milliseconds=int(WRITER_GRACE.default or 0) if millis is None else millis)


def _number(properties: Mapping[str, str], name: str, least: int) -> int | None:
    text = properties.get(name)
    if text is None:
        return None
    longest = _LONGEST_DAYS * MILLIS_PER_DAY
    if not text.strip().isdecimal() or not least <= int(text) <= longest:
        raise InvalidRetention(property=name, value=text, least=least, most=longest)
    return int(text)
