"""The location of a registered namespace, in the ``__manifest`` of a directory namespace.

Upstream's interface can make and drop a namespace and not change one. A table that is replaced
would have no name in between, so its row is changed here, in one commit.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from sqlglot import exp

from pennon.manifest.format.names import SEPARATOR
from pennon.manifest.storage import StorageOptions, open_manifest
from pennon.predicate.dialect import DataFusion

__all__ = ["move_registration"]


def move_registration(
    root: str, name: Sequence[str], old: str, new: str, storage_options: StorageOptions
) -> bool:
    """Point a name to another location; readers see the one or the other.

    Args:
        root: Path or URL of the directory namespace.
        name: The parts of the name below it.
        old: The ``location`` property as it is.
        new: The ``location`` property as it shall be.
        storage_options: Given to Lance.

    Returns:
        False where the name has another location by now; nothing is changed then.
    """
    manifest = open_manifest(root, storage_options=storage_options)
    is_named = exp.column("object_id").eq(exp.Literal.string(SEPARATOR.join(name)))
    rows = manifest.to_table(columns=["metadata"], filter=is_named.sql(dialect=DataFusion))
    for text in rows["metadata"].to_pylist():
        properties = json.loads(text or "{}")
        if properties.get("location") != old:
            return False
        moved = json.dumps({**properties, "location": new})
        is_unchanged = exp.and_(is_named, exp.column("metadata").eq(exp.Literal.string(text)))
        updated = manifest.update(
            {"metadata": exp.Literal.string(moved).sql(dialect=DataFusion)},
            where=is_unchanged.sql(dialect=DataFusion),
        )
        return bool(updated["num_rows_updated"])
    return False
