"""The opaque tokens of a fragment: what all its tasks share, and what each one reads."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pennon.caching import TextCache
from pennon.errors import MalformedMessage
from pennon.execution import Fragment, LeafPruning, Query, ReplicatedPart, RowFilter
from pennon.worker.wire.tokens import ScanToken, Token, split_column, split_lists, splits_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pennon.pushdown.tasks import FragmentTasks


NO_RELATIONS: Final = '{"relations":[],"keys":[]}'
"""The task of a fragment that reads nothing."""

# Of a plan that replicates 100,000 leaves, which are put together once.
_MOST_BYTES: Final = 128 << 20


@dataclass(frozen=True, slots=True)
class PartToken(Token):
    """What every worker evaluates for itself.

    Args:
        query_id: Tells the query from all others: nothing is kept from one for the next.
        scans: The relations.
        splits: What is read of each.
        query: What is computed over them.
    """

    query_id: str
    scans: tuple[ScanToken, ...]
    splits: tuple[str, ...]
    query: Query

    def part(self) -> ReplicatedPart:
        """Put together what is evaluated; equal parts of a query have one key."""
        text = json.dumps([*self.splits, *(scan.to_json() for scan in self.scans), self.query.sql])
        return ReplicatedPart(
            f"{self.query_id}/{hashlib.sha256(text.encode()).hexdigest()}",
            tuple(
                scan.relation(splits_of(splits))
                for scan, splits in zip(self.scans, self.splits, strict=True)
            ),
            self.query,
        )


@dataclass(frozen=True)
class FragmentToken(Token):
    """What all tasks of a fragment have in common.

    Args:
        scans: The relations, without what is read of them.
        query: What is computed over them.
        parts: What every worker evaluates for itself.
        prunings: What the parts can rule out, without the keys, which differ by task.
        filters: What they can rule out of the rows of the other leaves.
        num_threads: How many threads compute one task.
    """

    scans: tuple[ScanToken, ...]
    query: Query
    parts: tuple[PartToken, ...] = ()
    prunings: tuple[LeafPruning, ...] = ()
    filters: tuple[RowFilter, ...] = ()
    num_threads: int = 1

    @classmethod
    def from_json(cls, text: str) -> FragmentToken:
        """Read the token; every task brings the same."""
        return _FRAGMENT_TOKENS.find(text)

    def fragment(self, task: str) -> Fragment:
        """Put together what one task computes.

        Args:
            task: One of ``task_texts``.
        """
        try:
            stored = json.loads(task)
            splits, keys = stored["relations"], stored["keys"]
        except (json.JSONDecodeError, KeyError, TypeError) as error:
            raise MalformedMessage(why="the text task is not one of the worker's") from error
        relations = tuple(
            scan.relation(split) for scan, split in zip(self.scans, splits, strict=True)
        )
        prunings = tuple(
            replace(pruning, keys=tuple(key))
            for pruning, key in zip(self.prunings, keys, strict=True)
        )
        parts = self._replicated_parts
        return Fragment(relations, self.query, parts, prunings, self.filters, self.num_threads)

    @cached_property
    def _replicated_parts(self) -> tuple[ReplicatedPart, ...]:
        """What the tasks share; of 20,000 leaves it takes a tenth of a second to put together."""
        return tuple(part.part() for part in self.parts)


_FRAGMENT_TOKENS: Final = TextCache(
    "fragment tokens", max_bytes=_MOST_BYTES, read=super(FragmentToken, FragmentToken).from_json
)


def whole_splits(leaves: pa.Table) -> str:
    """Write all leaves of a scan as one split.

    Args:
        leaves: Columns ``location``, ``read_version`` and ``residual``.
    """
    return f"[{','.join(split_column(leaves).to_pylist())}]"


def task_texts(
    tasks: FragmentTasks,
    scans: Sequence[int],
    leaves: Mapping[int, pa.Table],
    keys: Sequence[tuple[int, pa.Array]] = (),
) -> pa.Array:
    """Write what each task reads, for 100,000 leaves in a part of a second.

    Args:
        tasks: The tasks.
        scans: The scans of the relations, in their order.
        leaves: For each scan, columns ``location``, ``read_version`` and ``residual``.
        keys: For each pruning its scan, and the key of each leaf of that: int64.

    Returns:
        One text per task, with the splits of each relation and the keys for each pruning.
    """
    if tasks.rows is None:
        return pa.array([_text_of_everything(scans, leaves, keys)], pa.utf8())
    relations = [_by_task(tasks, scan, partial(split_column, leaves[scan])) for scan in scans]
    key_texts = [_by_task(tasks, scan, partial(_key_column, key)) for scan, key in keys]
    lists, listed = (
        pc.binary_join_element_wise(*tokens, ",") if tokens else ""
        for tokens in (relations, key_texts)
    )
    texts: pa.Array = pc.binary_join_element_wise(
        '{"relations":[', lists, '],"keys":[', listed, "]}", ""
    )
    return texts


def _text_of_everything(
    scans: Sequence[int], leaves: Mapping[int, pa.Table], keys: Sequence[tuple[int, pa.Array]]
) -> str:
    relations = ",".join(whole_splits(leaves[scan]) for scan in scans)
    listed = ",".join(f"[{','.join(_key_column(key).to_pylist())}]" for _, key in keys)
    return f'{{"relations":[{relations}],"keys":[{listed}]}}'


def _by_task(tasks: FragmentTasks, scan: int, texts_of: Callable[[pa.Table], pa.Array]) -> pa.Array:
    """Write what each task has of a scan as a list, of the texts of what is read."""
    rows, numbers = tasks.numbers(scan)
    # Narrow numbers are sorted in one pass over them.
    order = np.argsort(numbers.astype(np.min_scalar_type(len(tasks.keys))), kind="stable")
    return split_lists(texts_of(rows.take(order)), numbers[order], len(tasks.keys))


def _key_column(keys: pa.Array, rows: pa.Table | None = None) -> pa.Array:
    """Write the keys of leaves, or of what is read of them."""
    texts: pa.Array = keys.cast(pa.utf8()).fill_null("null")
    return texts if rows is None else texts.take(rows["leaf"].combine_chunks())
