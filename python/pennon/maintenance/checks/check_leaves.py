"""The leaves of a namespace against the specification: versions, schemas, the values of rows.

The rows of many small leaves are evaluated together: DataFusion is asked once per 64 Ki rows and
partition field, not once per leaf.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

import lance
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pennon.errors import LeafMissing, LeafTypeMismatch, PennonError, StorageFailure
from pennon.leaf import LeafSource, LeafViews, forget_leaves, open_leaf
from pennon.leaf.dataset import (
    index_files,
    leaf_indexes,
    resolve_reference,
    side_by_side,
    with_partition_values,
)
from pennon.leaf.row_order import SortedCheck
from pennon.leaf.schema.reconciliation import FieldMatch, LeafField, leaf_fields, match_fields
from pennon.maintenance.checks.findings import (
    Finding,
    RawRow,
    RawRows,
    newest_version,
    note,
    violation,
    warning,
)
from pennon.maintenance.leaves.chosen_leaves import RowValues, differs
from pennon.maintenance.leaves.leaf_files import Progress, broken_fragments
from pennon.manifest.dataset.storage import StorageOptions
from pennon.manifest.format.column_statistics import (
    RECORDED_ORDER,
    indexes_in,
    recorded_order,
)
from pennon.manifest.format.properties import IndexDefinition
from pennon.manifest.format.rows import TABLE
from pennon.search.indexes import indexed_column, is_of_kind, stored_name
from pennon.search.text import stored_blocks
from pennon.spec import NamespaceSchema, PartitionSpec
from pennon.spec.arrow_json import object_or_empty
from pennon.spec.column_defaults import INITIAL_DEFAULT, initial_default
from pennon.spec.column_names import text_of_value
from pennon.spec.schema import field_id_of
from pennon.spec.write_properties import WriteOrder

if TYPE_CHECKING:
    from lance.lance.indices import IndexDescription

__all__ = ["LeafCheck"]


# A recorded order of a leaf's rows against the rows: a join without a sort relies on it.


def unsorted_fragments(
    dataset: lance.LanceDataset,
    metadata: str | None,
    order: WriteOrder | None,
    schema: NamespaceSchema,
) -> list[int]:
    """List the fragments whose rows are not in the order that is recorded of them.

    Args:
        dataset: The leaf at the version to read.
        metadata: The leaf's metadata in the manifest, JSON text.
        order: The table's write order; a record of another one or of another version counts for
            nothing.
        schema: The namespace schema.
    """
    if order is None:
        return []
    recorded = object_or_empty(metadata).get(RECORDED_ORDER)
    if recorded != recorded_order(dataset.version, order.identity):
        return []
    views = LeafViews(pa.schema([field.field for field in order.fields]), schema.arrow)
    unsorted = []
    for at, fragment in enumerate(dataset.get_fragments()):
        check = SortedCheck(order.columns)
        for batch in LeafSource(dataset).batches(views, fragments=(at, at + 1)):
            check.observe(batch.columns)
        if not check.is_sorted:
            unsorted.append(fragment.fragment_id)
    return unsorted


_ROWS_AT_ONCE = 1 << 16
_TRANSACTION = "Transaction"
_SCHEMA = "Schema"
_VALUES = "Partition Spec"
_INDEX = "Manifest Table Schema"


@dataclass(slots=True)
class LeafCheck:
    """Checks leaves one after the other and collects what it finds.

    Args:
        location: The namespace.
        schema: Its schema.
        raw: The rows of its manifest.
        storage_options: Given to Lance.
        order: The table's write order.
        indexes: The indexes that the table defines, by name.
    """

    location: str
    schema: NamespaceSchema
    raw: RawRows
    storage_options: StorageOptions
    order: WriteOrder | None = None
    indexes: Mapping[str, IndexDefinition] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    num_rows: int = 0

    def check(
        self, leaves: Sequence[RawRow], specs: Mapping[int, PartitionSpec], progress: Progress
    ) -> None:
        """Check leaves.

        Args:
            leaves: Their rows, all of specs that can be read.
            specs: The specs.
            progress: Told after every leaf.
        """
        forget_leaves()  # whose files may have gone since they were opened
        versions = self.raw.version_rows()
        done = 0
        for spec in specs.values():
            mine = [
                leaf
                for leaf in leaves
                if leaf.parsed is not None and leaf.parsed.spec_version == spec.spec_version
            ]
            values = _Values(self, spec)
            looked = side_by_side(self.location, partial(self._looked_at, versions), mine)
            for manifest_row, (of_leaf, dataset) in zip(mine, looked, strict=True):
                self.findings += of_leaf.findings
                if dataset is not None:
                    values.add(manifest_row, dataset)
                done += 1
                progress("leaves checked", done, len(leaves))
            values.flush()

    def _looked_at(
        self, versions: Mapping[str, Mapping[int, RawRow]], row: RawRow
    ) -> tuple[LeafCheck, lance.LanceDataset | None]:
        own = replace(self, findings=[])
        return own, own.check_leaf(row, versions.get(row.object_id, {}))

    def check_leaf(
        self, row: RawRow, version_rows: Mapping[int, RawRow]
    ) -> lance.LanceDataset | None:
        """Check one leaf, but for its values.

        Args:
            row: Its row.
            version_rows: The rows of its versions, by their numbers.

        Returns:
            Its dataset where its rows can be read.
        """
        dataset = self._opened(row, newest_version(row, version_rows))
        if dataset is None or not self._has_files(row, dataset):
            return None
        self._older(row, version_rows, dataset.version)
        self.findings.extend(self._index_findings(row, dataset))
        return dataset if self._has_schema(row, dataset) else None

    def _opened(self, row: RawRow, version: int | None) -> lance.LanceDataset | None:
        try:
            return self._open(row, version)
        except LeafMissing as error:
            self.findings.append(violation(_TRANSACTION, f"leaf {row.object_id}", error.message))
        except (StorageFailure, OSError, ValueError, RuntimeError) as error:
            problem = f"version {version} cannot be opened: {str(error).splitlines()[0]}"
            self.findings.append(violation(_TRANSACTION, f"leaf {row.object_id}", problem))
        return None

    def _open(self, row: RawRow, version: int | None) -> lance.LanceDataset:
        place = row.location or ""
        if row.is_elsewhere and row.object_type == TABLE:
            resolved = resolve_reference(
                self.location, place, row.reference, version, self.storage_options
            )
            place, version = resolved.location, resolved.version
        return open_leaf(self.location, place, version, self.storage_options)

    def _has_files(self, row: RawRow, dataset: lance.LanceDataset) -> bool:
        """Check that a leaf's files are there and whole, as far as their sizes tell."""
        broken = {} if row.is_elsewhere else broken_fragments(dataset)
        if broken:
            problem = f"{len(broken)} of {len(dataset.get_fragments())} fragments are broken"
            where = f"leaf {row.object_id}"
            first = next(iter(broken.values()))
            self.findings.append(violation(_TRANSACTION, where, f"{problem}, {first}"))
        return not broken

    def _older(self, row: RawRow, versions: Mapping[int, RawRow], current: int) -> None:
        """The versions that are recorded open, or were expired."""
        for version in versions.values():
            if version.read_version in (None, current):
                continue
            try:
                self._open(replace(row, reference=(None, None)), version.read_version)
            except (LeafMissing, StorageFailure, OSError, ValueError):
                problem = f"version {version.read_version} is recorded, but not there (any more)"
                self.findings.append(
                    warning(
                        "Multi-Partition Transaction (Strong)", f"row {version.object_id}", problem
                    )
                )

    def _has_schema(self, row: RawRow, dataset: lance.LanceDataset) -> bool:
        """Check a leaf's schema; whether its rows can be read in the namespace's."""
        where = f"leaf {row.object_id}"
        try:
            fields = leaf_fields(dataset)
            columns = with_partition_values(self.schema.arrow, dataset)
            matches = match_fields(list(columns), fields, row.location or "")
        except LeafTypeMismatch as error:
            self.findings.append(violation(_SCHEMA, where, error.message))
            return False
        except PennonError as error:
            self.findings.append(violation(_SCHEMA, where, error.message))
            return False
        num_rows = dataset.count_rows()
        self.findings.extend(_schema_findings(where, matches, fields, num_rows))
        self.findings.extend(_filled_findings(where, self.schema.arrow, columns))
        self._statistics(row, num_rows)
        unsorted = unsorted_fragments(dataset, row.metadata, self.order, self.schema)
        if unsorted:
            problem = f"fragments {unsorted} are not in the recorded order {self.order}"
            self.findings.append(violation("Manifest Table Schema", where, problem))
        return True

    def _index_findings(self, row: RawRow, dataset: lance.LanceDataset) -> Iterator[Finding]:
        """The indexes of a leaf: their files, what they are of, what the manifest says of them."""
        where = f"leaf {row.object_id}"
        known = dataset.describe_indices()
        files = index_files(str(dataset.uri), self.storage_options) if known else {}
        for index in known:
            mended = f"refresh_indexes of {index.name}"
            own = [one.uuid for one in index.segments if one.base_id is None]
            if any(uuid not in files or stored_blocks(files[uuid]) is None for uuid in own):
                problem = f"files of its index {index.name} are gone; {mended} builds it anew"
                yield violation(_TRANSACTION, where, problem)
            definition = self.indexes.get(index.name)
            if row.read_version is None:
                continue  # Lance's own
            if definition is None:
                problem = f"its index {index.name} is none of the table's; drop_index takes it out"
                yield warning(_INDEX, where, problem)
            elif not self._is_defined_so(definition, index, dataset):
                kind = f"is {index.index_type} of {', '.join(index.field_names)}"
                problem = f"its index {index.name} {kind}, not as defined; {mended} builds it anew"
                yield warning(_INDEX, where, problem)
        recorded = indexes_in(row.metadata, row.read_version) if row.read_version else None
        if recorded is None:
            return
        said = {index.name: index.rows for index in recorded}
        actual = {index.name: index.rows for index in leaf_indexes(dataset)}
        for name in sorted(said.keys() | actual.keys()):
            if said.get(name) != actual.get(name):
                problem = f"its metadata records {said.get(name, 0)} rows in index {name}, the"
                problem += f" version to read has {actual.get(name, 0)}; refresh_indexes of"
                yield warning(_INDEX, f"row {row.object_id}", f"{problem} {name} records it")

    def _is_defined_so(
        self, definition: IndexDefinition, index: IndexDescription, dataset: lance.LanceDataset
    ) -> bool:
        """Whether an index of a leaf is of the kind and the column that the table defines."""
        column = indexed_column(self.schema.arrow, definition)
        if column is None:  # of which the definition is told
            return True
        own = stored_name(dataset, column, self.schema.arrow)
        return is_of_kind(definition, index.index_type) and list(index.field_names) == [own]

    def _statistics(self, row: RawRow, num_rows: int) -> None:
        recorded = object_or_empty(row.metadata).get("num_rows")
        if recorded is not None and str(recorded) != str(num_rows):
            problem = f"its metadata records {recorded} rows, the version to read has {num_rows}"
            self.findings.append(warning("Manifest Table Schema", f"row {row.object_id}", problem))


def _schema_findings(
    where: str, matches: Sequence[FieldMatch], fields: Sequence[LeafField], num_rows: int
) -> Iterator[Finding]:
    used = {id(match.stored) for match in matches}
    for match in matches:
        name = match.expected.name
        if match.stored is None:
            if INITIAL_DEFAULT in (match.expected.metadata or {}):
                yield note(_SCHEMA, where, f"it lacks column {name}, which reads as its default")
            elif not match.expected.nullable and num_rows:
                yield violation(_SCHEMA, where, f"it lacks the NOT NULL column {name}")
            else:
                yield note(_SCHEMA, where, f"it lacks column {name}, which reads as NULL")
        elif match.stored.stated_id is None:
            how = "number" if match.stored.number == field_id_of(match.expected) else "name"
            problem = f"column {name} states no lance:field_id; it is found by its {how}"
            yield warning(_SCHEMA, where, problem)
        elif match.stored.stated_id != field_id_of(match.expected):
            problem = f"column {name} states the id {match.stored.stated_id}"
            yield violation(_SCHEMA, where, f"{problem}, not {field_id_of(match.expected)}")
    stated = [leaf_field.stated_id for leaf_field in fields if leaf_field.stated_id is not None]
    for field_id, count in sorted(Counter(stated).items()):
        if count > 1:
            yield violation(_SCHEMA, where, f"two columns state the id {field_id}")
    for leaf_field in fields:
        if id(leaf_field) not in used:
            yield note(
                _SCHEMA, where, f"its column {leaf_field.name} is not in the namespace schema"
            )


def _filled_findings(where: str, columns: pa.Schema, filled: pa.Schema) -> Iterator[Finding]:
    for column, known in zip(columns, filled, strict=True):
        if not known.equals(column, check_metadata=True):
            problem = f"every leaf has to have column {column.name}; it reads as the partition's"
            value = text_of_value(initial_default(known) or pa.scalar(None))
            yield warning(_SCHEMA, where, f"{problem} value {value}")


class _Values:
    """The rows of one spec's leaves, gathered until they are worth a query."""

    def __init__(self, check: LeafCheck, spec: PartitionSpec) -> None:
        self._check = check
        table = check.raw.table
        self._spec = spec
        self._columns = {
            partition_field.field_id: partition_field.column
            for partition_field in spec.fields
            if partition_field.column in table.column_names
        }
        types = {name: table.schema.field(column).type for name, column in self._columns.items()}
        self._rows = RowValues(spec, check.schema, types)
        has_all_columns = len(self._columns) == len(spec.fields)
        self._is_computable = has_all_columns and bool(self._rows.fields)
        self._batches: list[pa.RecordBatch] = []
        self._owners: list[RawRow] = []
        self._waiting = 0
        self._reported: set[tuple[str, str]] = set()

    def add(self, row: RawRow, dataset: lance.LanceDataset) -> None:
        """Take the rows of a leaf."""
        if not self._is_computable:
            return
        try:
            for batch in self._rows.scan(dataset):
                self._nulls(row, batch)
                self._batches.append(batch)
                self._owners.append(row)
                self._waiting += batch.num_rows
                if self._waiting >= _ROWS_AT_ONCE:
                    self.flush()
        except (PennonError, OSError, ValueError, RuntimeError) as error:
            problem = f"its rows cannot be read: {str(error).splitlines()[0]}"
            self._check.findings.append(violation(_SCHEMA, f"leaf {row.object_id}", problem))

    def _nulls(self, row: RawRow, batch: pa.RecordBatch) -> None:
        for column, array in zip(self._rows.columns, batch.columns, strict=True):
            if array.null_count and not column.nullable:
                self._tell(row, _SCHEMA, column.name, f"NOT NULL column {column.name} has NULLs")

    def flush(self) -> None:
        """Evaluate what was gathered."""
        if not self._waiting:
            return
        rows = pa.Table.from_batches(self._batches).combine_chunks()
        owners, sizes = self._owners, [batch.num_rows for batch in self._batches]
        self._check.num_rows += rows.num_rows
        self._batches, self._owners, self._waiting = [], [], 0
        at = pa.array([owner.at for owner in owners], pa.int64())
        of_row = pa.array(np.repeat(np.arange(len(sizes)), sizes))
        try:
            computed = self._rows.of(rows)
        except PennonError as error:
            where = f"{self._spec.key}, leaves from {owners[0].object_id} on"
            self._check.findings.append(violation("Partition Expression", where, error.message))
            return
        for name, values in computed.items():
            recorded = self._check.raw.table[self._columns[name]].take(at).combine_chunks()
            recorded_values = recorded.take(of_row)
            for index in pc.indices_nonzero(differs(values, recorded_values)).to_pylist():
                self._wrong(
                    owners[of_row[index].as_py()], name, values[index], recorded_values[index]
                )

    def _wrong(self, row: RawRow, name: str, value: pa.Scalar, recorded: pa.Scalar) -> None:
        actual = text_of_value(value) if value.is_valid else "NULL"
        kept = text_of_value(recorded) if recorded.is_valid else "NULL"
        problem = f"it has rows with {name} = {actual}, the manifest records {kept}"
        self._tell(row, _VALUES, name, problem)

    def _tell(self, row: RawRow, section: str, name: str, problem: str) -> None:
        """Tell a leaf's first problem of a kind."""
        if (row.object_id, name) not in self._reported:
            self._reported.add((row.object_id, name))
            self._check.findings.append(violation(section, f"leaf {row.object_id}", problem))
