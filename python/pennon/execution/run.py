"""Runs a fragment as a stream of Arrow batches of exactly the requested types.

A fragment without a query needs no engine: its leaves are scanned one after the other, or merged
where an order is requested, and Lance applies the residual filter. DataFusion runs all others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from sqlglot import exp

from pennon.errors import InternalError, PredicateNotEvaluable, UnknownColumn
from pennon.execution.batches import (
    AT_ONCE,
    BatchStream,
    StreamWork,
    at_once,
    merged,
    row_bytes,
)
from pennon.execution.fragment import Fragment, LeafRead, LeafReading, Relation, read_by_lance
from pennon.leaf import LeafViews
from pennon.leaf.read.source import LEAF_BYTES
from pennon.predicate.condition import Declined, Semantics
from pennon.predicate.dialect import DataFusion, shortened_predicate
from pennon.predicate.expressions import typed_expression
from pennon.predicate.parse import parse_with_lists

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pennon.leaf import KeptRows, LeafSource

__all__ = ["ComputedColumns", "run_ahead"]

# Columns computed from batches in memory by Spark's expressions.

_ROWS = "rows"


class ComputedColumns:
    """Expressions over the columns of a table, as DataFusion computes them.

    Args:
        texts: Spark SQL expressions.
        schema: The columns that they name; timestamps are those of a session in UTC.
        table: The table, for errors.

    Raises:
        PredicateNotEvaluable: It is not known that DataFusion computes one of them as Spark does.
        PredicateSyntaxError: One is no expression.
        UnknownColumn: One names another column.
    """

    def __init__(self, texts: Sequence[str], schema: pa.Schema, table: str) -> None:
        columns: Mapping[str, pa.DataType] = dict(zip(schema.names, schema.types, strict=True))
        by_lower: dict[str, list[str]] = {}
        for name in columns:
            by_lower.setdefault(name.lower(), []).append(name)
        trees = []
        types = []
        named_in_lower: set[str] = set()
        for text in texts:
            tree = _resolved(text, by_lower)
            references = tree.find_all(exp.Column)
            named_in_lower.update(part.name.lower() for one in references for part in one.parts)
            try:
                typed = typed_expression(tree, columns, Semantics(is_utc=True))
            except Declined as declined:
                why = f"it is not known that DataFusion computes it as Spark does ({declined})"
                raise PredicateNotEvaluable(
                    predicate=shortened_predicate(text), namespace=table, reason=why
                ) from None
            trees.append(typed.tree.sql(dialect=DataFusion))
            types.append(typed.type)
        self.types = tuple(types)
        # A row has to be there even where no expression names a column.
        self._read = [name for name in columns if name.lower() in named_in_lower] or [*columns][:1]
        named = ", ".join(f"{tree} AS `c{at}`" for at, tree in enumerate(trees))
        self._query = f"SELECT {named} FROM {_ROWS}"  # noqa: S608 - trees that were read and written
        self._is_empty = not trees

    def of(self, rows: pa.RecordBatch) -> list[pa.Array]:
        """Compute the columns of some rows, in the rows' order.

        Raises:
            FragmentOverflow: A value does not fit its type.
            FragmentDivision: A number is divided by zero.
            FragmentText: A text that is cast is no value of its type.
        """
        if self._is_empty or not rows.num_rows:
            return [pa.nulls(rows.num_rows, type_) for type_ in self.types]
        # A quarter of a second to import, which other statements need not pay.
        from datafusion import SessionConfig, SessionContext  # noqa: PLC0415

        from pennon.execution.engine_failures import engine_failures  # noqa: PLC0415

        options = {"datafusion.execution.target_partitions": "1"}
        context = SessionContext(SessionConfig(options))
        context.register_record_batches(_ROWS, [[_plain(rows.select(self._read))]])
        with engine_failures():
            computed = pa.Table.from_batches(
                [batch.to_pyarrow() for batch in context.sql(self._query).execute_stream()]
            )
        return [column.combine_chunks() for column in computed.columns]


def _resolved(text: str, names: Mapping[str, Sequence[str]]) -> exp.Expr:
    """Read an expression, with the columns' own names where it has them in other letters."""
    tree = parse_with_lists(text)
    for column in tree.find_all(exp.Column):
        if column.table:
            continue  # a field of a struct
        alike = names.get(column.name.lower(), ())
        candidates = [name for name in alike if name == column.name] or alike
        if len(candidates) != 1:
            known = ", ".join(name for several in names.values() for name in several)
            raise UnknownColumn(column=column.name, columns=known)
        column.set("this", exp.to_identifier(candidates[0], quoted=True))
    return tree


def _plain(rows: pa.RecordBatch) -> pa.RecordBatch:
    schema = pa.schema(
        [pa.field(column.name, column.type, column.nullable) for column in rows.schema]
    )
    return pa.RecordBatch.from_arrays(rows.columns, schema=schema)


# Reads several leaves concurrently for one reader: in order, within a bound in bytes.
#
# Opening a leaf and reading its first rows is mostly waiting, so a few threads do it ahead of the
# reader. Together they take so many bytes of their leaves and leave the rest to the reader: a small
# leaf is there when its turn comes, a large one goes on streaming.

_BEGUN_BYTES: Final = 64 << 20
_SMALL_BYTES: Final = 1 << 20
_REFUSED: Final = "Invalid user input"
_ROWS_AHEAD: Final = "rows"
_HOLDS: Final = "holds"


def run_ahead(relation: Relation) -> BatchStream:
    """Stream the rows of a relation, leaf by leaf.

    Args:
        relation: What is read; an order of its is not asked for.

    Returns:
        The rows. A leaf that is gone is an error when its turn comes.

    Raises:
        LeafTypeMismatch: A stored type does not promote to the requested one.

    While they are read:
        LeafMissing: A leaf's files are gone.
        PredicateNotEvaluable: Lance does not understand a residual.
    """
    residuals = dict.fromkeys(leaf.residual for leaf in relation.leaves)
    ways = {residual: _Way.of(read_by_lance(residual, relation)) for residual in residuals}
    return BatchStream(
        LeafViews(relation.schema, relation.namespace_schema).schema, _batches(relation, ways)
    )


@dataclass(frozen=True, slots=True)
class _Way:
    """A way to read leaves, and its condition as a query, which takes longer than to read one."""

    reading: LeafReading
    query: str | None

    @classmethod
    def of(cls, reading: LeafReading) -> _Way:
        if reading.condition is None:
            return cls(reading, None)
        holds = exp.alias_(reading.condition.copy(), _HOLDS, quoted=True)
        return cls(reading, exp.select(holds).from_(_ROWS_AHEAD).sql(dialect=DataFusion))


def _batches(relation: Relation, ways: Mapping[str | None, _Way]) -> Iterator[pa.RecordBatch]:
    scans = [_scan_ahead(relation, ways[leaf.residual], leaf) for leaf in relation.leaves]
    yield from _begun_ahead(scans, relation.num_at_once)


def _begun_ahead(scans: Sequence[Iterator[pa.RecordBatch]], most: int) -> Iterator[pa.RecordBatch]:
    """Give the rows of one scan after the other; some are begun before their turn."""
    for begun, rest in at_once(partial(_begin, _BEGUN_BYTES // most), scans, most):
        yield from begun
        yield from rest


def _begin(
    most_bytes: int, batches: Iterator[pa.RecordBatch]
) -> tuple[list[pa.RecordBatch], Iterator[pa.RecordBatch]]:
    begun: list[pa.RecordBatch] = []
    num_bytes = 0
    for batch in batches:
        begun.append(batch)
        num_bytes += batch.nbytes
        if num_bytes >= most_bytes:
            break
    return begun, batches


def _scan_ahead(relation: Relation, way: _Way, leaf: LeafRead) -> Iterator[pa.RecordBatch]:
    try:
        source, reading = relation.opened(leaf), way.reading
        batches = source.batches(
            reading.views,
            reading.residual,
            fragments=leaf.fragments,
            num_at_once=max(1, relation.num_at_once // AT_ONCE),
        )
        if way.query is None:
            yield from batches
            return
        names = relation.schema.names
        for batch in batches:
            yield batch.filter(_holds(way.query, batch)).select(names)
    except (ValueError, OSError) as error:
        if leaf.residual is None or _REFUSED not in str(error):
            raise
        reason = str(error).splitlines()[0].removeprefix(_REFUSED).partition(", /")[0]
        raise PredicateNotEvaluable(
            predicate=shortened_predicate(leaf.residual),
            namespace=relation.namespace,
            reason=reason.strip(": .") or str(error),
        ) from error


def _holds(query: str, batch: pa.RecordBatch) -> pa.Array:
    """Compute a condition for each row of a batch."""
    from pennon.execution.engine import rows_over  # noqa: PLC0415 - DataFusion takes long to import

    rows = pa.Table.from_batches([batch.replace_schema_metadata()])
    return rows_over(query, {_ROWS_AHEAD: rows})[_HOLDS].combine_chunks()


_COALESCED_ROWS: Final = 8_192
_COALESCED_BYTES: Final = 1 << 20


def run(fragment: Fragment) -> BatchStream:
    """Start a fragment.

    Every leaf is opened before the first batch, so that one that is gone is an error at once.

    Raises:
        LeafMissing: A leaf's files are gone.
        LeafTypeMismatch: A stored type does not promote to the requested one.
        FragmentOverflow: A value does not fit the type that it has in SQL.
        FragmentMemory: The query needs more memory than the process gives it.
        FragmentFailed: DataFusion refuses the query.
    """
    if fragment.query is not None:
        # DataFusion takes a quarter of a second to import, and scans need none of it.
        from pennon.execution.engine import run_query  # noqa: PLC0415

        return run_query(
            fragment.relations,
            fragment.query,
            parts=fragment.parts,
            prunings=fragment.prunings,
            filters=fragment.filters,
            num_threads=fragment.num_threads,
        )
    if len(fragment.relations) != 1:
        raise InternalError(what=f"a scan of {len(fragment.relations)} relations")
    return _scan(fragment.relations[0])


def _scan(relation: Relation) -> BatchStream:
    views = LeafViews(relation.schema, relation.namespace_schema)
    work = StreamWork()
    if relation.order:
        opened = at_once(relation.opened, relation.leaves, relation.num_at_once)
        pieces = list(_fragments_of(zip(relation.leaves, opened, strict=True)))
        streams = [
            source.batches(
                views,
                leaf.residual,
                fragments=leaf.fragments,
                num_at_once=len(pieces),
                counted=work.add_scan,
                keys=relation.keys,
            )
            for leaf, source in pieces
        ]
        return BatchStream(views.schema, merged(streams, relation.order), work)
    kept = relation.kept_rows(views)
    known = [_known(leaf, kept) for leaf in relation.leaves]
    unknown = [leaf for leaf, rows in zip(relation.leaves, known, strict=True) if rows is None]
    opened = at_once(relation.opened, unknown, relation.num_at_once)
    scans = [
        _keeping(
            leaf,
            next(opened).batches(
                views,
                leaf.residual,
                fragments=leaf.fragments,
                counted=work.add_scan,
                keys=relation.keys,
            ),
            kept,
        )
        if rows is None
        else _counted(rows, views.schema, work)
        for leaf, rows in zip(relation.leaves, known, strict=True)
    ]
    is_ahead = "://" in relation.namespace and all(map(partial(_is_small, relation), unknown))
    batches = _begun_ahead(scans, relation.num_at_once) if is_ahead else chain.from_iterable(scans)
    return BatchStream(views.schema, coalesced(batches), work)


def _is_small(relation: Relation, leaf: LeafRead) -> bool:
    """Whether a leaf of a store is waited for longer than its rows take to come."""
    num_bytes = None if leaf.num_rows is None else leaf.num_rows * row_bytes(relation.schema.types)
    return num_bytes is not None and num_bytes <= _SMALL_BYTES


def _known(leaf: LeafRead, kept: KeptRows | None) -> pa.RecordBatch | None:
    """Find the kept rows of a leaf that is read whole."""
    if kept is None or leaf.residual is not None:
        return None
    return kept.find(leaf.location, leaf.version, leaf.fragments)


def _counted(rows: pa.RecordBatch, schema: pa.Schema, work: StreamWork) -> Iterator[pa.RecordBatch]:
    """Count kept rows when their turn comes, which may be never."""
    work.add_scan(rows.num_rows, rows.nbytes)
    yield pa.RecordBatch.from_arrays(rows.columns, schema=schema)


def _keeping(
    leaf: LeafRead, scan: Iterator[pa.RecordBatch], kept: KeptRows | None
) -> Iterator[pa.RecordBatch]:
    """Keep the rows of a small leaf that is read whole, as they come."""
    if kept is None or leaf.residual is not None:
        yield from scan
        return
    read: list[pa.RecordBatch] = []
    num_bytes = 0
    for batch in scan:
        num_bytes += batch.nbytes
        if num_bytes <= LEAF_BYTES:
            read.append(batch)
        else:
            read.clear()
        yield batch
    kept.keep(leaf.location, leaf.version, leaf.fragments, read)


def _fragments_of(
    leaves: Iterable[tuple[LeafRead, LeafSource]],
) -> Iterator[tuple[LeafRead, LeafSource]]:
    """Take leaves apart: a fragment's rows are sorted, those of two are not."""
    for leaf, source in leaves:
        first, end = leaf.fragments or (0, len(source.dataset.get_fragments()))
        if end - first == 1 and leaf.fragments is None:
            yield leaf, source
            continue
        for at in range(first, end):
            yield replace(leaf, fragments=(at, at + 1)), source


def coalesced(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Put small batches together: each costs its reader as much as a thousand rows do.

    The first comes as it is, and how many rows are waited for doubles from there: whoever wants few
    rows does not wait for leaves that he has no use for.

    Args:
        batches: All of one schema, as leaves give them.

    Yields:
        The same rows in their order.

    Example:
        >>> rows = pa.RecordBatch.from_pydict({"a": [1]})
        >>> [batch.num_rows for batch in coalesced([rows] * 6)]
        [1, 2, 3]
    """
    held: list[pa.RecordBatch] = []
    num_rows, num_bytes, target_rows = 0, 0, 1
    for batch in batches:
        held.append(batch)
        num_rows += batch.num_rows
        num_bytes += batch.nbytes
        if num_rows < target_rows and num_bytes < _COALESCED_BYTES:
            continue
        yield held[0] if len(held) == 1 else pa.concat_batches(held)
        target_rows = min(_COALESCED_ROWS, 2 * num_rows)
        held, num_rows, num_bytes = [], 0, 0
    if held:
        yield held[0] if len(held) == 1 else pa.concat_batches(held)
