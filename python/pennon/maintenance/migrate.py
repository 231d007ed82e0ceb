"""``pennon migrate``: a namespace of the older draft becomes one of the current format.

The current format's rows are written beside the draft's, in the same manifest and over the same
leaves: no data file is rewritten, and the draft stays readable until it is removed. Every
partition value is computed from the rows; the names only decide between the draft's readings.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Final

import lance
import pyarrow as pa
import pyarrow.compute as pc

from pennon.draft.evidence import Reading, is_null_text, readings
from pennon.errors import LeafTypeMismatch, MigrationRefused, PartitionFieldExists
from pennon.leaf import open_leaf
from pennon.leaf.schema.file_layout import columns_by_name, state_ids
from pennon.leaf.write.leaf_commit import LeafCommit
from pennon.maintenance.calls.procedure_declaration import HIDDEN, Procedure, columns_of
from pennon.maintenance.leaves.chosen_leaves import RowValues, differs, is_same_value
from pennon.maintenance.leaves.leaf_files import Progress, no_progress
from pennon.manifest import Snapshot, leaf_name
from pennon.manifest.dataset.storage import StorageOptions
from pennon.manifest.draft import (
    DraftLeaf,
    DraftNamespace,
    draft_salt,
    read_draft,
    remove_draft,
    write_rows,
)
from pennon.manifest.format.column_statistics import COUNTED_VERSION, with_statistics
from pennon.manifest.format.rows import NAMESPACE, TABLE, ManifestRow, version_row
from pennon.spec import PartitionSpec, spec_of
from pennon.transaction.staging.staged import partition_text
from pennon.transforms.registry import TransformCall

__all__ = ["MIGRATE", "Migrated", "migrate"]

_Tuple = Sequence[pa.Scalar]


@dataclass(frozen=True, slots=True)
class Migrated:
    """What a migration did.

    Args:
        location: The namespace.
        version: The version of its manifest afterwards.
        leaves: Leaves of the current format.
        rows: Their rows.
        notes: How each partition column of the draft was read, and what a person should know.
    """

    location: Annotated[str, HIDDEN]
    version: int
    leaves: int
    rows: int
    notes: Sequence[str]


def migrate(
    location: str,
    storage_options: StorageOptions | None = None,
    *,
    remove_old: bool = False,
    weak: bool = False,
    progress: Progress = no_progress,
) -> Migrated:
    """Make a namespace of the older draft one of the current format.

    Args:
        location: Path or URL of the directory namespace.
        storage_options: Given to Lance; never printed.
        remove_old: Whether the draft's rows and properties are removed afterwards; also of a
            namespace that was migrated before.
        weak: Whether leaves are read at their newest version, not at a recorded one.
        progress: Told after every leaf that was read.

    Raises:
        MigrationRefused: The rows of a leaf contradict its name, or a function is not known.

    Spec: the draft; "Metadata Definition", "Physical Layout and Naming".
    """
    options = storage_options or {}
    draft = read_draft(location, options)
    if any(key.startswith("partition_spec_v") for key in draft.manifest.metadata):
        return _migrated_before(draft, options, remove_old=remove_old)
    work = _Migration(draft, options)
    work.read(progress)
    spec, notes = work.chosen()
    salt = draft_salt(draft.manifest)
    rows, num_rows = work.rows(spec, salt, strong=not weak)
    version = write_rows(draft, spec, rows, salt, strong=not weak, storage_options=options)
    if draft.manifest.schema.field("object_id").nullable:
        notes.append("object_id may be NULL, so that Lance does not detect racing writers")
    if remove_old:
        version = remove_draft(draft, options)
    else:
        notes.append("the older draft is still readable, and upstream's clients write it no more")
    Snapshot.open(location, version, storage_options=options)
    return Migrated(location, version, len(draft.leaves), num_rows, tuple(notes))


MIGRATE: Final = Procedure(
    migrate,
    "Copy a table of the older draft into the format of today.",
    columns_of(Migrated),
    table="path",
    command="migrate",
    said="{location} is at version {version}: {leaves} leaves, {rows} rows",
)


def _migrated_before(
    draft: DraftNamespace, options: StorageOptions, *, remove_old: bool
) -> Migrated:
    if not remove_old:
        raise MigrationRefused(
            location=draft.location,
            why="it is a namespace of the current format already",
            advice="Add --remove-old to remove what is left of the draft",
        )
    snapshot = Snapshot.open(draft.location, storage_options=options)
    leaves = snapshot.leaves().table
    version = remove_draft(draft, options)
    rows = pc.sum(leaves["num_rows"]).as_py() or 0
    return Migrated(draft.location, version, leaves.num_rows, rows, ("the draft was removed",))


@dataclass(slots=True)
class _Migration:
    draft: DraftNamespace
    options: StorageOptions
    readings: list[list[Reading]] = field(init=False)
    """Per partition column, the readings that no leaf contradicts so far."""
    datasets: dict[str, lance.LanceDataset] = field(default_factory=dict)
    tuples: dict[tuple[str, int], _Tuple | None] = field(default_factory=dict)
    """By leaf and reading, what its rows say; None where it has no rows."""
    contradiction: dict[int, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.readings = [readings(column, self.draft.schema) for column in self.draft.columns]
        for column, of_column in zip(self.draft.columns, self.readings, strict=True):
            if not of_column:
                why = f"function {column.function} of {column.sources} is not known"
                raise self._refused(why, "Adopt its leaves with values of your own instead")

    def _refused(self, why: str, advice: str) -> MigrationRefused:
        return MigrationRefused(location=self.draft.location, why=why, advice=advice)

    def read(self, progress: Progress) -> None:
        """Read the source columns of every leaf, and drop the readings that do not fit."""
        leaves = self.draft.leaves
        for done, leaf in enumerate(leaves, 1):
            dataset = open_leaf(self.draft.location, leaf.location, None, self.options)
            dataset = self._stated(leaf, dataset)
            self.datasets[leaf.object_id] = dataset
            for at, of_column in enumerate(self.readings):
                kept = [reading for reading in of_column if self._fits(leaf, at, reading, dataset)]
                if not kept:
                    raise self._refused(
                        self.contradiction[at], "Correct the rows, or the leaf's name"
                    )
                self.readings[at] = kept
            progress("leaves read", done, len(leaves))

    def _text(self, leaf: DraftLeaf, at: int) -> str:
        if leaf.texts is None:
            why = f"the id {leaf.object_id} does not contain a value of each partition column"
            raise self._refused(why, "Correct the table's name, or take it out of the manifest")
        return leaf.texts[at]

    def _stated(self, leaf: DraftLeaf, dataset: lance.LanceDataset) -> lance.LanceDataset:
        """State the namespace's ids on a leaf: one commit of its metadata."""
        try:
            columns = columns_by_name(dataset, self.draft.schema.arrow, leaf.location)
        except LeafTypeMismatch as error:
            raise self._refused(error.message.rstrip("."), "Rewrite that leaf first") from error
        return state_ids(dataset, columns)

    def _fits(
        self, leaf: DraftLeaf, at: int, reading: Reading, dataset: lance.LanceDataset
    ) -> bool:
        types = {
            partition_field.field_id: partition_field.result_type
            for partition_field in reading.spec.fields
        }
        rows = RowValues(reading.spec, self.draft.schema, types)
        first: list[pa.Scalar] | None = None
        for batch in rows.scan(dataset):
            if not batch.num_rows:
                continue
            columns = list(rows.of(batch).values())
            if first is None:
                first = [column[0] for column in columns]
            for column, value in zip(columns, first, strict=True):
                if pc.any(differs(column, pa.repeat(value, len(column)))).as_py():
                    self.contradiction[at] = (
                        f"the rows of leaf {leaf.location} have several values of"
                        f" {reading.call.transforms[0].type} ({reading.meaning})"
                    )
                    return False
        self.tuples[leaf.object_id, id(reading)] = first
        stated = reading.values(self._text(leaf, at))
        if first is None:
            self.contradiction[at] = f"the name of the empty leaf {leaf.location} contains no value"
            return bool(stated) or is_null_text(self._text(leaf, at))
        if all(not name.is_valid for name in first) and is_null_text(self._text(leaf, at)):
            return True
        if any(_same(first, line) for line in stated):
            return True
        names = [partition_field.field_id for partition_field in reading.spec.fields]
        row_tuple = partition_text(dict(zip(names, first, strict=True)))
        self.contradiction[at] = f"the rows of leaf {leaf.location} have {row_tuple}"
        return False

    def chosen(self) -> tuple[PartitionSpec, list[str]]:
        """Build the spec of the first reading of each column that no leaf contradicts."""
        calls: list[TransformCall] = []
        spec = PartitionSpec(1, ())
        notes = []
        for column, of_column in zip(self.draft.columns, self.readings, strict=True):
            names = ", ".join(".".join(path) for path in column.sources)
            notes.append(f"{column.function}({names}) is taken for {of_column[0].meaning}")
            try:
                spec = spec_of(self.draft.schema, [*calls, of_column[0].call])
            except PartitionFieldExists:
                continue  # its levels are all there already
            calls.append(of_column[0].call)
        return spec, notes

    def _values(self, leaf: DraftLeaf, spec: PartitionSpec) -> dict[str, pa.Scalar]:
        by_field: dict[str, pa.Scalar] = {}
        for at, of_column in enumerate(self.readings):
            values = self.tuples[leaf.object_id, id(of_column[0])]
            if values is None:
                values = next(iter(of_column[0].values(self._text(leaf, at))), None)
            for index, own in enumerate(of_column[0].spec.fields):
                target = next(
                    partition_field
                    for partition_field in spec.fields
                    if partition_field.derives_as(own)
                )
                value = pa.scalar(None, own.result_type) if values is None else values[index]
                by_field[target.field_id] = value
        return by_field

    def rows(
        self, spec: PartitionSpec, salt: str, *, strong: bool
    ) -> tuple[list[ManifestRow], int]:
        """Make the manifest's rows; give the number of the leaves' rows."""
        made: dict[str, ManifestRow] = {"v1": ManifestRow("v1", NAMESPACE)}
        owners: dict[str, str] = {}
        num_rows = 0
        for leaf in self.draft.leaves:
            values = self._values(leaf, spec)
            name = leaf_name(bytes.fromhex(salt), 1, [values[e.field_id] for e in spec.fields])
            if name.object_id in owners:
                why = f"leaves {owners[name.object_id]} and {leaf.location} have the same values"
                raise self._refused(why, "Join their rows first")
            owners[name.object_id] = leaf.location
            dataset = self.datasets[leaf.object_id]
            counted = LeafCommit.of(dataset)
            num_rows += counted.num_rows
            for depth, namespace in enumerate(name.namespaces, 1):
                own = {f.field_id: values[f.field_id] for f in spec.fields[:depth]}
                made[namespace] = ManifestRow(namespace, NAMESPACE, values=own)
            version = int(dataset.version) if strong else None
            text = with_statistics(
                None,
                {
                    "num_rows": counted.num_rows,
                    "num_bytes": counted.num_bytes,
                    "num_fragments": counted.num_fragments,
                    COUNTED_VERSION: version,
                }
                if strong
                else {},
            )
            made[name.object_id] = ManifestRow(
                name.object_id, TABLE, leaf.location, text, version, values
            )
            if strong:
                record = version_row(name.object_id, 1, version)
                made[record.object_id] = record
        return list(made.values()), num_rows


def _same(one: _Tuple, other: _Tuple) -> bool:
    return all(is_same_value(a, b) for a, b in zip(one, other, strict=True))
