"""The catalog that a session configured: its name, its root and its implementation."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from pennon.catalog.near_names import near_names
from pennon.errors import ArgumentRefused, CatalogImplementationFixed, UnknownSetting
from pennon.settings import IMPLEMENTATION, ROOT, STORAGE, catalog_options

# Hadoop, and so Spark, writes a local path with one slash behind it.
_FILE: Final = "file:/"
_STORAGE_PREFIX: Final = STORAGE.name.rstrip("*")


@dataclass(frozen=True, slots=True)
class Catalog:
    """The catalog that a request is about.

    Args:
        name: Its name in SQL.
        root: Path or URL under which the namespaces are; a local one is made absolute, for tasks
            run in folders of their own.
        implementation: Name of a ``lance_namespace`` implementation.
        storage: Storage options, given to Lance and never printed.
        options: What the session states of the catalog now, by the names of the options; of
            storage options no values.
        has_time: Whether the session has the type TIME.

    Example:
        >>> lake = Catalog("lance", "file:/data/lake/")
        >>> lake.root, lake.full_name(["shop", "orders"])
        ('/data/lake', 'lance.shop.orders')
    """

    name: str
    root: str
    implementation: str = "dir"
    storage: Mapping[str, str] = field(default_factory=dict, repr=False)
    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    has_time: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "root", absolute_place(self.root))

    @property
    def is_local(self) -> bool:
        """Whether the root is a folder of this machine."""
        return is_local(self.root)

    @property
    def prefix(self) -> str:
        """What all paths and URLs below the root begin with."""
        return self.root.rstrip("/") + "/"

    def check_implementation(self) -> None:
        """Refuse a session that states another implementation than the catalog began with.

        Raises:
            CatalogImplementationFixed: It does, by a ``SET`` that would do nothing.
        """
        for option, value in self.options.items():
            if option.lower() == IMPLEMENTATION.name and value != self.implementation:
                raise CatalogImplementationFixed(
                    catalog=self.name, implementation=self.implementation, stated=value
                )

    def full_name(self, identifier: tuple[str, ...] | list[str]) -> str:
        """Spell a name as the user types it."""
        return ".".join(quoted(part) for part in (self.name, *identifier))

    def is_below_root(self, location: str) -> bool:
        """Whether a location is inside the root."""
        return location.startswith(self.prefix)

    def address(self, location: str) -> str:
        """Give the path or URL of a location, which may be relative to the root."""
        return plain_path(location) if is_path(location) else self.prefix + location


def check_catalog_options(options: Iterable[str], catalog: str | None = None) -> None:
    """Refuse an option of a catalog that would be kept and do nothing.

    Args:
        options: Their names. Storage options may have any.
        catalog: The catalog whose settings in Spark they are; None for arguments of Python.

    Raises:
        UnknownSetting: It says which names are near.

    Example:
        >>> check_catalog_options(["root", "execution", "storage.aws_region"], "lance")
        >>> check_catalog_options(["exection"], "lance")
        Traceback (most recent call last):
            ...
        pennon.errors.processes.installation.UnknownSetting: [UNKNOWN_SETTING] Cannot set \
spark.sql.catalog.lance.exection: a catalog has no option of that name, did you mean execution. \
Write one that it has, or leave it out.
    """
    known = catalog_options()
    # Of their names any letters do: Spark's own map of options finds them.
    in_any_letters = (ROOT.name, IMPLEMENTATION.name)
    for option in options:
        is_known = option in known or (catalog is not None and option.lower() in in_any_letters)
        is_storage = catalog is not None and option.startswith(_STORAGE_PREFIX)
        if not is_known and not is_storage:
            name = option if catalog is None else setting_name(catalog, option)
            near = near_names(option, (*known, ROOT.name, STORAGE.name), "options")
            raise UnknownSetting(name=name, near=near)


def setting_name(catalog: str, option: str) -> str:
    """Name an option of a catalog as a session has it.

    Example:
        >>> setting_name("lance", "execution")
        'spark.sql.catalog.lance.execution'
    """
    return f"spark.sql.catalog.{catalog}.{option}"


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
    return name.startswith(("/", _FILE)) or "://" in name


def is_local(place: str) -> bool:
    """Whether a path or URL is of this machine."""
    return "://" not in place or place.startswith(_FILE)


def plain_path(place: str) -> str:
    """Turn a ``file:`` URL, with one slash or three, into a path; leave all else as it is.

    Example:
        >>> plain_path("file:///data/my%20lake"), plain_path("file:/data/lake")
        ('/data/my lake', '/data/lake')
    """
    return unquote(urlsplit(place).path) if place.startswith(_FILE) else place


def absolute_place(place: str) -> str:
    """Give a path or URL its one spelling, so that it means the same in every process.

    Raises:
        ArgumentRefused: It begins with the home of a user that is not known.

    Example:
        >>> absolute_place("/data/../lake/"), absolute_place("s3://bucket/lake/")
        ('/lake', 's3://bucket/lake')
    """
    text = plain_path(place)
    if text and is_local(text):
        text = os.path.abspath(_at_home(text))  # noqa: PTH100 - keeps `..` out
    return text.rstrip("/") or text


def _at_home(path: str) -> Path:
    try:
        return Path(path).expanduser()
    except RuntimeError as error:
        raise ArgumentRefused(
            function="pennon",
            parameter="path",
            why=f"{path} begins with the home of a user that is not known",
            expected=f"./{path} for a folder of that name",
        ) from error


def stated_place(place: str | os.PathLike[str], parameter: str = "path") -> str:
    """Give a path or URL that a user states its one spelling.

    Args:
        place: The path or URL.
        parameter: What the user calls it.

    Raises:
        ArgumentRefused: It is empty, which would mean the folder that the process runs in, or it
            begins with the home of a user that is not known.
    """
    text = os.fspath(place)
    if not text.strip():
        raise ArgumentRefused(
            function="pennon", parameter=parameter, why="it is empty", expected="a path or URL"
        )
    return absolute_place(text)
