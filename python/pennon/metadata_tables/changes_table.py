"""``table.changes``: the rows that each commit deleted and inserted.

``WHERE _commit_version > 5 AND _commit_version <= 9`` reads the changes of versions 6 to 9 alone.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
from sqlglot import exp

from pennon.errors import ChangesNotPaired, UnsupportedTableChange
from pennon.leaf.schema.promotion import stream_schema
from pennon.manifest.versions.manifest_history import versions_until
from pennon.metadata_tables.metadata_table import MetadataTable, Selection
from pennon.metadata_tables.row_differences import RowDifference, paired, row_difference
from pennon.predicate.connectives import operands
from pennon.predicate.parse import readable_predicates

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from pennon.manifest import Snapshot

__all__ = ["CHANGES", "change_schema", "changes_between", "stated_bounds"]

CHANGE_TYPE: Final = "_change_type"
COMMIT_VERSION: Final = "_commit_version"
_COMMIT_TIMESTAMP: Final = "_commit_timestamp"
INSERT: Final = "insert"
DELETE: Final = "delete"
UPDATE_PREIMAGE: Final = "update_preimage"
UPDATE_POSTIMAGE: Final = "update_postimage"
_OF_COMMITS: Final = (
    pa.field(CHANGE_TYPE, pa.utf8()),
    pa.field(COMMIT_VERSION, pa.int64()),
    pa.field(_COMMIT_TIMESTAMP, pa.timestamp("us", "UTC")),
)


def changes_between(
    snapshot: Snapshot, first: int, last: int, key: Sequence[str] = (), *, is_net: bool = False
) -> Iterator[pa.Table]:
    """Tell what the commits from one version to another did to the rows.

    Args:
        snapshot: The table; its columns are those of all changes.
        first: The version whose rows are the beginning; its own commit is not included.
        last: The version whose commit is the last one included.
        key: Columns whose values identify a row; with none, a row that got other values is deleted
            as it was and inserted as it is.
        is_net: Whether all commits count as the last one: a row that comes and goes between is not
            told of.

    Yields:
        Tables of the rows that commits changed, in the commits' order: the columns,
        ``_change_type``, ``_commit_version`` and ``_commit_timestamp``. The types are ``delete``
        and ``insert``, and with a key ``update_preimage`` and ``update_postimage``.

    Raises:
        SnapshotNotFound: The first version has expired.
        ChangesNotKept: A version does not hold its rows.
        ChangesNotPaired: Several rows of one commit have the same key.

    Spec: "Multi-Partition Transaction (Strong)".
    """
    versions = versions_until(snapshot)
    times = dict(
        zip(versions["version"].to_pylist(), versions["committed_at"].to_pylist(), strict=True)
    )
    numbers = [time for time in times if first <= time <= last]
    if first not in times:
        snapshot.at_version(first)  # says which versions there are
    if is_net and len(numbers) > 1:
        numbers = [numbers[0], numbers[-1]]
    schema = snapshot.schema.arrow
    before: Snapshot | None = None
    for old, new in pairwise(numbers):
        was = before if before is not None else snapshot.at_version(old)
        before = now = snapshot.at_version(new)
        difference = row_difference(was, now, schema)
        pairs = paired(difference, key) if key else _unpaired(difference)
        if pairs is None:
            raise ChangesNotPaired(table=snapshot.location, version=new, key=", ".join(key))
        gone = _change_rows(
            difference.deleted, pairs[0], (DELETE, UPDATE_PREIMAGE), new, times[new]
        )
        come = _change_rows(
            difference.inserted, pairs[1], (INSERT, UPDATE_POSTIMAGE), new, times[new]
        )
        yield from (rows for rows in (gone, come) if len(rows))


def _unpaired(difference: RowDifference) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    return np.zeros(len(difference.deleted), np.bool_), np.zeros(len(difference.inserted), np.bool_)


def _change_rows(
    rows: pa.Table,
    is_update: NDArray[np.bool_],
    kinds: tuple[str, str],
    version: int,
    moment: object,
) -> pa.Table:
    types = np.where(is_update, kinds[1], kinds[0]).tolist()
    columns = (
        pa.array(types, pa.utf8()),
        pa.repeat(pa.scalar(version, pa.int64()), len(rows)),
        pa.repeat(pa.scalar(moment, _OF_COMMITS[2].type), len(rows)),
    )
    for field, column in zip(_OF_COMMITS, columns, strict=True):
        rows = rows.append_column(field, column)
    return rows


def change_schema(snapshot: Snapshot) -> pa.Schema:
    """Give the columns of changes: the table's, and those about the commit.

    Raises:
        UnsupportedTableChange: The table has a column of one of these names.
    """
    columns = stream_schema(snapshot.schema.arrow)
    taken = sorted({commit.name for commit in _OF_COMMITS}.intersection(columns.names))
    if taken:
        raise UnsupportedTableChange(
            change="read the changes",
            table=snapshot.location,
            why=f"it has a column {taken[0]} of its own",
            advice="Rename the column",
        )
    return pa.schema([*(field.remove_metadata() for field in columns), *_OF_COMMITS])


def _rows(snapshot: Snapshot, selection: Selection) -> Iterator[pa.Table]:
    versions = versions_until(snapshot)["version"].to_pylist()
    first, last = stated_bounds(selection.predicates)
    if 1 < first <= snapshot.version and first - 1 not in versions:
        # What the commits until then did cannot be separated from what is asked for.
        snapshot.at_version(first - 1)  # says which versions there are
    earlier = [row for row in versions if row < first] or versions[:1]
    yield from changes_between(snapshot, earlier[-1], min(last, snapshot.version))


def stated_bounds(predicates: Sequence[str]) -> tuple[int, int]:
    """Give the first and the last version whose changes are asked for.

    Args:
        predicates: Spark SQL texts; those on ``_commit_version`` bound the versions.

    Example:
        >>> stated_bounds(["_commit_version > 5 AND _commit_version <= 9"])
        (6, 9)
    """
    first, last = 1, (1 << 63) - 1
    for whole in readable_predicates(predicates):
        for part in operands(whole, exp.And):
            low, high = _bound(part)
            first, last = max(first, low), min(last, high)
    return first, last


def _bound(part: exp.Expr) -> tuple[int, int]:
    first, last = 1, (1 << 63) - 1
    if not isinstance(part, exp.EQ | exp.GT | exp.GTE | exp.LT | exp.LTE):
        return first, last
    column, literal = part.this, part.expression
    if isinstance(literal, exp.Cast):
        literal = literal.this
    is_of_version = isinstance(column, exp.Column) and column.name == COMMIT_VERSION
    is_number = isinstance(literal, exp.Literal) and literal.name.isdecimal()
    if not is_of_version or not is_number:
        return first, last
    number = int(literal.name)
    match part:
        case exp.EQ():
            return number, number
        case exp.GT():
            return number + 1, last
        case exp.GTE():
            return number, last
        case exp.LT():
            return first, number - 1
        case _:
            return first, number


CHANGES = MetadataTable("changes", change_schema, _rows)
