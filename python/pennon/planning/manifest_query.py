"""Projects a predicate through all spec versions into one query over ``__manifest``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import exp

from pennon.manifest.format.names import of_spec_version
from pennon.planning.binding.bound_predicate import BoundPredicate, all_of
from pennon.planning.binding.source_columns import source_columns
from pennon.planning.projection.inclusive_projection import SpecProjection, spec_projection
from pennon.planning.projection.metadata_sources import metadata_sources
from pennon.predicate.connectives import and_all, is_false, is_true, or_all

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pennon.manifest.snapshot import Snapshot


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
