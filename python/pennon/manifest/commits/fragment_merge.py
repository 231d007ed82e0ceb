"""Keeps ``__manifest`` small: commits merge the small fragments that they leave.

Every commit adds a fragment of a few rows, and whoever opens or changes the table pays for each of
them: after 400 commits five times the price of the first. So a commit that finds many small ones
merges them, behind its own commit point. A merge that meets another commit is left to a later one;
a commit that meets a merge is made again on top, as beside every other commit.

Fragments are merged by levels, so that a row is rewritten a few times in its life and not by every
merge: what old versions read stays on the disk until they expire.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

import lance
from lance.fragment import FragmentMetadata

from pennon.manifest.dataset.commit_conflict import is_conflict

__all__ = ["keep_small"]

_LOG = logging.getLogger(__name__)
_MAX_FRAGMENTS: Final = 8
# So many fewer fragments are worth taking some large ones along.
_FAR_MORE: Final = 32
_LEVELS: Final = (64, 1024, 16_384, 262_144)


def keep_small(manifest: lance.LanceDataset) -> bool:
    """Merge the fragments of ``__manifest`` where they are many and small; never fails.

    Args:
        manifest: The table at its newest version; at that of the merge afterwards.

    Returns:
        Whether it was merged and has exactly the rows that it was given with: no other commit came
        between.
    """
    fragments = [fragment.metadata for fragment in manifest.get_fragments()]
    level = _level([int(fragment.physical_rows) for fragment in fragments])
    if level is None:
        return False
    columns = manifest.schema
    try:
        manifest.optimize.compact_files(target_rows_per_fragment=level, num_threads=1)
        return _is_made_of(manifest, fragments) and manifest.schema == columns
    except (OSError, RuntimeError, ValueError) as error:
        # What the commit has done stands whether its waste is cleared away or not.
        log = _LOG.debug if is_conflict(error) else _LOG.warning
        log("fragments of %s are not merged: %s", manifest.uri, error)
        return False


def _is_made_of(manifest: lance.LanceDataset, fragments: Sequence[FragmentMetadata]) -> bool:
    """Whether a version is the rewrite of one that has exactly these fragments."""
    made_by = manifest.read_transaction(manifest.version)
    if made_by is None or not isinstance(made_by.operation, lance.LanceOperation.Rewrite):
        return False
    before = manifest.checkout_version(manifest.version - 1).get_fragments()
    stated = [fragment.metadata.to_json() for fragment in before]
    return stated == [fragment.to_json() for fragment in fragments]


def _level(rows: Sequence[int]) -> int | None:
    """Choose the size below which fragments are merged; None where they are few.

    Fragments of one size are many, not those of all: else each of the small merges would take the
    large fragments along. Only neighbours are merged, so small ones between large ones count at
    the level of these.

    Example:
        >>> _level([5000, 3, 3]), _level([5000, *[3] * 7]), _level([5000, *[300] * 8])
        (None, None, 1024)
        >>> _level([300, 3] * 8)
        1024
    """
    for least, level in pairwise((0, *_LEVELS)):
        fewer = sum(one < level and other < level for one, other in pairwise(rows))
        of_its_size = sum(least <= row < level for row in rows)
        if fewer >= _MAX_FRAGMENTS - 1 and (of_its_size >= _MAX_FRAGMENTS or fewer >= _FAR_MORE):
            return level
    return None
