"""Writes a join of two SELECTs as one SELECT with Spark's semantics.

NULL rules: a condition that is NULL joins nothing. ``NOT IN`` keeps a row where the right side is
empty, and else only where neither the row's value nor one of the right side is NULL. Whether a
partner exists is TRUE or FALSE, never NULL.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from sqlglot import exp

from pennon.execution.engine_failures import TOO_MANY_ROWS
from pennon.plan import JoinType
from pennon.predicate.condition import Declined, operands
from pennon.predicate.expressions.floats import comparable
from pennon.predicate.expressions.typed_expression import (
    may_fail,
    typed_expression,
    typed_key,
)
from pennon.predicate.typed import Typed, call, cast, choice, enclosed, integer, is_null
from pennon.pushdown.selects.selected import (
    Selected,
    named,
    quoted_columns,
    random_column,
    selected_columns,
    selected_from,
    varying,
    whole_number,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from pennon.plan import Join, Plan
    from pennon.predicate.condition import Semantics
    from pennon.predicate.expressions.intervals import Ends
    from pennon.predicate.typed import SparkExpression

# What a join's condition says of how partners are found: by equal values, or as NOT IN does.
#
# Spark computes both values of an equality for every row, whatever stands before it in the
# condition, and so may DataFusion. Any other part of the condition Spark computes of the pairs with
# equal values; of which of them, where one partner is enough, its plan decides.
#
# NULL rules: an equality that is NULL finds nothing. ``NOT IN``, an anti join that knows of NULLs,
# keeps a row where the right side is empty; otherwise only where its value is not NULL, equals no
# value of the right side, and the right side has no NULL.

# Of other joins a row may be decided by its first partner.
_OF_ALL_PAIRS: Final = (JoinType.INNER, JoinType.LEFT, JoinType.RIGHT, JoinType.FULL)


def conjuncts_of(condition: SparkExpression) -> list[exp.Expr]:
    """List what a condition demands together, parts of its tree; nothing where it has none."""
    tree = condition.tree
    return [] if tree is None else list[exp.Expr](operands(tree, exp.And))


def finds_partners(conjunct: exp.Expr, left: Collection[str], right: Collection[str]) -> bool:
    """Whether a conjunct equates a value of the left side with one of the right side.

    Args:
        conjunct: A part of a condition.
        left: The columns of the left side.
        right: The columns of the right side.

    Example:
        >>> from pennon.predicate.typed import SparkExpression
        >>> (week,) = conjuncts_of(SparkExpression("`c1` = (`c2` - 52)"))
        >>> finds_partners(week, ["c1"], ["c2"]), finds_partners(week, ["c1", "c2"], ["c3"])
        (True, False)
    """
    if not isinstance(conjunct, exp.EQ):
        return False
    values = [
        {column.name for column in value.find_all(exp.Column)}
        for value in (conjunct.this, conjunct.expression)
    ]
    return all(values) and any(
        values[0].issubset(one) and values[1].issubset(other)
        for one, other in ((left, right), (right, left))
    )


def is_of_pairs(
    join_type: JoinType,
    conjunct: exp.Expr,
    equalities: Iterable[exp.Expr],
    sides: tuple[Collection[str], Collection[str]],
) -> bool:
    """Whether both engines compute a part of a condition of the same pairs, and of nothing else.

    DataFusion computes what names one side only of all rows there. It also puts the column that an
    equality equates in the place of the other, and then one side may be enough.

    Args:
        join_type: How the sides are joined.
        conjunct: The part, which finds no partners.
        equalities: Those that do.
        sides: The columns of the left side, and of the right one.

    Example:
        >>> from pennon.predicate.typed import SparkExpression
        >>> condition = SparkExpression("`c1` = `c3` AND 10 / (`c2` - `c4`) > 1")
        >>> key, rest = conjuncts_of(condition)
        >>> is_of_pairs(JoinType.INNER, rest, [key], (["c1", "c2"], ["c3", "c4"]))
        True
        >>> is_of_pairs(JoinType.INNER, rest, [key], (["c1"], ["c2", "c3", "c4"]))
        False
    """
    if join_type not in _OF_ALL_PAIRS or isinstance(conjunct, exp.NullSafeEQ):
        return False  # Spark finds partners by <=> as well, and computes it of all rows
    equated = {column.name for part in equalities for column in part.find_all(exp.Column)}
    names = {column.parts[0].name for column in conjunct.find_all(exp.Column)} - equated
    return all(not names.isdisjoint(side) for side in sides)


def is_hashed(plan: Plan, join: Join) -> bool:
    """Whether a join finds partners by a value, of columns or of expressions."""
    if join.equated:
        return True
    conjuncts = [part for part in conjuncts_of(join.condition) if isinstance(part, exp.EQ)]
    if not conjuncts:
        return False
    left, right = (
        {f"c{attribute}" for attribute in plan.attributes(side)} for side in (join.left, join.right)
    )
    return any(finds_partners(conjunct, left, right) for conjunct in conjuncts)


def null_aware_pair(join: Join) -> tuple[exp.Expr, exp.Expr] | None:
    """Find the two values of a null-aware anti join.

    Returns:
        The values in the order of the equality; None for any other join.

    Example:
        >>> from pennon.plan import Join
        >>> from pennon.predicate.typed import SparkExpression
        >>> condition = SparkExpression("(`c1` = `c2`) OR ((`c1` = `c2`) IS NULL)")
        >>> null_aware_pair(Join(0, 1, JoinType.ANTI, condition)) is not None
        True
    """
    if join.join_type is not JoinType.ANTI or join.equated:
        return None
    tree = join.condition.tree
    match [] if tree is None else operands(tree, exp.Or):
        case [exp.EQ() as equality, exp.Is() as unknown] if (
            isinstance(unknown.expression.unnest(), exp.Null) and unknown.this.unnest() == equality
        ):
            return equality.this, equality.expression
    return None


_SIDES: Final[Mapping[JoinType, tuple[str, str]]] = {
    JoinType.INNER: ("", "INNER"),
    JoinType.LEFT: ("LEFT", ""),
    JoinType.RIGHT: ("RIGHT", ""),
    JoinType.FULL: ("FULL", ""),
    JoinType.SEMI: ("LEFT", "SEMI"),
    JoinType.ANTI: ("LEFT", "ANTI"),
}
_MIRRORED: Final = {"LEFT": "RIGHT", "RIGHT": "LEFT"}
# The rows of the right side of NOT IN, and those of them that are not NULL.
_ROWS: Final = "n"
_VALUES: Final = "m"
# The mark of a row with a partner, and the values that partners are found by.
_FOUND: Final = "e"
_VALUE: Final = "k"


def joined(
    name: str,
    node: Join,
    inputs: tuple[Selected, Selected],
    semantics: Semantics,
    known: Callable[[str], Ends | None],
    *,
    builds_right: bool,
) -> Selected:
    """Join two inputs.

    Args:
        name: A name for the left one; those of others begin with it.
        node: How they are joined.
        inputs: The left one and the right one.
        semantics: The session's.
        known: The range of a column's values, where it is known.
        builds_right: Whether the hash table is made of the right one: DataFusion makes it of the
            one that is written first.

    Raises:
        Declined: The join is not known to give Spark's rows.
    """
    left, right = inputs
    if set(left.types) & set(right.types):
        raise Declined(why="a column that stands on both sides of a join")
    if node.join_type is JoinType.EXISTENCE:
        return _existence(name, node, inputs, semantics, builds_right=builds_right)
    if node.join_type is JoinType.SCALAR:
        return _beside(name, inputs)
    side_and_kind = _SIDES.get(node.join_type)
    if side_and_kind is None:
        raise Declined(why=f"a join of type {node.join_type}")
    pair = null_aware_pair(node)
    if pair is not None:
        return _not_in(name, inputs, pair, semantics)
    both = {**left.types, **right.types}
    condition = _condition(node, inputs, semantics, known)
    is_filter = node.join_type in (JoinType.SEMI, JoinType.ANTI)
    types = left.types if is_filter else both
    if is_filter and node.is_null_safe:
        # EXCEPT and INTERSECT: DataFusion compares a row with all the copies of its partner.
        partners = selected_from(right, f"{name}s", quoted_columns(right.types)).distinct(
            copy=False
        )
        right = Selected(partners, right.types)
    side, kind = side_and_kind
    if builds_right:
        left, right = right, left
        side = _MIRRORED.get(side, side)
    beside = exp.Join(
        this=right.select.subquery(f"{name}r", copy=False),
        on=condition,
        **{word: text for word, text in (("side", side), ("kind", kind)) if text},
    )
    of_left, of_right = (side.types for side in inputs)
    filled = {JoinType.LEFT: of_right, JoinType.RIGHT: of_left, JoinType.FULL: both}
    names = filled.get(node.join_type)
    if names is None:
        select = selected_from(left, name, quoted_columns(types))
        select.append("joins", beside)
        return Selected(select, types)
    columns = [
        named(varying(exp.column(column, quoted=True)), column) if column in names else written
        for column, written in zip(types, quoted_columns(types), strict=True)
    ]
    return Selected(_outer(name, left, beside, types, columns), types)


def _outer(
    name: str,
    left: Selected,
    beside: exp.Join,
    names: Iterable[str],
    columns: Sequence[exp.Expr],
) -> exp.Select:
    """Select columns of an outer join, which may read of each row what differs from row to row.

    A column that is constant on one side, as a literal or by a filter, DataFusion takes for
    constant also where the join has filled it with NULLs: it holds the rows for sorted by it, and
    gives a group several times, a window twice, and first rows that are none.

    Args:
        name: The names of what is below begin with it.
        left: The left side.
        beside: The right side, and the condition.
        names: The columns of both sides that are read.
        columns: What is selected; ``varying`` where NULLs may have been filled in.
    """
    below = selected_from(left, name, [*quoted_columns(names), random_column()])
    below.append("joins", beside)
    return selected_from(Selected(below, {}), f"{name}y", columns)


def _condition(
    node: Join,
    inputs: tuple[Selected, Selected],
    semantics: Semantics,
    known: Callable[[str], Ends | None],
) -> exp.Expr:
    """Write a condition: equalities that find partners by themselves, where DataFusion sees them.

    What is no error for any values that the columns have may be computed of any rows.

    Raises:
        Declined: It is not known to be computed as Spark does, or of the same rows.
    """
    left, right = (side.types for side in inputs)
    both = {**left, **right}
    conjuncts = conjuncts_of(node.condition)
    equalities = [part for part in conjuncts if finds_partners(part, left, right)]
    others = [part for part in conjuncts if part not in equalities]
    written = [typed_key(part, both, semantics) for part in equalities]
    if others or not equalities:
        rest: SparkExpression | exp.Expr = node.condition
        if equalities:
            rest = reduce(_and, [part.copy() for part in others])
        value = typed_expression(rest, both, semantics, pa.bool_())
        for part in others if value.can_fail else ():
            is_asked_alike = is_of_pairs(node.join_type, part, equalities, (left, right))
            if not is_asked_alike and may_fail(part, both, semantics, known):
                raise Declined(why="a condition of a join that may be an error for other rows")
        written.append(enclosed(value.tree))
    return reduce(_and, written)


def _and(one: exp.Expr, other: exp.Expr) -> exp.Expr:
    return exp.And(this=one, expression=other)


def restricted_to_keys(name: str, below: Selected, key: str, keys: Selected) -> Selected:
    """Leave out the rows whose key is none of those that are needed.

    Args:
        name: The names of the inputs begin with it.
        below: The rows.
        key: The column with the key.
        keys: One column with the keys, some of them repeated.

    Raises:
        Declined: The keys are no values as they are: of two types, or floats.
    """
    ((column, kind),) = keys.types.items() or ((key, None),)
    if kind is None or pa.types.is_floating(kind) or below.types.get(key) != kind:
        raise Declined(why="a key that is no value of the other side as it is")
    partner = selected_from(keys, f"{name}v", [named(exp.column(column, quoted=True), _VALUE)])
    equal = exp.EQ(this=exp.column(key, quoted=True), expression=exp.column(_VALUE, quoted=True))
    columns = quoted_columns(below.types)
    select = selected_columns(columns).from_(partner.subquery(f"{name}w", copy=False), copy=False)
    beside = below.select.subquery(f"{name}b", copy=False)
    select.append("joins", exp.Join(this=beside, on=equal, side="RIGHT", kind="SEMI"))
    return Selected(select, below.types)


def only_row(name: str, below: Selected) -> Selected:
    """Make one row of a subquery's: NULLs where it has none; more than one are an error.

    Args:
        name: What the subquery's rows are called.
        below: They.
    """
    count = exp.Count(this=exp.Star())
    # What is no number cannot be cast to one; the text depends on the rows, so only they fail.
    text = call("concat", exp.Literal.string(TOO_MANY_ROWS), cast(count.copy(), pa.utf8()))
    error = cast(text, pa.int32())
    is_one = exp.LTE(this=count, expression=whole_number(1))
    passed = choice((is_one, integer(1, pa.int32())), default=error)
    columns = []
    for column, kind in below.types.items():
        value = cast(call("first_value", exp.column(column, quoted=True)), kind)
        is_passed = exp.EQ(this=passed.copy(), expression=integer(1, pa.int32()))
        columns.append(named(choice((is_passed, value), default=None), column))
    return Selected(selected_from(below, name, columns), below.types)


def _not_in(
    name: str,
    inputs: tuple[Selected, Selected],
    pair: tuple[exp.Expr, exp.Expr],
    semantics: Semantics,
) -> Selected:
    """Write a null-aware anti join: by its equality, and by what the right side counts."""
    left, right = inputs
    value, member = _sides_of(pair, inputs, semantics)
    if value.can_fail or member.can_fail:
        # Spark computes neither where the right side is empty, or has a NULL.
        raise Declined(why="NOT IN of what may be an error")
    equality = exp.EQ(this=enclosed(comparable(value)), expression=enclosed(comparable(member)))
    columns = quoted_columns(left.types)
    partner = right.select.copy().subquery(f"{name}r", copy=False)
    lonely = selected_columns(columns).from_(partner, copy=False)
    rows_of_left = left.select.subquery(name, copy=False)
    lonely.append("joins", exp.Join(this=rows_of_left, on=equality, side="RIGHT", kind="ANTI"))
    rows, values = exp.Count(this=exp.Star()), exp.Count(this=member.tree.copy())
    counted = selected_from(right, f"{name}s", [named(rows, _ROWS), named(values, _VALUES)])
    all_rows, all_values = quoted_columns([_ROWS, _VALUES])
    kept = exp.or_(
        exp.EQ(this=all_rows.copy(), expression=whole_number(0)),
        exp.and_(
            exp.Not(this=is_null(value.tree.copy())),
            exp.EQ(this=all_rows, expression=all_values),
        ),
    )
    select = selected_columns([column.copy() for column in columns])
    select = select.from_(counted.subquery(f"{name}n", copy=False))
    beside = exp.Join(this=lonely.subquery(f"{name}l", copy=False), kind="CROSS")
    select.append("joins", beside)
    return Selected(select.where(kept, copy=False), left.types)


def _beside(name: str, inputs: tuple[Selected, Selected]) -> Selected:
    """Write the value of a subquery, which has one row, beside all rows."""
    left, right = inputs
    types = {**left.types, **right.types}
    select = selected_from(right, f"{name}r", quoted_columns(types))
    select.append("joins", exp.Join(this=left.select.subquery(name, copy=False), kind="CROSS"))
    return Selected(select, types)


def _existence(
    name: str,
    node: Join,
    inputs: tuple[Selected, Selected],
    semantics: Semantics,
    *,
    builds_right: bool,
) -> Selected:
    """Write an existence join: an outer one with the different values that partners have.

    Raises:
        Declined: The condition is more than equalities between the two sides.
    """
    left, right = inputs
    if node.exists is None or node.condition.tree is None:
        raise Declined(why="an existence join without its output or its sides")
    pairs = [
        _sides_of((equality.this, equality.expression), inputs, semantics)
        for equality in _equalities(node.condition)
    ]
    members = [comparable(member) for _, member in pairs]
    values = [named(member, f"{_VALUE}{at}") for at, member in enumerate(members)]
    different = selected_from(right, f"{name}s", [named(exp.true(), _FOUND), *values])
    partners = different.group_by(*[member.copy() for member in members], copy=False)
    equal = [
        exp.EQ(
            this=enclosed(comparable(value)),
            expression=exp.column(f"{_VALUE}{at}", quoted=True),
        )
        for at, (value, _) in enumerate(pairs)
    ]
    has_partner = varying(exp.Not(this=is_null(exp.column(_FOUND, quoted=True))))
    exists = f"c{node.exists}"
    first, second, side = left, Selected(partners, {}), "LEFT"
    if builds_right:
        first, second, side = second, left, "RIGHT"
    beside = exp.Join(
        this=second.select.subquery(f"{name}r", copy=False), on=exp.and_(*equal), side=side
    )
    columns = [*quoted_columns(left.types), named(has_partner, exists)]
    select = _outer(name, first, beside, [*left.types, _FOUND], columns)
    return Selected(select, {**left.types, exists: pa.bool_()})


def _equalities(condition: SparkExpression) -> list[exp.EQ]:
    """Take a condition apart.

    Raises:
        Declined: It is more than equalities.
    """
    conjuncts = conjuncts_of(condition)
    equalities = [conjunct for conjunct in conjuncts if isinstance(conjunct, exp.EQ)]
    if not equalities or len(equalities) < len(conjuncts):
        raise Declined(why="an existence by other than equalities")
    return equalities


def _sides_of(
    pair: tuple[exp.Expr, exp.Expr], inputs: tuple[Selected, Selected], semantics: Semantics
) -> tuple[Typed, Typed]:
    """Read both sides of an equality, that of the left input first.

    Raises:
        Declined: They are not of one input each, or of two types.
    """
    left, right = inputs
    names = {column.name for column in pair[0].find_all(exp.Column)}
    of_left, of_right = reversed(pair) if names <= set(right.types) else pair
    value = typed_expression(of_left, left.types, semantics)
    member = typed_expression(of_right, right.types, semantics)
    if value.type != member.type:
        raise Declined(why="a membership of two types")
    return value, member
