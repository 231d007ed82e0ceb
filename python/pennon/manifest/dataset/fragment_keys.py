"""The keys under which something is kept of a data fragment of ``__manifest``.

A fragment's files never change and their names are drawn at random: what was read of them holds for
every version that has them. Which of its rows are deleted differs from version to version.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from pennon.caching import TableKey, combined_identity

if TYPE_CHECKING:
    import lance

__all__ = ["FRAGMENT_SHIFT", "fragment_key"]

FRAGMENT_SHIFT: Final = 32
"""Above so many bits of the address of a row stands the number of its fragment."""


def fragment_key(
    version: TableKey, fragment: lance.LanceFragment, layout: str = "", *, is_any_deleted: bool
) -> TableKey:
    """Give the key of a fragment.

    Args:
        version: The key of the version that it is of.
        fragment: The fragment.
        layout: What the kept form depends on beside the files.
        is_any_deleted: Whether it is one key whichever of the rows are deleted.
    """
    stored = fragment.metadata.to_json()
    if is_any_deleted:
        stored = {**stored, "deletion_file": "any"}
    files = combined_identity([json.dumps(stored, sort_keys=True), layout])
    return TableKey(version.location, fragment.fragment_id, files, version.storage)
