"""The partition specs that the names of a draft's leaves imply, as an in-memory manifest."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import lance
import pyarrow as pa

from pennon.draft.evidence import LeafEvidence
from pennon.draft.readings import Reading
from pennon.errors import PartitionFieldExists
from pennon.manifest.format.columns import manifest_schema
from pennon.manifest.format.rows import ManifestRow, table_of_rows
from pennon.spec import NamespaceSchema, PartitionField, PartitionSpec, spec_of
from pennon.spec.partition_spec import leaf_prefix
from pennon.transforms.registry import TransformCall

__all__ = ["DraftPartitioning", "manifest_of"]

_numbers: Final = itertools.count()


@dataclass(frozen=True, slots=True)
class DraftPartitioning:
    """The partition fields of the columns that are understood.

    Args:
        fields: All of them, outermost first.
        understood: By partition column: its chosen reading, and the fields that it yields.
    """

    fields: tuple[PartitionField, ...]
    understood: Mapping[int, tuple[int, tuple[PartitionField, ...]]]

    @classmethod
    def of(
        cls,
        schema: NamespaceSchema,
        readings: Sequence[Sequence[Reading]],
        chosen: Sequence[int | None],
    ) -> DraftPartitioning:
        """Build the fields of the chosen readings.

        Args:
            schema: The namespace schema.
            readings: Per partition column its readings.
            chosen: Per partition column the one that its leaves bear out; None for none.
        """
        calls: list[TransformCall] = []
        spec = PartitionSpec(1, ())
        chosen_by_column = {
            at: (own, readings[at][own]) for at, own in enumerate(chosen) if own is not None
        }
        for _, reading in chosen_by_column.values():
            try:
                spec = spec_of(schema, [*calls, reading.call])
            except PartitionFieldExists:
                continue  # its levels are all there already
            calls.append(reading.call)
        understood = {
            at: (
                own,
                tuple(
                    next(
                        partition_field
                        for partition_field in spec.fields
                        if partition_field.derives_as(field)
                    )
                    for field in reading.spec.fields
                ),
            )
            for at, (own, reading) in chosen_by_column.items()
        }
        return cls(spec.fields, understood)

    def values(self, evidence: LeafEvidence | None) -> dict[str, pa.Scalar]:
        """Give the partition values that a leaf's name states, by field id."""
        values: dict[str, pa.Scalar] = {}
        for at, (own, fields) in self.understood.items():
            fit = None if evidence is None else evidence.fits[at][own]
            if fit is not None:
                ids = (field.field_id for field in fields)
                values.update(zip(ids, fit.values, strict=True))
        return values

    def specs(self, leaves: Sequence[ManifestRow]) -> list[PartitionSpec]:
        """Give one spec per set of fields that leaf names state; the last one has all fields."""
        sets = {frozenset(field.field_id for field in self.fields)}
        sets.update(frozenset(leaf.values) for leaf in leaves)
        ordered = sorted(sets, key=lambda set_: (len(set_), sorted(set_)))
        return [
            PartitionSpec(version, tuple(f for f in self.fields if f.field_id in field_ids))
            for version, field_ids in enumerate(ordered, 1)
        ]


def manifest_of(
    leaves: Sequence[ManifestRow], specs: Sequence[PartitionSpec]
) -> lance.LanceDataset:
    """Make a ``__manifest`` in memory.

    Args:
        leaves: The table rows, under the draft's ids.
        specs: Every set of fields that one of them has values of.
    """
    versions = {frozenset(f.field_id for f in spec.fields): spec.spec_version for spec in specs}
    rows = [
        replace(leaf, object_id=leaf_prefix(versions[frozenset(leaf.values)]) + leaf.object_id)
        for leaf in leaves
    ]
    schema = manifest_schema({spec.spec_version: spec for spec in specs}, strong=True)
    return lance.write_dataset(table_of_rows(rows, schema), f"memory://draft-{next(_numbers)}")
