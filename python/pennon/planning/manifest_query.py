"""Projects a predicate through all spec versions into one query over ``__manifest``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from sqlglot import exp

from pennon.manifest.format.names import of_spec_version
from pennon.planning.binding.bound_predicate import (
    AllOf,
    AnyOf,
    BoundPredicate,
    Compared,
    ComparedDatePart,
    ComputedCondition,
    Constant,
    all_of,
    can_fail,
    conjuncts,
    is_exact,
)
from pennon.planning.binding.source_columns import source_columns
from pennon.planning.projection.inclusive_projection import SpecProjection, spec_projection
from pennon.planning.projection.possible_partitions import metadata_sources
from pennon.predicate.condition import and_all, condition, is_false, is_true, or_all
from pennon.predicate.dialect import DataFusion
from pennon.predicate.typed import lazily

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from numpy.typing import NDArray

    from pennon.manifest.snapshot import Snapshot

# Residuals: the conjuncts that a chosen partition's values do not decide.
#
# Two residuals per partition. The *exact* one has only conjuncts that the leaf filter evaluates
# just as Spark does: Spark evaluates the others itself. The *row filter* has all of them, for
# readers without Spark behind them.
#
# NULL rules: a flag that is NULL decides nothing, so the conjunct stays.

_FLAGS_PER_CODE = 62
NO_RESIDUAL = -1


@dataclass(frozen=True, slots=True)
class Residuals:
    """The distinct residual filters of a plan and which one each partition has.

    Args:
        texts: Filters in the DataFusion dialect.
        indices: int32, one per partition: a position in ``texts``, or -1 for none.
    """

    texts: tuple[str, ...]
    indices: pa.Array


def row_condition(predicate: BoundPredicate) -> exp.Expression:
    """Write a bound predicate as a filter on a leaf's rows.

    Example:
        >>> from pennon.planning.binding.bound_predicate import TRUE
        >>> row_condition(TRUE).sql()
        'TRUE'
    """
    match predicate:
        case AllOf(parts):
            return _connected(exp.And, [(row_condition(part), can_fail(part)) for part in parts])
        case AnyOf(parts):
            return _connected(exp.Or, [(row_condition(part), can_fail(part)) for part in parts])
        case Compared():
            return condition(predicate.comparison, predicate.column.expression())
        case ComparedDatePart():
            source = predicate.column.expression()
            part = exp.Extract(this=exp.var(predicate.part.upper()), expression=source)
            return condition(predicate.comparison, part)
        case ComputedCondition():
            return predicate.expression.copy()
        case Constant(value):
            return exp.true() if value else exp.false()


def exact_filter(predicate: BoundPredicate) -> str | None:
    """Write the exact conjuncts as one filter, for tables without partitions; None for none."""
    kept = [row_condition(part) for part in conjuncts(predicate) if is_exact(part)]
    return str(and_all(kept).sql(dialect=DataFusion)) if kept else None


def exact_and_whole(
    parts: Sequence[BoundPredicate], flagged: Sequence[int], leaves: pa.Table
) -> tuple[Residuals, Residuals]:
    """Give the residual filters of the chosen partitions: the exact ones and the row filters.

    Args:
        parts: The conjuncts of the predicate.
        flagged: The position of each flag's conjunct.
        leaves: The chosen partitions, ``flag_<n>`` true where all rows satisfy the conjunct.
    """
    filters = {position: row_condition(part) for position, part in enumerate(parts)}
    failing = {position for position, part in enumerate(parts) if can_fail(part)}
    whole = _residuals(filters, flagged, leaves, failing)
    exact = {position: filters[position] for position in filters if is_exact(parts[position])}
    return (
        whole if len(exact) == len(filters) else _residuals(exact, flagged, leaves, failing)
    ), whole


def _residuals(
    filters: Mapping[int, exp.Expression],
    flagged: Sequence[int],
    leaves: pa.Table,
    failing: Collection[int],
) -> Residuals:
    flags = [(n, position) for n, position in enumerate(flagged) if position in filters]
    codes = _codes(leaves, [n for n, _ in flags[:_FLAGS_PER_CODE]])
    distinct, inverse = np.unique(codes, return_inverse=True)
    texts: dict[str, int] = {}
    chosen = np.full(len(distinct), NO_RESIDUAL, dtype=np.int32)
    for index, code in enumerate(distinct.tolist()):
        decided = {
            position for bit, (_, position) in enumerate(flags[:_FLAGS_PER_CODE]) if code >> bit & 1
        }
        left = [
            (filter_, position in failing)
            for position, filter_ in filters.items()
            if position not in decided
        ]
        if left:
            text = _connected(exp.And, left).sql(dialect=DataFusion)
            chosen[index] = texts.setdefault(text, len(texts))
    return Residuals(tuple(texts), pa.array(chosen[inverse.reshape(-1)], pa.int32()))


def _connected(
    connector: type[exp.And | exp.Or], filters: Sequence[tuple[exp.Expression, bool]]
) -> exp.Expression:
    """Connect filters; one that may be an error sees no row of which the others decide.

    Args:
        connector: Between them.
        filters: Each with whether it may be one.
    """
    safe = [filter_ for filter_, fails in filters if not fails]
    tree: exp.Expression | None = None
    if safe:
        tree = and_all(safe) if connector is exp.And else or_all(safe)
    for filter_, fails in filters:
        if fails:
            late = filter_ if tree is None else lazily(connector, tree.copy(), filter_)
            tree = late if tree is None or connector is exp.Or else and_all([tree, late])
    return exp.true() if tree is None else tree


def _codes(leaves: pa.Table, flags: Sequence[int]) -> NDArray[np.int64]:
    """Pack the flags of each partition into one integer."""
    codes = np.zeros(leaves.num_rows, dtype=np.int64)
    for bit, flag in enumerate(flags):
        column = leaves.column(f"flag_{flag}").combine_chunks().fill_null(False)
        codes |= column.to_numpy(zero_copy_only=False).astype(np.int64) << bit
    return codes


@dataclass(frozen=True, slots=True)
class ManifestQuery:
    """What to ask of ``__manifest``.

    Args:
        condition: Which partitions to read; None for all.
        flags: For some conjuncts, where all rows of a partition satisfy it.
        flagged: The position of each flag's conjunct.
    """

    condition: exp.Expression | None
    flags: tuple[exp.Expression, ...]
    flagged: tuple[int, ...]


def manifest_query(snapshot: Snapshot, conjuncts: Sequence[BoundPredicate]) -> ManifestQuery:
    """Project the conjuncts of a predicate through every spec version.

    Args:
        snapshot: The namespace.
        conjuncts: The bound predicate taken apart; none means TRUE.

    Spec: "Compatibility with Partition Pruning", Appendix D.
    """
    projections = spec_projections(snapshot)
    whole = all_of(conjuncts)
    chosen = _per_version(projections, lambda projection: projection.inclusive(whole))
    flags = {
        position: flag
        for position, conjunct in enumerate(conjuncts)
        if not is_false(flag := _flag(projections, conjunct))
    }
    condition = None if is_true(chosen) else chosen
    return ManifestQuery(condition, tuple(flags.values()), tuple(flags))


def _flag(projections: Mapping[int, SpecProjection], conjunct: BoundPredicate) -> exp.Expression:
    return _per_version(projections, lambda projection: projection.strict(conjunct))


def spec_projections(snapshot: Snapshot) -> Mapping[int, SpecProjection]:
    """Prepare every spec version of a namespace for projection, the oldest first."""
    sources = {
        source_id
        for spec in snapshot.specs.values()
        for field in spec.fields
        for source_id in field.source_ids
    }
    columns = source_columns(snapshot.schema, sources)
    return {
        version: spec_projection(
            spec,
            columns,
            {field.field_id: snapshot.partition_type(field.field_id) for field in spec.fields},
            metadata_sources(snapshot, version),
        )
        for version, spec in sorted(snapshot.specs.items())
    }


def _per_version(
    projections: Mapping[int, SpecProjection],
    project: Callable[[SpecProjection], exp.Expression],
) -> exp.Expression:
    """Give ``(object_id LIKE 'v1$%' AND …) OR …``; the plain constant where all versions agree."""
    conditions = {version: project(projection) for version, projection in projections.items()}
    if all(is_true(condition) for condition in conditions.values()):
        return exp.true()
    return or_all(
        [
            and_all([of_spec_version(version), condition])
            for version, condition in conditions.items()
            if not is_false(condition)
        ]
    )
