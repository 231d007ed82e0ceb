"""``pennon repair``: restore the columns and keys of ``__manifest`` that a foreign writer dropped.

Keys of the metadata come back from earlier versions of the manifest (`lost_metadata`). Columns
first from the manifest's own earlier versions, row by row. What no earlier version contains (they
were cleaned up, or the row is newer) is read back from the leaves: a leaf's rows must give one
partition tuple. Which version of a leaf was meant follows from the statistics of its row where
these fit one version; else the repair stops and lists the versions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import lance
import pyarrow as pa
import pyarrow.compute as pc

from pennon.errors import ManifestNotRepairable, PennonError
from pennon.leaf import open_leaf
from pennon.maintenance.adoption.leaf_tuple import MixedTuples, NoRows, OneTuple, tuple_of_rows
from pennon.maintenance.checks.manifest_rows import RawRow, RawRows
from pennon.maintenance.checks.missing_files import missing_files
from pennon.maintenance.leaf_versions import VersionUnknown, forgotten_version
from pennon.maintenance.leaves.partition_values import RowValues
from pennon.maintenance.leaves.progress import Progress, no_progress
from pennon.manifest import Snapshot
from pennon.manifest.dataset.storage import StorageOptions, open_manifest, version_numbers
from pennon.manifest.format.columns import PARTITION_PREFIX, READ_VERSION, partition_columns
from pennon.manifest.format.names import SEPARATOR
from pennon.manifest.format.properties import SALT, STRONG, TRANSACTION, read_schema, read_specs
from pennon.manifest.format.rows import NAMESPACE, TABLE, TABLE_VERSION
from pennon.manifest.repair.column_repair import add_columns, add_rows, set_guard
from pennon.manifest.repair.lost_metadata import restore_keys
from pennon.spec import NamespaceSchema, PartitionSpec

__all__ = ["Repaired", "repair"]

_Values = dict[str, pa.Scalar]


@dataclass(frozen=True, slots=True)
class Repaired:
    """What a repair did.

    Args:
        location: The namespace.
        version: The version of its manifest afterwards.
        columns: The columns that were restored; none where nothing was lost.
        from_version: The earlier version of the manifest that they came from, if any.
        leaves_read: Leaves whose rows were read, because no earlier version had their values.
        notes: What a person should know.
        keys: The keys of the metadata that were restored.
        lacking: Partitions whose files are gone, each with the ways out; a repair makes none up.
    """

    location: str
    version: int
    columns: Sequence[str] = ()
    from_version: int | None = None
    leaves_read: int = 0
    notes: Sequence[str] = ()
    keys: Sequence[str] = ()
    lacking: Sequence[str] = ()


def repair(
    location: str,
    storage_options: StorageOptions | None = None,
    *,
    progress: Progress = no_progress,
) -> Repaired:
    """Restore the columns and metadata keys that a foreign writer dropped from ``__manifest``.

    Partitions whose files are gone are listed.

    Args:
        location: Path or URL of the namespace.
        storage_options: Given to Lance; never printed.
        progress: Told after every leaf that is read.

    Returns:
        What was restored, and from what. The writer guard is set where something was lost.

    Raises:
        ManifestNotRepairable: A leaf's rows give no tuple or several, or it cannot be told which
            version of a leaf was meant; the error names the leaf. No row was changed.
        PennonError: The namespace has another damage.

    Spec: "Manifest Table Schema", "Multi-Partition Transaction (Strong)".
    """
    options = storage_options or {}
    restored = restore_keys(location, _spec_versions(location, options), options)
    keys = () if restored is None else restored.keys
    repairing = _Repair.of(location, options)
    if not repairing.lost:
        snapshot = Snapshot.open(location, storage_options=options)
        lacking = tuple(missing_files(snapshot, progress))  # missing files are reported beside it
        version = snapshot.version
        if restored is None:
            note = "no column and no key is missing"
            return Repaired(location, version, notes=(note,), lacking=lacking)
        return Repaired(location, version, (), restored.from_version, keys=keys, lacking=lacking)
    earlier = repairing.earlier()
    repairing.take(earlier)
    leaves = repairing.read_leaves(progress)
    columns = repairing.table()
    manifest = set_guard(location, int(repairing.manifest.version), options)
    version = add_columns(manifest, location, columns)
    records = repairing.lost_records(earlier)
    if records is not None:
        version = add_rows(location, records, options)
    snapshot = Snapshot.open(location, version, storage_options=options)
    return Repaired(
        location,
        version,
        tuple(repairing.lost),
        None if earlier is None else int(earlier.version),
        leaves,
        tuple(repairing.notes),
        keys,
        tuple(missing_files(snapshot, progress)),
    )


def _spec_versions(location: str, options: StorageOptions) -> set[int]:
    """Give the spec versions that leaves and namespaces are of."""
    raw = RawRows.read(location, open_manifest(location, storage_options=options))
    return {
        row.parsed.spec_version
        for row in raw.rows
        if row.parsed is not None and row.object_type in (NAMESPACE, TABLE)
    }


@dataclass(slots=True)
class _Repair:
    location: str
    options: StorageOptions
    manifest: lance.LanceDataset
    schema: NamespaceSchema
    specs: Mapping[int, PartitionSpec]
    raw: RawRows
    lost: dict[str, pa.DataType]
    recovered: dict[str, _Values] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, location: str, options: StorageOptions) -> _Repair:
        manifest = open_manifest(location, storage_options=options)
        metadata = dict(manifest.metadata)
        specs = read_specs(metadata, location)
        expected = partition_columns(specs.values())
        if metadata.get(TRANSACTION) == STRONG:
            expected = {READ_VERSION.name: READ_VERSION.type, **expected}
        lost = {name: kind for name, kind in expected.items() if name not in manifest.schema.names}
        schema = read_schema(metadata, location)
        return cls(
            location, options, manifest, schema, specs, RawRows.read(location, manifest), lost
        )

    def earlier(self) -> lance.LanceDataset | None:
        """Open the newest earlier version of this namespace that has the lost columns."""
        salt = self.manifest.metadata.get(SALT)
        for version in reversed(version_numbers(self.manifest)):
            if version >= self.manifest.version:
                continue
            try:
                dataset = open_manifest(self.location, version, None, self.options)
            except PennonError:
                continue  # its files were cleaned up
            has_all = set(self.lost) <= set(dataset.schema.names)
            # The first version of a namespace has its columns already, but no metadata yet.
            if has_all and dataset.metadata.get(SALT) in (salt, None):
                return dataset
        return None

    def take(self, earlier: lance.LanceDataset | None) -> None:
        """Take the values of the rows that an earlier version has."""
        if earlier is None:
            self.notes.append("no earlier version of __manifest has the columns")
            return
        rows = earlier.to_table(columns=["object_id", "object_type", *self.lost])
        types = {row.object_id: row.object_type for row in self.raw.rows}
        columns = {name: rows[name] for name in self.lost}
        gone = 0
        ids, kinds = rows["object_id"].to_pylist(), rows["object_type"].to_pylist()
        for at, (object_id, object_type) in enumerate(zip(ids, kinds, strict=True)):
            if types.get(object_id) == object_type:
                self.recovered[object_id] = {name: column[at] for name, column in columns.items()}
            elif object_type in (NAMESPACE, TABLE):
                gone += 1
        if gone:
            self.notes.append(
                f"{gone} namespaces and tables of version {earlier.version} are not in the newest"
                " version any more; they were left out"
            )

    def read_leaves(self, progress: Progress) -> int:
        """Read from leaves what no earlier version has; give the number of leaves read."""
        tables = [
            manifest_row
            for manifest_row in self.raw.of_type(TABLE).values()
            if manifest_row.object_id not in self.recovered
            and manifest_row.parsed is not None
            and manifest_row.parsed.spec_version in self.specs
        ]
        for at, table in enumerate(tables, 1):
            self.recovered[table.object_id] = self._read(table)
            progress("leaves read", at, len(tables))
        self._inherit()
        return len(tables)

    def _read(self, row: RawRow) -> _Values:
        version: int | None = None
        values: _Values = {}
        if READ_VERSION.name in self.lost:
            lost = forgotten_version(self.location, row, self.options)
            if isinstance(lost, VersionUnknown):
                shown = ", ".join(map(str, lost.candidates[:5]))
                raise ManifestNotRepairable(
                    location=self.location,
                    why=f"which version of leaf {row.location} was meant is not known: {lost.why}"
                    f" (candidates: {shown})",
                    advice="Restore an earlier version of __manifest, or drop and adopt the leaf",
                )
            version = lost.version
            values[READ_VERSION.name] = pa.scalar(version, READ_VERSION.type)
            self.notes.append(f"leaf {row.location}: version {version} is taken, {lost.why}")
        parsed = row.parsed
        spec = self.specs[parsed.spec_version] if parsed is not None else None
        if spec is None or not any(
            partition_field.column in self.lost for partition_field in spec.fields
        ):
            return values
        types = {
            partition_field.field_id: self._type(partition_field.column)
            for partition_field in spec.fields
        }
        rows = RowValues(spec, self.schema, types)
        self._check_computable(row, spec, rows)
        dataset = open_leaf(self.location, row.location or "", version, self.options)
        match tuple_of_rows(rows, rows.scan(dataset)):
            case MixedTuples(first=first, other=other):
                why = f"the rows of leaf {row.location} give several tuples: {first}, {other}"
            case NoRows():
                why = f"leaf {row.location} has no rows to compute its partition values from"
            case OneTuple(values=row_values):
                return {**values, **_by_column(row_values)}
        raise ManifestNotRepairable(
            location=self.location,
            why=why,
            advice="Restore the leaf or an earlier version of __manifest, or delete the leaf's row",
        )

    def _type(self, column: str) -> pa.DataType:
        lost_type = self.lost.get(column)
        return self.manifest.schema.field(column).type if lost_type is None else lost_type

    def _check_computable(self, row: RawRow, spec: PartitionSpec, rows: RowValues) -> None:
        unknown = [
            partition_field.field_id
            for partition_field in spec.fields
            if partition_field not in rows.fields
        ]
        if unknown:
            raise ManifestNotRepairable(
                location=self.location,
                why=f"the source column of {', '.join(unknown)} was dropped from the schema, so"
                f" that it cannot be computed from the rows of leaf {row.location}",
                advice="Restore an earlier version of __manifest",
            )

    def _inherit(self) -> None:
        """Give namespaces whose values no earlier version has those of a leaf below them."""
        missing = {
            manifest_row.object_id: manifest_row
            for manifest_row in self.raw.of_type(NAMESPACE).values()
            if manifest_row.object_id not in self.recovered and manifest_row.parsed is not None
        }
        for object_id in [
            manifest_row.object_id for manifest_row in self.raw.of_type(TABLE).values()
        ]:
            parts = object_id.split(SEPARATOR)
            for depth in range(1, len(parts)):
                row = missing.pop(SEPARATOR.join(parts[:depth]), None)
                if row is None or row.parsed is None or row.parsed.spec_version not in self.specs:
                    continue
                own = self.specs[row.parsed.spec_version].fields[: depth - 1]
                recovered = self.recovered.get(object_id, {})
                self.recovered[row.object_id] = {
                    partition_field.column: recovered[partition_field.column]
                    for partition_field in own
                    if partition_field.column in recovered
                }
        unknown = [
            manifest_row.object_id
            for manifest_row in missing.values()
            if manifest_row.parsed and manifest_row.parsed.namespaces
        ]
        if unknown:
            self.notes.append(
                f"{len(unknown)} namespaces without a leaf below have no values, as {unknown[0]}"
            )

    def table(self) -> pa.Table:
        """Make the lost columns of all rows."""
        ids = [row.object_id for row in self.raw.rows]
        columns: dict[str, pa.Array] = {"object_id": pa.array(ids, pa.utf8())}
        for name, kind in self.lost.items():
            null = pa.scalar(None, kind)
            values = [self.recovered.get(id_, {}).get(name, null) for id_ in ids]
            columns[name] = pa.array([_as(value, kind) for value in values], kind)
        return pa.table(columns)

    def lost_records(self, earlier: lance.LanceDataset | None) -> pa.Table | None:
        """Give the ``table_version`` rows that went with the columns, of tables still there."""
        if earlier is None:
            return None
        rows = earlier.to_table(filter=f"object_type = '{TABLE_VERSION}'")
        present = {row.object_id for row in self.raw.rows}
        tables = set(self.raw.of_type(TABLE))
        mask = [
            object_id not in present and object_id.rpartition(SEPARATOR)[0] in tables
            for object_id in rows["object_id"].to_pylist()
        ]
        kept = rows.filter(pa.array(mask, pa.bool_()))
        names = [name for name in self.manifest.schema.names if name not in kept.column_names]
        for name in names:
            data_type = self.manifest.schema.field(name).type
            kept = kept.append_column(name, pa.nulls(kept.num_rows, data_type))
        return kept if kept.num_rows else None


def _by_column(values: Mapping[str, pa.Scalar]) -> _Values:
    return {PARTITION_PREFIX + field_id: value for field_id, value in values.items()}


def _as(value: pa.Scalar, data_type: pa.DataType) -> pa.Scalar:
    return value if value.type == data_type else pc.cast(value, data_type)
