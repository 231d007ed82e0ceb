"""Creates, replaces and drops tags of a table; none of them is a commit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pennon.catalog.tables.loaded_table import Table, load
from pennon.errors import TagRefused
from pennon.manifest.versions.set_tag import set_tag
from pennon.manifest.versions.tags import Tag, drop_tag, tags_of

if TYPE_CHECKING:
    from pennon.catalog.configured_catalog import Catalog
    from pennon.catalog.ddl.tag_statement import TagChange
    from pennon.catalog.directory import Name

__all__ = ["change_tag"]


def change_tag(catalog: Catalog, identifier: Name, asked: TagChange) -> Tag | None:
    """Make, move or drop a tag.

    Args:
        catalog: The catalog.
        identifier: The table: a partitioned namespace or a plain dataset.
        asked: What the statement asks for.

    Returns:
        The tag; None where one was dropped, or there was none to drop.

    Raises:
        TagRefused: The tag cannot have this name, or could not hold what it names.
        TagAlreadyExists: There is one, and it is not to be replaced.
        TagNotFound: There is none to replace or to drop.
        SnapshotNotFound: There is no such version.
        DraftLayout: The namespace has the older draft's layout.
    """
    newest = load(catalog, identifier)
    newest.stored.check_writable("change the tags of")
    existing = tags_of(newest.snapshot.manifest).get(asked.name)
    if asked.action == "drop":
        if existing is not None or not asked.if_exists:
            drop_tag(newest.snapshot.manifest, asked.name, table=newest.name)
        return None
    if existing is not None and asked.if_not_exists:
        return existing
    named = newest
    if asked.version is not None:
        named = load(catalog, identifier, str(asked.version))
    _check_holds(named, asked.name)
    return set_tag(
        named.snapshot.manifest,
        asked.name,
        named.snapshot.version,
        asked.retain,
        table=named.name,
        create=asked.action != "replace",
        replace=asked.action != "create",
    )


def _check_holds(table: Table, name: str) -> None:
    """Refuse a tag that would not hold the rows: in weak mode leaves are read at their newest."""
    if table.snapshot.names_leaf_versions:
        return
    raise TagRefused(
        tag=name,
        table=table.name,
        why=f"its version {table.snapshot.version} leaves open at which versions partitions are"
        " read, so that the rows behind the tag would change",
        advice="Tag a table of strong transactions, or copy this one with CREATE TABLE … AS SELECT",
    )
