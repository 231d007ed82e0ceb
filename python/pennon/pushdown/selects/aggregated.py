"""Writes the calls of an aggregate, each under a name that DataFusion tells from the others.

DataFusion names a call by its text without casts, and refuses two of one name: a sum of integers
beside their average, which adds them up as DOUBLEs. Arguments that differ in casts only are
columns of their own.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from sqlglot import exp

from pennon.plan import Expand, Expanded, Group, Output, children_of
from pennon.predicate.condition import Declined
from pennon.predicate.dialect import DataFusion
from pennon.predicate.expressions.aggregates import (
    BITS,
    CO_MOMENTS,
    MOMENTS,
    OF_WHOLE_GROUPS,
    PERCENTILES,
    SUM_DIGITS,
    bits,
    co_moment,
    extreme,
    extreme_pair,
    is_cut,
    moment,
    percentile,
    total,
    total_of_parts,
)
from pennon.predicate.expressions.floats import comparable
from pennon.predicate.expressions.typed_expression import typed_condition, typed_expression
from pennon.predicate.typed import (
    INTEGER_DIGITS,
    SparkExpression,
    Typed,
    binary,
    cast,
    choice,
    integer,
    is_carried,
    opaque,
    stated_integer,
)
from pennon.predicate.typed import (
    call as function_call,
)
from pennon.pushdown.selects.selected import Selected, named, quoted_columns, selected_from

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from pennon.plan import AggregateCall, PlanNode
    from pennon.predicate.condition import Semantics


# Several values that are one: ``count(a, b)``, ``count(DISTINCT a, b)``, ``max_by(a, b)``.
#
# NULL rules: a row in which one of the values is NULL does not count. DataFusion counts one value,
# so the several are a struct, which is NULL in such a row; of it Spark counts the different ones
# where several tasks have rows of a group.


def counted_together(
    argument: SparkExpression, columns: Mapping[str, pa.DataType], semantics: Semantics
) -> Typed | None:
    """Read several values that are counted as one.

    Args:
        argument: The argument of the count: a CASE of one condition and a ``named_struct``.
        columns: The types of the columns below.
        semantics: The session's.

    Returns:
        A struct; None where the argument is one value.

    Raises:
        Declined: A value is not known to be computed as Spark does, or can be an error, which it
            must not be for a row that another value leaves out.

    Example:
        >>> from pennon.predicate.dialect import DataFusion
        >>> from pennon.predicate.typed import SparkExpression
        >>> from pennon.predicate.condition import Semantics
        >>> struct = "CASE WHEN `c1` IS NOT NULL THEN named_struct('v0', `c1`) END"
        >>> columns = {"c1": pa.int32()}
        >>> counted = counted_together(SparkExpression(struct), columns, Semantics())
        >>> print(counted.tree.sql(dialect=DataFusion))
        CASE WHEN NOT (`c1` IS NULL) THEN named_struct('v0', `c1`) END
        >>> counted_together(SparkExpression("`c1`"), columns, Semantics()) is None
        True
    """
    pair = values_together(argument, columns, semantics)
    if pair is None:
        return None
    is_counted, values = pair
    if any(value.can_fail for value in values.values()):
        raise Declined(why="a value that can be an error, counted with others")
    fields: list[exp.Expr] = []
    for name, value in values.items():
        fields += [exp.Literal.string(name), comparable(value)]
    whole = function_call("named_struct", *fields)
    types = pa.struct([(name, value.type) for name, value in values.items()])
    return Typed(choice((is_counted, whole), default=None), types)


def values_together(
    argument: SparkExpression, columns: Mapping[str, pa.DataType], semantics: Semantics
) -> tuple[exp.Expr, dict[str, Typed]] | None:
    """Read several values that are one argument of an aggregate.

    Args:
        argument: Of the aggregate: a CASE of one condition and a ``named_struct``.
        columns: The types of the columns below.
        semantics: The session's.

    Returns:
        The condition, and the values by their names; None where the argument is one value.

    Raises:
        Declined: A value is not known to be computed as Spark does.
    """
    tree = None if argument.tree is None else argument.tree.unnest()
    if not isinstance(tree, exp.Case) or len(tree.args["ifs"]) != 1:
        return None
    (branch,) = tree.args["ifs"]
    together = branch.args["true"]
    if not isinstance(together, exp.Struct):
        return None
    values: dict[str, Typed] = {}
    for field in together.expressions:
        values[field.name] = typed_expression(field.expression, columns, semantics)
    return typed_condition(branch.this, columns, semantics), values


def aggregated(
    call: AggregateCall, columns: Mapping[str, pa.DataType], semantics: Semantics
) -> Typed:
    """Write one call of an aggregate function.

    Args:
        call: The function and its argument.
        columns: The types of the columns below.
        semantics: The session's.

    Raises:
        Declined: The function is not known to give Spark's result.
    """
    if call.counts_rows:
        return Typed(exp.Count(this=exp.Star()), pa.int64())
    if call.name in ("count", "count_distinct"):
        return _count(call, columns, semantics)
    if call.name in ("min_by", "max_by"):
        return _extreme_pair(call, columns, semantics)
    value = typed_expression(call.argument, columns, semantics)
    match call.name:
        case "min":
            return extreme(exp.Min, value)
        case "max":
            return extreme(exp.Max, value)
        case "sum":
            return total(value, semantics)
        case "sum_distinct":
            return total(value, semantics, is_distinct=True)
        case name if name in BITS:
            return bits(name, value)
        case name if name in MOMENTS:
            return moment(name, value)
        case name if name in CO_MOMENTS | PERCENTILES:
            return _of_two(call, value, columns, semantics)
    raise Declined(why=f"the aggregate function {call.name}")


def _count(call: AggregateCall, columns: Mapping[str, pa.DataType], semantics: Semantics) -> Typed:
    value = counted_together(call.argument, columns, semantics)
    if value is None:
        value = typed_expression(call.argument, columns, semantics)
    counted = value.tree
    if call.is_distinct:
        counted = exp.Distinct(expressions=[comparable(value)])
    return Typed(exp.Count(this=counted), pa.int64())


def _of_two(
    call: AggregateCall,
    value: Typed,
    columns: Mapping[str, pa.DataType],
    semantics: Semantics,
) -> Typed:
    other, *more = (typed_expression(argument, columns, semantics) for argument in call.others)
    if call.name in CO_MOMENTS:
        return co_moment(call.name, (value, other), semantics)
    if any(stated_integer(frequency) != 1 for frequency in more):
        raise Declined(why="a percentile of values that count several times")
    is_reversed = call.name == "percentile_reversed"
    return percentile(value, other, semantics, is_reversed=is_reversed)


def _extreme_pair(
    call: AggregateCall, columns: Mapping[str, pa.DataType], semantics: Semantics
) -> Typed:
    # A pair that a user compares may have no first value, and is the least one then.
    together = values_together(call.argument, columns, semantics)
    if together is None:
        raise Declined(why=f"a {call.name} of one value")
    is_counted, values = together
    return extreme_pair(exp.Max if call.name == "max_by" else exp.Min, is_counted, values)


def with_argument_columns(
    name: str,
    below: Selected,
    calls: Sequence[AggregateCall],
    semantics: Semantics,
    write: Callable[[AggregateCall, Mapping[str, pa.DataType]], Typed],
) -> tuple[Selected, list[AggregateCall]]:
    """Make columns of the arguments by which DataFusion would not tell calls from each other.

    Args:
        name: What the rows below are called.
        below: The rows.
        calls: The functions over them.
        semantics: The session's.
        write: Writes a function over columns.

    Returns:
        The rows with those columns, and the same functions over them.

    Raises:
        Declined: A function is not known to give Spark's result.
    """
    read = {call.output: call.argument.columns for call in calls if not call.counts_rows}
    users = Counter(read.values())
    texts: dict[str, str] = {}
    own: dict[str, Typed] = {}
    rewritten: list[AggregateCall] = []
    for call in calls:
        if call.output not in read or users[read[call.output]] == 1:
            rewritten.append(call)
            continue
        tree = write(call, below.types).tree
        text = _text(tree)
        if texts.setdefault(_text(_without_casts(tree)), text) == text:
            rewritten.append(call)
            continue
        column = f"v{call.output}"
        own[column] = typed_expression(call.argument, below.types, semantics)
        argument = SparkExpression.of_column(column, call.argument_type)
        rewritten.append(replace(call, argument=argument))
    if not own:
        return below, rewritten
    kept = quoted_columns(below.types)
    kept += [named(value.tree, column) for column, value in own.items()]
    types = {**below.types, **{column: value.type for column, value in own.items()}}
    return Selected(selected_from(below, name, kept), types), rewritten


def _without_casts(tree: exp.Expr) -> exp.Expr:
    holder = exp.Paren(this=tree.copy())
    for node in reversed(list(holder.find_all(exp.Cast, exp.Paren))):
        if node is not holder:
            node.replace(node.this)
    bare: exp.Expr = holder.this
    return bare


def _text(tree: exp.Expr) -> str:
    return tree.sql(dialect=DataFusion)


# Writes an aggregate as one SELECT: its keys, then its functions.

_ROWS: Final = "rows"


@dataclass(frozen=True, slots=True)
class Aggregate:
    """An aggregate, and how what stands in it is written.

    Args:
        keys: The grouping expressions and the attributes that they get.
        calls: The functions.
        write_call: Writes a function over columns of these types; raises ``Declined``.
        write_key: Writes a column that is computed of those; raises ``Declined``.
        is_over_groups: Whether there is another aggregate below.
    """

    keys: Sequence[Output]
    calls: Sequence[AggregateCall]
    write_call: Callable[[AggregateCall, Mapping[str, pa.DataType]], Typed]
    write_key: Callable[[Output, Mapping[str, pa.DataType]], Typed]
    is_over_groups: bool


def is_over_groups(nodes: Sequence[PlanNode], position: int) -> bool:
    """Whether there is an aggregate below a node."""
    return any(
        isinstance(nodes[child], Group) or is_over_groups(nodes, child)
        for child in children_of(nodes[position])
    )


def grouped(
    name: str, below: Selected, node: Aggregate, semantics: Semantics, *, is_merged: bool = False
) -> Selected:
    """Write the groups of rows.

    Args:
        name: What the rows are called.
        below: The rows.
        node: The aggregate.
        semantics: The session's.
        is_merged: Whether Spark merges the groups with those of other tasks.

    Raises:
        Declined: A part of it is not known to be computed as Spark does.
    """
    below, calls = with_argument_columns(f"{name}v", below, node.calls, semantics, node.write_call)
    types: dict[str, pa.DataType] = {}
    keys: list[exp.Expr] = []
    columns: list[exp.Expr] = []

    def add(output: int, tree: exp.Expr, data_type: pa.DataType) -> None:
        types[f"c{output}"] = data_type
        columns.append(named(tree, f"c{output}"))

    def add_key(output: int, value: Typed) -> None:
        # Of groups that a join has repeated DataFusion believes that their keys determine all
        # columns still, and groups by other columns than it is asked to.
        key = opaque(comparable(value)) if node.is_over_groups else comparable(value)
        keys.append(key.copy())
        add(output, key, value.type)

    for key in node.keys:
        value = node.write_key(key, below.types)
        if is_carried(value.type):
            raise Declined(why=f"groups by {value.type}")
        add_key(key.id, value)
    for call in calls:
        if call.is_distinct and is_merged:
            # Spark counts or sums the different values; a task reports each of its own once.
            together = counted_together(call.argument, below.types, semantics)
            key = Output(call.output, replace(call.argument, type=call.argument_type))
            add_key(call.output, together or node.write_key(key, below.types))
            continue
        if is_merged and call.name in OF_WHOLE_GROUPS:
            raise Declined(why=f"the {call.name} of a group that several tasks have")
        result = node.write_call(call, below.types)
        summed = (call.argument_type or result.type) if call.name == "sum" else None
        if is_merged and is_cut(summed) and not semantics.ansi:
            # Spark leaves out a part that is NULL, where the whole has to be NULL.
            raise Declined(why="sums of decimals of which a part would be NULL")
        add(call.output, result.tree, result.type)
    if not columns:
        # Spark leaves out the functions that nobody reads; their one row remains.
        columns.append(named(exp.Count(this=exp.Star()), _ROWS))
    select = selected_from(below, name, columns)
    if keys:
        select.group_by(*keys, copy=False)
    if keys and not any(isinstance(key, exp.Column) for key in keys):
        # DataFusion leaves out keys that are constants, and has one group of no rows then.
        rows = exp.Count(this=exp.Star())
        select.having(binary(exp.GT, rows, integer(0, pa.int64())), copy=False)
    return Selected(select, types)


# Computes grouping sets (ROLLUP, CUBE) of the groups of all their columns together.
#
# Spark repeats each row for each set and groups them all. A group of any set consists of whole
# groups of all columns, so the rows are grouped once, and only those groups are repeated and put
# together.
#
# NULL rules: a column that a set leaves out is NULL there, and the number of the set, a key as
# well, tells it from a NULL of the rows. Parts of a sum, an extreme or a count are NULL for
# nothing, and are left out where they are put together; no group is without a count.

_IN_PARTS: Final = frozenset({"count", "sum", "min", "max"})
_BIGINT_DIGITS: Final = INTEGER_DIGITS[64]


@dataclass(frozen=True, slots=True)
class GroupingSets:
    """How grouping sets are computed in two steps.

    Args:
        finest: The groups of all columns that occur in a set.
        expand: Repeats each of these groups for each set.
        whole: Puts them together.
    """

    finest: Aggregate
    expand: Expand
    whole: Aggregate


def grouping_sets(
    node: Aggregate, expand: Expand, columns: Mapping[str, pa.DataType], *, ansi: bool
) -> GroupingSets | None:
    """Divide the aggregate over an expansion into two.

    Args:
        node: The aggregate.
        expand: The expansion below it.
        columns: The columns below the expansion, and their types.
        ansi: Whether the session is in ANSI mode, in which sums do not wrap.

    Returns:
        The two steps; None where a group cannot be put together of others.
    """
    outputs = {f"c{output.id}": output for output in expand.outputs or ()}
    used = [outputs.get(key.value.column or "") for key in node.keys]
    keys = [output for output in used if output is not None]
    sources = _sources(keys, columns)
    if len(keys) < len(node.keys) or not sources:
        return None
    kept = {
        name
        for name, output in outputs.items()
        if {value.column for value in output.values} == {name}
    }
    parts = [
        part
        for call in node.calls
        if (part := _part(call, kept & columns.keys(), ansi=ansi)) is not None
    ]
    if len(parts) < len(node.calls):
        return None
    finest = [Output.of_attribute(int(name[1:]), columns[name]) for name in sources]
    count = len(keys[0].values)
    carried = [
        Expanded(part.output, (SparkExpression.of_column(f"c{part.output}", part.type),) * count)
        for part in parts
    ]
    different = {output.id: output for output in keys}
    return GroupingSets(
        replace(node, keys=finest, calls=parts),
        Expand(expand.child, outputs=(*different.values(), *carried)),
        replace(node, write_call=_put_together, is_over_groups=True),
    )


def _sources(keys: Iterable[Expanded], columns: Mapping[str, pa.DataType]) -> tuple[str, ...]:
    """Name the columns that sets consist of; none where a set has another expression of one."""
    names: dict[str, None] = {}
    for value in (value for key in keys for value in key.values):
        name = value.column
        if name is not None and name in columns:
            names[name] = None
        elif value.columns != frozenset():
            return ()
    return tuple(names)


def _part(call: AggregateCall, columns: AbstractSet[str], *, ansi: bool) -> AggregateCall | None:
    """Compute a function of a part of a group; None where parts do not give the whole."""
    names = call.argument.columns
    if call.name not in _IN_PARTS or names is None or not names <= columns:
        return None
    kind = call.argument_type
    if call.name != "sum":
        return call
    if kind is None:
        return None
    if is_cut(kind):
        return None
    if kind == pa.int64() and ansi:
        # The sum of a part may be too large for a BIGINT where that of the whole is not.
        exact = pa.decimal128(_BIGINT_DIGITS, 0)
        return replace(
            call,
            argument=SparkExpression(cast(call.argument.stated_tree.copy(), exact)),
            argument_type=exact,
            type=pa.decimal128(_BIGINT_DIGITS + SUM_DIGITS, 0),
        )
    return call


def _put_together(call: AggregateCall, columns: Mapping[str, pa.DataType]) -> Typed:
    """Compute a function of the results for the parts of a group."""
    name = f"c{call.output}"
    part = Typed(exp.column(name, quoted=True), columns[name])
    if call.name in ("min", "max"):
        return extreme(exp.Min if call.name == "min" else exp.Max, part)
    return total_of_parts(part, call.type or part.type)
