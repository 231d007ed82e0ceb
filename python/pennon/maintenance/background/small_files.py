"""Compacts partitions with many small files in the background.

Where a partition has many of them they are put together, by levels of size, so that a row is
rewritten a few times in its life and not by every batch. It yields to every writer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pennon.maintenance.compact import DEFAULT_TARGET_BYTES, fragments_below
from pennon.maintenance.leaf_rewrite import LeafRewrite, rewrite_leaves
from pennon.manifest import Snapshot
from pennon.settings import COMPACTION
from pennon.transaction import Committed
from pennon.transaction.staging.leaf_state import LeafState, leaf_states

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

__all__ = ["compact_small_files"]

_LEAST_FILES: Final = 8
_LEVELS: Final = (1 << 20, 16 << 20, DEFAULT_TARGET_BYTES // 2)
_LEAVES_AT_ONCE: Final = 20


def compact_small_files(location: str, leaves: Iterable[str], storage: Mapping[str, str]) -> int:
    """Put the small files of some partitions together where they are many.

    Args:
        location: The namespace.
        leaves: Their object ids.
        storage: Given to Lance.

    Returns:
        How many partitions were rewritten.

    Raises:
        PennonError: The table cannot be read or written.
    """
    snapshot = Snapshot.open(location, storage_options=storage)
    if not snapshot.is_strong or not _is_on(snapshot.properties):
        return 0
    states = leaf_states(snapshot, leaves).values()
    rewrites = [
        rewrite for state in states if (rewrite := _rewrite_of(snapshot, state)) is not None
    ]
    parts = (rewrites[at : at + _LEAVES_AT_ONCE] for at in range(0, len(rewrites), _LEAVES_AT_ONCE))
    return sum(_num_rewritten(snapshot, part) for part in parts)


def _is_on(properties: Mapping[str, str]) -> bool:
    return properties.get(COMPACTION.name, "true").lower() != "false"


def _num_rewritten(snapshot: Snapshot, rewrites: Sequence[LeafRewrite]) -> int:
    """Rewrite all with one commit; where another commit changes one of them, each by itself."""
    outcome, _ = rewrite_leaves(snapshot, rewrites, DEFAULT_TARGET_BYTES)
    if isinstance(outcome, Committed):
        return len(rewrites)
    return (
        sum(_num_rewritten(snapshot, [rewrite]) for rewrite in rewrites) if len(rewrites) > 1 else 0
    )


def _rewrite_of(snapshot: Snapshot, state: LeafState) -> LeafRewrite | None:
    """Choose the smallest level of which a leaf has many files."""
    if state.read_version is None or state.is_elsewhere:
        return None
    if (state.num_fragments or 0) < _LEAST_FILES:
        return None
    dataset = state.opened(snapshot)
    for level in _LEVELS:
        chosen = fragments_below(dataset, level)
        if len(chosen) >= _LEAST_FILES:
            return LeafRewrite.of(state, state.read_version, chosen)
    return None
