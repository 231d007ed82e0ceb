"""Answers aggregates over whole partitions from the manifest, without opening a leaf.

``count(*)``, ``count(c)``, ``min``, ``max`` and GROUP BY over columns that partitions have as they
stand need a row per partition and how many rows it has, and so do expressions of a time that are
the same for all times of each partition. Of other columns the extremes, and how many
values are not NULL, are those of their statistics, where these are exact. It is an answer only
where the manifest has counted every partition at the version that is read, and where no condition
is left for the rows: partition values decide all of them.

NULL rules: those of SQL; a partition without rows has no part in any group, minimum or maximum.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Self

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from pennon.errors import FragmentFailed
from pennon.execution import Query
from pennon.execution.engine import rows_over
from pennon.execution.engine_failures import VALUE_FAILURES
from pennon.manifest.column_bounds import column_bounds
from pennon.manifest.format.column_statistics import is_counted_type
from pennon.manifest.partition_struct import spec_versions
from pennon.plan import Filter, Group, Project, Scan
from pennon.planning.manifest_query import NO_RESIDUAL
from pennon.planning.reports.row_estimate import with_statistics
from pennon.planning.scan_plan import plan_scan
from pennon.predicate.condition import Declined, operands
from pennon.predicate.dialect import DataFusion
from pennon.predicate.expressions.typed_expression import typed_expression
from pennon.predicate.normalize import normalize
from pennon.predicate.typed import NTZ, ZONED, Typed, cast, is_null, is_plain
from pennon.predicate.values.literals import to_expression
from pennon.pushdown.partition_times import SPEC_VERSION, PartitionTimes, time_spans
from pennon.pushdown.query import FragmentQuery, FragmentWriter
from pennon.pushdown.selects.selected import (
    Selected,
    named,
    quoted_columns,
    selected_from,
    selected_table,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pennon.plan import AggregateCall, Column, Output, PlanNode
    from pennon.planning import ScanPlan
    from pennon.predicate.condition import Semantics
    from pennon.predicate.typed import SparkExpression
    from pennon.pushdown.partition_times import TimeSpans
    from pennon.spec.partition_spec import PartitionSpec

__all__ = ["manifest_answer"]


# The exact column statistics in the manifest that can answer aggregates: extremes, NULL counts.
#
# They stand for the rows where they were counted of the very rows that are there, in every
# partition that counts. Bounds of floats do not distinguish the zeros, nor do they tell what is
# beside a NaN: a zero is no extreme, and where a column has a NaN its bounds are none.


def counted_names(attribute: int) -> tuple[str, str, str]:
    """Name the statistics of a column: its least value, its greatest, how many are not NULL.

    Example:
        >>> counted_names(7)
        ('least7', 'most7', 'values7')
    """
    return f"least{attribute}", f"most{attribute}", f"values{attribute}"


def counted_values(
    plan: ScanPlan, table: pa.Table, columns: Sequence[Column], ids: Mapping[str, int]
) -> dict[str, pa.ChunkedArray]:
    """Give the extremes of columns and how many values they have in each of some partitions.

    Args:
        plan: What a scan reads.
        table: Rows of its partitions, those that have rows.
        columns: Columns that the scan gives.
        ids: The ids of the table's columns by name.

    Returns:
        What ``counted_names`` names, by the columns' attributes, the extremes in their types; for
        the columns of which every partition has exact statistics. Extremes that bounds do not tell
        are left out.

    Raises:
        StorageFailure: The storage refused.

    Spec: "Manifest Table Schema" (metadata).
    """
    types = {field.id: field.field.type for field in plan.snapshot.schema.fields}
    counted = {
        ids[column.name]: column
        for column in columns
        if column.name in ids and column.type is not None and _has_bounds(column, types, ids)
    }
    if not counted or not table.num_rows:
        return {}
    leaves = with_statistics(plan, table)
    if leaves is None:
        return {}
    answers: dict[str, pa.ChunkedArray] = {}
    for number, bounds in column_bounds(
        plan.snapshot, leaves, {number: types[number] for number in counted}
    ).items():
        if not pc.all(pc.and_(bounds.is_known, bounds.is_exact)).as_py():
            continue
        column = counted[number]
        least, most, values = counted_names(column.id)
        for name, extremes in ((least, bounds.lower), (most, bounds.upper)):
            if not bounds.has_nan and not _has_zero(extremes):
                answers[name] = pa.chunked_array([extremes.cast(column.type)])
        answers[values] = pc.subtract(table["num_rows"], bounds.null_count)
    return answers


def _has_zero(extremes: pa.Array) -> bool:
    """Whether a bound of floats is a zero, of whichever sign."""
    if not pa.types.is_floating(extremes.type):
        return False
    return bool(pc.any(pc.equal(extremes, 0.0), min_count=0).as_py())


def _has_bounds(column: Column, types: Mapping[int, pa.DataType], ids: Mapping[str, int]) -> bool:
    """Whether a column is of a type whose bounds are its values, as Spark has them, too."""
    kind = types[ids[column.name]]
    if column.type is None or not is_plain(column.type) or not is_counted_type(kind):
        return False
    is_alike = kind.equals(column.type) or pa.types.is_string(column.type)
    return is_alike and not pa.types.is_boolean(kind)


# How many rows a partition has; no attribute of a plan has that number.
_ROWS: Final = "c-1"
_PARTITIONS: Final = "r0"
_MOST_GROUPS: Final = 1_000


def manifest_answer(
    nodes: Sequence[PlanNode], root: int, plans: Mapping[int, ScanPlan], semantics: Semantics
) -> FragmentQuery | None:
    """Answer an aggregate from the partitions of its scan.

    Args:
        nodes: The plan.
        root: The aggregate.
        plans: What each scan reads.
        semantics: The session's.

    Returns:
        A query over no relation that gives the groups; None where rows have to be read.

    Spec: "Manifest Table Schema" (metadata), "Partition Pruning".
    """
    scan = _scan_below(nodes, root)
    if scan is None or not _is_decided(plans[scan]):
        return None
    partitions = _Partitions.with_rows(plans[scan])
    values = _values(partitions, nodes[scan], has_rest=_is_counting(nodes[root]))
    try:
        times = _times(partitions, nodes, root, values, semantics)
        for name, of_times in times.values.items():
            values = values.append_column(name, of_times)
        of_partitions = _PartitionValues(plans[scan], values, times)
        writer = _PartitionWriter(nodes, root, semantics, of_partitions)
        query = writer.query()
        if writer.prunings:
            return None
        rows = rows_over(query.select.sql, {_PARTITIONS: values})
    except (Declined, FragmentFailed, *VALUE_FAILURES):
        # An error is one of the running query, and never of its planning.
        return None
    return constant_query(query, rows) if rows.num_rows <= _MOST_GROUPS else None


def _scan_below(nodes: Sequence[PlanNode], root: int) -> int | None:
    """Find the one scan below an aggregate, its filters and projections."""
    node = nodes[root]
    if not isinstance(node, Group):
        return None
    at = node.child
    while isinstance(below := nodes[at], Filter | Project):
        at = below.child
    return at if isinstance(below, Scan) else None


def _is_counting(node: PlanNode) -> bool:
    """Whether all that an aggregate asks may stand in the statistics of columns."""
    calls = node.calls if isinstance(node, Group) else None
    return bool(calls) and all(call.name in ("count", "min", "max") for call in calls or ())


def _is_decided(plan: ScanPlan) -> bool:
    """Whether all rows of the chosen partitions count, and the manifest has counted them."""
    has_residual = pc.any(pc.not_equal(plan.table["row_filter"], NO_RESIDUAL), min_count=0)
    return plan.counted_rows is not None and not has_residual.as_py()


@dataclass(frozen=True, slots=True)
class _Partitions:
    """The partitions of a scan that have rows.

    Args:
        plan: What the scan reads.
        table: Each of them, with the version of its spec.
        specs: The specs that they have, by version.
        ids: The numbers of the table's columns, by name.
    """

    plan: ScanPlan
    table: pa.Table
    specs: Mapping[int, PartitionSpec]
    ids: Mapping[str, int]

    @classmethod
    def with_rows(cls, plan: ScanPlan) -> Self:
        table = plan.table.filter(pc.greater(plan.table["num_rows"], 0))
        versions = spec_versions(table)
        specs = {
            version: plan.snapshot.specs[version] for version in pc.unique(versions).to_pylist()
        }
        fields = plan.snapshot.schema.fields
        ids = {field.path[0]: field.id for field in fields if len(field.path) == 1}
        return cls(plan, table.append_column(SPEC_VERSION, versions), specs, ids)


def _values(partitions: _Partitions, scan: PlanNode, *, has_rest: bool) -> pa.Table:
    """Give the rows of each partition, and its values by the columns' attributes.

    Args:
        partitions: What the scan reads.
        scan: The scan.
        has_rest: Whether to give the statistics of the other columns, too.
    """
    table, ids = partitions.table, partitions.ids
    specs = list(partitions.specs.values())
    if not specs:
        return _no_partitions(scan)
    columns = {_ROWS: table["num_rows"]}
    rest: list[Column] = []
    for column in scan.columns if isinstance(scan, Scan) else ():
        stored = _identity_column(specs, ids.get(column.name))
        # Zeros of both signs are one partition, and any NaN is: the rows' own are not known.
        if stored is None or column.type is None or pa.types.is_floating(column.type):
            rest.append(column)
            continue
        columns[f"c{column.id}"] = table[stored].cast(column.type)
    counted = counted_values(partitions.plan, table, rest, ids) if has_rest else {}
    return pa.table({**columns, **counted})


def _times(
    partitions: _Partitions,
    nodes: Sequence[PlanNode],
    root: int,
    values: pa.Table,
    semantics: Semantics,
) -> PartitionTimes:
    """Find what an aggregate asks of times that the partitions have levels of."""
    table, specs, ids = partitions.table, partitions.specs, partitions.ids
    spans: list[tuple[Column, TimeSpans]] = []
    expressions: list[SparkExpression] = []
    for node in nodes[: root + 1]:
        match node:
            case Scan():
                for column in node.columns:
                    is_other = column.name not in ids or f"c{column.id}" in values.column_names
                    if is_other or column.type not in (pa.date32(), NTZ, ZONED):
                        continue
                    of_column = time_spans(table, specs, ids[column.name]) if specs else None
                    if of_column is not None:
                        spans.append((column, of_column))
            case Project():
                expressions += [output.value for output in node.outputs or ()]
            case Group():
                expressions += [key.value for key in node.keys or ()]
                expressions += [call.argument for call in node.calls or ()]
    return PartitionTimes(spans, semantics, expressions)


def _no_partitions(scan: PlanNode) -> pa.Table:
    """Give no row: every column has the same value in all of them."""
    columns = scan.columns if isinstance(scan, Scan) else ()
    types = {f"c{column.id}": column.type for column in columns if column.type is not None}
    return pa.schema({_ROWS: pa.int64(), **types}).empty_table()


def _identity_column(specs: Sequence[PartitionSpec], source: int | None) -> str | None:
    """Find the manifest's column with the values of a source in partitions of all these specs."""
    ids_by_spec = [
        {
            field.column
            for field in spec.fields
            if field.derivation.is_identity and field.source_ids == (source,)
        }
        for spec in specs
    ]
    shared = set.intersection(*ids_by_spec) if ids_by_spec else set[str]()
    return min(shared, default=None)


@dataclass(frozen=True, slots=True)
class _PartitionValues:
    """The values of a scan's partitions, a row of them each, and expressions of times among them.

    Args:
        plan: What the scan reads.
        values: The values, the number of rows, and the statistics of columns.
        times: The expressions that have one value in each partition.
    """

    plan: ScanPlan
    values: pa.Table
    times: PartitionTimes


class _PartitionWriter(FragmentWriter):
    """Writes a subtree over one row per partition instead of over the rows."""

    def __init__(
        self,
        nodes: Sequence[PlanNode],
        root: int,
        semantics: Semantics,
        partitions: _PartitionValues,
    ) -> None:
        super().__init__(nodes, root, semantics, split=root)
        self.plan = partitions.plan
        self.stored = partitions.values.schema
        self.times = partitions.times
        self.names: dict[str, str] = {}

    def select(self, position: int) -> Selected:
        node = self.nodes[position]
        if not isinstance(node, Filter) or node.condition.tree is None:
            return super().select(position)
        below = self.select(node.child)
        self.prunings |= {pruning.id for pruning in node.prunings}
        kept: list[exp.Expr] = []
        for part in operands(node.condition.tree, exp.And):
            try:
                kept.append(self.condition(part, below))
            except Declined:
                if not self.is_true_of_all(part):
                    raise
        rows = selected_from(below, f"t{position}", quoted_columns(below.types))
        return Selected(rows.where(*kept, copy=False), below.types)

    def condition(self, part: exp.Expr, below: Selected) -> exp.Expr:
        """Write a condition that no partition can make an error, for others may leave it out."""
        value = typed_expression(part, below.types, self.semantics, pa.bool_())
        if value.can_fail:
            raise Declined(why="a condition that may be an error")
        return value.tree

    def is_true_of_all(self, condition: exp.Expr) -> bool:
        """Whether a condition on other columns is decided by partition values, for all rows."""
        tree = condition.copy()
        for column in list(tree.find_all(exp.Column)):
            name = self.names.get(column.name)
            if name is None or len(column.parts) > 1:
                return False
            column.set("this", exp.to_identifier(name, quoted=True))
        zone = "UTC" if self.semantics.is_utc else ""
        predicate = normalize(exp.paren(tree, copy=False))
        asked = plan_scan(self.plan.snapshot, predicate, time_zone=zone, with_metadata=True)
        decided = asked.table
        whole = decided.filter(pc.equal(decided["row_filter"], NO_RESIDUAL))["object_id"]
        is_whole = pc.is_in(self.plan.table["object_id"], value_set=whole.combine_chunks())
        return bool(pc.all(is_whole, min_count=0).as_py())

    def scan(self, position: int, scan: Scan) -> Selected:
        self.scans.append(position)
        types: dict[str, pa.DataType] = {}
        for column in scan.columns:
            self.names[f"c{column.id}"] = column.name
            counted = [name for name in counted_names(column.id) if name in self.stored.names]
            types.update({name: self.stored.field(name).type for name in counted})
            name = f"c{column.id}"
            if name in self.stored.names and column.type is not None and is_plain(column.type):
                types[name] = column.type
        for name in (*self.times.values, _ROWS):
            types[name] = self.stored.field(name).type
        return Selected(selected_table(_PARTITIONS, quoted_columns(types)), types)

    def narrowed(self, below: Selected, outputs: Sequence[Output]) -> None:
        """Take no part in it: the number of rows goes along with the columns."""

    def computed(self, below: Selected, name: str, outputs: Sequence[Output]) -> Selected:
        kept = [name for name in (*self.times.values, _ROWS) if name in below.types]
        carried = {name: below.types[name] for name in kept}
        columns = quoted_columns(kept)
        rest: list[Output] = []
        for output in outputs:
            counted = self.counted(output.value, below.types)
            if not counted:
                rest.append(output)
            for tree, as_named in zip(counted, counted_names(output.id), strict=False):
                if tree is None:
                    continue
                carried[as_named] = below.types[tree]
                columns.append(named(exp.column(tree, quoted=True), as_named))
        made = super().computed(below, name, rest)
        return Selected(made.select.select(*columns, copy=False), {**made.types, **carried})

    def output(self, output: Output, columns: Mapping[str, pa.DataType]) -> Typed:
        if not self.times.values:
            return super().output(output, columns)
        value = self.times.replaced(output.value)
        return typed_expression(value, columns, self.semantics, output.type)

    def counted(
        self, expression: SparkExpression, columns: Mapping[str, pa.DataType]
    ) -> tuple[str | None, ...]:
        """Name the statistics of a column as it stands, in the order of ``counted_names``.

        An extreme that is not known is None; of a column without statistics there is no name.
        """
        column = expression.column
        if column is None or column in columns:
            return ()
        number = column.removeprefix("c")
        names = counted_names(int(number)) if number.isdecimal() else ()
        present = tuple(name if name in columns else None for name in names)
        return present if any(present) else ()

    def aggregated(self, call: AggregateCall, columns: Mapping[str, pa.DataType]) -> Typed:
        argument = self.times.replaced(call.argument)
        if argument.column in self.times.values:
            call = replace(call, argument=argument)
        least, most, values = self.counted(call.argument, columns) or (None, None, None)
        if call.name in ("min", "max"):
            return self.extreme(call, columns, least if call.name == "min" else most)
        if call.name != "count" or call.type != pa.int64():
            raise Declined(why=f"{call.name}, which needs the rows")
        rows: exp.Expr = exp.column(_ROWS, quoted=True)
        if values is not None:
            rows = exp.column(values, quoted=True)
        elif not call.counts_rows:
            value = typed_expression(call.argument, columns, self.semantics)
            none = exp.If(this=is_null(value.tree), true=exp.Literal.number(0))
            rows = exp.Case(ifs=[none], default=rows)
        total = exp.Coalesce(this=exp.Sum(this=rows), expressions=[exp.Literal.number(0)])
        return Typed(cast(total, pa.int64()), pa.int64())

    def extreme(
        self, call: AggregateCall, columns: Mapping[str, pa.DataType], counted: str | None
    ) -> Typed:
        """Write the least or the greatest value: of partitions' values, or of their extremes."""
        if counted is None:
            return super().aggregated(call, columns)
        if columns[counted] != call.type:
            raise Declined(why=f"a {call.name} of type {call.type} that is {columns[counted]}")
        of = exp.Min if call.name == "min" else exp.Max
        return Typed(of(this=exp.column(counted, quoted=True)), columns[counted])


# Rows that are known when a query is planned, as a query over literals.

_IS_ROW: Final = "is_row"


def constant_query(query: FragmentQuery, rows: pa.Table) -> FragmentQuery | None:
    """Write the rows of a query as one that reads no relation.

    Args:
        query: The query.
        rows: What it gives.

    Returns:
        The same columns; None where a value has no literal.
    """
    schema = query.select.schema
    if any(pa.types.is_binary(kind) for kind in schema.types):
        return None
    names = schema.names
    columns = [
        exp.alias_(cast(exp.column(name, quoted=True), kind), name, quoted=True)
        for name, kind in zip(names, schema.types, strict=True)
    ]
    # Where there is no other row, one of NULLs gives the types and is left out afterwards.
    values = [[exp.false(), *(cast(exp.Null(), kind) for kind in schema.types)]]
    for row in range(rows.num_rows):
        cells = [_literal(rows[at][row], kind) for at, kind in enumerate(schema.types)]
        values.append([exp.true(), *cells])
    table = exp.Values(
        expressions=[exp.Tuple(expressions=value) for value in values],
        alias=exp.TableAlias(
            this=exp.to_identifier(_PARTITIONS),
            columns=[exp.to_identifier(name, quoted=True) for name in (_IS_ROW, *names)],
        ),
    )
    sql = exp.select(*columns).from_(table).where(exp.column(_IS_ROW, quoted=True))
    return FragmentQuery(Query(sql.sql(dialect=DataFusion), schema), ())


def _literal(value: pa.Scalar, data_type: pa.DataType) -> exp.Expr:
    return cast(to_expression(value) if value.is_valid else exp.Null(), data_type)
