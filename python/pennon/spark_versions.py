"""The Spark versions that the jar supports."""

from __future__ import annotations

from typing import Final

from pennon.errors import SparkVersionNotSupported

OLDEST_SPARK: Final = (4, 1)
NEWEST_SPARK: Final = (4, 3)


def check_spark_version(version: str) -> None:
    """Refuse a version of Spark that the jar does not work with.

    Args:
        version: As Spark prints it, for example ``4.3.0``.

    Raises:
        SparkVersionNotSupported: It is older or newer than those that are tested.

    Example:
        >>> check_spark_version("4.3.0-SNAPSHOT")
    """
    numbers = tuple(int(part) for part in version.split(".")[:2] if part.isdigit())
    if not OLDEST_SPARK <= numbers <= NEWEST_SPARK:
        raise SparkVersionNotSupported(actual=version, newest=_dotted(NEWEST_SPARK), **BOUNDS)


def _dotted(version: tuple[int, int]) -> str:
    return ".".join(map(str, version))


BOUNDS: Final = {
    "oldest": _dotted(OLDEST_SPARK),
    "end": _dotted((NEWEST_SPARK[0], NEWEST_SPARK[1] + 1)),
}
"""The oldest version that works and the first that is not tested, as pip spells them."""
