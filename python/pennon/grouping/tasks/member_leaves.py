"""The chosen leaves of the scans of one group, each with the number of its key."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pennon.grouping.derived_key import surrogates
from pennon.plan import Scan

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt
    import pyarrow as pa

    from pennon.grouping.resolve.group_tree import KeySet
    from pennon.plan import PlanNode
    from pennon.spec.functions.partition_layout import LayoutFunction

    Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class MemberLeaves:
    """Leaves of one scan, each with its key.

    Args:
        num_keys: How many keys the group has.
        leaves: Rows of the scan's chosen partitions.
        keys: The number of each leaf's key.
        num_bytes: Bytes of each leaf; 0 where they are not known.
        num_fragments: Fragments of each leaf; 1 where they are not known.
    """

    num_keys: int
    leaves: Numbers
    keys: Numbers
    num_bytes: Numbers
    num_fragments: Numbers

    @property
    def key_leaves(self) -> Numbers:
        """How many leaves each key has."""
        return np.bincount(self.keys, minlength=self.num_keys).astype(np.int64)

    @property
    def key_bytes(self) -> Numbers:
        """How many bytes each key has."""
        weights = self.num_bytes.astype(np.float64)
        return np.bincount(self.keys, weights, minlength=self.num_keys).astype(np.int64)

    @property
    def present(self) -> KeySet:
        """The keys that have a leaf."""
        return self.key_leaves > 0

    def under(self, keys: KeySet) -> MemberLeaves:
        """Keep the leaves of some keys."""
        kept = keys[self.keys]
        return MemberLeaves(
            self.num_keys,
            self.leaves[kept],
            self.keys[kept],
            self.num_bytes[kept],
            self.num_fragments[kept],
        )

    def of_key(self, key: int) -> MemberLeaves:
        """Keep the leaves of one key."""
        return self.under(np.arange(self.num_keys) == key)


def members_of(
    functions: Mapping[int, Sequence[LayoutFunction]],
    nodes: Sequence[PlanNode],
    leaves: Mapping[int, pa.Table],
) -> tuple[Numbers, dict[int, MemberLeaves]]:
    """Number the keys of a group's scans.

    Args:
        functions: For each scan of the group, the functions of its key.
        nodes: The plan.
        leaves: For each scan, its rows of ``__manifest`` with their statistics.

    Returns:
        The keys by number, and the leaves of each scan.
    """
    hashes = {
        scan: surrogates(node.layout, functions[scan], leaves[scan]).to_numpy()
        for scan in functions
        if isinstance(node := nodes[scan], Scan) and node.layout is not None
    }
    values, numbers = np.unique(np.concatenate(list(hashes.values())), return_inverse=True)
    members: dict[int, MemberLeaves] = {}
    start = 0
    for scan, own in hashes.items():
        members[scan] = MemberLeaves(
            len(values),
            np.arange(len(own), dtype=np.int64),
            numbers[start : start + len(own)].astype(np.int64),
            _integers(leaves[scan], "num_bytes", 0),
            np.maximum(1, _integers(leaves[scan], "num_fragments", 1)),
        )
        start += len(own)
    return values, members


def _integers(leaves: pa.Table, name: str, unknown: int) -> Numbers:
    values: Numbers = leaves[name].fill_null(unknown).to_numpy().astype(np.int64)
    return values
