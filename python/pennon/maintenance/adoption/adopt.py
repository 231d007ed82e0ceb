"""``pennon adopt``: existing Lance datasets become partitions where they are.

No row is copied. A dataset's rows must all have one partition tuple; values that the caller or a
``column=value`` path states are checked against the rows. The namespace's field ids are stated on
the dataset's fields (a commit of its metadata), then the manifest records it. Upstream's readers
find a leaf at a location relative to the namespace only, so a dataset elsewhere is moved on
request, or refused.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

import lance
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from pennon.errors import AdoptionRefused, LeafTypeMismatch
from pennon.leaf.schema.adopted_dataset import NamedColumns, columns_by_name, state_ids
from pennon.leaf.write.leaf_commit import LeafCommit
from pennon.leaf.write.main_branch import stop_auto_cleanup
from pennon.maintenance.adoption.given_values import values_of_spec
from pennon.maintenance.adoption.leaf_tuple import MixedTuples, NoRows
from pennon.maintenance.adoption.recovery import recovered_tuple
from pennon.maintenance.calls.procedure_declaration import Column
from pennon.maintenance.leaves.partition_values import RowValues, differs, is_same_value
from pennon.maintenance.leaves.progress import Progress, no_progress
from pennon.manifest import (
    ConcurrentChange,
    LeafChange,
    LeafName,
    ManifestCommitted,
    Snapshot,
    commit_leaves,
    leaf_name,
)
from pennon.manifest.dataset.storage import MANIFEST
from pennon.manifest.transaction_mode import STRONG, WEAK, check_mode
from pennon.predicate.dialect import DataFusion
from pennon.spec.initial_default import INITIAL_DEFAULT
from pennon.spec.partition_spec import leaf_prefix
from pennon.spec.value_text import path_values
from pennon.transaction.staging.leaf_state import partition_text

__all__ = ["Adopted", "adopt", "checked_columns", "datasets_below", "opened", "refused"]

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


def datasets_below(path: str) -> list[str]:
    """Find the Lance datasets at or below a folder; a URL is one dataset.

    Example:
        >>> import tempfile, lance, pyarrow as pa
        >>> place = tempfile.mkdtemp()
        >>> _ = lance.write_dataset(pa.table({"a": [1]}), place + "/x=1/d.lance")
        >>> [path.removeprefix(place) for path in datasets_below(place)]
        ['/x=1/d.lance']
    """
    top = Path(path)
    if "://" in path or (top / _VERSIONS).is_dir():
        return [path]
    paths: list[str] = []
    for entry in sorted(top.iterdir()) if top.is_dir() else []:
        if entry.is_dir() and entry.name != MANIFEST:
            paths += datasets_below(str(entry))
    return paths


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
    paths = datasets_below(path)
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
        return lance.dataset(source, storage_options=dict(snapshot.storage_options) or None)
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
        if dataset.count_rows(filter=condition.sql(dialect=DataFusion)):
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
