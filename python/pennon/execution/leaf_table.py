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

import shutil
import tempfile
from dataclasses import dataclass
from functools import cache
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Final
from weakref import finalize

import lance
import pyarrow as pa
from sqlglot import exp

from pennon.execution.batches.stream_work import StreamWork
from pennon.execution.memory import pool_bytes
from pennon.execution.small_leaves import take_small_leaves
from pennon.leaf import LeafViews
from pennon.leaf.read.late_columns import late_columns
from pennon.leaf.read.leaf_filter import arrow_cast, lacking
from pennon.leaf.read.metadata_columns import is_metadata_column
from pennon.leaf.schema.promotion import stream_schema, stream_type
from pennon.predicate.column_references import quoted_columns
from pennon.predicate.dialect import DataFusion, read_condition
from pennon.predicate.typed import columns_above, opaque
from pennon.spec.initial_default import initial_default
from pennon.spec.schema import children_of, with_children

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from datafusion import DataFrame, SessionContext

    from pennon.execution.fragment import Relation
    from pennon.leaf.read.leaf_view import LeafView
    from pennon.leaf.schema.reconciliation import FieldMatch

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
        dataset = relation.opened(leaf)
        view = views.of(dataset, leaf.residual)
        if view.is_empty:
            continue
        called = f"{name}_{len(parts)}"
        if id(view) not in selects:
            is_closed = not pushes_filters or "\0" in (view.condition or "")
            is_early = taken.keeps_many or late_columns(dataset, view) is False
            selects[id(view)] = _read_by_provider(view, is_early=is_early, is_closed=is_closed)
        select = selects[id(view)]
        if leaf.fragments is not None or select is None:
            scanned = _counted(leaf.scanned(dataset, views), work)
            _register_scanned(context, called, scanned, views.schema)
            parts.append(_Select.of(quoted_columns(names)).from_(called))
            continue
        context.register_table(called, lance.FFILanceTableProvider(dataset))
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
    if not all(map(_is_expressible, view.matches)):
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
