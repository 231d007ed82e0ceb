"""The table argument of a command: ``--root lake shop.orders``, or a path."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pennon
from pennon.catalog.configured_catalog import is_local, stated_place
from pennon.errors import RootNotFound, TableNotFound

if TYPE_CHECKING:
    from pennon.namespace import Lake, PartitionedNamespace

Commands = argparse._SubParsersAction  # noqa: SLF001 - argparse has no public name for it

__all__ = [
    "Commands",
    "add_root",
    "add_storage",
    "add_table",
    "lake_of",
    "location_of",
    "moment",
    "opened",
    "pair",
    "pairs",
    "positive",
    "say_no_tables",
]


def add_table(parser: argparse.ArgumentParser, *, is_optional: bool = False) -> None:
    """Add the table, the root and the storage options to a command."""
    parser.add_argument(
        "table",
        nargs="?" if is_optional else None,
        help="its name below --root, as shop.orders; or the path or URL of its folder",
    )
    add_root(parser, None)
    add_storage(parser)


def add_root(parser: argparse.ArgumentParser, default: str | None) -> None:
    """Add the root to a command."""
    here = "" if default is None else " (default: here)"
    parser.add_argument("--root", default=default, help=f"folder or URL of the lake{here}")


def add_storage(parser: argparse.ArgumentParser) -> None:
    """Add storage options to a command."""
    parser.add_argument(
        "--storage",
        action="append",
        default=[],
        type=pair,
        metavar="KEY=VALUE",
        help="storage option for Lance; may be repeated",
    )


def positive(text: str) -> int:
    """Read a number of at least 1.

    Raises:
        argparse.ArgumentTypeError: It is smaller.
    """
    number = int(text)
    if number < 1:
        message = f"{text} is not at least 1"
        raise argparse.ArgumentTypeError(message)
    return number


def moment(text: str) -> datetime:
    """Read a time in ISO 8601; without a zone it is one of UTC.

    Raises:
        argparse.ArgumentTypeError: It is none.

    Example:
        >>> print(moment("2026-11-21T10:00"))
        2026-11-21 10:00:00+00:00
    """
    try:
        read = datetime.fromisoformat(text)
    except ValueError as error:
        message = f"{text!r} is no time as 2026-11-21T10:00"
        raise argparse.ArgumentTypeError(message) from error
    return read if read.tzinfo is not None else read.replace(tzinfo=UTC)


def pair(text: str) -> tuple[str, str]:
    """Read ``KEY=VALUE``.

    Raises:
        argparse.ArgumentTypeError: It is none.
    """
    key, equals, value = text.partition("=")
    if not key or not equals:
        message = f"{text!r} is not KEY=VALUE"
        raise argparse.ArgumentTypeError(message)
    return key, value


def pairs(given: Sequence[tuple[str, str]]) -> dict[str, str]:
    """Bring the pairs of one option together; the last one of a key holds."""
    return dict(given)


def opened(options: argparse.Namespace, version: str | None = None) -> PartitionedNamespace:
    """Open the table that a command is about.

    Args:
        options: With ``table``, ``root`` and ``storage``.
        version: A version of it or a tag; None for the newest.

    Raises:
        TableNotFound: There is none of that name.
        PennonError: Nothing readable is at the path.
    """
    if options.root is not None:
        return lake_of(options).load_table(options.table, version)
    _check_path(options.table)
    return pennon.open(options.table, version, pairs(options.storage))


def location_of(options: argparse.Namespace) -> str:
    """Give the path or URL of the table that a command is about, which need not be readable.

    Args:
        options: As in ``opened``.

    Raises:
        TableNotFound: There is none of that name.
    """
    if options.root is not None:
        return lake_of(options).location_of(options.table)
    _check_path(options.table)
    return stated_place(options.table)


def lake_of(options: argparse.Namespace) -> Lake:
    """Connect to the root that a command names.

    A statement of SQL makes a root that is missing; a command finds there nothing to show.

    Raises:
        RootNotFound: It is a local path where no folder is.
    """
    root = stated_place(options.root, "root")
    if is_local(root) and not Path(root).exists():
        raise RootNotFound(root=root)
    return pennon.connect(options.root, storage_options=pairs(options.storage))


def say_no_tables(root: str) -> None:
    """Say that a lake has no tables, where the list of them would stand empty."""
    print(f"There are no tables below {stated_place(root, 'root')}.", file=sys.stderr)


def _check_path(name: str) -> None:
    if is_local(name) and "/" not in name and not Path(name).exists():
        near = "there is no folder of that name; a table's name needs --root"
        raise TableNotFound(table=name, near=near)
