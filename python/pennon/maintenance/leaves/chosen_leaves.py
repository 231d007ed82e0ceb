"""The partitions that a procedure's condition chooses.

A query reads every partition of which a condition says nothing, and Spark filters the rows. A
procedure has no such filter: a condition that is not understood would choose the whole table.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from functools import reduce
from typing import TYPE_CHECKING, Final, cast
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import lance
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from pennon.errors import PredicateNotEvaluable
from pennon.leaf import LeafSource, LeafViews
from pennon.manifest import Snapshot
from pennon.planning import plan_scan
from pennon.planning.binding.bound_predicate import all_of, check_evaluable, conjuncts
from pennon.predicate.condition import is_utc_zone
from pennon.predicate.dialect import DataFusion, shortened_predicate
from pennon.predicate.normalize import normalize
from pennon.predicate.parse import SparkSql, parse_expression
from pennon.spec import NamespaceSchema, PartitionField, PartitionSpec
from pennon.transforms.registry import expression

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["RowValues", "chosen_leaves", "differs", "is_same_value"]


# Partition values of stored rows, computed by DataFusion from the specs' expressions.
#
# This is the second code path beside the writer's: a well-known transform is evaluated as its
# derived expression, exactly as the specification writes it. NULL rules are the expressions'.


@dataclass(frozen=True, slots=True)
class RowValues:
    """Computes the partition values of rows of one spec.

    Args:
        spec: The partition spec.
        schema: The namespace schema.
        types: The types of the manifest's columns by field id.

    Spec: "Partition Expression", "Supported Transforms".
    """

    spec: PartitionSpec
    schema: NamespaceSchema
    types: Mapping[str, pa.DataType]

    @property
    def fields(self) -> tuple[PartitionField, ...]:
        """The fields whose source columns are all in the schema; others cannot be computed."""
        return tuple(
            field
            for field in self.spec.fields
            if all(self.schema.field_by_id(source) is not None for source in field.source_ids)
        )

    @property
    def columns(self) -> pa.Schema:
        """The columns of the namespace schema that hold the sources."""
        names = []
        for field in self.fields:
            for source in field.source_ids:
                column = self.schema.field_by_id(source)
                if column is not None and column.path[0] not in names:
                    names.append(column.path[0])
        return pa.schema([self.schema.arrow.field(name) for name in names])

    def scan(self, dataset: lance.LanceDataset) -> Iterator[pa.RecordBatch]:
        """Stream the source columns of a leaf."""
        return LeafSource(dataset).batches(LeafViews(self.columns, self.schema.arrow))

    def of(self, rows: pa.RecordBatch | pa.Table) -> dict[str, pa.Array]:
        """Compute the values of rows of ``columns``, by field id, in the manifest's types.

        Raises:
            PartitionExpressionFailed: DataFusion refused, or a value does not fit the column.
        """
        return {field.field_id: self._values(rows, field) for field in self.fields}

    def _values(self, rows: pa.RecordBatch | pa.Table, field: PartitionField) -> pa.Array:
        sources = [self.source(rows, source) for source in field.source_ids]
        kinds = [source.type for source in sources]
        sql = field.derivation.expression(kinds)
        return expression(sql, self.types[field.field_id]).apply(sources)

    def source(self, rows: pa.RecordBatch | pa.Table, source_id: int) -> pa.Array:
        """Take a source column of ``fields`` out of rows of ``columns``."""
        column = self.schema.field_by_id(source_id)
        assert column is not None  # noqa: S101 - `fields` leaves the others out
        top = rows.column(column.path[0])
        array = top if len(column.path) == 1 else pc.struct_field(top, list(column.path[1:]))
        return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array


def differs(left: pa.Array, right: pa.Array) -> pa.Array:
    """Tell where two arrays of partition values differ: NULL equals NULL, NaN equals NaN.

    Example:
        >>> differs(pa.array([1, None, 3]), pa.array([1, None, None])).to_pylist()
        [False, False, True]
    """
    unequal = pc.fill_null(pc.not_equal(left, right), fill_value=False)
    if pa.types.is_floating(left.type):
        both = pc.and_(pc.is_nan(left), pc.is_nan(right))
        unequal = pc.and_not(unequal, pc.fill_null(both, fill_value=False))
    return pc.or_(unequal, pc.xor(pc.is_null(left), pc.is_null(right)))


def is_same_value(left: pa.Scalar, right: pa.Scalar) -> bool:
    """Whether two partition values of one type are one value; as ``differs``.

    Example:
        >>> is_same_value(pa.scalar(None, pa.int32()), pa.scalar(None, pa.int32()))
        True
    """
    data_type = right.type
    both = (pa.array([value], data_type) for value in (left, right))
    return not differs(*both)[0].as_py()


# Reads the days of a condition as ranges of times in the time zone of a session.
#
# ``date(t) = DATE '2025-01-02'`` is a whole day of the session, from its first moment to that of
# the next day, which partitions are chosen by. The day of a NULL time is NULL, and so is the range.

_DAYS_OF_TIMES: Final = (exp.Cast, exp.TryCast, exp.TsOrDsToDate)
_MIRRORED: Final[dict[type[exp.Expr], type[exp.Expr]]] = {
    exp.LT: exp.GT,
    exp.LTE: exp.GTE,
    exp.GT: exp.LT,
    exp.GTE: exp.LTE,
    exp.EQ: exp.EQ,
    exp.NEQ: exp.NEQ,
}


def ranges_of_days(
    condition: exp.Expression, is_zoned: Callable[[exp.Column], bool]
) -> exp.Expression:
    """Compare times with the moments where days begin, for the days of times with days.

    Args:
        condition: Changed in place where it is not as a whole such a comparison.
        is_zoned: Whether a column has times of a zone; the days of others are those of no zone.

    Returns:
        The condition, whose times are without a zone those of the session.

    Example:
        >>> from pennon.predicate.parse import parse_expression
        >>> print(ranges_of_days(parse_expression("date(t) < '2025-01-31'"), lambda _: True))
        t < CAST('2025-01-31' AS TIMESTAMPTZ)
    """

    def changed(node: exp.Expr) -> exp.Expr:
        ranges = _ranges(node, is_zoned)
        return node if ranges is None else ranges

    return cast("exp.Expression", condition.transform(changed, copy=False))


def _ranges(node: exp.Expr, is_zoned: Callable[[exp.Column], bool]) -> exp.Expr | None:
    """Give what a comparison of days says of times; None where it is none."""
    kind, day_of, stated = type(node), node.this, []
    if kind in _MIRRORED:
        if _day(day_of) is not None:
            kind, day_of, stated = _MIRRORED[kind], node.expression, [node.this]
        else:
            stated = [node.expression]
    elif isinstance(node, exp.Between):
        stated = [node.args["low"], node.args["high"]]
    elif isinstance(node, exp.In):
        stated = node.expressions
    days = [day for part in stated if (day := _day(part)) is not None]
    column = _timed_column(day_of)
    if not days or len(days) < len(stated) or column is None or not is_zoned(column):
        return None
    return _range(kind, column, [(_moment(day), _moment(_next(day))) for day in days])


def _range(
    kind: type[exp.Expr], column: exp.Column, days: Sequence[tuple[exp.Expr, exp.Expr]]
) -> exp.Expr:
    start, end = days[0][0], days[-1][1]
    match kind:
        case exp.LT:
            return exp.LT(this=column.copy(), expression=start)
        case exp.GTE:
            return exp.GTE(this=column.copy(), expression=start)
        case exp.LTE:
            return exp.LT(this=column.copy(), expression=end)
        case exp.GT:
            return exp.GTE(this=column.copy(), expression=end)
        case exp.NEQ:
            return exp.paren(exp.not_(_within(column, start, end)), copy=False)
        case exp.Between:
            return exp.paren(_within(column, start, end), copy=False)
    every = [_within(column, first, last) for first, last in days]
    return exp.paren(reduce(lambda left, right: exp.or_(left, right, copy=False), every))


def _within(column: exp.Column, start: exp.Expr, end: exp.Expr) -> exp.Expr:
    return exp.and_(
        exp.GTE(this=column.copy(), expression=start), exp.LT(this=column.copy(), expression=end)
    )


def _timed_column(part: exp.Expr) -> exp.Column | None:
    """Give the column whose day is compared; None where it is no day of a column."""
    if not isinstance(part, _DAYS_OF_TIMES) or not isinstance(part.this, exp.Column):
        return None
    is_day = isinstance(part, exp.TsOrDsToDate) or part.to.is_type("DATE")
    return part.this if is_day else None


def _day(part: exp.Expr) -> date | None:
    """Read a literal day, bare or of its type; None for all else, also where a time is behind."""
    if isinstance(part, exp.Cast) and part.is_type("DATE"):
        part = part.this
    if not isinstance(part, exp.Literal) or not part.is_string:
        return None
    numbers = part.name.strip().split("-")
    if len(numbers) != 3 or not all(number.isdecimal() for number in numbers):  # noqa: PLR2004
        return None
    try:
        return date(*map(int, numbers))
    except ValueError:
        return None


def _moment(day: date) -> exp.Expr:
    """Write the first moment of a day of the session, as its SQL does."""
    return exp.cast(exp.Literal.string(f"{day:%Y-%m-%d}"), "TIMESTAMP", dialect=SparkSql)


def _next(day: date) -> date:
    return day + timedelta(days=1) if day < date.max else day


# Reads the times of a condition in the time zone of a session, as the WHERE of a query is read.
#
# A text that is compared with a column of type TIMESTAMP is a time of the session where it states
# no zone. One that is compared with TIMESTAMP_NTZ stands as it is: the column is taken for a time
# of the session as well, which changes nothing.

_OFFSET: Final = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::?(\d{2}))?")
# What Spark takes for a time, without a zone behind it.
_TIME: Final = re.compile(
    r"\s*(\d{4})(?:-(\d{1,2})(?:-(\d{1,2})"
    r"(?:[T ](\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:\.(\d{1,6}))?)?)?)?)?\s*"
)
_COMPARISONS: Final = (
    exp.EQ,
    exp.NEQ,
    exp.NullSafeEQ,
    exp.NullSafeNEQ,
    exp.LT,
    exp.LTE,
    exp.GT,
    exp.GTE,
    exp.Between,
    exp.In,
)
_TYPES_OF_TIMES: Final = ("TIMESTAMP", "TIMESTAMPTZ", "TIMESTAMPLTZ", "TIMESTAMPNTZ", "DATE")
_FIRST_MOMENT: Final = (1, 1, 1, 0, 0, 0)


def in_session_zone(
    condition: exp.Expression, schema: NamespaceSchema, time_zone: str, location: str
) -> exp.Expression:
    """Give a condition whose times are in UTC.

    Args:
        condition: As it was parsed, its times as the session means them.
        schema: The table's.
        time_zone: The session's, as Spark names it: ``Europe/Paris``, ``+02:00``.
        location: The table, for the error.

    Raises:
        PredicateNotEvaluable: The zone is not known.

    Example:
        >>> from pennon.predicate.parse import parse_expression
        >>> from pennon.spec.schema import NamespaceSchema
        >>> times = pa.schema([("t", pa.timestamp("us", "UTC"))])
        >>> schema = NamespaceSchema.with_fresh_ids(times)
        >>> tree = parse_expression("t < TIMESTAMP '2026-01-01'")
        >>> in_session_zone(tree, schema, "+02:00", "t").find(exp.Literal).name
        '2025-12-31 22:00:00'
    """
    if is_utc_zone(time_zone):
        return condition
    zone = _zone(time_zone)

    def has_zoned_times(column: exp.Column) -> bool:
        return _zoned_column(column, schema) is True

    read = ranges_of_days(condition.copy(), has_zoned_times)
    for comparison in list(read.find_all(*_COMPARISONS)):
        is_zoned = _is_zoned(comparison, schema)
        if is_zoned is None:
            continue
        for time in [part for part in comparison.iter_expressions() if _stated(part)]:
            if zone is None:
                raise PredicateNotEvaluable(
                    predicate=shortened_predicate(condition.sql(dialect=DataFusion)),
                    namespace=location,
                    reason=f"the session's time zone {time_zone} is not known",
                )
            if _TIME.fullmatch(_stated(time)) is not None:
                text = _in_utc(_stated(time), zone) if is_zoned else _stated(time)
                type_ = "TIMESTAMP" if is_zoned else "TIMESTAMP_NTZ"
                time.replace(exp.cast(exp.Literal.string(text), type_, dialect=SparkSql))
    return read


def _is_zoned(comparison: exp.Expr, schema: NamespaceSchema) -> bool | None:
    """Whether the times that a column is compared with are of a zone; None where it has no time."""
    for column in comparison.iter_expressions():
        is_zoned = _zoned_column(column, schema) if isinstance(column, exp.Column) else None
        if is_zoned is not None:
            return is_zoned
    return None


def _zoned_column(column: exp.Column, schema: NamespaceSchema) -> bool | None:
    field = schema.field_by_path([part.name for part in column.parts])
    if field is not None and pa.types.is_timestamp(field.field.type):
        return field.field.type.tz is not None
    return None


def _stated(part: exp.Expr) -> str:
    """Give the text of a literal time, bare or of a type; empty for all else."""
    if isinstance(part, exp.Cast) and part.is_type(*_TYPES_OF_TIMES):
        part = part.this
    return part.name if isinstance(part, exp.Literal) and part.is_string else ""


def _in_utc(text: str, zone: tzinfo) -> str:
    matched = _TIME.fullmatch(text)
    if matched is None:
        return text
    year, month, day, hour, minute, second = (
        int(part or least) for part, least in zip(matched.groups(), _FIRST_MOMENT, strict=False)
    )
    micros = int((matched[7] or "0").ljust(6, "0"))
    try:
        local = datetime(year, month, day, hour, minute, second, micros, zone)
        return local.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S.%f").removesuffix(".000000")
    except (ValueError, OverflowError):  # it is no time, which is said where it is read
        return text


def _zone(name: str) -> tzinfo | None:
    offset = _OFFSET.fullmatch(name)
    if offset is not None:
        sign, hours, minutes = offset.groups()
        length = timedelta(hours=int(hours), minutes=int(minutes or 0))
        return timezone(length if sign == "+" else -length)
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError):
        return None


def chosen_leaves(snapshot: Snapshot, where: str | None, time_zone: str = "UTC") -> list[str]:
    """Give the object ids of the leaves that may have a row for which a condition is true.

    Args:
        snapshot: The namespace.
        where: Spark SQL; None for every leaf.
        time_zone: Of times without one that are compared with zoned columns.

    Raises:
        PredicateNotEvaluable: It is no condition on rows: a number, a subquery, an aggregate, an
            unknown function.
        PredicateSyntaxError: It is no expression.
        UnknownColumn: It names a column that the table does not have.
    """
    if where is None:
        rows = snapshot.leaves().table
    else:
        read = in_session_zone(
            parse_expression(where), snapshot.schema, time_zone, snapshot.location
        )
        condition = [normalize(read)]
        plan = plan_scan(snapshot, condition, time_zone=time_zone)
        # The hour of a time is a condition on rows in every zone, though partitions are chosen by
        # it in UTC alone.
        in_utc = plan if is_utc_zone(time_zone) else plan_scan(snapshot, condition)
        undecided = [part for part in conjuncts(in_utc.bound) if part not in in_utc.decided]
        check_evaluable(all_of(undecided), snapshot.location)
        rows = plan.table
    object_ids: list[str] = rows["object_id"].to_pylist()
    return object_ids
