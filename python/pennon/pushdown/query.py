"""A subtree of the plan → one SELECT of DataFusion over the relations of its scans."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from sqlglot import exp

from pennon.plan import Filter, Group, Join, JoinType, Limit, Project, Scan
from pennon.predicate.dialect import DataFusion
from pennon.predicate.expressions.aggregates import total
from pennon.predicate.expressions.float_order import comparable, extreme_of
from pennon.predicate.expressions.semantics import Declined
from pennon.predicate.expressions.typed import Typed, cast, enclosed, is_plain
from pennon.predicate.expressions.typed_expression import typed_condition, typed_expression

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pennon.plan import AggregateCall, Output, PlanNode, SortKey
    from pennon.predicate.expressions.semantics import Semantics

_SIDES: Final[Mapping[JoinType, tuple[str, str]]] = {
    JoinType.INNER: ("", "INNER"),
    JoinType.LEFT: ("LEFT", ""),
    JoinType.RIGHT: ("RIGHT", ""),
    JoinType.FULL: ("FULL", ""),
    JoinType.SEMI: ("LEFT", "SEMI"),
    JoinType.ANTI: ("LEFT", "ANTI"),
}
# A SELECT without columns still counts rows.
_NOTHING: Final = "c"
# So many rows a task may hold to find the first ones.
_MOST_ORDERED: Final = 100_000


@dataclass(frozen=True, slots=True)
class FragmentQuery:
    """The query of a fragment.

    Args:
        sql: In DataFusion's dialect; ``r<i>`` is the relation of the i-th of ``scans``.
        scans: Positions of its scans, in the order of their relations.
        columns: The ids of its columns, in order.
        schema: Their names and types.
    """

    sql: str
    scans: tuple[int, ...]
    columns: tuple[int, ...]
    schema: pa.Schema


@dataclass(frozen=True, slots=True)
class _Selected:
    select: exp.Select
    types: Mapping[str, pa.DataType]


def fragment_query(nodes: Sequence[PlanNode], root: int, semantics: Semantics) -> FragmentQuery:
    """Write the query of a subtree.

    Args:
        nodes: The plan.
        root: The subtree's uppermost node.
        semantics: The session's.

    Raises:
        Declined: A part of the subtree is not known to be computed as Spark does.
    """
    writer = _Writer(nodes, root, semantics)
    selected = writer.select(root)
    if not writer.prunings <= writer.implied:
        raise Declined(why="a pruning by a join that stays in Spark")
    if not selected.types:
        raise Declined(why="a result without columns")
    return FragmentQuery(
        selected.select.sql(dialect=DataFusion),
        tuple(writer.scans),
        tuple(int(name[1:]) for name in selected.types),
        pa.schema(list(selected.types.items())),
    )


class _Writer:
    def __init__(self, nodes: Sequence[PlanNode], root: int, semantics: Semantics) -> None:
        self.nodes = nodes
        self.root = root
        top = nodes[root]
        self.unlimited = top.child if isinstance(top, Limit) else root
        self.semantics = semantics
        self.scans: list[int] = []
        self.prunings: set[int] = set()
        self.implied: set[int] = set()

    def select(self, position: int) -> _Selected:
        match self.nodes[position]:
            case Scan() as scan:
                return self.scan(position, scan)
            case Filter() as node:
                below = self.select(node.child)
                self.prunings |= node.prunings
                condition = typed_condition(node.condition, below.types, self.semantics)
                names = [exp.column(name, quoted=True) for name in below.types]
                return _Selected(_from(below, f"t{position}", names).where(condition), below.types)
            case Project() as node:
                return self.project(position, node)
            case Join() as node:
                return self.join(position, node)
            case Group() as node if position == self.unlimited:
                return self.group(position, node)
            case Limit() as node if position == self.root or not node.order:
                return self.limited(position, node)
        raise Declined(why="an unknown operator")

    def scan(self, position: int, scan: Scan) -> _Selected:
        relation = f"r{len(self.scans)}"
        self.scans.append(position)
        types: dict[str, pa.DataType] = {}
        columns: list[exp.Expr] = []
        for column in scan.columns:
            if column.type is None or not is_plain(column.type):
                raise Declined(why=f"the column {column.name}")
            types[f"c{column.id}"] = column.type
            columns.append(_named(exp.column(column.name, quoted=True), f"c{column.id}"))
        return _Selected(_select(columns).from_(exp.to_table(relation)), types)

    def limited(self, position: int, node: Limit) -> _Selected:
        """Order and cut: what Spark holds equal has any order, in Spark as well."""
        if node.order and node.count > _MOST_ORDERED:
            raise Declined(why=f"the first {node.count} rows")
        below = self.select(node.child)
        keys = [self.ordered(key, below.types) for key in node.order]
        names = [exp.column(name, quoted=True) for name in below.types]
        select = _from(below, f"t{position}", names).limit(node.count, copy=False)
        return _Selected(select.order_by(*keys, copy=False) if keys else select, below.types)

    def ordered(self, key: SortKey, columns: Mapping[str, pa.DataType]) -> exp.Ordered:
        value = typed_expression(key.text, columns, self.semantics)
        if pa.types.is_binary(value.type) or pa.types.is_null(value.type):
            raise Declined(why=f"an order of {value.type}")
        return exp.Ordered(
            this=enclosed(comparable(value)),
            desc=not key.is_ascending,
            nulls_first=key.is_nulls_first,
        )

    def project(self, position: int, node: Project) -> _Selected:
        if node.outputs is None:
            raise Declined(why="a projection of which nothing was told")
        return self.computed(self.select(node.child), f"t{position}", node.outputs)

    def computed(self, below: _Selected, name: str, outputs: Sequence[Output]) -> _Selected:
        types: dict[str, pa.DataType] = {}
        columns: list[exp.Expr] = []
        for output in outputs:
            value = self.output(output, below.types)
            types[f"c{output.id}"] = value.type
            columns.append(_named(value.tree, f"c{output.id}"))
        return _Selected(_from(below, name, columns), types)

    def output(self, output: Output, columns: Mapping[str, pa.DataType]) -> Typed:
        value = typed_expression(output.text, columns, self.semantics)
        if output.type is not None and pa.types.is_null(value.type) and is_plain(output.type):
            return Typed(cast(value.tree, output.type), output.type)
        if value.type != output.type:
            raise Declined(why=f"a column of type {output.type} that would be {value.type}")
        return value

    def join(self, position: int, node: Join) -> _Selected:
        side_and_kind = _SIDES.get(node.join_type)
        if side_and_kind is None:
            raise Declined(why=f"a join of type {node.join_type}")
        left, right = self.select(node.left), self.select(node.right)
        self.implied |= node.implied
        if set(left.types) & set(right.types):
            raise Declined(why="a column that stands on both sides of a join")
        both = {**left.types, **right.types}
        condition = typed_condition(node.condition, both, self.semantics)
        is_filter = node.join_type in (JoinType.SEMI, JoinType.ANTI)
        types = left.types if is_filter else both
        side, kind = side_and_kind
        joined = exp.Join(
            this=right.select.subquery(f"t{position}r", copy=False),
            on=condition,
            **{name: word for name, word in (("side", side), ("kind", kind)) if word},
        )
        columns = [exp.column(name, quoted=True) for name in types]
        select = _select(columns).from_(left.select.subquery(f"t{position}", copy=False))
        select.append("joins", joined)
        return _Selected(select, types)

    def group(self, position: int, node: Group) -> _Selected:
        below = self.select(node.child)
        if node.keys is None or node.calls is None:
            raise Declined(why="an aggregate function that is not known")
        types: dict[str, pa.DataType] = {}
        keys, columns = [], []
        for key in node.keys:
            value = self.output(key, below.types)
            keys.append(comparable(value))
            types[f"c{key.id}"] = value.type
            columns.append(_named(comparable(value), f"c{key.id}"))
        for call in node.calls:
            result = self.aggregated(call, below.types)
            if keys and call.name in ("min", "max") and pa.types.is_floating(result.type):
                # DataFusion compares by < there, which is false on either side of a NaN
                raise Declined(why="extremes of floats by group")
            types[f"c{call.output}"] = result.type
            columns.append(_named(result.tree, f"c{call.output}"))
        select = _from(below, f"t{position}", columns)
        return _Selected(select.group_by(*keys) if keys else select, types)

    def aggregated(self, call: AggregateCall, columns: Mapping[str, pa.DataType]) -> Typed:
        if call.name == "count" and call.argument == "1":
            found = Typed(exp.Count(this=exp.Star()), pa.int64())
        else:
            value = typed_expression(call.argument, columns, self.semantics)
            match call.name:
                case "sum":
                    found = total(value, self.semantics)
                case "count":
                    found = Typed(exp.Count(this=value.tree), pa.int64())
                case "min":
                    found = Typed(exp.Min(this=extreme_of(value)), value.type)
                case "max":
                    found = Typed(exp.Max(this=extreme_of(value)), value.type)
                case other:
                    raise Declined(why=f"the aggregate function {other}")
        if found.type != call.type:
            raise Declined(why=f"a {call.name} of type {call.type} that would be {found.type}")
        return found


def _from(below: _Selected, name: str, columns: Sequence[exp.Expr]) -> exp.Select:
    return _select(columns).from_(below.select.subquery(name, copy=False))


def _select(columns: Sequence[exp.Expr]) -> exp.Select:
    chosen = list(columns) or [_named(exp.true(), _NOTHING)]
    return exp.select(*chosen, copy=False)


def _named(tree: exp.Expr, name: str) -> exp.Expr:
    return exp.alias_(tree, name, quoted=True)
