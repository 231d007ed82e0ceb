"""Mends the rows of ``__manifest`` that contradict each other, or the files of their leaves.

Rows of one object that stand twice become one. Where they name two versions of a leaf, as two
chains of commits leave them, the newer version gets what the other chain has appended: files are
named once more, no row is copied. A version that is gone gives way to the newest one of its leaf
that is recorded and there. A leaf whose data files are gone, or torn, is set aside: its row goes
and its folder stays; or it keeps its whole files, if that is asked for.

New versions of leaves are detached, so that all of it becomes visible with the manifest.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import lance
import pyarrow as pa
import pyarrow.compute as pc

from pennon.caching import version_time
from pennon.errors import LeafMissing, StorageFailure
from pennon.leaf import forget_leaves
from pennon.leaf.dataset import open_own_leaf
from pennon.leaf.write.leaf_commit import LeafCommit, commit_operation
from pennon.maintenance.checks.findings import RawRow, RawRows, newest_version, version_row_of
from pennon.maintenance.leaves.leaf_files import Progress, broken_fragments
from pennon.manifest.commits.manifest_commit import LeafChange, with_changes
from pennon.manifest.dataset.storage import (
    StorageOptions,
    is_damaged,
    is_not_found,
    storage_failure,
)
from pennon.manifest.format.names import SEPARATOR
from pennon.manifest.format.rows import (
    NAMESPACE,
    READ_VERSION,
    TABLE,
    TABLE_VERSION,
    ManifestRow,
    table_of_rows,
    version_row,
)
from pennon.manifest.leaves.leaf_rows import namespaces_above
from pennon.manifest.leaves.partition_index import (
    check_located,
    check_no_leaves,
    leaf_spec_versions,
)
from pennon.spec import PartitionSpec
from pennon.spec.arrow_json import object_or_empty
from pennon.transaction.staging.staged import partition_text

__all__ = ["MendedRows", "mended_rows"]

_EMPTY = "{}"


@dataclass(frozen=True, slots=True)
class MendedRows:
    """All rows of the manifest as they should be.

    Args:
        table: The rows.
        changes: A sentence for each thing that was mended, and what was lost by it.
    """

    table: pa.Table
    changes: Sequence[str]


def mended_rows(
    location: str,
    version: int,
    table: pa.Table,
    specs: Mapping[int, PartitionSpec],
    storage_options: StorageOptions,
    *,
    keep_whole_files: bool,
    dry_run: bool,
    progress: Progress,
) -> MendedRows:
    """Mend the rows of a manifest.

    Args:
        location: The namespace.
        version: That of its manifest, for errors.
        table: The rows, with all columns.
        specs: Every partition spec.
        storage_options: Given to Lance.
        keep_whole_files: Whether a leaf with broken files keeps the rows of the others.
        dry_run: Whether no version of a leaf is made; the rows are of no use then.
        progress: Told after every leaf.

    Raises:
        LeafMisnamed: A row is called as no leaf of its spec, and nothing says which it is.
        LeafNotLocated: A leaf's row does not say where it is.
        StorageFailure: The storage refused.

    Spec: "Manifest Table Schema", "Multi-Partition Transaction (Strong)".
    """
    forget_leaves()
    mending = _Mending(
        location, RawRows.of(table), specs, storage_options, keep_whole_files, dry_run
    )
    mending.check_names(version)
    mending.make_single()
    mending.look_at_leaves(progress)
    mending.look_at_others()
    return MendedRows(mending.table() if mending.changes else table, mending.changes)


@dataclass(slots=True)
class _Mending:
    location: str
    raw: RawRows
    specs: Mapping[int, PartitionSpec]
    options: StorageOptions
    keep_whole_files: bool
    dry_run: bool
    changes: list[str] = field(default_factory=list)
    gone: set[int] = field(default_factory=set)
    moved: dict[int, LeafChange] = field(default_factory=dict)
    added: list[ManifestRow] = field(default_factory=list)
    without_metadata: set[int] = field(default_factory=set)
    records: Mapping[str, Mapping[int, RawRow]] = field(init=False)

    def __post_init__(self) -> None:
        self.records = self.raw.version_rows()

    def check_names(self, version: int) -> None:
        """Refuse what nothing tells how to mend: rows that are no leaves, or nowhere."""
        tables = self.raw.table.filter(pc.equal(self.raw.table["object_type"], TABLE))
        is_leaf = pc.is_valid(leaf_spec_versions(tables["object_id"], self.specs))
        others = tables["object_id"].filter(pc.invert(is_leaf)).to_pylist()
        check_no_leaves(others, self.specs, location=self.location, version=version)
        check_located(tables.filter(is_leaf), location=self.location, version=version)

    def make_single(self) -> None:
        """Keep one of the rows that are one object."""
        by_id: dict[str, list[RawRow]] = {}
        for row in self.raw.rows:
            by_id.setdefault(row.object_id, []).append(row)
        for object_id, rows in by_id.items():
            if len(rows) > 1:
                leaves = [row for row in rows if row.object_type == TABLE and row.location]
                kept, how = self._joined(leaves) if leaves else (rows[-1], "")
                self.gone |= {row.at for row in rows if row is not kept}
                self.changes.append(f"row {object_id} stood {len(rows)} times{how}")

    def _joined(self, rows: Sequence[RawRow]) -> tuple[RawRow, str]:
        """Choose the row of the newer version, and give that what the others have appended."""
        opened = [(row, self._opened(row, self._version(row))) for row in rows]
        readable = [(row, dataset) for row, dataset in opened if dataset is not None]
        if not readable:
            return rows[-1], ""
        kept, newest = max(readable, key=lambda one: version_time(one[1].get_version()))
        appended: list[lance.FragmentMetadata] = []
        sentences = [f"version {newest.version} is the newer one"]
        for row, other in opened:
            if row is kept or self._version(row) == self._version(kept):
                continue
            if other is None or row.location != kept.location:
                sentences.append(f"of version {self._version(row)} nothing can be kept")
                continue
            appends, rest = self._appended(row, other, newest)
            appended += appends
            num_rows = sum(fragment.physical_rows for fragment in appends)
            sentences.append(
                f"it gets the {num_rows} rows that version {other.version} appended{rest}"
            )
        if appended and not self.dry_run:
            operation = lance.LanceOperation.Append(appended)
            self._move(kept, commit_operation(newest, operation, detached=True))
        return kept, f": of partition {self._text(kept)} {'; '.join(sentences)}"

    def _appended(
        self, row: RawRow, other: lance.LanceDataset, newest: lance.LanceDataset
    ) -> tuple[list[lance.FragmentMetadata], str]:
        """Give what a chain of versions appended behind those of a newer one, and what it lacks."""
        if repr(other.lance_schema) != repr(newest.lance_schema):
            return [], ", whose columns are others"
        ancestors = {version for version, _ in self._chain(row, newest)}
        have = _paths(fragment.metadata for fragment in newest.get_fragments())
        appends: list[lance.FragmentMetadata] = []
        for version, operation in self._chain(row, other):
            if version in ancestors:
                return appends, ""
            if not isinstance(operation, lance.LanceOperation.Append):
                return appends, f", but not what version {version} did, {type(operation).__name__}"
            appends += [one for one in operation.fragments if not _paths([one]) & have]
        own = _paths(appends) | have
        rest = [one for one in other.get_fragments() if not _paths([one.metadata]) & own]
        if not rest:
            return appends, ""
        num_rows = sum(fragment.count_rows() for fragment in rest)
        return appends, f"; its {num_rows} rows from before are taken as the newer one has them"

    def _chain(self, row: RawRow, dataset: lance.LanceDataset) -> Iterator[tuple[int, object]]:
        """Give a version of a leaf and those before it that are there, and what made each."""
        before: lance.LanceDataset | None = dataset
        while before is not None:
            version = int(before.version)
            try:
                made = before.read_transaction(version)
            except OSError as error:
                if not is_not_found(error):
                    raise storage_failure("read", str(before.uri), error) from error
                made = None
            yield version, None if made is None else made.operation
            before = None if made is None else self._opened(row, int(made.read_version))

    def look_at_leaves(self, progress: Progress) -> None:
        """See that each leaf has the version that its row names, and this its files."""
        leaves = [
            row
            for row in self.raw.rows
            if row.object_type == TABLE
            and row.at not in self.gone
            and row.location
            and row.parsed is not None
            and row.parsed.spec_version in self.specs
            and not row.is_elsewhere
        ]
        for number, row in enumerate(leaves, 1):
            moved = self.moved.get(row.at)
            version = self._version(row) if moved is None else moved.read_version
            dataset = self._opened(row, version)
            if dataset is None:
                self._read_older(row, version)
            else:
                self._leave_broken(row, dataset)
            progress("leaves looked through", number, len(leaves))

    def _read_older(self, row: RawRow, version: int | None) -> None:
        at = "its newest version" if version is None else f"version {version}"
        records = self._records(row)
        for number in sorted(records, reverse=True):
            older = records[number].read_version
            if older is None or older == version:
                self.gone.add(records[number].at)
                continue
            dataset = self._opened(row, older)
            if dataset is None:
                self.gone.add(records[number].at)
            elif not broken_fragments(dataset):
                self._move(row, dataset)
                self.changes.append(
                    f"partition {self._text(row)}: {at} of leaf {row.location} is gone; it is read"
                    f" at version {older}, the newest that is there, with {dataset.count_rows()}"
                    " rows"
                )
                return
        self._set_aside(row, f"{at} of leaf {row.location} is gone")

    def _leave_broken(self, row: RawRow, dataset: lance.LanceDataset) -> None:
        broken = broken_fragments(dataset)
        if not broken:
            return
        fragments = dataset.get_fragments()
        whole = sum(one.count_rows() for one in fragments if one.fragment_id not in broken)
        why = (
            f"{len(broken)} of {len(fragments)} fragments are broken, {next(iter(broken.values()))}"
        )
        if not whole or self._version(row) is None:
            self._set_aside(row, why)
        elif not self.keep_whole_files:
            self._set_aside(row, why, f"; keep_whole_files would keep {whole} of its rows")
        else:
            if not self.dry_run:
                operation = lance.LanceOperation.Delete(
                    updated_fragments=[], deleted_fragment_ids=sorted(broken), predicate="true"
                )
                self._move(row, commit_operation(dataset, operation, detached=True))
            self.changes.append(f"partition {self._text(row)}: {why}; the {whole} other rows stay")

    def _set_aside(self, row: RawRow, why: str, alternative: str = "") -> None:
        self.gone |= {row.at, *(record.at for record in self._records(row).values())}
        self.moved.pop(row.at, None)
        self.added = [
            one for one in self.added if not one.object_id.startswith(row.object_id + SEPARATOR)
        ]
        self.changes.append(
            f"partition {self._text(row)}: {why}; it is set aside, its folder {row.location}"
            f" stays{alternative}"
        )

    def look_at_others(self) -> None:
        """Add the namespaces that rows lack; take away what belongs to no table."""
        rows = [row for row in self.raw.rows if row.at not in self.gone]
        tables = {row.object_id for row in rows if row.object_type == TABLE}
        namespaces = {row.object_id for row in rows if row.object_type == NAMESPACE}
        has_versions = READ_VERSION.name in self.raw.table.column_names
        for row in rows:
            if row.object_type == TABLE_VERSION:
                known = version_row_of(row.object_id)
                is_silent = row.read_version is None and has_versions
                if known is None or known[0] not in tables or is_silent:
                    self.gone.add(row.at)
                    self.changes.append(f"row {row.object_id} is no version of a table and goes")
            elif row.object_type in (NAMESPACE, TABLE) and row.parsed is not None:
                if row.metadata is not None and not _is_object(row.metadata):
                    self.without_metadata.add(row.at)
                    self.changes.append(f"row {row.object_id}: its metadata, no JSON, goes")
                if row.parsed.spec_version in self.specs:
                    for depth, name in enumerate(namespaces_above(row.object_id)):
                        if name not in namespaces:
                            namespaces.add(name)
                            values = dict(list(self._values(row).items())[:depth])
                            self.added.append(ManifestRow(name, NAMESPACE, values=values))
                            self.changes.append(f"row {name} of a namespace was missing")

    def table(self) -> pa.Table:
        """Make the rows."""
        texts = self.raw.table["metadata"].to_pylist()
        for at in self.without_metadata:
            texts[at] = _EMPTY
        schema = self.raw.table.schema
        place = schema.get_field_index("metadata")
        column = pa.array(texts, schema.field(place).type)
        rows = self.raw.table.set_column(place, schema.field(place), column)
        stay = [at for at in range(len(rows)) if at not in self.gone and at not in self.moved]
        by_id = {one.object_id: one for one in self.moved.values()}
        changed = with_changes(rows.take(pa.array(self.moved, pa.int64())), by_id)
        kept = rows.take(pa.array(stay, pa.int64()))
        return pa.concat_tables([kept, changed, table_of_rows(self.added, schema)])

    def _move(self, row: RawRow, dataset: lance.LanceDataset) -> None:
        """Let a leaf be read at another version, and record it unless it is."""
        counted = LeafCommit.of(dataset)
        self.moved[row.at] = LeafChange(
            row.object_id,
            row.location or "",
            self._values(row),
            counted.version,
            counted.num_rows,
            counted.num_bytes,
            counted.num_fragments,
        )
        records = self._records(row)
        if all(record.read_version != counted.version for record in records.values()):
            number = max((*records, *self._numbers_added(row)), default=0) + 1
            self.added.append(version_row(row.object_id, number, counted.version))

    def _numbers_added(self, row: RawRow) -> Iterator[int]:
        for one in self.added:
            known = version_row_of(one.object_id)
            if known is not None and known[0] == row.object_id:
                yield known[1]

    def _records(self, row: RawRow) -> Mapping[int, RawRow]:
        return self.records.get(row.object_id, {})

    def _version(self, row: RawRow) -> int | None:
        return newest_version(row, self._records(row))

    def _opened(self, row: RawRow, version: int | None) -> lance.LanceDataset | None:
        """Open a version of a leaf; None where it is gone, or torn."""
        try:
            return open_own_leaf(self.location, row.location or "", version, self.options)
        except LeafMissing:
            return None
        except (StorageFailure, OSError, ValueError) as error:
            if is_damaged(error):
                return None
            raise

    def _values(self, row: RawRow) -> dict[str, pa.Scalar]:
        if row.parsed is None or row.parsed.spec_version not in self.specs:
            return {}
        levels = self.specs[row.parsed.spec_version].fields[: len(row.parsed.namespaces)]
        return {level.field_id: self.raw.table[level.column][row.at] for level in levels}

    def _text(self, row: RawRow) -> str:
        return partition_text(self._values(row))


def _paths(fragments: Iterable[lance.FragmentMetadata]) -> set[str]:
    return {file.path for fragment in fragments for file in fragment.files}


def _is_object(text: str) -> bool:
    return text.strip() == _EMPTY or bool(object_or_empty(text))
