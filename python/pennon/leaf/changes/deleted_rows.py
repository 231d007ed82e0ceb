"""The deleted rows of one leaf as a task reports them: compact text, however many they are."""

from __future__ import annotations

import base64
import json
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pennon.leaf.read.metadata_columns import LEAF, LEAF_VERSION, ROW_ADDRESS
from pennon.leaf.row_order import fragments_of, offsets_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from numpy.typing import NDArray

__all__ = ["DeletedRows", "collect_deleted"]


@dataclass(frozen=True, slots=True)
class DeletedRows:
    """Rows of one leaf at one version.

    Args:
        location: The leaf, as its metadata column names it.
        version: The Lance version that the addresses hold for; detached ones have the highest bit.
        addresses: Sorted and distinct, as the metadata column has them.
    """

    location: str
    version: int
    addresses: NDArray[np.int64]

    def by_fragment(self) -> Mapping[int, NDArray[np.int64]]:
        """Give the offsets of the rows in each fragment, by the fragment's number."""
        numbers = fragments_of(self.addresses)
        starts = np.flatnonzero(np.diff(numbers, prepend=-1))
        parts = np.split(offsets_of(self.addresses), starts[1:]) if len(starts) else []
        return {int(numbers[start]): part for start, part in zip(starts, parts, strict=True)}

    def merged(self, others: Iterable[DeletedRows]) -> DeletedRows:
        """Add what other tasks report of the same leaf at the same version."""
        every = [self.addresses, *(other.addresses for other in others)]
        return DeletedRows(self.location, self.version, np.unique(np.concatenate(every)))

    def to_json(self) -> str:
        """Write the report as text: the distances between the rows, compressed.

        Example:
            >>> rows = DeletedRows("a", 3, np.array([5, 7, 4294967296]))
            >>> DeletedRows.from_json(rows.to_json()).addresses.tolist()
            [5, 7, 4294967296]
        """
        distances = np.diff(self.addresses, prepend=0).astype("<i8")
        packed = base64.b64encode(zlib.compress(distances.tobytes(), 1)).decode("ascii")
        return json.dumps({"leaf": self.location, "version": str(self.version), "rows": packed})

    @classmethod
    def from_json(cls, text: str) -> DeletedRows:
        """Read what ``to_json`` wrote."""
        stored: Any = json.loads(text)
        distances = np.frombuffer(zlib.decompress(base64.b64decode(stored["rows"])), "<i8")
        return cls(str(stored["leaf"]), int(stored["version"]), np.cumsum(distances))


def collect_deleted(batches: Iterable[pa.RecordBatch]) -> list[DeletedRows]:
    """Bring the row ids of a task together, leaf by leaf.

    Args:
        batches: The metadata columns that name a row, in any order of rows.

    Example:
        >>> ids = {"_leaf": ["a", "b", "a"], "_leaf_version": [1, 1, 1], "_rowaddr": [4, 0, 2]}
        >>> [
        ...     (deleted.location, deleted.addresses.tolist())
        ...     for deleted in collect_deleted([pa.record_batch(ids)])
        ... ]
        [('a', [2, 4]), ('b', [0])]
    """
    parts_by_leaf: dict[tuple[str, int], list[NDArray[np.int64]]] = {}
    for batch in batches:
        leaf, version = batch.column(LEAF.name), batch.column(LEAF_VERSION.name)
        addresses = batch.column(ROW_ADDRESS.name)
        keys = pa.table({"leaf": leaf, "version": version}).group_by(["leaf", "version"])
        for key in keys.aggregate([]).to_pylist():
            mine = addresses
            if len(pc.unique(leaf)) > 1 or len(pc.unique(version)) > 1:
                mask = pc.and_(pc.equal(leaf, key["leaf"]), pc.equal(version, key["version"]))
                mine = addresses.filter(mask)
            unsigned = key["version"] % (1 << 64)
            numbers = mine.to_numpy(zero_copy_only=False)
            parts_by_leaf.setdefault((key["leaf"], unsigned), []).append(numbers.astype(np.int64))
    return [
        DeletedRows(location, version, np.unique(np.concatenate(parts)))
        for (location, version), parts in parts_by_leaf.items()
    ]
