"""Translates a subtree of the plan into one SELECT of DataFusion over its scans."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from sqlglot import exp

from pennon.execution import Query
from pennon.plan import (
    Expand,
    Filter,
    Group,
    Join,
    JoinType,
    Limit,
    Offset,
    OneRow,
    Output,
    Project,
    Scan,
    Union,
    Window,
    is_one_row,
    is_repeatable,
)
from pennon.plan.nodes import name_of
from pennon.predicate.condition import Declined
from pennon.predicate.dialect import DataFusion
from pennon.predicate.expressions.times import uses_zone
from pennon.predicate.expressions.typed_expression import carried_column, typed_expression
from pennon.predicate.typed import Typed, cast, is_carried, is_plain
from pennon.pushdown.join_order import BuiltSides, columns_in_order, filters_first
from pennon.pushdown.partition_times import range_below
from pennon.pushdown.selects.aggregated import (
    Aggregate,
    aggregated,
    grouped,
    grouping_sets,
    is_over_groups,
)
from pennon.pushdown.selects.joined import joined, null_aware_pair, only_row, restricted_to_keys
from pennon.pushdown.selects.selected import (
    Limits,
    Selected,
    filtered,
    first_rows,
    named,
    only_columns,
    ordered_by,
    quoted_columns,
    repeated,
    selected_columns,
    selected_from,
    selected_table,
    united,
)
from pennon.pushdown.selects.windowed import windowed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pennon.plan import AggregateCall, PlanNode
    from pennon.predicate.condition import Semantics
    from pennon.pushdown.partners import Restriction

_MOST_ORDERED: Final = 100_000  # rows that a task may hold to find the first ones


@dataclass(frozen=True, slots=True)
class FragmentQuery:
    """The query of a fragment.

    Args:
        select: What tasks compute; ``r<i>`` is the relation of the i-th of ``scans``, and ``p<i>``
            has the rows of the i-th of ``parts``.
        scans: Positions of its scans, in the order of their relations.
        parts: What every worker evaluates for itself, over relations of its own.
        root: Position of its uppermost node.
    """

    select: Query
    scans: tuple[int, ...]
    parts: tuple[FragmentQuery, ...] = ()
    root: int = 0

    @property
    def columns(self) -> tuple[int, ...]:
        """The attributes of its columns, in order."""
        return tuple(int(name[1:]) for name in self.select.schema.names)

    @property
    def all_scans(self) -> set[int]:
        """The positions of all scans that it needs, those of its parts included."""
        return set(self.scans).union(*(part.all_scans for part in self.parts))


def fragment_query(
    nodes: Sequence[PlanNode],
    root: int,
    semantics: Semantics,
    replicated: frozenset[int] = frozenset(),
    *,
    is_merged: bool = False,
    restriction: Restriction | None = None,
) -> FragmentQuery:
    """Write the query of a subtree.

    Args:
        nodes: The plan.
        root: The subtree's uppermost node.
        semantics: The session's.
        replicated: The roots of the parts of it that every worker evaluates for itself.
        is_merged: Whether Spark merges the groups of its uppermost aggregate.
        restriction: Which rows that aggregate needs; None for all.

    Raises:
        Declined: A part of the subtree is not known to be computed as Spark does.
    """
    moved = filters_first(nodes, root, replicated)
    top = nodes[root]
    unlimited = top.child if isinstance(top, Limit) else root
    writer = FragmentWriter(
        moved, root, semantics, replicated, unlimited, is_merged=is_merged, restriction=restriction
    )
    query = writer.query(columns_in_order(nodes, root))
    if not writer.prunings <= writer.implied:
        raise Declined(why="a pruning by a join that stays in Spark")
    return query


def is_computed(nodes: Sequence[PlanNode], root: int, semantics: Semantics) -> bool:
    """Whether the rows of a subtree can be computed, prunings by joins above it left out."""
    try:
        FragmentWriter(nodes, root, semantics).query()
    except Declined:
        return False
    return True


class FragmentWriter:
    """Writes a subtree of a plan as one SELECT; each operator is a method that can be replaced.

    Args:
        nodes: The plan.
        root: The subtree's uppermost node.
        semantics: The session's.
        replicated: The roots of the parts of it that every worker evaluates for itself.
        split: The aggregate of which Spark makes its output itself.
        is_merged: Whether Spark merges its groups with those of other tasks.
        restriction: Which of its groups are computed; None for all.
    """

    def __init__(
        self,
        nodes: Sequence[PlanNode],
        root: int,
        semantics: Semantics,
        replicated: frozenset[int] = frozenset(),
        split: int | None = None,
        *,
        is_merged: bool = False,
        restriction: Restriction | None = None,
    ) -> None:
        self.nodes = nodes
        self.root = root
        self.split = split
        self.is_merged = is_merged
        self.restriction = restriction
        self.limits = Limits.of(nodes, root)
        self.semantics = semantics
        self.built = BuiltSides(nodes)
        self.replicated = replicated
        self.scans: list[int] = []
        self.parts: list[FragmentQuery] = []
        self.values: set[str] = set()  # columns of subqueries, which only their condition sees
        self.prunings: set[int] = set()
        self.implied: set[int] = set()

    def query(self, order: Sequence[int] | None = None) -> FragmentQuery:
        """Write the whole subtree.

        Args:
            order: The columns as Spark expects them; None where that is as they come.

        Raises:
            Declined: A part of it is not known to be computed as Spark does.
        """
        try:
            selected = _in_order(self.select(self.root), order or ())
            sql = selected.select.sql(dialect=DataFusion, copy=False)
        except RecursionError as error:
            raise Declined(why="a query of too many levels") from error
        if not selected.types:
            raise Declined(why="a result without columns")
        schema = pa.schema(list(selected.types.items()))
        offsets = self.semantics.zone_offsets if uses_zone(sql) else ()
        select = Query(sql, schema, offsets)
        return FragmentQuery(select, tuple(self.scans), tuple(self.parts), self.root)

    def select(self, position: int) -> Selected:
        """Write the subtree below and with a node.

        Args:
            position: The node's.

        Raises:
            Declined: A part of it is not known to be computed as Spark does.
        """
        if position in self.replicated:
            return self.part(position)
        match self.nodes[position]:
            case Scan() as scan:
                return self.scan(position, scan)
            case OneRow():
                return Selected(selected_columns([]), {})
            case Filter() as node:
                below = self.select(node.child)
                self.prunings |= {pruning.id for pruning in node.prunings}
                if not node.leaves_out_rows and self.values.isdisjoint(below.types):
                    return below
                return filtered(f"t{position}", below, node.condition, self.semantics, self.values)
            case Project() as node:
                return self.project(position, node)
            case Join() as node:
                return self.join(position, node)
            case Group() as node:
                groups = self.group(position, node)
                if position == self.split:
                    return groups
                if node.outputs is None:
                    raise Declined(why="an aggregate without its output")
                return self.computed(groups, f"t{position}g", node.outputs)
            case Expand() as node:
                return self.expanded(f"t{position}", node, self.select(node.child))
            case Union() as node:
                return united(f"t{position}", node, list(map(self.select, node.children)))
            case Window(is_limit=True, child=child):
                return self.select(child)
            case Window() as node:
                return self.window(position, node)
            case Limit() as node if self.is_first(position, node):
                return self.limited(position, node)
            case Offset() as node:
                return self.select(node.child)
            case other:
                raise Declined(why=name_of(other))

    def part(self, position: int) -> Selected:
        """Read the rows that every worker has evaluated for itself."""
        writer = FragmentWriter(self.nodes, position, self.semantics)
        query = writer.query()
        name = f"p{len(self.parts)}"
        self.parts.append(query)
        self.prunings |= writer.prunings
        self.implied |= writer.implied
        types = {field.name: field.type for field in query.select.schema}
        return Selected(selected_table(name, quoted_columns(types)), types)

    def scan(self, position: int, scan: Scan) -> Selected:
        """Read a relation: its columns by their attributes' ids."""
        relation = f"r{len(self.scans)}"
        self.scans.append(position)
        types: dict[str, pa.DataType] = {}
        columns: list[exp.Expr] = []
        for column in scan.columns:
            if column.type is None or not (is_plain(column.type) or is_carried(column.type)):
                raise Declined(why=f"the column {column.name}")
            types[f"c{column.id}"] = column.type
            columns.append(named(exp.column(column.name, quoted=True), f"c{column.id}"))
        return Selected(selected_table(relation, columns), types)

    def is_first(self, position: int, node: Limit) -> bool:
        """Whether a task knows which rows a limit chooses: any will do, or it has them all."""
        return position == self.root or position in self.limits.below_whole or not node.order

    def limited(self, position: int, node: Limit) -> Selected:
        """Order and cut: what Spark holds equal has any order, in Spark as well."""
        if node.order and (node.count or 0) > _MOST_ORDERED:
            raise Declined(why=f"the first {node.count} rows")
        group, outputs = self.nodes[node.child], None
        if node.order and node.child != self.split and isinstance(group, Group):
            # The order is told over the groups' own columns.
            below, outputs = self.group(node.child, group), group.outputs
        else:
            below = self.select(node.child)
        keys = ordered_by(node.order, below.types, self.semantics)
        rows = first_rows(position, keys, node.count, self.limits.skipped.get(position, 0), below)
        return rows if outputs is None else self.computed(rows, f"t{position}g", outputs)

    def window(self, position: int, node: Window) -> Selected:
        """Write a window: the columns below, and what it makes of its functions."""
        below, known = self.select(node.child), partial(range_below, self.nodes, position)
        order = ordered_by(node.order, below.types, self.semantics)
        functions = windowed(f"t{position}", node, below, order, self.semantics, known=known)
        kept = [Output.of_attribute(int(name[1:]), kind) for name, kind in below.types.items()]
        return self.computed(functions, f"t{position}x", [*kept, *node.outputs])

    def project(self, position: int, node: Project) -> Selected:
        """Write a projection."""
        if node.outputs is None:
            raise Declined(why="a projection without its expressions")
        below = self.select(node.child)
        narrowed = self.narrowed(below, node.outputs)
        return narrowed or self.computed(below, f"t{position}", node.outputs)

    def narrowed(self, below: Selected, outputs: Sequence[Output]) -> Selected | None:
        """Write columns of those below that stay as they are; None where others are computed."""
        kept = {f"c{output.id}": output for output in outputs}
        for name, output in kept.items():
            if output.value.column != name or output.type != below.types.get(name):
                return None
        return only_columns(below, list(kept))

    def computed(self, below: Selected, name: str, outputs: Sequence[Output]) -> Selected:
        """Write columns that are computed of those below, which get a name."""
        types: dict[str, pa.DataType] = {}
        columns: list[exp.Expr] = []
        for output in outputs:
            if f"c{output.id}" in types:
                continue  # one attribute that Spark names twice
            value = self.output(output, below.types)
            types[f"c{output.id}"] = value.type
            columns.append(named(value.tree, f"c{output.id}"))
        return Selected(selected_from(below, name, columns), types)

    def output(self, output: Output, columns: Mapping[str, pa.DataType]) -> Typed:
        """Write one column, of exactly the type that Spark expects."""
        carried = carried_column(output.value.tree, columns)
        value = carried or typed_expression(output.value, columns, self.semantics)
        if output.type is not None and pa.types.is_null(value.type) and is_plain(output.type):
            return Typed(cast(value.tree, output.type), output.type)
        if value.type != output.type:
            raise Declined(why=f"a column of type {output.type} that would be {value.type}")
        return value

    def join(self, position: int, node: Join) -> Selected:
        """Write a join."""
        left, right = self.select(node.left), self.select(node.right)
        self.implied |= node.implied
        if null_aware_pair(node) is not None and not is_repeatable(self.nodes, node.right):
            raise Declined(why="NOT IN some rows of many, which DataFusion would choose twice")
        if node.join_type is JoinType.SCALAR:
            self.values |= set(right.types)
            if not is_one_row(self.nodes, node.right):
                right = only_row(f"t{position}o", right)
        known = partial(range_below, self.nodes, position)
        name, is_right = f"t{position}", self.built.is_right(node)
        return joined(name, node, (left, right), self.semantics, known, builds_right=is_right)

    def expanded(self, name: str, node: Expand, below: Selected) -> Selected:
        """Write the rows of an expansion: each row beside the number of each projection."""
        values = [
            [self.output(Output(row.id, value), below.types) for value in row.values]
            for row in node.outputs or ()
        ]
        return repeated(name, node, values, below)

    def group(self, position: int, node: Group) -> Selected:
        """Write an aggregate: its keys, then its calls."""
        if node.keys is None or node.calls is None:
            raise Declined(why=f"the aggregate function {node.unknown}")
        is_over = is_over_groups(self.nodes, position)
        aggregate = Aggregate(node.keys, node.calls, self.aggregated, self.output, is_over)
        child = self.nodes[node.child]
        if isinstance(child, Expand):
            below, aggregate = self.repeated_groups(node.child, child, aggregate)
        else:
            below = self.select(node.child)
        name, is_split = f"t{position}", position == self.split
        if self.restriction is not None and is_split:
            below = self.restricted(below, name, self.restriction)
        merged = self.is_merged and is_split
        return grouped(name, below, aggregate, self.semantics, is_merged=merged)

    def repeated_groups(
        self, position: int, node: Expand, aggregate: Aggregate
    ) -> tuple[Selected, Aggregate]:
        """Write an expansion below an aggregate: of groups, where they can be put together."""
        below, name = self.select(node.child), f"t{position}"
        sets = grouping_sets(aggregate, node, below.types, ansi=self.semantics.ansi)
        if sets is None:
            return self.expanded(name, node, below), aggregate
        groups = grouped(f"{name}g", below, sets.finest, self.semantics)
        return self.expanded(name, sets.expand, groups), sets.whole

    def restricted(self, below: Selected, name: str, restriction: Restriction) -> Selected:
        """Leave out the rows of groups that no join wants."""
        part = FragmentWriter(self.nodes, restriction.part, self.semantics).query()
        column = f"c{restriction.column}"
        keys = selected_table(f"p{len(self.parts)}", quoted_columns([column]))
        self.parts.append(part)
        types = {field.name: field.type for field in part.select.schema if field.name == column}
        return restricted_to_keys(name, below, f"c{restriction.key}", Selected(keys, types))

    def aggregated(self, call: AggregateCall, columns: Mapping[str, pa.DataType]) -> Typed:
        """Write one call of an aggregate function.

        Args:
            call: The function and its argument.
            columns: The types of the columns below.
        """
        aggregate = aggregated(call, columns, self.semantics)
        if aggregate.type != call.type:
            raise Declined(why=f"a {call.name} of type {call.type} that would be {aggregate.type}")
        return aggregate


def _in_order(selected: Selected, order: Sequence[int]) -> Selected:
    """Put columns in the order that they had before a join among them moved."""
    names = [f"c{column}" for column in order]
    if names == list(selected.types) or sorted(names) != sorted(selected.types):
        return selected
    narrowed = only_columns(selected, names)
    if narrowed is not None:
        return narrowed
    types = {name: selected.types[name] for name in names}
    return Selected(selected_from(selected, "ordered", quoted_columns(names)), types)
