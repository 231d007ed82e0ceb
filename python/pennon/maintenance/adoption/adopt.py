"""``pennon adopt``: existing Lance datasets become partitions where they are.

No row is copied. A dataset's rows must all have one partition tuple; values that the caller or a
``column=value`` path states are checked against the rows. The namespace's field ids are stated on
the dataset's fields (a commit of its metadata), then the manifest records it. Upstream's readers
find a leaf at a location relative to the namespace only, so a dataset elsewhere is moved on
request, or refused.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

import lance
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from pennon.caching.lance_sessions import file_session, lance_options
from pennon.errors import AdoptionRefused, LeafTypeMismatch
from pennon.leaf import LeafSource
from pennon.leaf.schema.file_layout import NamedColumns, columns_by_name, state_ids
from pennon.leaf.write.leaf_commit import LeafCommit, stop_auto_cleanup
from pennon.maintenance.calls.procedure_declaration import Column
from pennon.maintenance.leaves.chosen_leaves import RowValues, differs, is_same_value
from pennon.maintenance.leaves.leaf_files import Progress, no_progress
from pennon.manifest import (
    ConcurrentChange,
    LeafChange,
    LeafName,
    ManifestCommitted,
    Snapshot,
    commit_leaves,
    leaf_name,
)
from pennon.manifest.dataset.storage import MANIFEST, storage_failure
from pennon.manifest.table_identity import STRONG, WEAK, check_mode
from pennon.predicate.dialect import DataFusion
from pennon.spec import NamespaceSchema, PartitionField, PartitionSpec
from pennon.spec.column_names import path_values, python_rows, value_of_text
from pennon.spec.partition_spec import leaf_prefix
from pennon.spec.write_order import INITIAL_DEFAULT
from pennon.transaction.staging.staged import partition_text
from pennon.transforms.registry import expression

__all__ = [
    "Adopted",
    "MixedTuples",
    "NoRows",
    "OneTuple",
    "adopt",
    "checked_columns",
    "datasets_below",
    "opened",
    "recovered_tuple",
    "refused",
    "tuple_of_rows",
]


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


# The one partition tuple of a dataset's rows, or the two rows that contradict each other.


@dataclass(frozen=True, slots=True)
class RowTuple:
    """A row and its partition values.

    Args:
        number: Its position, from 0.
        sources: The source columns of the row, as text.
        values: Its partition values by field id.
    """

    number: int
    sources: str
    values: Mapping[str, pa.Scalar]

    def __str__(self) -> str:
        return f"row {self.number} ({self.sources}) has {partition_text(self.values)}"


@dataclass(frozen=True, slots=True)
class OneTuple:
    """All rows have the same partition values."""

    values: Mapping[str, pa.Scalar]
    num_rows: int


@dataclass(frozen=True, slots=True)
class MixedTuples:
    """Two rows have different partition values."""

    first: RowTuple
    other: RowTuple


@dataclass(frozen=True, slots=True)
class NoRows:
    """There is no row to compute a partition value from."""


def tuple_of_rows(
    rows: RowValues, batches: Iterable[pa.RecordBatch]
) -> OneTuple | MixedTuples | NoRows:
    """Find the partition tuple that all rows have; reading stops at the first contradiction.

    Args:
        rows: Computes the values.
        batches: The source columns.
    """
    first: RowTuple | None = None
    num_rows = 0
    for batch in batches:
        if not batch.num_rows:
            continue
        values = rows.of(batch)
        if first is None:
            first = _row(batch, values, 0, 0)
        mask = pa.repeat(pa.scalar(value=False), batch.num_rows)
        for name, column in values.items():
            mask = pc.or_(mask, differs(column, pa.repeat(first.values[name], batch.num_rows)))
        other = pc.index(mask, value=True).as_py()
        if other >= 0:
            return MixedTuples(first, _row(batch, values, other, num_rows))
        num_rows += batch.num_rows
    return NoRows() if first is None else OneTuple(first.values, num_rows)


def _row(batch: pa.RecordBatch, values: Mapping[str, pa.Array], at: int, before: int) -> RowTuple:
    sources = python_rows(batch.slice(at, 1))[0]
    text = ", ".join(f"{name} {'NULL' if v is None else v}" for name, v in sources.items())
    return RowTuple(before + at, text, {name: column[at] for name, column in values.items()})


# The partition tuple of a dataset's rows: from the ends of its source columns, else row by row.
#
# A transform that never decreases has one value where it has the same for the smallest and the
# greatest source value. A month, day or hour does not increase for ever, but between two times of
# one month (day, hour) it is the same. Everything else, and columns with NULLs, is scanned.


def recovered_tuple(
    dataset: lance.LanceDataset, rows: RowValues
) -> OneTuple | MixedTuples | NoRows:
    """Find the partition tuple of a dataset.

    Args:
        dataset: The dataset.
        rows: Computes the values of its rows.

    Returns:
        The tuple, or two rows that contradict each other.
    """
    return _from_ends(dataset, rows) or tuple_of_rows(rows, rows.scan(dataset))


def _from_ends(dataset: lance.LanceDataset, rows: RowValues) -> OneTuple | None:
    if not rows.fields or not all(_is_ordered(field, rows) for field in rows.fields):
        return None
    ends: dict[str, pa.Array] = {}
    num_rows = 0
    try:
        for batch in rows.scan(dataset):
            num_rows += batch.num_rows
            for name, array in zip(batch.schema.names, batch.columns, strict=True):
                if array.null_count:
                    return None
                both = pc.min_max(array)
                here = pa.array([both["min"], both["max"]], array.type)
                ends_so_far = ends.get(name)
                if ends_so_far is not None:
                    wider = pc.min_max(pa.concat_arrays([ends_so_far, here]))
                    here = pa.array([wider["min"], wider["max"]], array.type)
                ends[name] = here
    except pa.ArrowNotImplementedError:
        return None
    if not ends:
        return None
    table = pa.table(ends)
    values = rows.of(table)
    if any(least != greatest for least, greatest in values.values()):
        return None
    for field in rows.fields:
        ends_of_field = rows.source(table, field.source_ids[0])
        first, last = field.derivation.monotone_values(ends_of_field)
        if first != last:
            return None
    return OneTuple({name: least for name, (least, _) in values.items()}, num_rows)


def _is_ordered(partition_field: PartitionField, rows: RowValues) -> bool:
    if not partition_field.derivation.has_monotone_values:
        return False
    source = rows.schema.field_by_id(partition_field.source_ids[0])
    # NaN is no end of a column of floats.
    return (
        source is not None and len(source.path) == 1 and not pa.types.is_floating(source.field.type)
    )


_VERSIONS: Final = "_versions"
_ATTEMPTS: Final = 5


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
