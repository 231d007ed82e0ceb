"""Expressions of a time column that have one value for all rows of each partition.

A partition of ``months(ts)`` has rows of one month, so ``year(ts)`` and ``date_trunc('QUARTER',
ts)`` are the same for all of them. Which expressions are is found by trying: one that asks for no
more than the day of its column is computed for every day that a partition may have, one that asks
for the hour for every hour. What it gives is the value of the partition where it is one.

NULL rules: the partition of NULL has the value of the expression for NULL.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from pennon.execution.engine import rows_over
from pennon.plan import (
    Expand,
    Filter,
    Group,
    Join,
    Limit,
    Offset,
    Pass,
    Project,
    Scan,
    Union,
    Window,
    children_of,
)
from pennon.predicate.condition import Declined
from pennon.predicate.dialect import DataFusion
from pennon.predicate.expressions.functions import Unit, asked_of_times
from pennon.predicate.expressions.typed_expression import typed_expression
from pennon.predicate.typed import NTZ, ZONED, SparkExpression, cast
from pennon.predicate.values.literals import arrow_type
from pennon.transforms.registry import composed_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from pennon.plan import Column, PlanNode
    from pennon.predicate.condition import Semantics
    from pennon.predicate.expressions.intervals import Ends
    from pennon.spec.partition_spec import PartitionSpec

__all__ = ["SPEC_VERSION", "PartitionTimes", "TimeSpans", "time_spans"]


# The ranges of attributes, by the statistics of the columns that they come from.
#
# NULL rules: a range is that of the values that are not NULL; an outer join adds none to them.


def range_below(nodes: Sequence[PlanNode], position: int, column: str) -> Ends | None:
    """Find the range of a column of an operator's input, or of one of its inputs.

    Args:
        nodes: The plan.
        position: The operator's.
        column: The column's name in a query: ``c<attribute>``.
    """
    ranges = (known_range(nodes, side, int(column[1:])) for side in children_of(nodes[position]))
    return next(filter(None, ranges), None)


def known_range(nodes: Sequence[PlanNode], position: int, attribute: int) -> Ends | None:
    """Find the range of an attribute at an operator.

    Args:
        nodes: The plan.
        position: The operator's.
        attribute: It comes out of the operator.

    Returns:
        The range of the column that it is, in the partitions that are read; None where it is
        computed, or nothing is known.
    """
    source: int | None = attribute
    match nodes[position]:
        case Scan(columns=columns, bounds=bounds):
            names = [column.name for column in columns if column.id == attribute]
            return bounds(names[0]) if names else None
        case Project(child=child, renamed=pairs) | Expand(child=child, columns=pairs):
            source = dict(pairs).get(attribute)
        case Group(child=child, columns=pairs):
            source = dict(pairs).get(attribute)
        case Window(child=child, outputs=outputs):
            source = None if any(output.id == attribute for output in outputs) else attribute
        case Filter(child=child) | Pass(child=child) | Limit(child=child) | Offset(child=child):
            pass
        case Join(left=left, right=right, join_type=join_type):
            given = (left, right) if join_type.gives_right else (left,)
            sides = [known_range(nodes, side, attribute) for side in given]
            return next(filter(None, sides), None)
        case Union(children=children, columns=outputs):
            sources = dict(outputs).get(attribute, ())
            ranges = [known_range(nodes, *below) for below in zip(children, sources, strict=False)]
            known = [one for one in ranges if one is not None]
            if not known or len(known) < len(children):
                return None
            return min(low for low, _ in known), max(high for _, high in known)
        case _:
            return None
    return None if source is None else known_range(nodes, child, source)


SPEC_VERSION: Final = "spec_version"
_INSTANTS: Final = "r0"
# Years with all of their hours, for some twenty years of partitions.
_MOST_INSTANTS: Final = 200_000
_NUMPY_UNITS: Final = {"year": "Y", "month": "M", "day": "D", "hour": "h"}
_FIRST_YEAR: Final = 1
_END_YEAR: Final = 10_000


@dataclass(frozen=True, slots=True)
class TimeSpans:
    """What times the rows of partitions may have.

    Args:
        first: The first hour of each, since 1970; anything for the partition of NULL.
        end: The hour behind its last one.
        is_null: Which have the rows without a time.
    """

    first: NDArray[np.int64]
    end: NDArray[np.int64]
    is_null: NDArray[np.bool_]


def time_spans(
    table: pa.Table, specs: Mapping[int, PartitionSpec], source: int
) -> TimeSpans | None:
    """Find the times that the levels of a column leave in each partition.

    Args:
        table: Rows of partitions, each with the version of its spec as ``SPEC_VERSION``.
        specs: The spec of each version.
        source: The id of the column.

    Returns:
        None where a spec has no year of it, or a value is none of the calendar.
    """
    first = np.zeros(table.num_rows, dtype=np.int64)
    end = np.zeros(table.num_rows, dtype=np.int64)
    is_null = np.zeros(table.num_rows, dtype=np.bool_)
    versions = table[SPEC_VERSION].to_numpy(zero_copy_only=False)
    for version, spec in specs.items():
        columns = {
            field.transform.type: field.column
            for field in spec.fields
            if field.transform is not None and field.source_ids == (source,)
        }
        composed = composed_of(columns)
        if composed is None:
            return None
        rows = np.flatnonzero(versions == version)
        levels = {
            level.type: table[columns[level.type]].combine_chunks().take(pa.array(rows))
            for level in composed.levels
        }
        if not _are_dates(levels):
            return None
        counts = composed.from_fields([*levels.values()], ())
        unit = _NUMPY_UNITS[composed.levels[-1].type]
        numbers = counts.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
        is_null[rows] = counts.is_null().to_numpy(zero_copy_only=False)
        first[rows] = _hours(numbers, unit)
        end[rows] = _hours(numbers + 1, unit)
    return TimeSpans(first, end, is_null)


def _are_dates(levels: Mapping[str, pa.Array]) -> bool:
    """Whether levels are all NULL or all values of the calendar, whoever wrote them."""
    bounds = {"year": (_FIRST_YEAR, _END_YEAR), "month": (1, 13), "day": (1, 32), "hour": (0, 24)}
    nulls = [values.is_null() for values in levels.values()]
    if any(not other.equals(nulls[0]) for other in nulls):
        return False
    for level, values in levels.items():
        low, end = bounds[level]
        is_one = pc.and_(pc.greater_equal(values, low), pc.less(values, end))
        if not pc.all(is_one, min_count=0).as_py():
            return False
    return True


def _hours(numbers: NDArray[np.int64], unit: str) -> NDArray[np.int64]:
    return numbers.astype(f"datetime64[{unit}]").astype("datetime64[h]").astype(np.int64)


class PartitionTimes:
    """The parts of some expressions that have one value in each of some partitions.

    Args:
        columns: The time columns, and what times of each the partitions may have.
        semantics: The session's.
        expressions: The expressions.
    """

    def __init__(
        self,
        columns: Sequence[tuple[Column, TimeSpans]],
        semantics: Semantics,
        expressions: Iterable[SparkExpression],
    ) -> None:
        self.semantics = semantics
        self.spans = {f"c{column.id}": spans for column, spans in columns}
        self.types = {
            f"c{column.id}": column.type for column, _ in columns if column.type is not None
        }
        self.names: dict[exp.Expr, str] = {}
        self.values: dict[str, pa.Array] = {}
        for expression in expressions if self.spans else ():
            if expression.tree is not None:
                self._find(expression.tree)

    def replaced(self, expression: SparkExpression) -> SparkExpression:
        """Put the names of values in the places of the parts that have them."""
        if expression.tree is None or not self.names:
            return expression
        holder = exp.Paren(this=expression.tree.copy())
        self._replace(holder)
        return SparkExpression(holder.this, expression.type)

    def _replace(self, node: exp.Expr) -> None:
        for child in list(node.iter_expressions()):
            name = self.names.get(child)
            if name is None:
                self._replace(child)
            else:
                child.replace(exp.column(name, quoted=True))

    def _find(self, node: exp.Expr) -> None:
        """Find the largest expressions that have one value in each partition."""
        if node in self.names:
            return
        named = {column.name for column in node.find_all(exp.Column)}
        if len(named) == 1 and named <= self.spans.keys():
            values = self._computed(node, *named)
            if values is not None:
                name = f"time{len(self.names)}"
                self.names[node.copy()] = name
                self.values[name] = values
                return
        for child in node.iter_expressions():
            self._find(child)

    def _computed(self, node: exp.Expr, column: str) -> pa.Array | None:
        """Compute an expression for all times of the partitions; None where one has several."""
        unit = self._unit(node)
        if unit is None:
            return None
        kind = self.types[column]
        try:
            value = typed_expression(node, {column: kind}, self.semantics)
        except Declined:
            return None
        spans = self.spans[column]
        times = _times_within(spans, 24 if unit is Unit.DAY else 1)
        if times is None:
            return None
        # The last of them is that of NULL, which every partition of NULL has.
        instants = pa.array(
            np.append(times.hours, 0).astype("datetime64[h]").astype("datetime64[us]"),
            mask=np.append(np.zeros(len(times.hours), dtype=np.bool_), True),
        )
        rows = pa.table(
            {column: instants.cast(kind), "at": np.arange(len(instants), dtype=np.int64)}
        )
        columns = [exp.alias_(cast(value.tree, value.type), "value"), exp.column("at")]
        query = exp.select(*columns).from_(_INSTANTS).sql(dialect=DataFusion)
        values = rows_over(query, {_INSTANTS: rows}).sort_by("at")["value"]
        codes = pc.dictionary_encode(values, null_encoding="encode").combine_chunks().indices
        numbers = codes.to_numpy(zero_copy_only=False)
        of_span = np.repeat(
            numbers[times.starts], np.diff(np.append(times.starts, len(times.hours)))
        )
        if not np.array_equal(of_span, numbers[:-1]):
            return None
        at = np.where(spans.is_null, len(times.hours), times.starts[times.span_of])
        return values.combine_chunks().take(pa.array(at))

    def _unit(self, node: exp.Expr) -> Unit | None:
        """What an expression asks of its times: the day, or the hour; None for more."""
        name = self._time(node)
        if name is not None:
            return Unit.DAY if pa.types.is_date(self.types[name]) else None
        asked = asked_of_times(node)
        units = [
            asked.unit if asked is not None and self._time(child) is not None else self._unit(child)
            for child in node.iter_expressions()
            if child.find(exp.Column)
        ]
        if not units or None in units:
            return None
        return Unit.HOUR if Unit.HOUR in units else Unit.DAY

    def _time(self, node: exp.Expr) -> str | None:
        """Name the column that a node is, or is as a timestamp of the same time."""
        match node:
            case exp.Column():
                return node.name if node.name in self.types else None
            case exp.Paren():
                return self._time(node.this)
            case exp.Cast() if arrow_type(node.to) in (NTZ, ZONED):
                return self._time(node.this)
        return None


@dataclass(frozen=True, slots=True)
class _Times:
    """Times of different spans, one span after the other.

    Args:
        hours: Hours since 1970.
        starts: Where the times of each span begin.
        span_of: Which span each partition has.
    """

    hours: NDArray[np.int64]
    starts: NDArray[np.int64]
    span_of: NDArray[np.int64]


def _times_within(spans: TimeSpans, step: int) -> _Times | None:
    """List every so many hours of all spans; None where these are too many."""
    different, span_of = np.unique(
        np.stack([spans.first, spans.end], axis=1), axis=0, return_inverse=True
    )
    counts = -(-(different[:, 1] - different[:, 0]) // step)
    if counts.sum() > _MOST_INSTANTS:
        return None
    starts = np.cumsum(counts) - counts
    within = np.arange(counts.sum(), dtype=np.int64) - np.repeat(starts, counts)
    return _Times(np.repeat(different[:, 0], counts) + within * step, starts, span_of.reshape(-1))
