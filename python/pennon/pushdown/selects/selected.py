"""A SELECT of DataFusion under construction: its tree, and the types of its columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from sqlglot import exp

from pennon.plan import Limit, Offset, Project, children_of
from pennon.plan.nodes import name_of
from pennon.predicate.condition import Declined, quoted_columns
from pennon.predicate.expressions.floats import comparable
from pennon.predicate.expressions.typed_expression import typed_expression
from pennon.predicate.typed import binary, call, cast, choice, columns_above, enclosed

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from pennon.plan import Expand, PlanNode, SortKey, Union
    from pennon.predicate.condition import Semantics
    from pennon.predicate.typed import SparkExpression, Typed

__all__ = [
    "Selected",
    "filtered",
    "named",
    "only_columns",
    "quoted_columns",
    "random_column",
    "selected_columns",
    "selected_from",
    "selected_table",
    "varying",
    "whole_number",
]

# A SELECT without columns still counts rows.
_NOTHING: Final = "c"
_VARYING: Final = "y"
# What a SELECT may consist of whose list of columns nothing else in it refers to.
_PLAIN_CLAUSES: Final = frozenset({"expressions", "from_", "joins", "where"})


@dataclass(frozen=True, slots=True)
class Selected:
    """A SELECT, and its columns in order: their names and their types."""

    select: exp.Select
    types: Mapping[str, pa.DataType]


def selected_from(below: Selected, name: str, columns: Sequence[exp.Expr]) -> exp.Select:
    """Select columns of what is selected below, which gets a name."""
    return selected_columns(columns).from_(below.select.subquery(name, copy=False), copy=False)


def only_columns(below: Selected, names: Sequence[str]) -> Selected | None:
    """Leave columns out of a SELECT itself, and put the others in order.

    A SELECT around it would say the same, and everybody who reads the query would take it apart.

    Args:
        below: What is selected.
        names: The columns that stay.

    Returns:
        The SELECT, which is the same one changed; None where its columns are more than a list.
    """
    stated = {clause for clause, value in below.select.args.items() if value}
    columns = {column.alias_or_name: column for column in below.select.expressions}
    if not names or not stated <= _PLAIN_CLAUSES or not columns.keys() >= set(names):
        return None
    below.select.set("expressions", [columns[name] for name in names])
    return Selected(below.select, {name: below.types[name] for name in names})


def selected_columns(columns: Sequence[exp.Expr]) -> exp.Select:
    """Begin a SELECT of columns, or of rows only."""
    chosen = list(columns) or [named(exp.true(), _NOTHING)]
    return exp.select(*chosen, copy=False)


def named(tree: exp.Expr, name: str) -> exp.Expr:
    """Give a column its name; the tree becomes a part of it."""
    return exp.alias_(tree, name, quoted=True, copy=False)


def random_column() -> exp.Expr:
    """Select a number of each row that no optimizer knows: what ``varying`` reads."""
    return named(call("random"), _VARYING)


def varying(value: exp.Expr) -> exp.Expr:
    """Give a value so that DataFusion does not take it for constant.

    Args:
        value: Of rows that have a ``random_column``.
    """
    is_there = binary(exp.GTE, exp.column(_VARYING, quoted=True), exp.Literal.number(0))
    return choice((is_there, value), default=None)


def selected_table(name: str, columns: Sequence[exp.Expr]) -> exp.Select:
    """Select columns of a table."""
    table = exp.Table(this=exp.to_identifier(name))
    return selected_columns(columns).from_(table, copy=False)


def whole_number(value: int) -> exp.Expr:
    """Write a BIGINT."""
    return cast(exp.Literal.number(value), pa.int64())


# The first rows by an order, and those after them.
#
# Each task gives its own first rows, and Spark takes the first of these. So both orders must agree:
# floats have one zero and one NaN, and an order by binary values is declined.
#
# NULL rules: those of the order, which says where NULLs stand.

# The number of a row by the order.
_NUMBER: Final = "o"


def ordered_by(
    keys: Sequence[SortKey], columns: Mapping[str, pa.DataType], semantics: Semantics
) -> list[exp.Ordered]:
    """Write the keys of an order as Spark orders by them.

    Args:
        keys: The keys, the first of them first.
        columns: The types of the columns that they are over.
        semantics: The session's.

    Raises:
        Declined: One of them is not known to be computed, or ordered, as Spark does.
    """
    values = [typed_expression(key.value, columns, semantics) for key in keys]
    for value in values:
        if pa.types.is_binary(value.type) or pa.types.is_null(value.type):
            raise Declined(why=f"an order of {value.type}")
    return [
        exp.Ordered(
            this=enclosed(comparable(value)),
            desc=not key.is_ascending,
            nulls_first=key.is_nulls_first,
        )
        for key, value in zip(keys, values, strict=True)
    ]


def first_rows(
    position: int,
    keys: Sequence[exp.Ordered],
    count: int | None,
    skipped: int,
    below: Selected,
) -> Selected:
    """Cut rows off, by an order or any of them.

    Rows are left out by their number, for DataFusion 54 forgets an order below an OFFSET.

    Args:
        position: Makes the names in it unique.
        keys: The order; none where any rows will do.
        count: The most rows, those left out among them; None for all.
        skipped: How many of the first ones are left out.
        below: What is cut.
    """
    types = below.types
    columns = [*types]
    if keys:
        below = _with_columns_of(keys, below, f"k{position}")
    if skipped:
        columns += [key.this.name for key in keys]
    select = selected_from(below, f"t{position}", quoted_columns(columns))
    if count is not None:
        select = select.order_by(*keys, copy=False) if keys else select
        select = select.limit(count, copy=False)
    if not skipped:
        return Selected(select, types)
    order = exp.Order(expressions=[key.copy() for key in keys])
    number = named(exp.Window(this=exp.RowNumber(), order=order), _NUMBER)
    rows = Selected(select, {})
    numbered = selected_from(rows, f"t{position}n", [*quoted_columns(types), number])
    select = selected_from(Selected(numbered, {}), f"t{position}s", quoted_columns(types))
    is_later = exp.GT(this=exp.column(_NUMBER, quoted=True), expression=whole_number(skipped))
    return Selected(select.where(is_later, copy=False), types)


@dataclass(frozen=True, slots=True)
class Limits:
    """What the limits and offsets of a fragment say of the nodes below them.

    Args:
        below_whole: The nodes below a limit or an offset of all tasks together, which one task
            computes: it knows all rows, and so the first ones by an order.
        skipped: For the node that orders them, how many of the first rows are left out.
    """

    below_whole: frozenset[int]
    skipped: Mapping[int, int]

    @classmethod
    def of(cls, nodes: Sequence[PlanNode], root: int) -> Limits:
        """Find them at and below a node.

        Raises:
            Declined: There is no order below an offset: Spark leaves out any rows then.
        """
        below, skipped = set[int](), {}
        waiting = [(root, False)]
        while waiting:
            position, is_below = waiting.pop()
            node = nodes[position]
            if is_below:
                below.add(position)
            if isinstance(node, Offset):
                skipped[_order_below(nodes, node)] = node.count
            is_whole = isinstance(node, Offset) or (isinstance(node, Limit) and node.is_whole)
            waiting += [(child, is_below or is_whole) for child in children_of(node)]
        return cls(frozenset(below), skipped)


def _order_below(nodes: Sequence[PlanNode], offset: Offset) -> int:
    """Find the order that says which rows an offset leaves out; projections may stand between."""
    position = offset.child
    while isinstance(below := nodes[position], Project | Limit):
        if isinstance(below, Limit) and below.order:
            return position
        position = below.child
    raise Declined(why=name_of(offset))


def _with_columns_of(keys: Sequence[exp.Ordered], below: Selected, name: str) -> Selected:
    """Make a column of each key, which is ordered by then.

    DataFusion 54 refuses to merge what several threads have sorted by some conditions. Where a key
    is a constant of each input of a UNION, it compares the first rows of one by the other keys only
    with those of another.

    Args:
        keys: The keys, which become those columns.
        below: What is ordered.
        name: A name for it.
    """
    columns = quoted_columns(below.types)
    varied = Selected(selected_from(below, name, [*columns, random_column()]), {})
    computed = [named(varying(key.this), f"o{at}") for at, key in enumerate(keys)]
    for at, key in enumerate(keys):
        key.set("this", exp.column(f"o{at}", quoted=True))
    kept = [column.copy() for column in columns]
    return Selected(selected_from(varied, f"{name}y", [*kept, *computed]), below.types)


# Writes a filter over what is selected below it.

# More rows than there are anywhere.
_ALL_ROWS: Final = (1 << 63) - 1


def filtered(
    name: str,
    below: Selected,
    condition: SparkExpression,
    semantics: Semantics,
    left_out: Collection[str] = (),
) -> Selected:
    """Select the rows of which a condition is true.

    A condition that is an error for some rows must not see those that others leave out, below it
    those of the scan: DataFusion would compute all of them for every row.

    Args:
        name: Of what is below, in the query.
        below: What is selected.
        condition: Spark's.
        semantics: The session's.
        left_out: Columns that only the condition is about.

    Raises:
        Declined: It is not boolean, or a part of it is not known to be computed as Spark does.
    """
    value = typed_expression(condition, below.types, semantics, pa.bool_())
    if value.can_fail:
        below = _with_its_own_conditions_first(f"{name}a", below)
    types = {column: kind for column, kind in below.types.items() if column not in left_out}
    rows = selected_from(below, name, columns_above(value.tree, types))
    return Selected(rows.where(value.tree, copy=False), types)


def _with_its_own_conditions_first(name: str, below: Selected) -> Selected:
    """Let no condition from above move in: DataFusion moves none past a limit."""
    rows = selected_from(below, name, quoted_columns(below.types))
    return Selected(rows.limit(_ALL_ROWS, copy=False), below.types)


# Writes UNION ALL and Spark's Expand as one SELECT.
#
# NULL rules: a row is what it is; nothing is compared.

# The number of a projection beside the rows that it is applied to.
_PROJECTION: Final = "n"


def united(name: str, node: Union, inputs: Sequence[Selected]) -> Selected:
    """Write the rows of all inputs, each column under the union's name for it.

    Args:
        name: A name for the rows; those of the inputs begin with it.
        node: The ``UNION ALL``.
        inputs: Its inputs, in order.

    Raises:
        Declined: The inputs' columns differ in their types, or stand there twice.
    """
    types: dict[str, pa.DataType] = {}
    whole: exp.Query | None = None
    for at, below in enumerate(inputs):
        columns = []
        for output, sources in node.columns:
            source, column = f"c{sources[at]}", f"c{output}"
            kind = below.types.get(source)
            if kind is None or types.setdefault(column, kind) != kind:
                raise Declined(why="a union of several types")
            columns.append(named(exp.column(source, quoted=True), column))
        select = selected_from(below, f"{name}i{at}", columns)
        whole = (
            select if whole is None else exp.Union(this=whole, expression=select, distinct=False)
        )
    if whole is None or len(types) < len(node.columns):
        raise Declined(why="a union with a column that stands there twice")
    names = quoted_columns(types)
    return Selected(selected_columns(names).from_(whole.subquery(name, copy=False)), types)


def repeated(
    name: str, node: Expand, values: Sequence[Sequence[Typed]], below: Selected
) -> Selected:
    """Write the rows of an expansion: each row beside the number of each projection.

    Args:
        name: What the input is called.
        node: The expansion.
        values: For each column, its value in each projection.
        below: What is selected of the input.

    Raises:
        Declined: The outline does not contain its columns.
    """
    if not node.outputs:
        raise Declined(why="an expansion without its projections")
    number = exp.column(_PROJECTION, quoted=True)
    types: dict[str, pa.DataType] = {}
    columns: list[exp.Expr] = []
    for output, column in zip(node.outputs, values, strict=True):
        types[f"c{output.id}"] = column[0].type
        branches = [
            exp.If(this=exp.EQ(this=number.copy(), expression=whole_number(at)), true=value.tree)
            for at, value in enumerate(column)
        ]
        is_same = len(set(output.values)) == 1
        columns.append(
            named(column[0].tree if is_same else exp.Case(ifs=branches), f"c{output.id}")
        )
    # A cross join with the numbers may go through all rows one by one.
    numbers = [whole_number(at) for at in range(len(node.outputs[0].values))]
    listed = call("unnest", call("make_array", *numbers))
    every = [*quoted_columns(below.types), named(listed, _PROJECTION)]
    rows = Selected(selected_from(below, f"{name}n", every), below.types)
    return Selected(selected_from(rows, name, columns), types)
