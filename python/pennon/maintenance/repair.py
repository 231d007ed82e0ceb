"""``pennon repair``: mends what foreign writers, clean-ups and lost files did to a namespace.

Keys of the metadata come back from earlier versions of the manifest (`lost_metadata`). Columns
first from the manifest's own earlier versions, row by row. What no earlier version contains (they
were cleaned up, or the row is newer) is read back from the leaves: a leaf's rows must give one
partition tuple. Which version of a leaf was meant follows from the statistics of its row where
these fit one version; else the repair stops and lists the versions. Rows that contradict each other
or their leaves' files are mended last (`mended_rows`), and one commit writes all rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Final

import lance
import pyarrow as pa
import pyarrow.compute as pc

from pennon.errors import ManifestNotRepairable, PennonError
from pennon.leaf import open_leaf
from pennon.maintenance.calls.procedure_declaration import (
    HIDDEN,
    Arguments,
    Column,
    Procedure,
    columns_of,
)
from pennon.maintenance.checks.findings import RawRow, RawRows
from pennon.maintenance.leaves.chosen_leaves import RowValues
from pennon.maintenance.leaves.leaf_files import Progress, no_progress
from pennon.maintenance.mended_rows import mended_rows
from pennon.maintenance.plain_upkeep import VersionUnknown, forgotten_version
from pennon.maintenance.recovered_tuple import MixedTuples, NoRows, OneTuple, tuple_of_rows
from pennon.manifest import Snapshot
from pennon.manifest.commits.root_change import replace_rows, write_keys
from pennon.manifest.dataset.storage import StorageOptions, open_manifest, version_numbers
from pennon.manifest.format.column_statistics import COUNTED_VERSION
from pennon.manifest.format.names import SEPARATOR
from pennon.manifest.format.properties import (
    SALT,
    STRONG,
    TRANSACTION,
    WRITER_FLAGS,
    guarded_flags,
    has_guard,
    read_schema,
    read_specs,
)
from pennon.manifest.format.rows import (
    NAMESPACE,
    PARTITION_PREFIX,
    READ_VERSION,
    TABLE,
    TABLE_VERSION,
    partition_columns,
)
from pennon.manifest.repair import lost_keys
from pennon.spec import NamespaceSchema, PartitionSpec
from pennon.spec.arrow_json import object_or_empty

__all__ = ["REPAIR", "Repaired", "repair"]

_Values = dict[str, pa.Scalar]


@dataclass(frozen=True, slots=True)
class Repaired:
    """What a repair did, or would do.

    Args:
        location: The namespace.
        version: The version of its manifest afterwards.
        version_before: The version that was mended: a rollback to it undoes the repair.
        columns: The columns that were restored; none where nothing was lost.
        keys: The keys of the metadata that were restored.
        from_version: The earlier version of the manifest that they came from, if any.
        leaves_read: Leaves whose rows were read, because no earlier version had their values.
        notes: What a person should know.
        rows: What was done with rows of the manifest and partitions, and what was lost.
    """

    location: Annotated[str, HIDDEN]
    version: int
    version_before: Annotated[int, HIDDEN]
    columns: Annotated[Sequence[str], Column("restored_columns")] = ()
    keys: Annotated[Sequence[str], Column("restored_keys")] = ()
    from_version: int | None = None
    leaves_read: int = 0
    notes: Sequence[str] = ()
    rows: Annotated[Sequence[str], Column("mended_rows", separator="\n")] = ()

    @property
    def is_any(self) -> bool:
        """Whether there was something to mend."""
        return bool(self.columns or self.keys or self.rows)


def repair(
    location: str,
    storage_options: StorageOptions | None = None,
    *,
    dry_run: bool = False,
    keep_whole_files: bool = False,
    progress: Progress = no_progress,
) -> Repaired:
    """Mend a namespace: lost columns and metadata, rows that stand twice, leaves without files.

    All rows and columns are written in one commit, lost metadata in one before it.

    Args:
        location: Path or URL of the namespace.
        storage_options: Given to Lance; never printed.
        dry_run: Whether to tell only what would be done.
        keep_whole_files: Whether partitions with files that are gone, or torn, keep the rows of
            their other files; else they are set aside, and their folders stay.
        progress: Told after every leaf that is read.

    Returns:
        What was mended, and from what. The writer guard is set where something was lost.

    Raises:
        ManifestNotRepairable: A leaf's rows give no tuple or several, or it cannot be told which
            version of a leaf was meant; the error names the leaf. No row was changed.
        PennonError: The namespace has another damage.

    Spec: "Manifest Table Schema", "Multi-Partition Transaction (Strong)".
    """
    options = storage_options or {}
    manifest = open_manifest(location, storage_options=options)
    version = int(manifest.version)
    raw = RawRows.read(location, manifest)
    lost = lost_keys(location, manifest, _spec_versions(raw), options)
    metadata = {**manifest.metadata, **lost.values}
    columns = _Columns.of(location, options, manifest, metadata, raw)
    if not (lost.values or columns.lost):
        Snapshot.open(location, version, storage_options=options)  # which tells other damages
    earlier = columns.restore(progress)
    mended = mended_rows(
        location,
        version,
        columns.table(earlier),
        columns.specs,
        options,
        keep_whole_files=keep_whole_files,
        dry_run=dry_run,
        progress=progress,
    )
    source = lost.from_version if earlier is None else int(earlier.version)
    done = Repaired(
        location,
        version,
        version,
        tuple(columns.lost),
        tuple(lost.values),
        source,
        columns.leaves_read,
        tuple(columns.notes),
        tuple(mended.changes),
    )
    if not done.is_any:
        return replace(done, notes=("nothing is missing, and no row stands twice",))
    if dry_run:
        return done
    keys = dict(lost.values)
    if (keys or columns.lost) and not has_guard(metadata):
        keys[WRITER_FLAGS] = guarded_flags(metadata)
    if keys:
        manifest = write_keys(manifest, location, keys)
        version = int(manifest.version)
    if columns.lost or mended.changes:
        version = replace_rows(manifest, location, mended.table, max(columns.specs), options)
    return replace(done, version=version)


def _said(location: str, done: Repaired, arguments: Arguments) -> Iterator[str]:
    yield from done.notes
    restored = "would restore" if arguments.get("dry_run") else "restored"
    if done.keys:
        keys, version = ", ".join(done.keys), done.from_version
        source = "the metadata of its schema" if version is None else "earlier versions"
        yield f"{location}: {restored} metadata {keys} from {source}"
    if done.columns:
        source = "the leaves"
        if done.from_version is not None:
            source = f"version {done.from_version} of __manifest"
            if done.leaves_read:
                source += f" and {done.leaves_read} leaves"
        yield f"{location}: {restored} {', '.join(done.columns)} from {source}"
    yield from done.rows
    yield f"{location} is at version {done.version}"
    if done.version != done.version_before:
        yield f"`pennon rollback --version {done.version_before}` undoes the repair"


REPAIR: Final = Procedure(
    repair,
    "Mend what foreign clients, clean-ups and lost files did to a table.",
    columns_of(Repaired),
    renews_table=True,
    command="repair",
    said=_said,
    finds=lambda done: done.is_any,
)


def _spec_versions(raw: RawRows) -> set[int]:
    """Give the spec versions that leaves and namespaces are of."""
    return {
        row.parsed.spec_version
        for row in raw.rows
        if row.parsed is not None and row.object_type in (NAMESPACE, TABLE)
    }


@dataclass(slots=True)
class _Columns:
    """The columns that are lost, and what is known of them."""

    location: str
    options: StorageOptions
    manifest: lance.LanceDataset
    salt: str | None
    schema: NamespaceSchema
    specs: Mapping[int, PartitionSpec]
    raw: RawRows
    lost: dict[str, pa.DataType]
    recovered: dict[str, _Values] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    leaves_read: int = 0

    @classmethod
    def of(
        cls,
        location: str,
        options: StorageOptions,
        manifest: lance.LanceDataset,
        metadata: Mapping[str, str],
        raw: RawRows,
    ) -> _Columns:
        """Find the columns that are lost.

        Args:
            location: The namespace.
            options: Given to Lance.
            manifest: Its manifest.
            metadata: Of it, with the keys that were lost.
            raw: Its rows.
        """
        specs = read_specs(metadata, location)
        expected = partition_columns(specs.values())
        if metadata.get(TRANSACTION) == STRONG:
            expected = {READ_VERSION.name: READ_VERSION.type, **expected}
        lost = {name: kind for name, kind in expected.items() if name not in manifest.schema.names}
        schema = read_schema(metadata, location)
        salt = metadata.get(SALT)
        return cls(location, options, manifest, salt, schema, specs, raw, lost)

    def restore(self, progress: Progress) -> lance.LanceDataset | None:
        """Recover the values of lost columns; give the earlier version that has them, if any."""
        if not self.lost:
            return None
        earlier = self.earlier()
        self.take(earlier)
        self.leaves_read = self.read_leaves(progress)
        return earlier

    def earlier(self) -> lance.LanceDataset | None:
        """Open the newest earlier version of this namespace that has the lost columns."""
        for version in reversed(version_numbers(self.manifest)):
            if version >= self.manifest.version:
                continue
            try:
                dataset = open_manifest(self.location, version, None, self.options)
            except PennonError:
                continue  # its files were cleaned up
            has_all = set(self.lost) <= set(dataset.schema.names)
            # The first version of a namespace has its columns already, but no metadata yet.
            if has_all and dataset.metadata.get(SALT) in (self.salt, None):
                return dataset
        return None

    def take(self, earlier: lance.LanceDataset | None) -> None:
        """Take the values of the rows that an earlier version has."""
        if earlier is None:
            self.notes.append("no earlier version of __manifest has the columns")
            return
        rows = earlier.to_table(columns=["object_id", "object_type", "metadata", *self.lost])
        types = {row.object_id: row.object_type for row in self.raw.rows}
        counted = {row.object_id: _counted_version(row.metadata) for row in self.raw.rows}
        columns = {name: rows[name] for name in self.lost}
        gone = 0
        names = ("object_id", "object_type", "metadata")
        texts = zip(*(rows[name].to_pylist() for name in names), strict=True)
        for at, (object_id, object_type, metadata) in enumerate(texts):
            if types.get(object_id) == object_type:
                self.recovered[object_id] = {name: column[at] for name, column in columns.items()}
                own = counted[object_id]
                if READ_VERSION.name in columns and own not in (None, _counted_version(metadata)):
                    # The row is of another time, as a rollback brings it back.
                    self.recovered[object_id][READ_VERSION.name] = pa.scalar(own, READ_VERSION.type)
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

    def table(self, earlier: lance.LanceDataset | None) -> pa.Table:
        """Make all rows with all columns, and those that went with the columns."""
        rows = self.raw.table
        for name, kind in self.lost.items():
            null = pa.scalar(None, kind)
            values = [
                self.recovered.get(row.object_id, {}).get(name, null) for row in self.raw.rows
            ]
            column = pa.array([_as(value, kind) for value in values], kind)
            rows = rows.append_column(name, column)
        records = self.lost_records(earlier)
        if records is None:
            return rows
        lacking = [name for name in rows.column_names if name not in records.column_names]
        for name in lacking:
            records = records.append_column(
                name, pa.nulls(len(records), rows.schema.field(name).type)
            )
        return pa.concat_tables([rows, records.select(rows.column_names).cast(rows.schema)])

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
        return kept if kept.num_rows else None


def _counted_version(metadata: str | None) -> int | None:
    """Give the version of a leaf that the statistics of its row are of."""
    text = str(object_or_empty(metadata).get(COUNTED_VERSION, ""))
    return int(text) if text.isdecimal() else None


def _by_column(values: Mapping[str, pa.Scalar]) -> _Values:
    return {PARTITION_PREFIX + field_id: value for field_id, value in values.items()}


def _as(value: pa.Scalar, data_type: pa.DataType) -> pa.Scalar:
    return value if value.type == data_type else pc.cast(value, data_type)
