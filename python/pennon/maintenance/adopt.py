"""``pennon adopt``: existing Lance datasets become partitions where they are, or their rows do.

Without ``--split`` no row is copied. A dataset's rows must all have one partition tuple; values
that the caller or a ``column=value`` path states are checked against the rows. The namespace's
field ids are stated on the dataset's fields (a commit of its metadata), then the manifest records
it. Upstream's readers find a leaf at a location relative to the namespace only, so a dataset
elsewhere is moved on request, or refused.

With it the rows are copied to the partitions that they belong to, and the datasets stay as they
are, wherever they lie. Everything is written first and becomes visible in one commit, new
partitions and those that were there alike.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

import lance
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from pennon.caching.lance_sessions import file_session, lance_options
from pennon.catalog.configured_catalog import stated_place
from pennon.errors import AdoptionRefused, LeafTypeMismatch
from pennon.leaf import LeafSource, StagedPartition, WriteTarget, write_partitions
from pennon.leaf.schema.file_layout import NamedColumns, columns_by_name, state_ids
from pennon.leaf.write.leaf_commit import LeafCommit, stop_auto_cleanup
from pennon.maintenance.calls.procedure_declaration import Arguments, Column, Procedure, columns_of
from pennon.maintenance.leaves.chosen_leaves import RowValues, differs, is_same_value
from pennon.maintenance.leaves.leaf_files import Progress, no_progress
from pennon.maintenance.recovered_tuple import MixedTuples, NoRows, recovered_tuple
from pennon.manifest import (
    ConcurrentChange,
    LeafChange,
    LeafName,
    ManifestCommitted,
    Snapshot,
    StorageOptions,
    commit_leaves,
    leaf_name,
)
from pennon.manifest.dataset.storage import MANIFEST, storage_failure
from pennon.manifest.format.rows import PARTITION_PREFIX
from pennon.manifest.table_identity import STRONG, WEAK, check_mode
from pennon.predicate.dialect import DataFusion
from pennon.spec import NamespaceSchema, PartitionField, PartitionSpec
from pennon.spec.column_defaults import INITIAL_DEFAULT
from pennon.spec.column_names import path_values, value_of_text
from pennon.spec.partition_spec import leaf_prefix
from pennon.transaction import Committed, Conflicted, Retryable, Transaction
from pennon.transaction.staging.staged import partition_text
from pennon.transforms.registry import expression

__all__ = ["ADOPT", "Adopted", "Adoption", "adopt", "adopt_or_split", "split_datasets"]

_VERSIONS: Final = "_versions"
_ATTEMPTS: Final = 5
# Rows are sorted by partition within so many bytes: more means fewer, larger fragments.
_BYTES_AT_ONCE: Final = 128 << 20


# Partition values as text: from the caller, or from ``column=value`` parts of a path.
#
# A name is a partition field's id, or the one source column of a field; then the field's value is
# derived from the column's. ``__HIVE_DEFAULT_PARTITION__`` is NULL.


def values_of_spec(
    texts: Mapping[str, str],
    spec: PartitionSpec,
    schema: NamespaceSchema,
    types: Mapping[str, pa.DataType],
) -> dict[str, pa.Scalar]:
    """Turn texts into partition values, as far as they state them.

    Args:
        texts: By field id or by source column.
        spec: The spec.
        schema: The namespace schema.
        types: The types of the manifest's columns by field id.

    Returns:
        The values by field id; fields that are not stated, or not understood, are left out.
    """
    values: dict[str, pa.Scalar] = {}
    for field in spec.fields:
        kind = types[field.field_id]
        value = None
        if field.field_id in texts:
            value = value_of_text(texts[field.field_id], kind)
        if value is None:
            value = _derived(texts, field, schema, kind)
        if value is not None:
            values[field.field_id] = value
    return values


def _derived(
    texts: Mapping[str, str], field: PartitionField, schema: NamespaceSchema, data_type: pa.DataType
) -> pa.Scalar | None:
    sources = [schema.field_by_id(number) for number in field.source_ids]
    arrays = []
    for source in sources:
        text = None if source is None else texts.get(str(source))
        if source is None or text is None:
            return None
        value = value_of_text(text, source.field.type)
        if value is None:
            return None
        arrays.append(pa.array([value], source.field.type))
    sql = field.derivation.expression([array.type for array in arrays])
    return expression(sql, data_type).apply(arrays)[0]


@dataclass(frozen=True, slots=True)
class Adopted:
    """A dataset that is a partition now.

    Args:
        dataset: Where it was.
        object_id: Its id in the manifest.
        location: Its location in the manifest.
        values: Its partition tuple, as text.
        num_rows: Its rows.
        version: The version of the manifest that has it.
    """

    dataset: str
    object_id: str
    location: str
    values: Annotated[str, Column("partition")]
    num_rows: Annotated[int, Column("rows")]
    version: int


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A dataset that passed every check; nothing was changed yet."""

    source: str
    dataset: lance.LanceDataset
    columns: NamedColumns
    values: Mapping[str, pa.Scalar]
    name: LeafName
    location: str
    is_moved: bool


def datasets_below(path: str, storage_options: Mapping[str, str] | None = None) -> list[str]:
    """Find the Lance datasets at or below a folder, which may be one of a store.

    Example:
        >>> import tempfile, lance, pyarrow as pa
        >>> place = tempfile.mkdtemp()
        >>> _ = lance.write_dataset(pa.table({"a": [1]}), place + "/x=1/d.lance")
        >>> [path.removeprefix(place) for path in datasets_below(place)]
        ['/x=1/d.lance']
    """
    if "://" in path:
        return _listed_below(path.rstrip("/"), storage_options)
    top = Path(path)
    if (top / _VERSIONS).is_dir():
        return [path]
    paths: list[str] = []
    for entry in sorted(top.iterdir()) if top.is_dir() else []:
        if entry.is_dir() and entry.name != MANIFEST:
            paths += datasets_below(str(entry))
    return paths


def _listed_below(path: str, storage_options: Mapping[str, str] | None) -> list[str]:
    """Find datasets of a store by their files: what is below one are its branches."""
    try:
        files = file_session(path, storage_options).list()
    except (OSError, ValueError) as error:
        raise storage_failure("list", path, error) from error
    below = sorted(
        {
            file.partition(f"/{_VERSIONS}/")[0]
            for file in files
            if f"/{_VERSIONS}/" in file and MANIFEST not in file.split("/")
        }
    )
    if not below or any(file.startswith(f"{_VERSIONS}/") for file in files):
        return [path]
    return [
        f"{path}/{place}"
        for place in below
        if not any(place.startswith(f"{above}/") for above in below)
    ]


def adopt(
    snapshot: Snapshot,
    path: str,
    values: Mapping[str, str] | None = None,
    *,
    move: bool = False,
    progress: Progress = no_progress,
) -> list[Adopted]:
    """Make the datasets at or below a path partitions of a namespace, all of them or none.

    Args:
        snapshot: The newest snapshot of the namespace.
        path: A dataset, or a folder with datasets below it.
        values: Partition values as text, by field id or by source column.
        move: Whether a dataset outside of the namespace's folder is moved into it.
        progress: Told after every dataset that was looked at.

    Returns:
        One report per dataset.

    Raises:
        AdoptionRefused: A dataset cannot be a partition: it holds several tuples (two of its rows
            are named), has another schema, lies elsewhere, or its tuple has a leaf already.

    Spec: "Schema", "Partition Spec", "Physical Layout and Naming".
    """
    _check_names(snapshot, path, values or {})
    paths = datasets_below(path, snapshot.storage_options)
    if not paths:
        raise refused(snapshot, path, "there is no Lance dataset", "Check the path")
    candidates = []
    for at, directory in enumerate(paths, 1):
        candidates.append(_candidate(snapshot, directory, values or {}, move=move))
        progress("datasets looked at", at, len(paths))
    _check_apart(snapshot, candidates)
    changes = [_prepared(snapshot, candidate) for candidate in candidates]
    version = _committed(snapshot, candidates, changes)
    return [
        Adopted(
            candidate.source,
            change.object_id,
            change.location,
            partition_text(candidate.values),
            change.num_rows or 0,
            version,
        )
        for candidate, change in zip(candidates, changes, strict=True)
    ]


def refused(snapshot: Snapshot, dataset: str, why: str, advice: str) -> AdoptionRefused:
    """Make the error of a dataset that cannot be adopted."""
    return AdoptionRefused(dataset=dataset, table=snapshot.location, why=why, advice=advice)


def _check_names(snapshot: Snapshot, path: str, values: Mapping[str, str]) -> None:
    spec = snapshot.current_spec
    field_ids = {field.field_id for field in spec.fields}
    for field in spec.fields:
        field_ids.update(
            str(source)
            for number in field.source_ids
            if (source := snapshot.schema.field_by_id(number)) is not None
        )
    unknown = sorted(set(values) - field_ids)
    if unknown:
        why = f"'{unknown[0]}' is no partition field and no source column of one"
        names = ", ".join(sorted(field_ids)) or "none: the namespace has one leaf"
        raise refused(snapshot, path, why, f"Give values of {names}")


def _candidate(
    snapshot: Snapshot, source: str, given: Mapping[str, str], *, move: bool
) -> _Candidate:
    dataset = opened(snapshot, source)
    columns = checked_columns(snapshot, source, dataset)
    values = _tuple(snapshot, source, dataset, given)
    spec = snapshot.current_spec
    name = leaf_name(
        snapshot.salt, spec.spec_version, [values[field.field_id] for field in spec.fields]
    )
    inside = _relative(snapshot.location, source)
    if inside is None and not move:
        raise refused(
            snapshot,
            source,
            "it is outside of the namespace's folder, where other readers would not find it",
            "Move it below that folder first, or let it be moved (--move, move => true)",
        )
    if inside is None and "://" in source + snapshot.location:
        advice = "Copy it below the namespace first"
        raise refused(snapshot, source, "an object store cannot move it", advice)
    return _Candidate(
        source, dataset, columns, values, name, inside or name.directory, inside is None
    )


def opened(snapshot: Snapshot, source: str) -> lance.LanceDataset:
    """Open a dataset that is to be adopted, with the storage options of the namespace."""
    try:
        return lance.dataset(source, storage_options=lance_options(snapshot.storage_options))
    except (OSError, ValueError) as error:
        why = f"Lance cannot open it: {str(error).splitlines()[0]}"
        raise refused(snapshot, source, why, "Check the path") from error


def _relative(root: str, source: str) -> str | None:
    if "://" in root or "://" in source:
        prefix = root.rstrip("/") + "/"
        return source.rstrip("/").removeprefix(prefix) if source.startswith(prefix) else None
    inside, top = Path(source).resolve(), Path(root).resolve()
    return str(inside.relative_to(top)) if top in inside.parents else None


def checked_columns(snapshot: Snapshot, source: str, dataset: lance.LanceDataset) -> NamedColumns:
    """Match a dataset's columns to the namespace's by name.

    Raises:
        AdoptionRefused: They do not fit; nothing was changed.
    """
    schema = snapshot.schema.arrow
    try:
        columns = columns_by_name(dataset, schema, source)
    except LeafTypeMismatch as error:
        name, actual, expected = (error.parameters[key] for key in ("column", "actual", "expected"))
        why = f"its column {name} is {actual}, which does not promote to {expected}"
        raise refused(snapshot, source, why, "Change the column's type first") from error
    if columns.unknown:
        names = ", ".join(columns.unknown.values())
        why = f"the table has no column {names}"
        raise refused(snapshot, source, why, "Add the columns to the table, or drop them first")
    for column in columns.missing:
        has_default = INITIAL_DEFAULT in (column.metadata or {})
        if not column.nullable and not has_default and dataset.count_rows():
            why = f"it lacks the NOT NULL column {column.name}"
            raise refused(snapshot, source, why, "Add the column to the dataset first")
    lacking = {column.name for column in columns.missing}
    for column in schema:
        if (
            column.nullable
            or column.name in lacking
            or not dataset.schema.field(column.name).nullable
        ):
            continue
        condition = exp.Is(this=exp.column(column.name), expression=exp.Null())
        if LeafSource(dataset).count(condition.sql(dialect=DataFusion)):
            why = f"its column {column.name} has NULLs, the table's is NOT NULL"
            raise refused(snapshot, source, why, "Fill the column first")
    return columns


def _tuple(
    snapshot: Snapshot, source: str, dataset: lance.LanceDataset, given: Mapping[str, str]
) -> Mapping[str, pa.Scalar]:
    spec = snapshot.current_spec
    types = {field.field_id: snapshot.partition_type(field.field_id) for field in spec.fields}
    texts = {**path_values(source), **given}
    stated_values = values_of_spec(texts, spec, snapshot.schema, types)
    rows = RowValues(spec, snapshot.schema, types)
    match recovered_tuple(dataset, rows):
        case MixedTuples(first=first, other=other):
            why = f"it holds several partitions: {first}, {other}"
            raise refused(
                snapshot,
                source,
                why,
                "Let its rows be copied into their partitions (--split, split => true)",
            )
        case NoRows():
            values = dict(stated_values)
        case row_tuple:
            values = {**stated_values, **row_tuple.values}
            for name, value in row_tuple.values.items():
                stated = stated_values.get(name)
                if stated is not None and not is_same_value(stated, value):
                    why = (
                        f"its rows have {partition_text({name: value})}, but"
                        f" {partition_text({name: stated})} was given or is in its path"
                    )
                    raise refused(snapshot, source, why, "Correct the value or the rows")
    missing = [field.field_id for field in spec.fields if field.field_id not in values]
    if missing:
        why = f"it has no rows from which to compute {', '.join(missing)}"
        raise refused(snapshot, source, why, "Give the values (--values name=value)")
    return values


def _check_apart(snapshot: Snapshot, candidates: Sequence[_Candidate]) -> None:
    """Every tuple has one leaf, in the manifest and among the candidates."""
    leaves = snapshot.leaves().table
    spec = snapshot.current_spec
    mine = leaves.filter(pc.starts_with(leaves["object_id"], leaf_prefix(spec.spec_version)))
    seen: dict[str, str] = {}
    places = set(leaves["location"].to_pylist())
    for candidate in candidates:
        if candidate.location in places:
            why = f"the manifest has {candidate.location} already"
            raise refused(snapshot, candidate.source, why, "There is nothing to do")
        rows = mine
        for field in spec.fields:
            values = pa.repeat(candidate.values[field.field_id], rows.num_rows)
            column = rows[field.column].combine_chunks()
            rows = rows.filter(pc.invert(differs(column, values)))
        other = seen.get(candidate.name.object_id)
        if rows.num_rows:
            other = rows["location"][0].as_py()
        if other is not None:
            why = f"{other} is the leaf of {partition_text(candidate.values)} already"
            raise refused(snapshot, candidate.source, why, "Append its rows to the table instead")
        seen[candidate.name.object_id] = candidate.source


def _prepared(snapshot: Snapshot, candidate: _Candidate) -> LeafChange:
    """State the ids; what is told from here on is true of the dataset as it is."""
    dataset = state_ids(candidate.dataset, candidate.columns)
    if snapshot.is_strong:
        stop_auto_cleanup(dataset)
    counted = LeafCommit.of(dataset)
    return LeafChange(
        candidate.name.object_id,
        candidate.location,
        candidate.values,
        int(dataset.version) if snapshot.is_strong else None,
        counted.num_rows,
        counted.num_bytes,
        counted.num_fragments,
    )


def _committed(
    snapshot: Snapshot, candidates: Sequence[_Candidate], changes: Sequence[LeafChange]
) -> int:
    with ExitStack() as undo:
        for candidate in candidates:
            if candidate.is_moved:
                target = f"{snapshot.location}/{candidate.location}"
                _move(snapshot, candidate.source, target)
                undo.callback(shutil.move, target, candidate.source)
        version = _commit(snapshot, candidates, changes)
        undo.pop_all()
    return version


def _move(snapshot: Snapshot, source: str, target: str) -> None:
    if Path(target).exists():
        advice = "Remove what is left of an earlier write there"
        raise refused(snapshot, source, f"{target} exists", advice)
    shutil.move(source, target)


def _commit(
    snapshot: Snapshot, candidates: Sequence[_Candidate], changes: Sequence[LeafChange]
) -> int:
    now = snapshot
    for _ in range(_ATTEMPTS):
        check_mode(now, STRONG if snapshot.is_strong else WEAK)
        match commit_leaves(now, changes):
            case ManifestCommitted(version=version):
                return version
            case ConcurrentChange():
                now = Snapshot.open(snapshot.location, storage_options=snapshot.storage_options)
                if now.schema != snapshot.schema or now.specs != snapshot.specs:
                    break
                _check_apart(now, candidates)
    raise refused(
        snapshot, candidates[0].source, "other writers changed the table meanwhile", "Run it again"
    )


@dataclass(frozen=True, slots=True)
class Adoption:
    """Datasets that are partitions now.

    Args:
        version: The version of the table afterwards.
        leaves: A report per dataset and partition.
    """

    version: int
    leaves: Sequence[Adopted]


def adopt_or_split(
    location: str,
    storage_options: StorageOptions | None = None,
    *,
    path: str,
    partition_values: Mapping[str, str] | None = None,
    move: bool = False,
    split: bool = False,
    progress: Progress = no_progress,
) -> Adoption:
    """Adopt datasets where they are, or copy their rows into their partitions.

    Args:
        location: The namespace.
        storage_options: Given to Lance.
        path: A Lance dataset, or a folder with several below it.
        partition_values: Their partition values, by partition field or source column.
        move: Whether to move the datasets into the namespace.
        split: Whether to copy their rows, each into the partition that it belongs to.
        progress: Told after every dataset.

    Raises:
        AdoptionRefused: As `adopt` and `split_datasets`; or what only one of them takes was given
            to the other.
    """
    snapshot = Snapshot.open(location, storage_options=storage_options)
    place, values = stated_place(path), partition_values or {}
    if not split:
        leaves = adopt(snapshot, place, values, move=move, progress=progress)
    elif values or move:
        given = "values" if values else "move"
        why = f"{given} cannot be given with split, which copies each row to its own partition"
        raise refused(snapshot, place, why, f"Leave out {given} or split")
    else:
        leaves = split_datasets(snapshot, place, progress=progress)
    return Adoption(leaves[0].version if leaves else snapshot.version, leaves)


def _said(location: str, done: Adoption, arguments: Arguments) -> Iterator[str]:
    for leaf in done.leaves:
        yield f"{leaf.dataset}: {leaf.values}, {leaf.num_rows} rows, leaf {leaf.object_id}"
    what = "partitions written" if arguments.get("split") else "adopted"
    yield f"{location} is at version {done.version}, {len(done.leaves)} {what}"


ADOPT: Final = Procedure(
    adopt_or_split,
    "Take an existing Lance dataset, or a folder of them, into a table.",
    columns_of(Adopted),
    rows="leaves",
    name="adopt",
    renews_table=True,
    command="adopt",
    options={"table": "--into", "partition_values": "--values"},
    said=_said,
)


def split_datasets(
    snapshot: Snapshot, path: str, *, progress: Progress = no_progress
) -> list[Adopted]:
    """Copy the rows of the datasets at or below a path into their partitions, in one commit.

    Args:
        snapshot: The newest snapshot of the namespace.
        path: A dataset, or a folder with datasets below it.
        progress: Told after every dataset that was written.

    Returns:
        One report per dataset and partition; ``location`` is the partition's.

    Raises:
        AdoptionRefused: There is no dataset, or one whose columns do not fit; nothing is visible.
        PennonError: A value does not fit, or another writer was in the way each time.

    Spec: "Partition Expression", "Commit Behavior".
    """
    paths = datasets_below(path, snapshot.storage_options)
    if not paths:
        raise refused(snapshot, path, "there is no Lance dataset", "Check the path")
    datasets = [opened(snapshot, directory) for directory in paths]
    for source, dataset in zip(paths, datasets, strict=True):
        checked_columns(snapshot, source, dataset)
    target = WriteTarget(
        snapshot.location,
        snapshot.version,
        snapshot.current_spec.spec_version,
        snapshot.storage_options,
    )
    transaction = Transaction(snapshot)
    written: list[tuple[str, StagedPartition]] = []
    with ExitStack() as undo:
        undo.callback(lambda: transaction.abort([part for _, part in written]))
        for at, (source, dataset) in enumerate(zip(paths, datasets, strict=True), 1):
            written += [(source, part) for part in write_partitions(_chunks(dataset), target)]
            progress("datasets written", at, len(paths))
        transaction.append([part for _, part in written])
        version = _rows_committed(snapshot, path, transaction)
        undo.pop_all()
    return [_report(source, part, version) for source, part in written]


def _chunks(dataset: lance.LanceDataset) -> Iterator[pa.RecordBatch]:
    """Read rows in pieces that are large, since each makes a fragment per partition."""
    gathered: list[pa.RecordBatch] = []
    for batch in LeafSource(dataset).stored_batches():
        gathered.append(batch)
        if sum(piece.nbytes for piece in gathered) >= _BYTES_AT_ONCE:
            yield from _joined(gathered)
            gathered = []
    yield from _joined(gathered)


def _joined(batches: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
    return pa.Table.from_batches(batches).combine_chunks().to_batches() if batches else []


def _rows_committed(snapshot: Snapshot, path: str, transaction: Transaction) -> int:
    for _ in range(_ATTEMPTS):
        match transaction.commit():
            case Committed(version):
                return version
            case Conflicted(partition, reason):
                why = f"another writer changed partition {partition} meanwhile: {reason}"
                raise refused(snapshot, path, why, "Run it again")
            case Retryable():
                continue
    raise refused(snapshot, path, "other commits came first each time", "Run it again")


def _report(source: str, part: StagedPartition, version: int) -> Adopted:
    names = (name.removeprefix(PARTITION_PREFIX) for name in part.values.schema.names)
    values = dict(zip(names, (column[0] for column in part.values.columns), strict=True))
    return Adopted(
        source, part.object_id, part.location, partition_text(values), part.num_rows, version
    )
