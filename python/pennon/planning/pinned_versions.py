"""Pins the leaf versions that the manifest leaves open: the newest one, a branch, a tag.

It is done once per query, so that all its tasks, retries and speculation read the same rows.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from pennon.caching import combined_identity
from pennon.leaf.dataset import ResolvedLeaf, resolve_reference

if TYPE_CHECKING:
    from pennon.manifest.snapshot import Snapshot

__all__ = ["pinned"]

_OPENING_THREADS = 16
_REFERENCES = ("read_branch", "read_tag")


def pinned(snapshot: Snapshot, leaves: pa.Table) -> tuple[pa.Table, str]:
    """Give every leaf a version, and those that are read at a branch that branch's location.

    Args:
        snapshot: The namespace.
        leaves: What ``Snapshot.leaves`` found.

    Returns:
        The same rows without ``read_branch`` and ``read_tag``, no ``read_version`` NULL; and the
        identity of the leaves as they were found, the namespace's own where it names them all.

    Raises:
        LeafMissing: A leaf, its branch or its tag is not there.

    Spec: "Read Behavior".
    """
    open_ended = pc.is_null(leaves["read_version"])
    names = [name for name in _REFERENCES if name in leaves.column_names]
    for name in names:
        open_ended = pc.or_(open_ended, pc.is_valid(leaves[name]))
    if not pc.any(open_ended, min_count=0).as_py():
        return leaves.drop_columns(names), snapshot.identity
    asked = leaves.filter(open_ended).select(["location", "read_version", *names]).to_pylist()

    def resolve(row: dict[str, object]) -> ResolvedLeaf:
        branch, tag = (row.get(name) for name in _REFERENCES)
        return resolve_reference(
            snapshot.location,
            str(row["location"]),
            (branch if isinstance(branch, str) else None, tag if isinstance(tag, str) else None),
            version if isinstance(version := row["read_version"], int) else None,
            snapshot.storage_options,
        )

    with ThreadPoolExecutor(_OPENING_THREADS) as pool:
        resolved = list(pool.map(resolve, asked))
    mask = open_ended.combine_chunks()
    for name, attribute in (("location", "location"), ("read_version", "version")):
        column = leaves[name].combine_chunks()
        values = pa.array([getattr(leaf, attribute) for leaf in resolved], column.type)
        filled = pc.replace_with_mask(column, mask, values)
        leaves = leaves.set_column(leaves.column_names.index(name), name, filled)
    identities = (leaf.identity for leaf in resolved)
    return leaves.drop_columns(names), combined_identity([snapshot.identity, *identities])
