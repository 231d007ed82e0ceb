"""Whether others changed rows of a statement's conditions, or only rows beside them.

Partition values say which leaves a statement may have read, and its conditions which of their rows.
Where others added, changed or deleted rows that satisfy these neither before nor after, it would
read the same again. So the fragments that differ between two versions of a leaf are asked for rows
that do.

NULL rule: a row for which a condition is NULL was not read. Only conditions that a leaf evaluates
just as Spark does are asked; without the others more rows count as read.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from pennon.errors import PennonError
from pennon.leaf.dataset import open_leaf
from pennon.leaf.read.metadata_columns import ROW_ADDRESS
from pennon.leaf.read.scan import scan_leaf
from pennon.planning.binding.bound_predicate import all_of, can_fail, conjuncts
from pennon.planning.residual import exact_filter
from pennon.planning.scan_plan import bound_condition
from pennon.predicate.parse import readable_predicates

if TYPE_CHECKING:
    from collections.abc import Sequence

    import lance

    from pennon.manifest import Snapshot

__all__ = ["MatchingRows"]

# A commit that looks at more rows than so many would take long, and lose to others meanwhile.
_MOST_ROWS: Final = 1_000_000
_LEAST_ROWS: Final = 10_000  # that a scan of a small fragment takes the time of


class MatchingRows:
    """The rows of one scan's conditions, as the statement understands them.

    Args:
        snapshot: What the statement read.
        predicates: Spark SQL texts that all have to hold.
        time_zone: As for ``plan_scan``.

    Raises:
        UnknownColumn: A predicate names a column that is not there.
    """

    def __init__(self, snapshot: Snapshot, predicates: Sequence[str], *, time_zone: str) -> None:
        readable = readable_predicates(predicates)
        bound = bound_condition(snapshot, readable, time_zone=time_zone)
        self._snapshot = snapshot
        self._filter = exact_filter(
            all_of([part for part in conjuncts(bound) if not can_fail(part)])
        )
        self._rows_left = _MOST_ROWS

    def are_untouched(self, old: tuple[str, int] | None, new: tuple[str, int] | None) -> bool:
        """Whether none of them is in a fragment that others changed, made or dropped.

        Args:
            old: A leaf's place and version as the statement read it; None where it was not there.
            new: Those that it has now; None where it is gone.

        Returns:
            False also where that cannot be told, or not within the time of a commit.
        """
        try:
            before, after = self._fragments(old), self._fragments(new)
            is_same_place = old is not None and new is not None and old[0] == new[0]
            same = before.keys() & after.keys() if is_same_place else frozenset()
            changed = [
                (at, [place for description, place in places.items() if description not in same])
                for at, places in ((old, before), (new, after))
            ]
            return not any(self._are_in(at, places) for at, places in changed)
        except (PennonError, OSError, RuntimeError, ValueError):  # expired meanwhile, or damaged
            return False

    def _fragments(self, at: tuple[str, int] | None) -> dict[str, tuple[int, int]]:
        """Describe the fragments of a version by their files, with their places and their rows."""
        if at is None:
            return {}
        return {
            _description(fragment): (position, fragment.metadata.physical_rows)
            for position, fragment in enumerate(self._opened(at).get_fragments())
        }

    def _are_in(self, at: tuple[str, int] | None, chosen: Sequence[tuple[int, int]]) -> bool:
        """Whether fragments have such a row, or too many rows to ask all of them."""
        if at is None or not chosen:
            return False
        if self._filter is None:
            return True
        dataset = self._opened(at)
        self._rows_left -= sum(max(num_rows, _LEAST_ROWS) for _, num_rows in chosen)
        if self._rows_left < 0:
            return True
        return any(
            batch.num_rows
            for position, _ in chosen
            for batch in scan_leaf(
                dataset,
                pa.schema([ROW_ADDRESS]),
                self._filter,
                namespace_schema=self._snapshot.schema.arrow,
                fragments=(position, position + 1),
            )
        )

    def _opened(self, at: tuple[str, int]) -> lance.LanceDataset:
        location, version = at
        snapshot = self._snapshot
        return open_leaf(snapshot.location, location, version, snapshot.storage_options)


def _description(fragment: lance.LanceFragment) -> str:
    return json.dumps(fragment.metadata.to_json(), sort_keys=True)
