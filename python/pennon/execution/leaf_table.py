"""A relation as a table of DataFusion: UNION ALL of its leaves, each in the relation's schema.

A leaf is read through Lance's own table provider, which takes projections and filters and knows
its row count. A filter that keeps many rows is not given to it, for it would fetch the other
columns late. How its columns become the requested ones (``leaf/schema/reconciliation.py``) is
written as a SELECT list: a missing column is a typed NULL, a renamed one an alias, a promoted one a
cast. What has no such form is scanned first, into batches or into a file: a range of fragments,
nested columns, and casts that are checked value by value. So are small leaves
(``small_leaves.py``), because it is faster.
"""

from __future__ import annotations

import logging
import os
import shutil
import tempfile
import threading
import time
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Final
from weakref import finalize

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from pennon.errors import PartitionExpressionFailed
from pennon.execution.batches import StreamWork
from pennon.execution.fragment import NO_PRUNING_KEY, RareFirst
from pennon.execution.memory import pool_bytes
from pennon.execution.small_leaves import take_small_leaves
from pennon.leaf import LeafViews
from pennon.leaf.read.leaf_view import arrow_cast, lacking
from pennon.leaf.read.metadata_columns import is_metadata_column
from pennon.leaf.read.source import late_columns
from pennon.leaf.schema.reconciliation import stream_schema, stream_type
from pennon.predicate.condition import Comparison, Operator, condition, quoted_columns
from pennon.predicate.dialect import DataFusion, read_condition
from pennon.predicate.typed import columns_above, opaque
from pennon.spec.column_defaults import initial_default
from pennon.spec.schema import children_of, with_children
from pennon.transforms.murmur3 import murmur3

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from datafusion import DataFrame, SessionContext

    from pennon.execution.batches import BatchStream
    from pennon.execution.fragment import LeafPruning, LeafRead, Relation, ReplicatedPart, RowFilter
    from pennon.leaf.read.leaf_view import LeafView
    from pennon.leaf.schema.reconciliation import FieldMatch

_LOG = logging.getLogger(__name__)
# Prunes leaves and rows by the values of a replicated part, before they are read.
#
# A key is the hash of a leaf's partition value; two values of one hash only keep more. NULL rules:
# a part's NULLs have no partner; a leaf whose key is NULL has rows of which the transform makes
# NULL: only an expression does of what is not NULL.
#
# Of the other leaves the values become a condition on the rows: a list of few, or the range of
# many. Lance reads the filtered column for it, and of the others what is left; that is faster where
# little is left, and takes twice the time where much is. So it is done only where the values are
# few of those that they were chosen from, each once: a key of which a condition left few. Where
# they are very few, the columns of other conditions need not be read for all rows either: these
# come after.

# More values than this are seldom missing in any partition.
_MOST_ROWS: Final = 2_000_000
# A list is written once per relation, and read by Lance for each leaf: 3 µs per value.
_MOST_VALUES: Final = 2000
_MOST_WRITTEN: Final = 50_000
_FEWEST_OF_RUN: Final = 2
# The part of the values that was chosen, at most.
_SHARE: Final = 8
# Of more than this part of the rows, all columns are read about as fast as one before the others.
_RARE_SHARE: Final = 32


def pruned(
    relations: Sequence[Relation],
    prunings: Sequence[LeafPruning],
    parts: Sequence[ReplicatedRows],
) -> list[Relation]:
    """Leave out the leaves that no row of a part can have a partner in.

    Args:
        relations: What the fragment reads.
        prunings: What rules out leaves of them.
        parts: The rows of its parts.
    """
    kept = [[True] * len(relation.leaves) for relation in relations]
    for pruning in prunings:
        rows = parts[pruning.part]
        if sum(batch.num_rows for batch in rows.batches) > _MOST_ROWS:
            continue
        possible = _possible_keys(pruning, rows)
        if possible is None:
            continue
        flags = kept[pruning.relation]
        kept[pruning.relation] = [
            is_kept and key in possible for is_kept, key in zip(flags, pruning.keys, strict=True)
        ]
    return [
        relation
        if all(flags)
        else replace(
            relation,
            leaves=tuple(
                leaf for leaf, is_kept in zip(relation.leaves, flags, strict=True) if is_kept
            ),
        )
        for relation, flags in zip(relations, kept, strict=True)
    ]


def _possible_keys(pruning: LeafPruning, rows: ReplicatedRows) -> set[int | None] | None:
    """Compute the keys of the leaves that may have a partner; None where that fails for a row."""
    names = list(dict.fromkeys(pruning.columns))  # two columns may be compared with one
    table = pa.Table.from_batches(rows.batches, rows.schema).select(names)
    values = table.drop_null().group_by(names).aggregate([])
    if not values.num_rows:
        return {NO_PRUNING_KEY}
    sources = [values.column(name) for name in pruning.columns]
    try:
        return {NO_PRUNING_KEY, *murmur3(pruning.transform.apply(sources)).to_pylist()}
    except (PartitionExpressionFailed, pa.ArrowInvalid) as error:
        # No leaf has such a row, or it could not have been written (an hour has to fit an INT); it
        # is no reason to fail.
        _LOG.info("no partitions are left out at run time: %s", error)
        return None


def filtered(
    relations: Sequence[Relation],
    filters: Sequence[RowFilter],
    parts: Sequence[ReplicatedRows],
) -> list[Relation]:
    """Add to what the rows of relations have to satisfy that a row of a part is their partner.

    Args:
        relations: What the fragment reads.
        filters: What rules out rows of them.
        parts: The rows of its parts.
    """
    pruned = list(relations)
    for filter_ in filters:
        relation, rows = pruned[filter_.relation], parts[filter_.part]
        values = _few_values(filter_, rows)
        if values is None:
            continue
        if not len(values):
            pruned[filter_.relation] = replace(relation, leaves=())
            continue
        key_condition = _condition(filter_, values, len(relation.leaves))
        if key_condition is not None:
            is_rare = len(values) * _RARE_SHARE <= filter_.chosen_from
            leaves = tuple(
                _narrowed(leaf, key_condition, is_rare=is_rare) for leaf in relation.leaves
            )
            pruned[filter_.relation] = replace(relation, leaves=leaves)
    return pruned


def _narrowed(leaf: LeafRead, key_condition: str, *, is_rare: bool) -> LeafRead:
    """Add a condition on a key, as the first step where it leaves few rows."""
    residual, steps = leaf.residual, leaf.steps
    if steps is not None:
        steps = replace(steps, rare=_both(steps.rare, key_condition))
    elif residual is not None and is_rare:
        steps = RareFirst(key_condition, residual)
    return replace(leaf, residual=_both(residual, key_condition), steps=steps)


def _few_values(row_filter: RowFilter, rows: ReplicatedRows) -> pa.Array | None:
    """Give the values of a part's column; None where they are many, or the column is no key."""
    num_rows = sum(batch.num_rows for batch in rows.batches)
    if num_rows * _SHARE > 2 * row_filter.chosen_from:
        return None
    at = rows.schema.get_field_index(row_filter.column)
    data_type = rows.schema.field(at).type
    columns = pa.chunked_array([batch.column(at) for batch in rows.batches], data_type).drop_null()
    values = pc.unique(columns)
    is_key = 2 * len(values) >= len(columns)
    return values if is_key and len(values) * _SHARE <= row_filter.chosen_from else None


def _condition(row_filter: RowFilter, values: pa.Array, num_leaves: int) -> str | None:
    """Write a range where few other values are between them, else a list; None where many are."""
    column = exp.column(row_filter.name, quoted=True)
    # The days of a year: of these a range is as exact, and faster.
    if len(values) > _FEWEST_OF_RUN and _is_run(values):
        return _range(column, values)
    if len(values) <= _MOST_VALUES and len(values) * num_leaves <= _MOST_WRITTEN:
        is_one_of = condition(Comparison(Operator.IN, tuple(values)), column)
        return is_one_of.sql(dialect=DataFusion)
    if not pa.types.is_integer(values.type) or _width(values) * _SHARE > row_filter.chosen_from:
        return None
    return _range(column, values)


def _is_run(values: pa.Array) -> bool:
    """Whether different values follow each other without a gap."""
    if pa.types.is_date32(values.type):
        return _width(values.view(pa.int32())) == len(values)
    return pa.types.is_integer(values.type) and _width(values) == len(values)


def _width(values: pa.Array) -> int:
    ends = pc.min_max(values)
    return int(ends["max"].as_py()) - int(ends["min"].as_py()) + 1


def _range(column: exp.Column, values: pa.Array) -> str:
    ends = pc.min_max(values)
    bounds = (
        condition(Comparison(Operator.GREATER_OR_EQUAL, (ends["min"],)), column),
        condition(Comparison(Operator.LESS_OR_EQUAL, (ends["max"],)), column),
    )
    return exp.and_(*bounds).sql(dialect=DataFusion)


def _both(residual: str | None, key_condition: str) -> str:
    return key_condition if residual is None else f"({residual}) AND ({key_condition})"


# Rows of replicated parts: evaluated once per process and query, dropped after their last use.
#
# What does not fit its share of the memory lies in a file of Arrow's, which is mapped: it may be as
# large as the disk has room, and costs no memory of the process. A part that its estimate took for
# small costs seconds then, and never the process.

_IDLE_SECONDS: Final = 60.0
# All parts of all queries may hold this share of the pool in memory.
_SHARE_OF_POOL: Final = 4


@dataclass(frozen=True, slots=True)
class ReplicatedRows:
    """Rows of a part: their schema, and the batches in memory or in a mapped file."""

    schema: pa.Schema
    batches: tuple[pa.RecordBatch, ...]
    held_bytes: int


@dataclass(slots=True)
class _Entry:
    evaluating: threading.Lock = field(default_factory=threading.Lock)
    rows: ReplicatedRows | None = None
    last_used: float = 0.0


class ReplicatedParts:
    """The parts that this process has evaluated.

    Args:
        most_bytes: What they may hold in memory together; None for a share of the pool.
        idle_seconds: After how long one that no task asks for is dropped.
    """

    def __init__(self, most_bytes: int | None = None, idle_seconds: float = _IDLE_SECONDS) -> None:
        self._most_bytes = most_bytes
        self._idle_seconds = idle_seconds
        self._entries: OrderedDict[str, _Entry] = OrderedDict()
        self._lock = threading.Lock()
        self._timer: threading.Timer | None = None

    def rows_of(
        self, part: ReplicatedPart, evaluate: Callable[[ReplicatedPart], BatchStream]
    ) -> ReplicatedRows:
        """Give the rows of a part; the first task that wants them evaluates it, others wait.

        Args:
            part: What is evaluated.
            evaluate: Computes it.

        Raises:
            PennonError: What evaluating it raised; the next task tries again.
        """
        with self._lock:
            entry = self._entries.setdefault(part.key, _Entry())
            self._entries.move_to_end(part.key)
            entry.last_used = time.monotonic()
        with entry.evaluating:
            if entry.rows is None:
                entry.rows = _collected(evaluate(part), self._room())
        with self._lock:
            entry.last_used = time.monotonic()
            self._schedule()
        return entry.rows

    def held_bytes(self) -> int:
        """Add up what is held in memory."""
        with self._lock:
            return self._held_bytes()

    def drop_idle(self) -> None:
        """Drop what no task has asked for lately."""
        with self._lock:
            self._timer = None
            oldest = time.monotonic() - self._idle_seconds
            for key, entry in list(self._entries.items()):
                if entry.last_used <= oldest and not entry.evaluating.locked():
                    del self._entries[key]
            if self._entries:
                self._schedule()

    def _room(self) -> int:
        """Make room by dropping the parts that were used the longest ago; give what there is."""
        limit = pool_bytes() // _SHARE_OF_POOL if self._most_bytes is None else self._most_bytes
        with self._lock:
            for key, entry in list(self._entries.items()):
                if self._held_bytes() <= limit // 2:
                    break
                if entry.rows is not None:
                    del self._entries[key]
            return max(0, limit - self._held_bytes())

    def _held_bytes(self) -> int:
        return sum(
            entry.rows.held_bytes for entry in self._entries.values() if entry.rows is not None
        )

    def _schedule(self) -> None:
        if self._timer is None:
            self._timer = threading.Timer(self._idle_seconds, self.drop_idle)
            self._timer.daemon = True
            self._timer.start()


def _collected(stream: BatchStream, room: int) -> ReplicatedRows:
    """Take all batches of a stream: into memory, or into a file where they need more than that."""
    held: list[pa.RecordBatch] = []
    num_bytes = 0
    batches = stream.batches
    for batch in batches:
        held.append(batch)
        num_bytes += batch.nbytes
        if num_bytes > room:
            return _mapped(stream.schema, held, batches)
    return ReplicatedRows(stream.schema, tuple(held), num_bytes)


def _mapped(
    schema: pa.Schema, held: list[pa.RecordBatch], batches: Iterator[pa.RecordBatch]
) -> ReplicatedRows:
    descriptor, path = tempfile.mkstemp(prefix="pennon-part-", suffix=".arrow")
    os.close(descriptor)
    try:
        with pa.OSFile(path, "wb") as sink, pa.ipc.new_file(sink, schema) as writer:
            for batch in held:
                writer.write_batch(batch)
            held.clear()
            for batch in batches:
                writer.write_batch(batch)
        reader = pa.ipc.open_file(pa.memory_map(path))
        written = tuple(reader.get_batch(at) for at in range(reader.num_record_batches))
    finally:
        # The mapping keeps the bytes until the last batch is gone.
        Path(path).unlink()
    return ReplicatedRows(schema, written, 0)


REPLICATED: Final = ReplicatedParts()
"""The parts of this process."""


# Scanned rows stand beside the pool: those that would take more than this of it go into a file.
_SHARE_OF_HELD: Final = 8
# A relation without columns still counts rows.
_NOTHING: Final = "c"
_EVERYTHING: Final = exp.select(exp.Star()).sql(dialect=DataFusion)
_ALL_ROWS: Final = 1 << 53
_SETTINGS: Final = (
    # Lance's scans lose the fields' metadata when they filter; types and names are still checked
    "SET datafusion.execution.skip_physical_aggregate_schema_check = true",
    # it swaps the columns of a UNION below which it reads a field of a struct
    "SET datafusion.optimizer.enable_leaf_expression_pushdown = false",
    # of the first groups by an extreme it forgets those whose extreme is NULL
    "SET datafusion.optimizer.enable_topk_aggregation = false",
)


def register_relation(
    context: SessionContext,
    name: str,
    relation: Relation,
    work: StreamWork,
    *,
    pushes_filters: bool = True,
) -> None:
    """Make a relation known as a view.

    Args:
        context: Where.
        name: The view's name; its leaves are called ``<name>_<i>``.
        relation: What is read.
        work: Counts what is read of it at once.
        pushes_filters: Whether filters of the query over it may be handed to Lance.

    Raises:
        LeafMissing: A leaf's files are gone.
        LeafTypeMismatch: A stored type does not promote to the requested one.
    """
    parts: list[str] = []
    taken = take_small_leaves(relation, work)
    relation = taken.others
    names = relation.schema.names
    for number, held in enumerate(taken.held):
        register_rows(context, f"{name}_held_{number}", held.schema, held.batches)
        columns = quoted_columns(names)
        if held.condition is not None:
            columns = columns_above(held.condition, names)
        parts.append(_Select.of(columns, held.condition).from_(f"{name}_held_{number}"))
    views = LeafViews(relation.schema, relation.namespace_schema)
    selects: dict[int, _Select | None] = {}  # by views that are kept meanwhile
    for leaf in relation.leaves:
        source = relation.opened(leaf)
        view = views.of(source.dataset, leaf.residual)
        if view.is_empty:
            continue
        called = f"{name}_{len(parts)}"
        if id(view) not in selects:
            is_closed = not pushes_filters or "\0" in (view.condition or "")
            is_early = taken.keeps_many or late_columns(source.dataset, view) is False
            selects[id(view)] = _read_by_provider(view, is_early=is_early, is_closed=is_closed)
        select = selects[id(view)]
        if leaf.fragments is not None or select is None:
            scanned = source.batches(views, leaf.residual, fragments=leaf.fragments)
            _register_scanned(context, called, _counted(scanned, work), views.schema)
            parts.append(_Select.of(quoted_columns(names)).from_(called))
            continue
        context.register_table(called, source.table_provider())
        parts.append(select.from_(called))
    if not parts:
        register_empty(context, f"{name}_none", relation.schema)
        parts.append(_Select.of(quoted_columns(names)).from_(f"{name}_none"))
    context.register_view(name, context.sql(_union(parts)))


def relation_frame(name: str, relation: Relation, context: SessionContext | None) -> DataFrame:
    """Give a relation as a lazy data frame, which may outlive every session that is stated.

    Lance's provider holds its session weakly, and a frame holds none. So the leaves are those of
    one session that is never given up, which forgets their names at once. A file of scanned rows
    stays until the process ends.

    Args:
        name: What it is called.
        relation: What is read.
        context: The session that shall know it by its name, and gets the settings without which
            DataFusion refuses queries over Lance's scans or answers them wrong; None for none.

    Raises:
        LeafMissing: A leaf's files are gone.
        LeafTypeMismatch: A stored type does not promote to the requested one.
    """
    lasting = _lasting_session()
    register_relation(lasting, name, relation, StreamWork())
    frame = lasting.table(name)
    for table in lasting.catalog().schema().names():
        if table == name or table.startswith(f"{name}_"):
            lasting.deregister_table(table)
    if context is None:
        return frame
    for setting in _SETTINGS:
        context.sql(setting)
    context.register_view(name, frame)
    return context.table(name)


@cache
def _lasting_session() -> SessionContext:
    from datafusion import SessionContext  # noqa: PLC0415 - a quarter of a second

    session = SessionContext()
    for setting in _SETTINGS:
        session.sql(setting)
    return session


def register_rows(
    context: SessionContext, name: str, schema: pa.Schema, batches: list[pa.RecordBatch]
) -> None:
    """Make a table of rows in memory known."""
    plain = stream_schema(schema).remove_metadata()
    context.register_record_batches(name, [batches or [pa.RecordBatch.from_pylist([], plain)]])


def register_empty(context: SessionContext, name: str, schema: pa.Schema) -> None:
    """Make a table without rows known."""
    plain = stream_schema(schema).remove_metadata() if len(schema) else _nothing()
    context.register_record_batches(name, [[pa.RecordBatch.from_pylist([], schema=plain)]])


@dataclass(frozen=True, slots=True)
class _Select:
    """How the rows of leaves become the requested ones, written once for all that are alike.

    Args:
        select: The SELECT list.
        where: What the rows are filtered by; empty for nothing.
        is_early: Whether all rows are read before they are filtered.
    """

    select: str
    where: str
    is_early: bool = False

    @classmethod
    def of(
        cls,
        columns: Sequence[exp.Expr],
        condition: exp.Expr | None = None,
        *,
        is_early: bool = False,
    ) -> _Select:
        chosen = list(columns) or [exp.alias_(exp.true(), _NOTHING, quoted=True)]
        where = "" if condition is None else f" WHERE {condition.sql(dialect=DataFusion)}"
        return cls(exp.select(*chosen, copy=False).sql(dialect=DataFusion), where, is_early)

    def from_(self, table: str) -> str:
        """Write it of one table."""
        # DataFusion pushes no filter below a limit.
        rows = f"({_EVERYTHING} FROM {table} LIMIT {_ALL_ROWS}) AS {table}"
        return f"{self.select} FROM {rows if self.is_early else table}{self.where}"


def _read_by_provider(view: LeafView, *, is_early: bool, is_closed: bool) -> _Select | None:
    """Write how a leaf is read; None where it has to be scanned first.

    Args:
        view: The leaf.
        is_early: Whether its filter had better come after all rows.
        is_closed: Whether no filter may reach Lance.
    """
    if not view.is_provided or not all(map(_is_expressible, view.matches)):
        return None
    columns = {match.expected.name: _column(match) for match in view.matches}
    if view.condition is None:
        return _Select.of(list(columns.values()), is_early=is_closed)
    condition = read_condition(view.condition)
    filtered = {column.parts[0].name for column in condition.find_all(exp.Column)}
    kept = {
        match.expected.name: match.expected.type
        for match in view.matches
        if match.stored is not None and match.stored.name in filtered
    }
    is_plain = not any(pa.types.is_nested(it) or pa.types.is_null(it) for it in kept.values())
    if not is_plain and is_closed:
        return None
    if not (is_plain and (is_early or is_closed)):
        return _Select.of(list(columns.values()), condition)
    # Else DataFusion computes what stands above the filter for rows that it leaves out.
    for name in kept:
        columns[name] = exp.alias_(opaque(columns[name].this), name, quoted=True)
    return _Select.of(list(columns.values()), condition, is_early=True)


def _register_scanned(
    context: SessionContext, name: str, scanned: Iterator[pa.RecordBatch], schema: pa.Schema
) -> None:
    if len(schema):
        plain = schema.remove_metadata()
        rows = (pa.RecordBatch.from_arrays(batch.columns, schema=plain) for batch in scanned)
        held, num_bytes = [], 0
        for batch in rows:
            held.append(batch)
            num_bytes += batch.nbytes
            if num_bytes > pool_bytes() // _SHARE_OF_HELD:
                _register_file(context, name, chain(held, rows), plain)
                return
        register_rows(context, name, schema, held)
        return
    count = sum(batch.num_rows for batch in scanned)
    everything = pa.RecordBatch.from_arrays([pa.repeat(pa.scalar(True), count)], schema=_nothing())
    context.register_record_batches(name, [[everything]])


def _register_file(
    context: SessionContext, name: str, rows: Iterator[pa.RecordBatch], schema: pa.Schema
) -> None:
    """Write rows to a file that lives as long as the context, and make it known."""
    folder = tempfile.mkdtemp(prefix="pennon-scanned-")
    finalize(context, shutil.rmtree, folder, ignore_errors=True)
    file = Path(folder) / "rows.arrow"
    with pa.OSFile(str(file), "wb") as sink, pa.ipc.new_file(sink, schema) as writer:
        for batch in rows:
            writer.write_batch(batch)
    context.register_arrow(name, file, schema)


def _counted(scanned: Iterator[pa.RecordBatch], work: StreamWork) -> Iterator[pa.RecordBatch]:
    for batch in scanned:
        work.rows_scanned += batch.num_rows
        work.bytes_scanned += batch.nbytes
        yield batch


def _is_expressible(match: FieldMatch) -> bool:
    if is_metadata_column(match.expected):
        return False
    if match.stored is None:
        return not match.expected.type.num_fields
    stored, expected = match.stored.arrow.type, match.expected.type
    if pa.types.is_nested(expected):
        return match.is_same and _unmarked(stored).equals(_unmarked(expected), check_metadata=True)
    if pa.types.is_dictionary(stored):
        return False
    is_cut = pa.types.is_timestamp(stored) and pa.types.is_timestamp(expected)
    return stream_type(stored) == expected or not (is_cut or pa.types.is_time(stored))


def _unmarked(data_type: pa.DataType) -> pa.DataType:
    """Leave out the metadata of a nested type's fields, and keep their names."""
    children = [
        child.with_type(_unmarked(child.type)).remove_metadata() for child in children_of(data_type)
    ]
    return with_children(data_type, children) if children else data_type


def _column(match: FieldMatch) -> exp.Expr:
    expected = match.expected
    if match.stored is None:
        value = lacking(expected, initial_default(expected))
        return exp.alias_(value, expected.name, quoted=True)
    stored = exp.column(match.stored.name, quoted=True)
    if match.stored.arrow.type == expected.type or pa.types.is_nested(expected.type):
        return exp.alias_(stored, expected.name, quoted=True)
    return exp.alias_(arrow_cast(stored, expected.type), expected.name, quoted=True)


def _union(parts: Sequence[str]) -> str:
    """Join SELECTs by UNION ALL as a balanced tree, so that many leaves nest little."""
    if len(parts) == 1:
        return parts[0]
    middle = len(parts) // 2
    return f"({_union(parts[:middle])}) UNION ALL ({_union(parts[middle:])})"


def _nothing() -> pa.Schema:
    return pa.schema([pa.field(_NOTHING, pa.bool_())])
