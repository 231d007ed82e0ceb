"""Decides which changes still apply after a concurrent commit.

Append and append commute: the rows are appended again, to the leaf's new version. A change of rows
stands where its rows are untouched; what its statement read beside them is ``read_set``'s matter.
Every other change depends on the leaf's content as it was read, so any change of the leaf is a
conflict.
Leaves that only the other writer touched do not matter.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, assert_never

from pennon.leaf.schema.file_layout import field_key, read_layout
from pennon.manifest.commits.commit_lookup import is_rewritten
from pennon.manifest.format.columns import PARTITION_PREFIX
from pennon.spec.initial_default import INITIAL_DEFAULT
from pennon.spec.schema import children_of
from pennon.transaction.concurrency.outcome import Conflicted
from pennon.transaction.staging.leaf_state import partition_text
from pennon.transaction.staging.staged import Append, ChangeRows, Drop, Replace, Rewrite

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

    import pyarrow as pa

    from pennon.leaf import StagedPartition
    from pennon.manifest.commits.commit_lookup import Rewrites
    from pennon.spec import PartitionSpec
    from pennon.transaction.staging.leaf_state import LeafState
    from pennon.transaction.staging.staged import Change

__all__ = ["ROWS_CHANGED", "Rebased", "check_layouts", "check_places", "rebase"]

ROWS_CHANGED: Final = "another commit changed the rows to be replaced"


@dataclass(frozen=True, slots=True)
class Rebased:
    """The changes stand.

    Args:
        redo: The leaves whose change has to be committed again, on their new version.
    """

    redo: frozenset[str]


def rebase(
    changes: Mapping[str, Change],
    before: Mapping[str, LeafState],
    after: Mapping[str, LeafState],
    rewrites: Callable[[], Rewrites] = dict,
) -> Rebased | Conflicted:
    """Judge changes that were made against ``before`` where the manifest now says ``after``.

    Args:
        changes: My change of each leaf, by object id.
        before: The touched leaves when my changes were made; a new leaf is not in it.
        after: The touched leaves now.
        rewrites: Tells which leaf version has the rows of which other one, by leaf and version.

    Spec: "Conflict", "Multi-Partition Transaction (Strong)".
    """
    redo = set()
    misplaced = check_places(changes, after)
    if misplaced is not None:
        return misplaced
    for object_id, change in changes.items():
        old, new = before.get(object_id), after.get(object_id)
        if _is_unchanged(old, new):
            continue
        match change:
            case Append():
                redo.add(object_id)
            case ChangeRows() | Rewrite() if new is not None and old is not None:
                redo.add(object_id)  # its rows may still be there: ``relocation`` decides
            case Replace() | Drop() if _has_same_rows(old, new, rewrites()):
                redo.add(object_id)
            case ChangeRows() | Rewrite() | Replace() | Drop():
                return _conflict(new or old, ROWS_CHANGED)
            case _:
                assert_never(change)
    return Rebased(frozenset(redo))


def _is_unchanged(old: LeafState | None, new: LeafState | None) -> bool:
    if old is None or new is None:
        return old is new
    return (old.location, old.read_version) == (new.location, new.read_version)


def _has_same_rows(old: LeafState | None, new: LeafState | None, rewrites: Rewrites) -> bool:
    """Whether nothing but rewrites of its files lie between two states of a leaf.

    One without a row may be gone: compactions take it out.
    """
    if old is not None and new is None:
        return old.num_rows == 0
    if old is None or new is None or old.location != new.location:
        return False
    return is_rewritten(new.object_id, old.read_version, new.read_version, rewrites)


def _conflict(state: LeafState | None, reason: str) -> Conflicted:
    values = {} if state is None else state.values
    return Conflicted(partition_text(values), reason)


def check_places(
    changes: Mapping[str, Change], states: Mapping[str, LeafState]
) -> Conflicted | None:
    """Find rows that were written for a new leaf which is there now, in another directory.

    Args:
        changes: My change of each leaf, by object id.
        states: The leaves as they are now.
    """
    for object_id, change in changes.items():
        state = states.get(object_id)
        if isinstance(change, Append) and state and state.location != change.staged[0].location:
            return _conflict(state, "another writer made it in another directory")
    return None


def check_layouts(
    changes: Mapping[str, Change], schema: pa.Schema, specs: Mapping[int, PartitionSpec]
) -> Conflicted | None:
    """Find rows that were written with a column, or by a spec, that the namespace has no more.

    So are rows without a column that has to have a value, and has none for rows without it.

    Args:
        changes: My change of each leaf.
        schema: The namespace schema as it is now.
        specs: Its partition specs as they are now. A rollback takes specs back, and the next one
            has the version of one that it took back.
    """
    identities = {number: spec.identity for number, spec in specs.items()}
    keys = {key for column in schema for key in _keys(column, "")}
    judged: set[str] = set()
    for change in changes.values():
        for part in (
            change.staged if isinstance(change, Append | Replace | Rewrite | ChangeRows) else ()
        ):
            now = identities.get(part.spec_version)
            if now is None or part.spec not in (None, now):
                reason = f"partition spec v{part.spec_version} was rolled back meanwhile"
                return Conflicted(_partition_of(part), reason)
            if part.layout in judged:
                continue
            judged.add(part.layout)
            written = read_layout(part.layout).keys()
            gone = written - keys
            if gone:
                reason = f"the column with id {min(gone)} was dropped meanwhile"
                return Conflicted(_partition_of(part), reason)
            lacking = next(_lacking(schema, written, "", ""), None)
            if lacking is not None:
                reason = f"column {lacking}, which is NOT NULL, was added meanwhile"
                return Conflicted(_partition_of(part), reason)
    return None


def _lacking(
    columns: Iterable[pa.Field], written: Collection[str], above: str, path: str
) -> Iterator[str]:
    """Name the columns that rows have to have a value in, and have not."""
    for column in columns:
        key, name = field_key(column, above), f"{path}{column.name}"
        if key in written:
            yield from _lacking(children_of(column.type), written, key, f"{name}.")
        elif not column.nullable and INITIAL_DEFAULT not in (column.metadata or {}):
            yield name


def _partition_of(part: StagedPartition) -> str:
    names = [name.removeprefix(PARTITION_PREFIX) for name in part.values.schema.names]
    return partition_text(
        {name: column[0] for name, column in zip(names, part.values.columns, strict=True)}
    )


def _keys(column: pa.Field, above: str) -> Iterator[str]:
    key = field_key(column, above)
    yield key
    yield key + ".entries"
    for child in children_of(column.type):
        yield from _keys(child, key)
