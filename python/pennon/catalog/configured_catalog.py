"""The catalog that a session configured: its name, its root and its implementation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit


@dataclass(frozen=True, slots=True)
class Catalog:
    """The catalog that a request is about.

    Args:
        name: Its name in SQL.
        root: Path or URL under which the namespaces are.
        implementation: Name of a ``lance_namespace`` implementation.
        storage: Storage options, given to Lance and never printed.
        settings: Further options of the catalog.

    Example:
        >>> Catalog("lance", "/data/lake/").full_name(["shop", "orders"])
        'lance.shop.orders'
    """

    name: str
    root: str
    implementation: str = "dir"
    storage: Mapping[str, str] = field(default_factory=dict, repr=False)
    settings: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def is_local(self) -> bool:
        """Whether the root is a folder of this machine."""
        return is_local(self.root)

    def full_name(self, identifier: tuple[str, ...] | list[str]) -> str:
        """Spell a name as the user types it."""
        return ".".join(quoted(part) for part in (self.name, *identifier))

    def is_below_root(self, location: str) -> bool:
        """Whether a location is inside the root."""
        return location.startswith(plain_path(self.root).rstrip("/") + "/")

    def address(self, location: str) -> str:
        """Give the path or URL of a location, which may be relative to the root."""
        if is_path(location):
            return plain_path(location)
        return f"{plain_path(self.root).rstrip('/')}/{location}"


def quoted(part: str) -> str:
    """Quote a part of a name where SQL needs it.

    Example:
        >>> quoted("orders"), quoted("my table")
        ('orders', '`my table`')
    """
    is_plain = part.replace("_", "a").isalnum() and part.isascii() and not part[0].isdigit()
    return part if is_plain else "`" + part.replace("`", "``") + "`"


def is_path(name: str) -> bool:
    """Whether a name is a path or URL and no name of the catalog."""
    return name.startswith("/") or "://" in name


def is_local(place: str) -> bool:
    """Whether a path or URL is of this machine."""
    return "://" not in place or place.startswith("file://")


def plain_path(place: str) -> str:
    """Turn a ``file://`` URL into a path; leave all else as it is.

    Example:
        >>> plain_path("file:///data/my%20lake")
        '/data/my lake'
    """
    return unquote(urlsplit(place).path) if place.startswith("file://") else place
