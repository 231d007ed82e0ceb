"""A bound predicate → conditions on the partition columns of one spec version.

The inclusive condition may keep a partition too many, never lose one with a matching row. The
strict one is true only where every row of the partition satisfies the predicate, so that the
leaf need not be asked. What is not understood is TRUE inclusively and never known strictly.

NULL rules: conditions are three-valued like everything in the manifest query; a condition that is
NULL for a partition drops it (inclusive), or leaves the predicate to the leaf (strict).
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Final, cast

import pyarrow as pa
from sqlglot import exp

from pennon.errors import PartitionExpressionFailed
from pennon.planning.binding.bound_predicate import (
    AllOf,
    AnyOf,
    BoundPredicate,
    Compared,
    ComparedDatePart,
    ComputedCondition,
    Constant,
    SourceColumn,
    TransformedColumn,
)
from pennon.planning.binding.bound_predicate import is_not_null as not_null
from pennon.planning.binding.time_ranges import time_scalar
from pennon.predicate.condition import (
    Comparison,
    Operator,
    and_all,
    condition,
    is_not_null,
    is_null,
    or_all,
    referenced_paths,
    replaced_references,
)
from pennon.predicate.expressions import Declined, Semantics, Typed
from pennon.predicate.expressions.time_functions import part as date_part
from pennon.predicate.values.conversion import to_text
from pennon.predicate.values.time_units import (
    SECONDS_PER_DAY,
    SECONDS_PER_HOUR,
    UNITS_PER_SECOND,
    civil_from_days,
)
from pennon.transforms.registry import LEVELS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pennon.spec.partition_spec import PartitionField, PartitionSpec
    from pennon.transforms.transform import Transform

# Ranges over the levels year, month, day, hour of one time column, compared as one value.
#
# The spec knows the levels as single fields only; a range of the column is a range of the tuple
# (year, month, …) in lexicographic order. Any order and any subset of the levels works: those that
# follow on each other from ``year`` are the tuple, the others answer for themselves.
#
# NULL rules: the levels are NULL together and only for NULL; range conditions are not true for it.

LevelTuple = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class LevelRanges:
    """The levels of one column that follow on each other from the year.

    Args:
        columns: Their manifest columns, the year's first; at least two.
        type: Arrow type of the source column.

    Spec: "Supported Transforms".
    """

    columns: tuple[exp.Column, ...]
    type: pa.DataType

    def inclusive(self, comparison: Comparison) -> exp.Expression | None:
        """Project a comparison onto the levels; None when every partition has to be kept.

        Example:
            >>> from pennon.predicate.dialect import DataFusion
            >>> levels = LevelRanges((exp.column("y"), exp.column("m")), pa.date32())
            >>> later = Comparison(Operator.GREATER, (pa.scalar(0, pa.int32()).cast(pa.date32()),))
            >>> levels.inclusive(later).sql(dialect=DataFusion)
            '`y` > 1970 OR (`y` = 1970 AND `m` >= 1)'
        """
        counts = [_count(literal) for literal in comparison.literals]
        match comparison.operator:
            case Operator.IS_NULL:
                return is_null(self.columns[0])
            case Operator.IS_NOT_NULL | Operator.NOT_EQUAL | Operator.NOT_IN:
                return self._unequal(counts)
            case Operator.EQUAL | Operator.IN:
                return self._one_of(counts)
            case Operator.LESS:
                return self._compared(Operator.LESS, counts[0] - 1, with_equal=True)
            case Operator.LESS_OR_EQUAL:
                return self._compared(Operator.LESS, counts[0], with_equal=True)
            case Operator.GREATER:
                return self._compared(Operator.GREATER, counts[0] + 1, with_equal=True)
            case Operator.GREATER_OR_EQUAL:
                return self._compared(Operator.GREATER, counts[0], with_equal=True)
            case _:
                return None

    def strict(self, comparison: Comparison) -> exp.Expression | None:
        """Give a condition under which all rows satisfy the comparison; None for never known."""
        counts = [_count(literal) for literal in comparison.literals]
        match comparison.operator:
            case Operator.IS_NULL:
                return is_null(self.columns[0])
            case Operator.IS_NOT_NULL:
                return is_not_null(self.columns[0])
            case Operator.EQUAL | Operator.IN if self._is_one_value:
                return self.inclusive(comparison)
            case Operator.NOT_EQUAL | Operator.NOT_IN:
                return self._none_of(counts)
            case Operator.LESS:
                return self._compared(Operator.LESS, counts[0], with_equal=False)
            case Operator.LESS_OR_EQUAL:
                return self._compared(Operator.LESS, counts[0] + 1, with_equal=False)
            case Operator.GREATER:
                return self._compared(Operator.GREATER, counts[0], with_equal=False)
            case Operator.GREATER_OR_EQUAL:
                return self._compared(Operator.GREATER, counts[0] - 1, with_equal=False)
            case _:
                return None

    @property
    def _is_one_value(self) -> bool:
        """Whether a tuple holds one value of the column: all levels of a date down to the day."""
        return bool(pa.types.is_date(self.type)) and len(self.columns) >= LEVELS.index("day") + 1

    def _unequal(self, counts: Sequence[int]) -> exp.Expression:
        if counts and self._is_one_value:
            return self._none_of(counts)
        return is_not_null(self.columns[0])

    def _none_of(self, counts: Sequence[int]) -> exp.Expression:
        if not counts:
            return is_not_null(self.columns[0])
        outside = exp.Not(this=exp.Paren(this=self._one_of(counts)))
        return and_all([is_not_null(self.columns[0]), outside])

    def _one_of(self, counts: Sequence[int]) -> exp.Expression:
        return self._nested(sorted({self._tuple(count) for count in counts}), 0)

    def _nested(self, tuples: Sequence[LevelTuple], depth: int) -> exp.Expression:
        """Write membership with the tuples of one year together, then of one month."""
        column = self.columns[depth]
        if depth == len(self.columns) - 1:
            return _one_of_integers(column, [bounds[depth] for bounds in tuples])
        alike: dict[tuple[LevelTuple, ...], list[int]] = {}
        for value, group in groupby(tuples, key=lambda bounds: bounds[depth]):
            below = tuple(bounds[depth + 1 :] for bounds in group)
            alike.setdefault(below, []).append(value)
        padding = (0,) * (depth + 1)
        return or_all(
            [
                and_all(
                    [
                        _one_of_integers(column, values),
                        self._nested([padding + bounds for bounds in below], depth + 1),
                    ]
                )
                for below, values in alike.items()
            ]
        )

    def _compared(self, operator: Operator, count: int, *, with_equal: bool) -> exp.Expression:
        """Compare the tuple of levels with that of a value, lexicographically."""
        compared: exp.Expression | None = None
        for column, value in reversed(list(zip(self.columns, self._tuple(count), strict=True))):
            if compared is None:
                last = operator.negated.flipped if with_equal else operator
                compared = _compare_integer(last, column, value)
                continue
            equal = _compare_integer(Operator.EQUAL, column, value)
            compared = or_all(
                [_compare_integer(operator, column, value), and_all([equal, compared])]
            )
        return exp.true() if compared is None else compared

    def _tuple(self, count: int) -> LevelTuple:
        return level_values(count, self.type)[: len(self.columns)]


def level_ranges(columns: Mapping[str, exp.Column], source_type: pa.DataType) -> LevelRanges | None:
    """Recognise the levels of one column among its single fields; None for less than two.

    Args:
        columns: Manifest column by the name of the level.
        source_type: Arrow type of the column.
    """
    following: list[exp.Column] = []
    for level in LEVELS:
        if level not in columns:
            break
        following.append(columns[level])
    return LevelRanges(tuple(following), source_type) if len(following) > 1 else None


def level_values(count: int, data_type: pa.DataType) -> tuple[int, int, int, int]:
    """Give year, month, day and hour (UTC) of a date or timestamp by its count of days or units."""
    if pa.types.is_date(data_type):
        return (*civil_from_days(count), 0)
    day, of_day = divmod(count, SECONDS_PER_DAY * UNITS_PER_SECOND[data_type.unit])
    return (*civil_from_days(day), of_day // (SECONDS_PER_HOUR * UNITS_PER_SECOND[data_type.unit]))


def _count(literal: pa.Scalar) -> int:
    data_type = literal.type
    return int(literal.cast(pa.date32()).value if pa.types.is_date(data_type) else literal.value)


def _compare_integer(operator: Operator, column: exp.Column, value: int) -> exp.Expression:
    return condition(Comparison(operator, (pa.scalar(value, pa.int32()),)), column)


def _one_of_integers(column: exp.Column, values: Sequence[int]) -> exp.Expression:
    literals = tuple(pa.scalar(value, pa.int32()) for value in values)
    return condition(Comparison(Operator.IN, literals), column)


# The finite set of values that a predicate allows for a column, where it names one.
#
# ``a = 1 AND b IN (2, 3)`` binds a to {1} and b to {2, 3}; ``c BETWEEN 5 AND 9`` binds an integer c
# to five values. A transform of bound columns is evaluated on the values themselves, by the code
# that computes it for rows.
#
# NULL rules: IS NULL binds a column to {NULL}; a NULL among the values is evaluated like any other,
# since an expression need not give NULL for NULL (format reading 23). Both zeros are one value
# here, and ``Transform.project_bound`` evaluates both.

MOST_VALUES = 1_000
_NAN: Final = {
    data_type: pa.scalar(math.nan, pa.float64()).cast(data_type)
    for data_type in (pa.float16(), pa.float32(), pa.float64())
}

Domain = frozenset[pa.Scalar]
_LESS = (Operator.LESS, Operator.LESS_OR_EQUAL)
_RANGES = (*_LESS, Operator.GREATER, Operator.GREATER_OR_EQUAL)


def domain_of(column: SourceColumn, predicate: BoundPredicate) -> Domain | None:
    """Find the values of a column for which the predicate can be TRUE.

    Returns:
        At most 1,000 values, NULL as an invalid scalar; None when there may be more.

    Example:
        >>> from pennon.planning.binding.bound_predicate import SourceColumn
        >>> from pennon.predicate.condition import Comparison
        >>> column = SourceColumn(("a",), 0, pa.int32())
        >>> equal = Compared(column, Comparison(Operator.EQUAL, (pa.scalar(5, pa.int32()),)))
        >>> domain_of(column, equal)
        frozenset({<pyarrow.Int32Scalar: 5>})
    """
    match predicate:
        case AllOf(parts):
            return _of_all(column, parts)
        case AnyOf(parts):
            return _of_any(column, parts)
        case Compared() if predicate.column == column:
            return _of_comparison(column, predicate.comparison) or _of_range(column, [predicate])
        case _:
            return None


def _of_all(column: SourceColumn, parts: Sequence[BoundPredicate]) -> Domain | None:
    ranges = [
        part
        for part in parts
        if isinstance(part, Compared)
        and part.column == column
        and part.comparison.operator in _RANGES
    ]
    domains = [domain_of(column, part) for part in parts if part not in ranges]
    intersection: Domain | None = _of_range(column, ranges)
    for domain in domains:
        if domain is not None:
            intersection = domain if intersection is None else intersection & domain
    return intersection


def _of_any(column: SourceColumn, parts: Sequence[BoundPredicate]) -> Domain | None:
    union: Domain = frozenset()
    for part in parts:
        domain = domain_of(column, part)
        if domain is None or len(union) + len(domain) > 2 * MOST_VALUES:
            return None
        union |= domain
    return union if len(union) <= MOST_VALUES else None


def _of_comparison(column: SourceColumn, comparison: Comparison) -> Domain | None:
    match comparison.operator:
        case Operator.IS_NULL:
            return frozenset({pa.scalar(None, column.type)})
        case Operator.EQUAL | Operator.IN if len(comparison.literals) <= MOST_VALUES:
            return frozenset(map(_member, comparison.literals))
        case _:
            return None


def _member(literal: pa.Scalar) -> pa.Scalar:
    """Give a literal so that sets find it again: NaN is equal to no other, so there is one."""
    if not pa.types.is_floating(literal.type) or not math.isnan(literal.as_py()):
        return literal
    return _NAN[literal.type]


def _of_range(column: SourceColumn, ranges: Sequence[Compared]) -> Domain | None:
    """Enumerate a short range of integers or dates."""
    data_type = column.type
    if not ranges or not (pa.types.is_integer(data_type) or pa.types.is_date(data_type)):
        return None
    is_date = pa.types.is_date(data_type)
    bits = 32 if is_date else data_type.bit_width
    is_signed = is_date or pa.types.is_signed_integer(data_type)
    low = -(1 << (bits - 1)) if is_signed else 0
    high = (1 << (bits - 1)) - 1 if is_signed else (1 << bits) - 1
    for part in ranges:
        operator = part.comparison.operator
        if operator not in _RANGES:
            return None
        literal = part.comparison.literal
        bound = int(literal.cast(pa.date32()).value) if is_date else int(literal.as_py())
        if operator in _LESS:
            high = min(high, bound - (operator is Operator.LESS))
        else:
            low = max(low, bound + (operator is Operator.GREATER))
    if high - low >= MOST_VALUES:
        return None
    values = range(low, high + 1)
    return frozenset(
        time_scalar(value, data_type) if is_date else pa.scalar(value, data_type)
        for value in values
    )


_IN_UTC = Semantics(is_utc=True)
_SQL_TYPES = {
    "int8": "TINYINT",
    "int16": "SMALLINT",
    "int32": "INT",
    "int64": "BIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
}


@dataclass(frozen=True, slots=True)
class ProjectedField:
    """A partition field whose source columns the schema still has.

    Args:
        transform: How the field's values are computed.
        column: The manifest column, or a constant that all leaves of the spec have.
        sources: The source columns, ``col0`` first.
        widened: The type to read the manifest column in, where its source was promoted since.
    """

    transform: Transform
    column: exp.Column
    sources: tuple[SourceColumn, ...]
    widened: exp.DataType | None = None

    @property
    def is_single(self) -> bool:
        """Whether comparisons of the one source column project by themselves."""
        return len(self.sources) == 1 and not self.transform.takes_many

    def read(self, projected: exp.Expression | None) -> exp.Expression | None:
        """Read the manifest column in its source's present type."""
        if projected is None or self.widened is None:
            return projected
        widened = self.widened

        def cast(node: exp.Expression) -> exp.Expression:
            return exp.Cast(this=node, to=widened) if node == self.column else node

        return projected.transform(cast)


@dataclass(frozen=True, slots=True)
class SpecProjection:
    """The projection of predicates through all fields of one spec version."""

    fields: tuple[ProjectedField, ...]
    levels: tuple[tuple[SourceColumn, LevelRanges], ...]

    def inclusive(self, predicate: BoundPredicate) -> exp.Expression:
        """Give the condition that every partition with a matching row satisfies.

        Args:
            predicate: The bound predicate.

        Returns:
            The condition; TRUE where the predicate cannot prune.

        Spec: "Partition Pruning".
        """
        match predicate:
            case Constant(value):
                return exp.true() if value else exp.false()
            case AllOf(parts):
                return and_all([*map(self.inclusive, parts), *self._evaluated(predicate)])
            case AnyOf(parts):
                return or_all([self.inclusive(part) for part in parts])
            case Compared():
                return and_all([*self._compared(predicate), *self._evaluated(predicate)])
            case ComparedDatePart():
                of_values = [*self._calendar(predicate)]
                return and_all(of_values or self._compared(not_null(predicate.column)))
            case ComputedCondition(implied=implied, rejected_nulls=rejected):
                implies: list[BoundPredicate] = [not_null(column) for column in rejected]
                implies += [] if implied is None else [implied]
                return self._computed(predicate) or and_all(map(self.inclusive, implies))

    def strict(self, predicate: BoundPredicate) -> exp.Expression:
        """Give a condition under which every row of a partition satisfies the predicate.

        Returns:
            The condition; FALSE where partition values never decide the predicate.
        """
        match predicate:
            case Constant(value):
                return exp.true() if value else exp.false()
            case AllOf(parts):
                return and_all([self.strict(part) for part in parts])
            case AnyOf(parts):
                return or_all([self.strict(part) for part in parts])
            case Compared():
                return or_all(self._strictly_compared(predicate))
            case ComparedDatePart():
                return or_all(self._calendar(predicate))
            case ComputedCondition():
                return self._computed(predicate) or exp.false()

    def _compared(self, predicate: Compared) -> Iterator[exp.Expression]:
        column, comparison = predicate.column, predicate.comparison
        for source, ranges in self.levels:
            if source == column:
                projected = ranges.inclusive(comparison)
                if projected is not None:
                    yield projected
        for field in self._of_column(column):
            if len(field.sources) > 1 and not field.transform.takes_many:
                continue
            if not self._is_level(field):
                projected = field.transform.project_inclusive(comparison, field.column, column.type)
                projected = field.read(projected)
                if projected is not None:
                    yield projected

    def _strictly_compared(self, predicate: Compared) -> Iterator[exp.Expression]:
        column, comparison = predicate.column, predicate.comparison
        for source, ranges in self.levels:
            if source == column:
                projected = ranges.strict(comparison)
                if projected is not None:
                    yield projected
        for field in self._of_column(column):
            if not self._is_level(field):
                projected = field.transform.project_strict(comparison, field.column, column.type)
                projected = field.read(projected)
                if projected is not None:
                    yield projected

    def _computed(self, predicate: ComputedCondition) -> exp.Expression | None:
        """Compute a condition on the partition's values, where all of its columns are some."""
        if predicate.can_fail or not predicate.sources:
            return None
        columns: dict[tuple[str, ...], exp.Expression] = {}
        for source in predicate.sources:
            if isinstance(source, TransformedColumn):
                columns.update(self._transformed(source))
                continue
            for field in self._of_column(source):
                # One partition has both zeros, which a computation may tell apart.
                if field.transform.is_identity and not pa.types.is_floating(source.type):
                    columns[source.path] = field.read(field.column) or field.column
        tree: exp.Expr = predicate.expression.copy()
        # No column of the table is a placeholder, whatever its name is.
        values = {exp.Placeholder(this=str(at)): field for at, field in enumerate(self.fields)}
        if len(columns) < len(predicate.sources):
            for value, field in values.items():
                names = [source.expression() for source in field.sources]
                types = [source.type for source in field.sources]
                tree = field.transform.replaced_call(tree, names, types, value)
            if not referenced_paths(tree) <= columns.keys():
                return None
        over_values = replaced_references(tree, lambda path: columns[path].copy())
        return over_values.transform(
            lambda node: values[node].column.copy() if node in values else node, copy=False
        )

    def _transformed(
        self, called: TransformedColumn
    ) -> Iterator[tuple[tuple[str, ...], exp.Expression]]:
        """Give a transform's value for all rows of a partition, where a field determines it."""
        for field in self._of_column(called.source):
            if field.is_single:
                value = field.transform.reduced_column(called.transform, field.column)
                if value is not None:
                    yield called.path, field.read(value) or value

    def _calendar(self, predicate: ComparedDatePart) -> Iterator[exp.Expression]:
        for field in self._of_column(predicate.column):
            if field.transform.type == predicate.part:
                yield condition(predicate.comparison, field.column)
            elif field.transform.is_identity:
                value = Typed(field.column, predicate.column.type)
                with suppress(Declined):
                    part_of_value = date_part(predicate.part.upper(), value, _IN_UTC).tree
                    yield condition(predicate.comparison, cast("exp.Expression", part_of_value))

    def _evaluated(self, predicate: BoundPredicate) -> Iterator[exp.Expression]:
        for field in self.fields:
            if not field.transform.prunes_by_bound_values:
                continue
            domains = [domain_of(source, predicate) for source in field.sources]
            bound = [domain for domain in domains if domain is not None]
            if len(bound) < len(domains):
                continue
            values = [sorted(domain, key=_by_value) for domain in bound]
            types = [source.type for source in field.sources]
            try:
                projected = field.transform.project_bound(values, field.column, types)
            except PartitionExpressionFailed:
                continue  # of a value that no row of a partition can have: it decides nothing
            if projected is not None:
                yield projected

    def _of_column(self, column: SourceColumn) -> Iterator[ProjectedField]:
        return (field for field in self.fields if column in field.sources)

    def _is_level(self, field: ProjectedField) -> bool:
        """Whether the field is among the levels that are compared together."""
        return field.transform.is_level and any(
            field.column in ranges.columns for _, ranges in self.levels
        )


def spec_projection(
    spec: PartitionSpec,
    columns: Mapping[int, SourceColumn],
    partition_types: Mapping[str, pa.DataType],
    metadata: Sequence[ProjectedField] = (),
) -> SpecProjection:
    """Prepare a spec version for projection.

    A field with a source column that was dropped is left out: its recorded values stay valid, but
    no predicate names the column any more (format reading 21).

    Args:
        spec: The partition spec.
        columns: The columns of the full schema by their field id.
        partition_types: Types of the manifest's columns by partition field id.
        metadata: What the spec's leaves have in metadata columns.
    """
    fields = [
        _projected_field(
            field,
            [columns[source_id] for source_id in field.source_ids],
            partition_types.get(field.field_id, field.result_type),
        )
        for field in spec.fields
        if all(source_id in columns for source_id in field.source_ids)
    ]
    by_source: dict[SourceColumn, dict[str, exp.Column]] = {}
    for field in fields:
        if field.is_single and field.transform.is_level:
            by_source.setdefault(field.sources[0], {})[field.transform.type] = field.column
    levels = [
        (source, level_ranges(source_levels, source.type))
        for source, source_levels in by_source.items()
    ]
    return SpecProjection(
        (*fields, *metadata),
        tuple((source, ranges) for source, ranges in levels if ranges is not None),
    )


def _projected_field(
    field: PartitionField, sources: Sequence[SourceColumn], stored: pa.DataType
) -> ProjectedField:
    transform = field.derivation
    widened = None
    if transform.keeps_type and not stored.equals(sources[0].type):
        name = _SQL_TYPES.get(str(sources[0].type))
        widened = None if name is None else exp.DataType.build(name)
    column = exp.column(field.column, quoted=True)
    return ProjectedField(transform, column, tuple(sources), widened)


def _by_value(scalar: pa.Scalar) -> tuple[bool, str]:
    return (not scalar.is_valid, to_text(scalar) or "")
