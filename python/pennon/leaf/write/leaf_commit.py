"""Commits staged fragments to one leaf, detached or on its main branch.

A detached commit gives the leaf a version that only the manifest names. It is based on an exact
version, so a chain of them never sees what another writer does meanwhile.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import lance
import pyarrow as pa
from lance.bitmap import Bitmap
from lance.dataset import Index
from lance.fragment import FragmentMetadata, write_fragments

from pennon.caching.lance_sessions import lance_options
from pennon.errors import InternalError, LeafMissing, LeafSchemaMismatch, WriteConflict
from pennon.leaf.dataset import made_of, open_own_leaf, with_partition_values
from pennon.leaf.read.source import DEFAULT_BATCH_SIZE, LeafSource
from pennon.leaf.schema.array_conversion import convert_batch
from pennon.leaf.schema.file_layout import field_key, leaf_numbers, read_layout, renumbered
from pennon.leaf.schema.reconciliation import (
    FieldMatch,
    leaf_fields,
    leaf_matching,
    plain_field,
    shared_fields,
    stream_schema,
)
from pennon.leaf.schema.schema_widening import (
    Addition,
    edited,
    highest_number,
    num_fields,
    numbers_below,
    upgrade_of,
    vacated_names,
    widened,
    with_replaced,
)
from pennon.spec.column_defaults import INITIAL_DEFAULT
from pennon.spec.schema import NamespaceSchema, children_of, field_id_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from pennon.leaf.write.destination import StagedPartition

__all__ = [
    "FragmentFiles",
    "LeafCommit",
    "append_fragments",
    "commit_operation",
    "fence",
    "files_by_fragment",
    "has_initial_defaults",
    "prepared_fragments",
    "publish",
    "reindexed",
    "remove_fragments",
    "replace_fragments",
    "stop_auto_cleanup",
]

# Writes columns of a leaf's existing rows into additional data files.
#
# A fragment may have several data files, each with some of the columns. So a column of older rows
# is stored without touching any other: its initial default, or its values in a wider type.

# Lance's number for a column of a file that the dataset has elsewhere.
_GONE = -2
_ALL_IN_ONE_FILE = 1 << 62


def filled(
    dataset: lance.LanceDataset,
    fragment: FragmentMetadata,
    matches: Sequence[FieldMatch],
    numbers: Sequence[int],
    leaf: str,
) -> FragmentMetadata:
    """Store columns of a fragment's rows.

    Args:
        dataset: The leaf at a version that has the fragment, if any column is there already.
        fragment: The fragment, of the leaf or to be appended to it.
        matches: The columns; one that is not there is filled with its initial default.
        numbers: Lance's numbers of the columns and the fields below them, parents first.
        leaf: The leaf's name for errors.

    Returns:
        The fragment with one more data file; nothing is committed.
    """
    if not matches:
        return fragment
    schema = pa.schema([plain_field(match.expected) for match in matches])
    reader = pa.RecordBatchReader.from_batches(
        schema, _batches(dataset, fragment, matches, schema, leaf)
    )
    written = write_fragments(
        reader,
        dataset,
        schema=schema,
        mode="overwrite",
        max_rows_per_file=max(1, fragment.physical_rows),  # Lance takes it modulo 2³²
        max_bytes_per_file=_ALL_IN_ONE_FILE,
        data_storage_version=dataset.data_storage_version,
    )
    described = fragment.to_json()
    files = [file for part in written for file in part.to_json()["files"]]
    if len(files) != 1 or written[0].physical_rows != fragment.physical_rows:
        raise InternalError(what=f"columns of a fragment of {leaf} were not written as one file")
    files[0]["fields"] = [numbers[number] for number in files[0]["fields"]]
    described["files"] += files
    return FragmentMetadata.from_json(json.dumps(described))


def without(
    fragment: FragmentMetadata, numbers: Collection[int], before: FragmentMetadata
) -> FragmentMetadata:
    """Take columns out of the files that a fragment had before: another file has them now."""
    if not numbers:
        return fragment
    described = fragment.to_json()
    for file in described["files"][: len(before.files)]:
        file["fields"] = [_GONE if number in numbers else number for number in file["fields"]]
    return FragmentMetadata.from_json(json.dumps(described))


@dataclass(frozen=True, slots=True)
class FragmentFiles:
    """What a fragment is made of.

    Args:
        data: The path of each data file, and Lance's numbers of its columns.
        deletions: Which file says what rows of them are deleted; None where none is.
    """

    data: tuple[tuple[str, tuple[int, ...]], ...]
    deletions: str | None

    def has_no_row_beyond(self, other: FragmentFiles) -> bool:
        """Whether all its rows are rows of another state of the fragment, for certain."""
        return self.data == other.data and other.deletions in (None, self.deletions)


def has_initial_defaults(schema: pa.Schema) -> bool:
    """Whether a write may add files of columns that the rows' own files have not."""
    return any(INITIAL_DEFAULT in (column.metadata or {}) for column in schema)


def _batches(
    dataset: lance.LanceDataset,
    fragment: FragmentMetadata,
    matches: Sequence[FieldMatch],
    schema: pa.Schema,
    leaf: str,
) -> Iterator[pa.RecordBatch]:
    """Every physical row: a data file has those that are deleted, too."""
    plain = stream_schema(schema)
    names = [match.stored.name for match in matches if match.stored is not None]
    if not names:
        for start in range(0, fragment.physical_rows, DEFAULT_BATCH_SIZE):
            num_rows = min(DEFAULT_BATCH_SIZE, fragment.physical_rows - start)
            batch = convert_batch([None] * len(matches), matches, plain, num_rows, leaf)
            yield batch.cast(schema)
        return
    read = list(filter(None, [dataset.get_fragment(fragment.id)]))
    for batch in LeafSource(dataset).stored_batches(names, fragments=read, has_deleted=True):
        arrays = [
            None if match_.stored is None else batch.column(match_.stored.name)
            for match_ in matches
        ]
        if batch.num_rows:
            yield convert_batch(arrays, matches, plain, batch.num_rows, leaf).cast(schema)


@dataclass(frozen=True, slots=True)
class LeafCommit:
    """A version of a leaf and what it holds.

    Args:
        version: Lance's version; detached ones have the highest bit set.
        num_rows: Rows of the version.
        num_bytes: Bytes of its data files; None where Lance does not know.
        num_fragments: Its fragments.
    """

    version: int
    num_rows: int
    num_bytes: int | None
    num_fragments: int

    @classmethod
    def of(cls, dataset: lance.LanceDataset) -> LeafCommit:
        """Count what a version holds."""
        fragments = [fragment.metadata for fragment in dataset.get_fragments()]
        sizes = [file.file_size_bytes for fragment in fragments for file in fragment.files]
        recorded = [size for size in sizes if size is not None]
        num_bytes = sum(recorded) if len(recorded) == len(sizes) else None
        return cls(dataset.version, dataset.count_rows(), num_bytes, len(fragments))


def append_fragments(
    dataset: lance.LanceDataset,
    staged: Sequence[StagedPartition],
    schema: pa.Schema,
    *,
    detached: bool = True,
) -> lance.LanceDataset:
    """Add staged rows to a leaf.

    Args:
        dataset: The leaf at the version to build on.
        staged: What tasks wrote for this leaf.
        schema: The namespace schema, with its ids; columns that the leaf lacks are added to it.
        detached: Whether to commit beside the main branch.

    Raises:
        WriteConflict: The leaf stores a column in another type than the files, by now.

    Spec: "Multi-Partition Transaction (Strong)".
    """
    extended, fragments = prepared_fragments(dataset, staged, schema, detached=detached)
    if not fragments:
        return extended
    return commit_operation(extended, lance.LanceOperation.Append(fragments), detached=detached)


def replace_fragments(
    dataset: lance.LanceDataset,
    staged: Sequence[StagedPartition],
    schema: pa.Schema,
    replaced: Iterable[int] | None = None,
    *,
    detached: bool = True,
) -> lance.LanceDataset:
    """Put the staged rows in the place of fragments.

    Args:
        dataset: The leaf at the version to build on.
        staged: What tasks wrote for this leaf.
        schema: The namespace schema, with its ids; columns that the leaf lacks are added to it.
        replaced: The numbers of the fragments that go; None for all.
        detached: Whether to commit beside the main branch.
    """
    extended, fragments = prepared_fragments(dataset, staged, schema, detached=detached)
    present = [fragment.fragment_id for fragment in extended.get_fragments()]
    removed = present if replaced is None else list(replaced)
    if not removed and not fragments:
        return extended
    if not removed:
        return commit_operation(extended, lance.LanceOperation.Append(fragments), detached=detached)
    operation = lance.LanceOperation.Update(
        removed_fragment_ids=removed, updated_fragments=[], new_fragments=fragments
    )
    return commit_operation(extended, operation, detached=detached)


def remove_fragments(dataset: lance.LanceDataset, *, detached: bool = True) -> lance.LanceDataset:
    """Empty a leaf; older versions keep their rows."""
    removed = [fragment.fragment_id for fragment in dataset.get_fragments()]
    if not removed:
        return dataset
    operation = lance.LanceOperation.Delete(
        updated_fragments=[], deleted_fragment_ids=removed, predicate="true"
    )
    return commit_operation(dataset, operation, detached=detached)


def reindexed(
    dataset: lance.LanceDataset,
    built: Sequence[Index],
    removed: Collection[str],
    files: Mapping[int, FragmentFiles],
) -> lance.LanceDataset:
    """Give a leaf segments of indexes, and take others from it, detached.

    A fragment's number alone does not tell it from others: behind a rollback the same numbers are
    given again, to other rows, and rows that were deleted are there again. So a segment covers only
    those fragments that have the files which it was built of, and no row that was deleted then.

    Lance asks the index for all that its segments together cover: what a segment has of a fragment
    that it does not cover comes as soon as another one covers that number. So a segment is left out
    as a whole, and none goes for it, unless the numbers that it does not cover are never given
    again.

    Args:
        dataset: The leaf at the version to build on.
        built: Segments whose files are there.
        removed: Ids of segments that go.
        files: As ``files_by_fragment`` gave them of the version that they were built on.
    """
    now = files_by_fragment(dataset)
    # Of an index in which a fragment is twice Lance can make no version.
    covered: dict[str, set[int]] = {}
    gone = []
    for index in dataset.describe_indices():
        for segment in index.segments:
            fragments = segment.fragment_ids
            if segment.uuid in removed:
                at = segment.dataset_version_at_last_update
                fields, kind = list(index.fields), segment.index_version
                gone.append(Index(segment.uuid, index.name, fields, at, fragments, kind))
            else:
                covered.setdefault(index.name, set()).update(fragments)
    new = []
    for one in built:
        named = {*one.fragment_ids}
        same = {
            number
            for number in named & now.keys() & files.keys()
            if now[number].has_no_row_beyond(files[number])
        }
        are_past = all(number < max(now, default=0) for number in named - now.keys())
        is_whole = named & now.keys() == same and not same & covered.get(one.name, set())
        if same and is_whole and are_past:
            new.append(replace(one, fragment_ids=Bitmap(same)))
    if (built and not new) or not (new or gone):
        return dataset
    return commit_operation(dataset, lance.LanceOperation.CreateIndex(new, gone), detached=True)


def files_by_fragment(dataset: lance.LanceDataset) -> dict[int, FragmentFiles]:
    """Give what each fragment of a leaf is made of, by its number."""
    return {
        fragment.fragment_id: FragmentFiles(
            tuple((file.path, tuple(file.fields)) for file in fragment.metadata.files),
            _deletions(fragment.metadata),
        )
        for fragment in dataset.get_fragments()
    }


def _deletions(fragment: FragmentMetadata) -> str | None:
    file = fragment.deletion_file
    return None if file is None else str(file.asdict())


def commit_operation(
    dataset: lance.LanceDataset, operation: lance.LanceOperation.BaseOperation, *, detached: bool
) -> lance.LanceDataset:
    """Commit an operation on exactly the version that it was made for."""
    made = lance.LanceDataset.commit(
        dataset, operation, read_version=dataset.version, detached=detached
    )
    return made_of(made, dataset)


def prepared_fragments(
    dataset: lance.LanceDataset,
    staged: Sequence[StagedPartition],
    schema: pa.Schema,
    *,
    detached: bool,
) -> tuple[lance.LanceDataset, list[FragmentMetadata]]:
    """Give the leaf what it lacks, and staged fragments the leaf's numbers and columns.

    Args:
        dataset: The leaf at the version to build on.
        staged: What tasks wrote for this leaf.
        schema: The namespace schema, with its ids.
        detached: Whether a commit that the leaf needs before is one beside the main branch.

    Returns:
        The leaf, with the fragments that it had, and the new ones.
    """
    leaf = str(dataset.uri).rstrip("/").rsplit("/", 1)[-1]
    schema = with_partition_values(schema, dataset)
    layouts = {part.layout: read_layout(part.layout) for part in staged}
    if staged:
        dataset = _upgraded(dataset, layouts.values(), schema, leaf, detached=detached)
    matches = leaf_matching(schema, shared_fields(dataset)).of(schema, leaf)
    in_leaf = {key: (number, stored) for key, number, stored in leaf_numbers(matches)}
    fragments = []
    for part in staged:
        numbers = {}
        for key, (number, stored) in layouts[part.layout].items():
            at, kept = in_leaf.get(key, (None, "nothing"))
            if at is None or kept != stored:
                raise _type_changed(dataset, schema, key, stored, kept)
            numbers[number] = at
        lacking = [
            FieldMatch(column, None, ())
            for column in schema
            if INITIAL_DEFAULT in (column.metadata or {})
            and str(field_id_of(column)) not in layouts[part.layout]
        ]
        own = [number for match in lacking for number in _numbers_below(match.expected, in_leaf)]
        for text in part.fragments:
            fragment = FragmentMetadata.from_json(renumbered(text, numbers))
            fragments.append(filled(dataset, fragment, lacking, own, leaf))
    return dataset, fragments


def _type_changed(
    dataset: lance.LanceDataset, schema: pa.Schema, key: str, stored: str, kept: str
) -> WriteConflict:
    """Tell that the leaf takes a column in another type than when its new rows were written."""
    column = NamespaceSchema(schema).field_by_id(int(key)) if key.isdecimal() else None
    table = str(dataset.uri).rstrip("/").rsplit("/", 1)[0]
    why = f"the type of column {column or key} changed from {stored} to {kept} meanwhile"
    return WriteConflict(table=table, why=why)


def _numbers_below(
    column: pa.Field, in_leaf: Mapping[str, tuple[int | None, str]], above: str = ""
) -> Iterator[int]:
    """The leaf's numbers of a column and the fields below it, parents first."""
    key = field_key(column, above)
    for name in (key, f"{key}.entries"):
        number, _ = in_leaf.get(name, (None, ""))
        if number is not None:
            yield number
    for child in children_of(column.type):
        yield from _numbers_below(child, in_leaf, key)


def _upgraded(
    dataset: lance.LanceDataset,
    layouts: Iterable[Mapping[str, tuple[int, str]]],
    schema: pa.Schema,
    leaf: str,
    *,
    detached: bool,
) -> lance.LanceDataset:
    """Make the leaf one that takes the namespace's rows; older rows keep what they read as."""
    fields = leaf_fields(dataset)
    matches = leaf_matching(schema, shared_fields(dataset)).of(schema, leaf)
    stored = {key: kind for layout in layouts for key, (_, kind) in layout.items()}
    upgrade = upgrade_of(schema, matches, fields, stored, leaf)
    if not upgrade:
        return dataset
    older = [fragment.metadata for fragment in dataset.get_fragments()]
    for addition in upgrade.added if older else ():
        if not addition.field.nullable and INITIAL_DEFAULT not in (addition.field.metadata or {}):
            raise LeafSchemaMismatch(
                column=addition.field.name,
                leaf=leaf,
                actual="no such column",
                expected=addition.field.type,
            )
    names = vacated_names(dataset.lance_schema, upgrade.added)
    if names or upgrade.nullable:
        loosened = edited(dataset.lance_schema, names=names, nullable=upgrade.nullable)
        dataset = commit_operation(
            dataset, lance.LanceOperation.Project(loosened), detached=detached
        )
    if not upgrade.added and not upgrade.replaced:
        return dataset
    highest = highest_number(dataset.lance_schema, older)
    again: dict[int, tuple[pa.Field, Sequence[int]]] = {}
    for match in upgrade.replaced:
        numbers = list(_kept_numbers(match))
        lacking = numbers.count(None)
        fresh = iter(range(highest + 1, highest + 1 + lacking))
        kept = [next(fresh) if number is None else number for number in numbers]
        highest += lacking
        again[kept[0]] = match.expected, kept
    gone = numbers_below(dataset.lance_schema, again)
    schema_again = with_replaced(dataset.lance_schema, again)
    wide, added = widened(schema_again, upgrade.added, highest)
    added_numbers = _numbers_of(upgrade.added, added)
    columns = [_renamed(match, names) for match in (*upgrade.replaced, *upgrade.filled)]
    own = [number for _, kept in again.values() for number in kept]
    own += [
        number for match in upgrade.filled for number in added_numbers[field_id_of(match.expected)]
    ]
    operation = lance.LanceOperation.Merge(
        [
            without(filled(dataset, fragment, columns, own, leaf), gone, fragment)
            for fragment in older
        ],
        wide,
    )
    return commit_operation(dataset, operation, detached=detached)


def _kept_numbers(match: FieldMatch) -> Iterator[int | None]:
    """The leaf's numbers of a column and the fields below it; None for those it lacks."""
    if match.stored is None or match.stored.number < 0:
        yield from [None] * num_fields(match.expected)
        return
    yield match.stored.number
    if pa.types.is_map(match.expected.type):
        yield match.stored.children[0].number - 1  # the entries, between the map and its key
    below = children_of(match.expected.type)
    for child in match.children if len(match.children) == len(below) else ():
        yield from _kept_numbers(child)


def _numbers_of(
    additions: Sequence[Addition], numbers: Sequence[int]
) -> dict[int | None, Sequence[int]]:
    """Give the numbers of each addition, and of the fields below it, by its id."""
    by_field_id = {}
    at = 0
    for addition in additions:
        count = num_fields(addition.field)
        by_field_id[field_id_of(addition.field)] = numbers[at : at + count]
        at += count
    return by_field_id


def _renamed(match: FieldMatch, names: Mapping[int, str]) -> FieldMatch:
    """The match with the name that the leaf's column has now."""
    if match.stored is None or match.stored.number not in names:
        return match
    arrow = match.stored.arrow.with_name(names[match.stored.number])
    return replace(match, stored=replace(match.stored, arrow=arrow))


# What is done to a leaf's main branch where the table's transactions become strong or weak.

_AUTO_CLEANUP: Final = "lance.auto_cleanup."


def fence(dataset: lance.LanceDataset) -> lance.LanceDataset:
    """Make a version of the same rows that no commit is rebased over.

    Whoever opened the leaf before, and commits behind it, is refused by Lance: appends, changes of
    rows, and changes of the schema. The fence is refused itself where another commit came first.

    Args:
        dataset: The leaf at the newest version of its main branch.

    Returns:
        The version.

    Raises:
        OSError: Another commit came first, or the storage refused.

    Spec: "Multi-Partition Transaction (Strong)".
    """
    fragments = [fragment.metadata for fragment in dataset.get_fragments()]
    same = lance.LanceOperation.Merge(fragments, dataset.lance_schema)
    return commit_operation(dataset, same, detached=False)


def publish(
    root: str, location: str, version: int, storage_options: Mapping[str, str] | None = None
) -> None:
    """Make a version of a leaf the newest one of its main branch.

    Args:
        root: Path or URL of the namespace.
        location: The leaf's directory.
        version: A version of it, detached or not.
        storage_options: Given to Lance.

    Raises:
        LeafMissing: The version's files are gone.
        OSError: The storage refused.
    """
    dataset = open_own_leaf(root, location, version, storage_options)
    try:
        newest = open_own_leaf(root, location, None, storage_options)
    except LeafMissing:  # a leaf of a store begins without a main branch
        empty = lance.LanceOperation.Overwrite(dataset.schema, [])
        options = lance_options(storage_options)
        refused: OSError | None = None
        try:
            lance.LanceDataset.commit(
                dataset.uri, empty, read_version=0, max_retries=0, storage_options=options
            )
        except OSError as error:
            refused = error  # by the storage; or another process makes it, too
        try:
            newest = open_own_leaf(root, location, None, storage_options)
        except LeafMissing as missing:
            raise refused or missing from None
    if int(newest.version) != version:
        dataset.restore()  # type: ignore[no-untyped-call]


def stop_auto_cleanup(dataset: lance.LanceDataset) -> None:
    """Take out what has Lance clean up behind its commits: it deletes detached versions."""
    keys = [key for key in dataset.config() if key.startswith(_AUTO_CLEANUP)]
    if keys:
        dataset.delete_config_keys(keys)
