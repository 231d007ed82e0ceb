"""Makes, drops and refreshes the indexes of a table, beside its writers.

A definition is one commit of the table's metadata. Then leaf after leaf gets its segments, which
are built beside its versions and shown together, by one commit of the manifest for many leaves.
Until then, and of rows that come later until ``refresh_indexes``, a search looks at every row.

An index changes no row: others append, delete, update and compact meanwhile, and so does it.
Fragments that are not as they were when a segment was built are not in it (``reindexed``). In weak
mode, and of plain datasets, the indexes are Lance's own, on each leaf's main branch.
"""

from __future__ import annotations

import contextlib
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from pennon.errors import (
    IndexAlreadyExists,
    IndexNotFound,
    IndexRefused,
    PennonError,
    WriteConflict,
)
from pennon.leaf.dataset import index_files, leaf_indexes, leaves_at_once, open_own_leaf
from pennon.leaf.write.leaf_commit import files_by_fragment
from pennon.manifest import ManifestCommitted, Snapshot
from pennon.manifest.commits.root_change import change_root
from pennon.manifest.format.properties import index_definitions
from pennon.planning import plan_scan
from pennon.search.indexes import (
    INDEX_TYPES,
    build_segment,
    has_files,
    index_on_main,
    indexed_column,
    is_of_kind,
    stored_name,
)
from pennon.transaction import Committed, Conflicted, Transaction
from pennon.transaction.staging.staged import leaf_states

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    import lance
    from lance.dataset import Index

    from pennon.leaf.write.leaf_commit import FragmentFiles
    from pennon.manifest.format.properties import IndexDefinition
    from pennon.transaction.staging.staged import LeafState

__all__ = ["create_index", "drop_index", "refresh_indexes", "turn_to_build"]

_ATTEMPTS: Final = 20
_LEAVES_OF_COMMIT: Final = 1_000
_THREADS: Final = 2
# Each segment is searched by itself.
_MOST_SEGMENTS: Final = 4
_OPERATION: Final = "index"
_turns: Final[dict[str, threading.Lock]] = {}


def turn_to_build(location: str) -> threading.Lock:
    """Give what is held while an index of a table is made, and by the upkeep behind commits.

    Args:
        location: The table.
    """
    return _turns.setdefault(location.rstrip("/"), threading.Lock())


def create_index(snapshot: Snapshot, definition: IndexDefinition, table: str) -> int:
    """Define an index, and build it for the leaves that are large enough.

    Args:
        snapshot: The table.
        definition: The index.
        table: The table, for errors.

    Returns:
        The table's newest version.

    Raises:
        IndexAlreadyExists: The table has one of that name.
        IndexRefused: Lance refused to build it; nothing is left of it.
        WriteConflict: Other commits came first, again and again.
    """
    if not snapshot.layout.has_manifest:
        (leaf,) = _leaves_on_main(snapshot)
        if definition.name in {index.name for index in leaf_indexes(leaf)}:
            raise IndexAlreadyExists(name=definition.name, table=table)
        _put_on_main([leaf], snapshot, [definition])
        return int(leaf.version)
    with turn_to_build(snapshot.location), contextlib.ExitStack() as undo:
        _changed(snapshot, table, definition, is_new=True)
        undo.callback(_given_up, snapshot, definition, table)
        version = refresh_indexes(_newest(snapshot), table, [definition.name])
        undo.pop_all()
    return version


def _given_up(snapshot: Snapshot, definition: IndexDefinition, table: str) -> None:
    with contextlib.suppress(PennonError, OSError):
        newest = _newest(snapshot)
        if index_definitions(newest.metadata).get(definition.name) == definition:
            drop_index(newest, definition.name, table)


def drop_index(snapshot: Snapshot, name: str, table: str) -> int:
    """Take the definition of an index from the table, and the index from all leaves.

    Nobody shows segments without a definition. So it goes first; what a process that was killed
    on its way leaves in the leaves, the next call takes.

    Args:
        snapshot: The table.
        name: The index.
        table: The table, for errors.

    Returns:
        The table's newest version.

    Raises:
        IndexNotFound: There is none of that name; lists those there are.
        WriteConflict: Other commits came first, again and again.
    """
    if not snapshot.is_strong:
        return _dropped_on_main(snapshot, name, table)
    definitions = index_definitions(snapshot.metadata)
    if name in definitions:
        version = _changed(snapshot, table, definitions[name])
        snapshot = Snapshot.open(
            snapshot.location, version, storage_options=snapshot.storage_options
        )
    elif not _having(snapshot, name, is_certain=True):
        raise _not_found(name, table, definitions)
    return _in_leaves(snapshot, table, partial(_without, name), _having(snapshot, name)).version


def _dropped_on_main(snapshot: Snapshot, name: str, table: str) -> int:
    known = set(index_definitions(snapshot.metadata)) if snapshot.layout.has_manifest else set()
    leaves = _leaves_on_main(snapshot)
    having = [leaf for leaf in leaves if name in {index.name for index in leaf_indexes(leaf)}]
    if not having and name not in known:
        raise _not_found(name, table, known | {i.name for x in leaves for i in leaf_indexes(x)})
    for leaf in having:
        leaf.drop_index(name)
    if not snapshot.layout.has_manifest:
        return int(leaves[0].version)
    if name not in known:  # Lance's own, of which the table says nothing
        return snapshot.version
    return _changed(_newest(snapshot), table, index_definitions(snapshot.metadata)[name])


def _not_found(name: str, table: str, known: Iterable[str]) -> IndexNotFound:
    listed = ", ".join(sorted(known)) or "none"
    return IndexNotFound(name=name, table=table, known=listed)


def refresh_indexes(
    snapshot: Snapshot,
    table: str,
    names: Sequence[str] | None = None,
    where: str | None = None,
    *,
    among: Collection[str] | None = None,
    least_share: float = 0.0,
) -> int:
    """Bring rows that are in no index into it, and take out what nothing is left of.

    Args:
        snapshot: The table.
        table: The table, for errors.
        names: The indexes; None for all.
        where: A condition in Spark SQL; leaves that it rules out stay as they are.
        among: The object ids of the only leaves that are looked at; None for all.
        least_share: Leaves of which a smaller share of the rows is in no index stay as they are.

    Returns:
        The table's newest version.

    Raises:
        IndexNotFound: There is none of a name.
        IndexRefused: Lance refused to build one.
        WriteConflict: Other commits came first, again and again.
    """
    if not snapshot.layout.has_manifest:
        (leaf,) = _leaves_on_main(snapshot)
        leaf.optimize.optimize_indices(**({} if names is None else {"index_names": list(names)}))
        return int(leaf.version)
    known = index_definitions(snapshot.metadata)
    for name in names or ():
        if name not in known:
            raise _not_found(name, table, known)
    chosen = [known[name] for name in (known if names is None else names)]
    for definition in chosen:
        leaves = _object_ids(snapshot, [definition.where, where])
        if among is not None:
            leaves = [leaf for leaf in leaves if leaf in among]
        if snapshot.is_strong:
            work = _Work(definition, least_share, is_thorough=names is not None)
            snapshot = _in_leaves(snapshot, table, work.built, leaves, definition)
        else:
            _put_on_main(_leaves_on_main(snapshot, leaves), snapshot, [definition])
    return snapshot.version


# The leaves, and what each of them lacks.


@dataclass(frozen=True, slots=True)
class _Built:
    """What a leaf gets, and what goes."""

    object_id: str
    files: Mapping[int, FragmentFiles]
    segments: tuple[Index, ...] = ()
    removed: tuple[str, ...] = ()


def _object_ids(snapshot: Snapshot, conditions: Sequence[str | None]) -> list[str]:
    given = [condition for condition in conditions if condition]
    plan = plan_scan(snapshot, given, (), by_statistics=False)
    return list(plan.table["object_id"].to_pylist())


def _having(snapshot: Snapshot, name: str, *, is_certain: bool = False) -> list[str]:
    """Name the leaves that have an index; or may have it for all that is known."""
    states = leaf_states(snapshot, snapshot.leaves().table["object_id"].to_pylist())
    return [
        state.object_id
        for state in states.values()
        if (state.indexes is None and not is_certain)
        or any(index.name == name for index in state.indexes or ())
    ]


def _opened(snapshot: Snapshot, state: LeafState) -> lance.LanceDataset:
    """Open a leaf for this thread alone: Lance borrows what it builds an index of for itself."""
    root, options = snapshot.location, snapshot.storage_options
    return open_own_leaf(root, state.location, state.read_version, options)


def _without(name: str, snapshot: Snapshot, state: LeafState) -> _Built | None:
    if name in index_definitions(snapshot.metadata):  # a new one, which has no use for the old
        return None
    gone = tuple(one.uuid for one in _segments(_opened(snapshot, state), name))
    return _Built(state.object_id, {}, removed=gone) if gone else None


@dataclass(frozen=True, slots=True)
class _Segment:
    """A part of a leaf's index, the fragments that it names, and what it is of."""

    uuid: str
    fragments: frozenset[int]
    kind: str
    columns: tuple[str, ...]


def _segments(dataset: lance.LanceDataset, name: str) -> list[_Segment]:
    return [
        _Segment(
            segment.uuid,
            frozenset(segment.fragment_ids),
            index.index_type,
            tuple(index.field_names),
        )
        for index in dataset.describe_indices()
        if index.name == name
        for segment in index.segments
    ]


@dataclass(frozen=True, slots=True)
class _Work:
    """What is done with the leaves of an index.

    Args:
        definition: The index.
        least_share: Leaves of which a smaller share of the rows is in no index stay as they are.
        is_thorough: Whether leaves are looked at though the manifest says that they have all: what
            it says may be of an earlier index of that name, and files may have gone.
    """

    definition: IndexDefinition
    least_share: float
    is_thorough: bool

    def built(self, snapshot: Snapshot, state: LeafState) -> _Built | None:
        """Build what a leaf lacks of the index; None where it lacks nothing."""
        definition = self.definition
        column = indexed_column(snapshot.schema.arrow, definition)
        if state.is_elsewhere or (not self.is_thorough and _is_complete(definition, state)):
            return None
        is_wanted = column is not None and _is_large(definition, column, state)
        if not is_wanted and not _has_index(definition.name, state):
            return None
        dataset = _opened(snapshot, state)
        rows = {one.fragment_id: one.count_rows() for one in dataset.get_fragments()}
        segments = _segments(dataset, definition.name)
        live = self._live(segments, snapshot, dataset, column)
        live = [one for one in live if one.fragments & rows.keys()]
        covered = frozenset().union(*(one.fragments for one in live))
        lacking = sorted(number for number in rows.keys() - covered if rows[number])
        dead = tuple(one.uuid for one in segments if one not in live)
        num_lacking, total = sum(rows[number] for number in lacking), sum(rows.values())
        if column is None or not is_wanted or num_lacking <= self.least_share * total:
            is_told = not self.is_thorough or state.indexes == leaf_indexes(dataset)
            return None if is_told and not dead else _Built(state.object_id, {}, removed=dead)
        if len(live) >= _MOST_SEGMENTS or 2 * num_lacking > total:
            lacking, dead = sorted(rows), tuple(one.uuid for one in segments)
        schema = snapshot.schema.arrow
        storage = snapshot.storage_options
        segment = build_segment(
            dataset, definition, column, schema, lacking, storage_options=storage
        )
        if segment is None:
            return None
        return _Built(state.object_id, files_by_fragment(dataset), (segment,), dead)

    def _live(
        self,
        segments: Sequence[_Segment],
        snapshot: Snapshot,
        dataset: lance.LanceDataset,
        column: pa.Field | None,
    ) -> Sequence[_Segment]:
        """Choose the segments of the index as it is defined, whose files are there."""
        name = None if column is None else stored_name(dataset, column, snapshot.schema.arrow)
        own = [
            one
            for one in segments
            if is_of_kind(self.definition, one.kind) and one.columns == (name,)
        ]
        if own and self.is_thorough:
            files = index_files(str(dataset.uri), snapshot.storage_options)
            has_addresses = not dataset.has_stable_row_ids  # without, no words are stored
            definition = self.definition
            own = [
                one
                for one in own
                if has_files(definition, column if has_addresses else None, files.get(one.uuid))
            ]
        return own


def _has_index(name: str, state: LeafState) -> bool:
    return state.indexes is None or any(index.name == name for index in state.indexes)


def _is_complete(definition: IndexDefinition, state: LeafState) -> bool:
    """Whether all rows are in the index, as the manifest says."""
    return state.num_rows is not None and any(
        index.name == definition.name
        and index.rows == state.num_rows
        and index.segments <= _MOST_SEGMENTS
        and is_of_kind(definition, index.type)
        for index in state.indexes or ()
    )


def _is_large(definition: IndexDefinition, column: pa.Field, state: LeafState) -> bool:
    num_bytes = state.num_bytes
    if INDEX_TYPES[definition.type].is_of_vectors and state.num_rows is not None:
        num_bytes = state.num_rows * column.type.list_size * column.type.value_type.bit_width // 8
    return num_bytes is None or num_bytes >= definition.min_bytes


def _in_leaves(
    snapshot: Snapshot,
    table: str,
    build: Callable[[Snapshot, LeafState], _Built | None],
    object_ids: Sequence[str],
    definition: IndexDefinition | None = None,
) -> Snapshot:
    """Build what leaves lack, and show it; a thousand leaves a commit."""
    most = leaves_at_once(snapshot.location, on_disk=_THREADS)
    for first in range(0, len(object_ids), _LEAVES_OF_COMMIT):
        some = object_ids[first : first + _LEAVES_OF_COMMIT]
        states = leaf_states(snapshot, some)
        with ThreadPoolExecutor(most) as pool, _of_table(table):
            built = list(pool.map(partial(build, snapshot), states.values()))
        lacking = [one for one in built if one is not None]
        snapshot = _committed(snapshot, table, lacking, definition)
    return snapshot


@contextlib.contextmanager
def _of_table(table: str) -> Iterator[None]:
    """Tell of the table, and not of a leaf of it."""
    try:
        yield
    except IndexRefused as error:
        raise IndexRefused(**{**error.parameters, "table": table}) from error


def _committed(
    snapshot: Snapshot, table: str, built: Sequence[_Built], definition: IndexDefinition | None
) -> Snapshot:
    """Show segments with one commit; leaves that are gone by then have none.

    Nor have others where the index was dropped meanwhile, or made anew.
    """
    for _ in range(_ATTEMPTS):
        states = leaf_states(snapshot, [one.object_id for one in built])
        transaction = Transaction(snapshot, operation=_OPERATION)
        if definition is not None:
            if index_definitions(snapshot.metadata).get(definition.name) != definition:
                return snapshot
            transaction.rely_on(definition)
        for one in built:
            if one.object_id in states:
                transaction.reindex(one.object_id, one.segments, one.removed, one.files)
        outcome = transaction.commit()
        if isinstance(outcome, Committed):
            return outcome.snapshot
        snapshot = _newest(snapshot)
        if isinstance(outcome, Conflicted):
            now = leaf_states(snapshot, states)
            places = {key: state.location for key, state in states.items()}
            built = [
                one
                for one in built
                if one.object_id in now and now[one.object_id].location == places.get(one.object_id)
            ]
    raise WriteConflict(table=table, why=f"other commits came first {_ATTEMPTS} times")


# Leaves that are read at their newest versions: each has its indexes by itself.


def _leaves_on_main(
    snapshot: Snapshot, object_ids: Sequence[str] | None = None
) -> list[lance.LanceDataset]:
    leaves = snapshot.leaves().table
    if object_ids is not None:
        leaves = leaves.filter(
            pc.is_in(leaves["object_id"], value_set=pa.array(object_ids, pa.utf8()))
        )
    return [
        open_own_leaf(snapshot.location, location, None, snapshot.storage_options)
        for location in leaves["location"].to_pylist()
    ]


def _put_on_main(
    leaves: Iterable[lance.LanceDataset],
    snapshot: Snapshot,
    definitions: Iterable[IndexDefinition],
) -> None:
    for definition in definitions:
        column = indexed_column(snapshot.schema.arrow, definition)
        for leaf in leaves:
            known = {index.name for index in leaf_indexes(leaf)}
            if definition.name in known:
                leaf.optimize.optimize_indices(index_names=[definition.name])
            elif column is not None:
                index_on_main(leaf, definition, column, snapshot.schema.arrow)


# Definitions, in the metadata of the table.


def _newest(snapshot: Snapshot) -> Snapshot:
    return Snapshot.open(snapshot.location, storage_options=snapshot.storage_options)


def _changed(
    snapshot: Snapshot, table: str, definition: IndexDefinition, *, is_new: bool = False
) -> int:
    """Write a definition, or take it out."""
    for _ in range(_ATTEMPTS):
        known = index_definitions(snapshot.metadata)
        if is_new and definition.name in known:
            raise IndexAlreadyExists(name=definition.name, table=table)
        if not is_new and known.get(definition.name) != definition:
            raise _not_found(definition.name, table, known)
        text = definition.to_json() if is_new else None
        match change_root(snapshot, indexes={definition.key: text}):
            case ManifestCommitted(version=version):
                return version
        snapshot = _newest(snapshot)
    raise WriteConflict(table=table, why=f"other changes came first {_ATTEMPTS} times")
