"""The batches of a stream: from which position to which, and the splits of the rows between.

The first batch of a stream that begins at the table as it is has the rows of one version, those of
all later ones, version by version, what each commit added.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from pennon.errors import StreamColumnsChanged
from pennon.leaf.schema.promotion import is_promotable
from pennon.manifest.versions.manifest_history import committed_at
from pennon.planning import plan_scan
from pennon.planning.leaf_constants import CONSTANTS, leaf_constants, with_constants
from pennon.planning.splits import OPEN_COST_BYTES, Piece, pack
from pennon.spec.schema import children_of
from pennon.streams.added_rows import AddedRows, added_rows
from pennon.streams.position_versions import check_position, opened, opened_at, position_at
from pennon.streams.stream_position import BEGINNING, StreamPosition

if TYPE_CHECKING:
    from pennon.manifest import Snapshot
    from pennon.streams.stream_options import StreamOptions

__all__ = ["batch_end", "planned_batch"]

_NO_COLUMNS: Final = pa.schema([])
_LEAVES: Final = pa.schema(
    [
        ("object_id", pa.utf8()),
        ("location", pa.utf8()),
        ("read_version", pa.uint64()),
        ("residual", pa.int32()),
        ("num_rows", pa.int64()),
    ]
)


def batch_end(
    newest: Snapshot,
    start: StreamPosition,
    options: StreamOptions,
    until: StreamPosition | None = None,
) -> StreamPosition:
    """Find how far the next batch goes.

    Args:
        newest: The table as it is.
        start: Where the batch begins.
        options: The stream's.
        until: Where a stream that takes what is there ends; None for one that goes on.

    Returns:
        The position; ``start`` where nothing was committed since.

    Raises:
        TableMadeAnew: The stream began with another table of this name.
        StreamPositionExpired: The version that tells it has expired.
    """
    check_position(newest, start)
    end = newest.version if until is None else min(newest.version, until.version)
    if options.most_versions is not None and start.version != BEGINNING:
        end = min(end, start.version + options.most_versions)
    return start if end <= start.version else position_at(newest, end, start.awaited)


def planned_batch(
    began: Snapshot,
    start: StreamPosition,
    end: StreamPosition,
    options: StreamOptions,
    *,
    num_tasks: int,
    max_bytes: int,
    constants: pa.Schema = _NO_COLUMNS,
) -> tuple[pa.Table, list[list[Piece]]]:
    """Plan the rows between two positions.

    Args:
        began: The table as the stream began, whose columns the rows are read in.
        start: Where the batch begins, its own version excluded.
        end: Where it ends, its own version included.
        options: The stream's.
        num_tasks: How many tasks can run at once.
        max_bytes: The most that one task should read of a whole table.
        constants: The requested metadata columns that splits bring along.

    Returns:
        The leaves (``object_id``, ``location``, ``read_version``, ``residual``, and the requested
        ``constants``), and for each task its pieces of them.

    Raises:
        StreamPositionExpired: A version between has expired.
        StreamSourceChanged: A commit removed or changed rows.
        StreamColumnsChanged: A column that is read was dropped or promoted.
        TableMadeAnew: Another table stands there by now.
    """
    if start.version == BEGINNING:
        whole = opened_at(began, end)
        _check_columns(began, whole)
        plan = with_constants(plan_scan(whole), constants)
        return plan.table, pack(plan, num_tasks, max_bytes)
    added: list[AddedRows] = []
    texts: list[str | None] = []
    before = opened_at(began, start)
    for version in range(start.version + 1, end.version + 1):
        after = opened(began, version)
        if start.awaited is None or committed_at(after) >= start.awaited:
            of_version = added_rows(before, after, skips_changes=options.skips_changes)
            added += of_version
            texts += _constants(after, of_version, constants)
        before = after
    _check_columns(began, before)
    leaves = _leaves(added)
    if any(texts):
        leaves = leaves.append_column(CONSTANTS, pa.array(texts, pa.utf8()))
    return leaves, _divided(added, num_tasks)


def _constants(
    after: Snapshot, added: Sequence[AddedRows], asked: pa.Schema
) -> Sequence[str | None]:
    """Give what the splits of added rows carry for metadata columns, as of their own version."""
    none: list[str | None] = [None] * len(added)
    if not len(asked) or not after.layout.records_commits:
        return none
    ids = pa.array([rows.object_id for rows in added], pa.utf8())
    leaves = after.leaves().table
    leaves = leaves.filter(pc.is_in(leaves["object_id"], value_set=ids))
    texts = leaf_constants(leaves, asked)
    if texts is None:
        return none
    by_leaf = dict(zip(leaves["object_id"].to_pylist(), texts.to_pylist(), strict=True))
    return [by_leaf[rows.object_id] for rows in added]


def _leaves(added: Sequence[AddedRows]) -> pa.Table:
    rows = [
        {
            "object_id": rows.object_id,
            "location": rows.location,
            "read_version": rows.version,
            "residual": -1,
            "num_rows": rows.num_leaf_rows,
        }
        for rows in added
    ]
    return pa.Table.from_pylist(rows, _LEAVES)


def _divided(added: Sequence[AddedRows], num_tasks: int) -> list[list[Piece]]:
    """Divide rows among as many tasks as can run at once, in their order."""
    most = -(-sum(rows.num_rows for rows in added) // max(1, num_tasks))
    tasks: list[list[Piece]] = []
    filled = most
    for leaf, rows in enumerate(added):
        if filled >= most:
            tasks.append([])
            filled = 0
        tasks[-1].append(Piece(leaf, rows.fragments, OPEN_COST_BYTES))
        filled += rows.num_rows
    return tasks


def _check_columns(began: Snapshot, now: Snapshot) -> None:
    """Refuse to read rows in columns that are other ones by now.

    A batch may end before the version that the stream began at: it lagged, or was left unfinished.
    What that version lacks was added since, for ids are never reused, and a type is read as the
    one that it was promoted to.

    Raises:
        StreamColumnsChanged: One is gone, or has another type.
    """
    is_older = now.version < began.version
    for field in began.schema.fields:
        present = now.schema.field_by_id(field.id)
        if is_older and (present is None or _promotes(present.field.type, field.field.type)):
            continue
        if present is None or present.field.type != field.field.type:
            what = "was dropped" if present is None else f"is {present.field.type} by now"
            raise StreamColumnsChanged(
                table=began.location, version=now.version, column=str(field), what=what
            )


def _promotes(stored: pa.DataType, expected: pa.DataType) -> bool:
    """Whether a type is read as another one; fields below it have ids and are compared by them."""
    if children_of(expected):
        return bool(stored.id == expected.id)
    return is_promotable(stored, expected)
