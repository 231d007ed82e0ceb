"""A bound predicate → conditions on the partition columns of one spec version.

The inclusive condition may keep a partition too many, never lose one with a matching row. The
strict one is true only where every row of the partition satisfies the predicate, so that the
leaf need not be asked. What is not understood is TRUE inclusively and never known strictly.

NULL rules: conditions are three-valued like everything in the manifest query; a condition that is
NULL for a partition drops it (inclusive), or leaves the predicate to the leaf (strict).
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

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
from pennon.planning.projection.domains import domain_of
from pennon.planning.projection.level_ranges import LevelRanges, level_ranges
from pennon.predicate.column_references import referenced_paths, replaced_references
from pennon.predicate.condition import condition
from pennon.predicate.connectives import and_all, or_all
from pennon.predicate.expressions import Declined, Semantics, Typed
from pennon.predicate.expressions.time_functions import part
from pennon.predicate.values.conversion import to_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pennon.spec.partition_spec import PartitionField, PartitionSpec
    from pennon.transforms.transform import Transform

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
                    part_of_value = part(predicate.part.upper(), value, _IN_UTC).tree
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
