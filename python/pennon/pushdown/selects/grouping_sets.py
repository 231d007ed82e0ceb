"""Computes grouping sets (ROLLUP, CUBE) of the groups of all their columns together.

Spark repeats each row for each set and groups them all. A group of any set consists of whole groups
of all columns, so the rows are grouped once, and only those groups are repeated and put together.

NULL rules: a column that a set leaves out is NULL there, and the number of the set, a key as well,
tells it from a NULL of the rows. Parts of a sum, an extreme or a count are NULL for nothing, and
are left out where they are put together; no group is without a count.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from sqlglot import exp

from pennon.plan import Expand, Expanded, Output
from pennon.predicate.expressions.aggregates import SUM_DIGITS, extreme, is_cut, total_of_parts
from pennon.predicate.typed import INTEGER_DIGITS, Typed
from pennon.pushdown.selects.expression_texts import columns_of, tree_of
from pennon.pushdown.selects.grouped import Aggregate

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from collections.abc import Set as AbstractSet

    from pennon.plan import AggregateCall

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
    used = [outputs.get(_column(key.text) or "") for key in node.keys]
    keys = [output for output in used if output is not None]
    sources = _sources(keys, columns)
    if len(keys) < len(node.keys) or not sources:
        return None
    kept = {name for name, output in outputs.items() if set(output.texts) == {f"`{name}`"}}
    parts = [
        part
        for call in node.calls
        if (part := _part(call, kept & columns.keys(), ansi=ansi)) is not None
    ]
    if len(parts) < len(node.calls):
        return None
    finest = [Output(int(name[1:]), f"`{name}`", columns[name]) for name in sources]
    count = len(keys[0].texts)
    carried = [Expanded(part.output, (f"`c{part.output}`",) * count, part.type) for part in parts]
    different = {output.id: output for output in keys}
    return GroupingSets(
        replace(node, keys=finest, calls=parts),
        Expand(expand.child, (), (*different.values(), *carried)),
        replace(node, write_call=_put_together, is_over_groups=True),
    )


def _sources(keys: Iterable[Expanded], columns: Mapping[str, pa.DataType]) -> tuple[str, ...]:
    """Name the columns that sets consist of; none where a set has another expression of one."""
    names: dict[str, None] = {}
    for text in (text for key in keys for text in key.texts):
        name = _column(text)
        if name is not None and name in columns:
            names[name] = None
        elif columns_of(text) != frozenset():
            return ()
    return tuple(names)


def _part(call: AggregateCall, columns: AbstractSet[str], *, ansi: bool) -> AggregateCall | None:
    """Compute a function of a part of a group; None where parts do not give the whole."""
    names = columns_of(call.argument)
    if call.name not in _IN_PARTS or names is None or not names <= columns:
        return None
    kind = call.argument_type
    if call.type is not None and pa.types.is_struct(call.type):
        return None
    if call.name != "sum":
        return call
    if kind is None:
        return None
    if is_cut(kind):
        return None
    if kind == pa.int64() and ansi:
        # The sum of a part may be too large for a BIGINT where that of the whole is not.
        return replace(
            call,
            argument=f"CAST({call.argument} AS DECIMAL({_BIGINT_DIGITS}, 0))",
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


def _column(text: str | None) -> str | None:
    """Name the column that a text is; None for anything else."""
    tree = tree_of(text)
    return tree.name if isinstance(tree, exp.Column) and len(tree.parts) == 1 else None
