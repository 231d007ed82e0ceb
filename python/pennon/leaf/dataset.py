"""Opening one leaf: a Lance dataset at a version, detached or not.

In strong mode the manifest names the version; in weak mode it is the newest of the main branch.
A dataset at a version never changes, so opened ones are kept for all threads of the process. A
kept one of a small leaf costs about 10 KB and saves half of the time in which it is read; what
Lance remembers of the files of all of them has one bound.

Where another writer's leaf lacks the source column of an identity field, its rows have the
partition's value there, and not NULL.
"""

from __future__ import annotations

import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar
from weakref import WeakKeyDictionary

import lance
import pyarrow as pa

from pennon.caching import Cache, TableKey, storage_identity, version_identity
from pennon.caching.lance_sessions import (
    FIRST_DETACHED,
    file_session,
    forget_sessions,
    lance_options,
    lance_session,
    manifest_in,
    opening,
    version_path,
)
from pennon.errors import (
    DraftLayout,
    IndexFilesMissing,
    LeafMissing,
    LeafReadAtReference,
    NamespaceHasNoManifest,
    NotPartitionedNamespace,
    PartitionValueUnknown,
    StorageFailure,
    StoreSettingInvalid,
)
from pennon.leaf.schema.reconciliation import leaf_matching, shared_fields
from pennon.manifest.dataset.storage import (
    address,
    is_not_found,
    storage_failure,
    version_numbers,
)
from pennon.manifest.format.column_statistics import LeafIndex
from pennon.manifest.snapshot import Snapshot
from pennon.settings import STORE_LEAVES, from_environment
from pennon.spec.column_defaults import with_initial_default
from pennon.spec.partition_spec import leaf_prefix
from pennon.spec.schema import field_id_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

__all__ = [
    "FIRST_DETACHED",
    "ResolvedLeaf",
    "check_files",
    "check_is_main",
    "drop_dataset",
    "forget_opened",
    "index_files",
    "keep_opened",
    "leaf_failure",
    "leaf_indexes",
    "leaf_key",
    "leaf_missing",
    "leaf_uri",
    "leaves_at_once",
    "open_leaf",
    "open_own_leaf",
    "resolve_reference",
    "side_by_side",
    "with_partition_values",
]

_DATASET_BYTES: Final = 10 << 10
_FRAGMENT_BYTES: Final = 1 << 10
_OPENED_BYTES: Final = 96 << 20
_Leaf = TypeVar("_Leaf")
_Done = TypeVar("_Done")
_AHEAD: Final = 4
_MAIN: Final = "main"
_INDICES: Final = "_indices"
_SAYS_STORAGE: Final = "LanceError(IO)"
# Beyond so many files of a folder it is listed: a request each takes longer.
_MOST_ASKED_FOR: Final = 16
# A leaf's files on a store are asked for once in so many seconds by a process that builds on it.
_ASKED_AGAIN_SECONDS: Final = 3600
_checked: Final[Cache[bool]] = Cache("leaves with files", max_bytes=1 << 16, weigh=lambda _: 1)
_opened: Final[Cache[lance.LanceDataset]] = Cache(
    "opened leaves",
    max_bytes=_OPENED_BYTES,
    weigh=lambda dataset: _DATASET_BYTES + _FRAGMENT_BYTES * len(dataset.get_fragments()),
)


@dataclass(frozen=True, slots=True)
class ResolvedLeaf:
    """Where a leaf that the manifest leaves open is read.

    Args:
        location: That of the leaf, or of its branch, which opens as a dataset of its own.
        version: Lance version.
        identity: Tells the dataset from another one that was at its place before.
    """

    location: str
    version: int
    identity: str


def leaf_uri(root: str, location: str) -> str:
    """Give the address of a leaf: the manifest's locations are relative to the namespace.

    Args:
        root: Path or URL of the partitioned namespace.
        location: The leaf's ``location`` in the manifest.

    Returns:
        Path or URL of the leaf's dataset.

    Example:
        >>> leaf_uri("/data/orders/", "1a2b3c4d_v1$dataset")
        '/data/orders/1a2b3c4d_v1$dataset'
        >>> leaf_uri("s3://lake/orders", "s3a://old/orders/v1$dataset")
        's3://old/orders/v1$dataset'
    """
    if "://" in location or location.startswith("/"):
        return address(location)
    return f"{root.rstrip('/')}/{location}"


def leaves_at_once(root: str, *, on_disk: int) -> int:
    """Give how many leaves are worked on side by side: a store answers late, and many at once.

    Args:
        root: Path or URL of the partitioned namespace.
        on_disk: How many where it is on a disk.

    Raises:
        StoreSettingInvalid: The setting is no number, or less than one.

    Example:
        >>> leaves_at_once("/data/orders", on_disk=8), leaves_at_once("s3://data/orders", on_disk=8)
        (8, 32)
    """
    if "://" not in root:
        return on_disk
    stated = from_environment(STORE_LEAVES) or STORE_LEAVES.default or ""
    if not stated.isascii() or not stated.isdecimal() or not int(stated):
        raise StoreSettingInvalid(setting=STORE_LEAVES.name, value=stated)
    return int(stated)


def side_by_side(
    root: str, work: Callable[[_Leaf], _Done], leaves: Sequence[_Leaf]
) -> Iterator[_Done]:
    """Do something for each leaf, of a store for several at a time; the first failure ends it.

    Args:
        root: Path or URL of the partitioned namespace.
        work: Does it.
        leaves: The leaves, or what stands for them.

    Returns:
        What it gives, in their order; little is done ahead of who takes it.
    """
    most = leaves_at_once(root, on_disk=1)
    if most == 1:
        yield from map(work, leaves)
        return
    with ThreadPoolExecutor(most) as pool:
        try:
            for start in range(0, len(leaves), _AHEAD * most):
                yield from pool.map(work, leaves[start : start + _AHEAD * most])
        finally:
            pool.shutdown(cancel_futures=True)


def open_leaf(
    root: str,
    location: str,
    version: int | None = None,
    storage_options: Mapping[str, str] | None = None,
    table: str = "",
) -> lance.LanceDataset:
    """Open a leaf at a version.

    An opened dataset is kept where its version distinguishes it from all others: a detached one, or
    one of a table whose identity is known. A leaf without either is opened each time.

    Args:
        root: Path or URL of the partitioned namespace.
        location: The leaf's ``location`` in the manifest.
        version: The manifest's ``read_version``; None for the newest of the main branch.
        storage_options: Passed to Lance, never printed.
        table: The identity of the table at the version that is read, or of the scan's plan.

    Returns:
        The dataset, which other threads may share: treat it as a value, and read no transaction
        of it.

    Raises:
        LeafMissing: The files are gone, or were never there.

    Spec: "Transaction", "Physical Layout and Naming".
    """
    storage = storage_identity(storage_options)
    key = leaf_key(root, location, version, storage=storage, table=table)
    if key is None:
        return _open(root, location, version, storage_options, storage)
    return _opened.find(key, lambda: _open(root, location, version, storage_options, storage))


def leaf_key(
    root: str, location: str, version: int | None, *, storage: str, table: str, detail: str = ""
) -> TableKey | None:
    """Give the key of what is kept of a leaf at a version.

    Args:
        root: Path or URL of the partitioned namespace.
        location: The leaf's ``location`` in the manifest.
        version: The version that is read; None for the newest of the main branch.
        storage: The storage identity.
        table: The identity of the table at the version that is read, or of the scan's plan.
        detail: What of the leaf is kept.

    Returns:
        None where the version does not distinguish the leaf from all others: only a detached one
        does by itself.
    """
    if version is None or (version < FIRST_DETACHED and not table):
        return None
    own = "" if version >= FIRST_DETACHED else table
    return TableKey(leaf_uri(root, location), version, own, storage, detail)


def open_own_leaf(
    root: str,
    location: str,
    version: int | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> lance.LanceDataset:
    """Open a leaf at a version, as a dataset that no other thread has.

    Lance reads a transaction with the dataset borrowed for itself: whoever looks at it meanwhile
    gets a RuntimeError, and so does the reader.

    Args:
        root: Path or URL of the partitioned namespace.
        location: The leaf's ``location`` in the manifest.
        version: The manifest's ``read_version``; None for the newest of the main branch.
        storage_options: Passed to Lance, never printed.

    Raises:
        LeafMissing: The files are gone, or were never there.
    """
    return _open(root, location, version, storage_options, storage_identity(storage_options))


def _open(
    root: str,
    location: str,
    version: int | None,
    storage_options: Mapping[str, str] | None,
    storage: str,
) -> lance.LanceDataset:
    dataset = _read(root, location, version, storage_options, storage)
    _PLACES[dataset] = _Place(root, location.partition(_OF_BRANCH)[0], storage_options)
    return dataset


def _read(
    root: str,
    location: str,
    version: int | None,
    storage_options: Mapping[str, str] | None,
    storage: str,
) -> lance.LanceDataset:
    uri = leaf_uri(root, location)
    opened = opening(uri, storage_options)
    is_of_store = "uri" in opened and "://" in uri and "://" not in location
    if is_of_store and version is not None and version >= FIRST_DETACHED:
        options = opened["storage_options"]
        manifest = _manifest(root, f"{location}/{version_path(version)}", options)
        if manifest is not None:
            return lance.LanceDataset(
                uri,
                version,
                storage_options=options,
                serialized_manifest=manifest,
                session=lance_session(storage),
            )
    try:
        return lance.dataset(**opened, version=version, session=lance_session(storage))
    except (ValueError, OSError) as error:
        if not _says_missing(error):
            if _SAYS_STORAGE not in str(error):
                raise
            raise storage_failure("read", uri, error) from error
        at = "its newest version" if version is None else f"version {version}"
        raise LeafMissing(leaf=location, table=root, version=at) from error


# The partition's value of a column that a leaf lacks, though an identity field is made of it.
#
# Other writers leave such columns out, as Hive does. Pennon never does, and its leaves state their
# fields' ids. So the manifest is asked for leaves alone that state none, by their location: what it
# says of one is the same in all versions.

_OF_BRANCH: Final = "/tree/"


@dataclass(frozen=True)
class _Place:
    """Where a leaf was opened."""

    root: str
    location: str
    storage_options: Mapping[str, str] | None

    @cached_property
    def identity_values(self) -> Mapping[int, pa.Scalar]:
        """The values of the leaf's identity fields, which are the same in all versions."""
        return _identity_values(self)


_PLACES: Final[WeakKeyDictionary[lance.LanceDataset, _Place]] = WeakKeyDictionary()
_VALUES: Final[Cache[Mapping[str, Mapping[int, pa.Scalar]]]] = Cache(
    "values of identity fields", max_bytes=32 << 20, weigh=lambda leaves: 1000 * len(leaves)
)


def made_of(dataset: lance.LanceDataset, before: lance.LanceDataset) -> lance.LanceDataset:
    """Give a version of a leaf that was made of another one, which the manifest names."""
    if before in _PLACES:
        _PLACES[dataset] = _PLACES[before]
    return dataset


def with_partition_values(columns: pa.Schema, dataset: lance.LanceDataset) -> pa.Schema:
    """Give a namespace's columns as the rows of a leaf have them.

    Args:
        columns: All columns, with their ids.
        dataset: The leaf, as ``open_leaf`` gave it.

    Returns:
        The columns themselves; where the leaf is another writer's and lacks a column that an
        identity field is made of, this one with the partition's value as its initial default.

    Raises:
        PartitionValueUnknown: No version of the table that is left names the leaf.

    Spec: "Partition Spec", "Schema".
    """
    stored, place = shared_fields(dataset), _PLACES.get(dataset)
    if place is None or any(field.stated_id is not None for field in stored.fields):
        return columns
    lacking = leaf_matching(columns, stored).lacking
    values = place.identity_values if lacking else {}
    if not lacking & values.keys():
        return columns
    filled = [
        with_initial_default(column, values[field_id])
        if (field_id := field_id_of(column)) in values and field_id in lacking
        else column
        for column in columns
    ]
    return pa.schema(filled, columns.metadata)


def _identity_values(place: _Place) -> Mapping[int, pa.Scalar]:
    """Give the values of a leaf's identity fields, by the ids of their source columns."""
    try:
        snapshot = Snapshot.open(place.root, storage_options=place.storage_options)
    except (NamespaceHasNoManifest, NotPartitionedNamespace, DraftLayout):
        return {}  # a plain dataset
    has_identities = any(_identities(snapshot, version) for version in snapshot.specs)
    versions = reversed(version_numbers(snapshot.manifest)) if has_identities else ()
    for version in versions:  # a leaf of an older version may have been dropped since
        if version <= snapshot.version:
            at_version = snapshot if version == snapshot.version else snapshot.at_version(version)
            key = replace(at_version.key, detail="identities")
            leaves = _VALUES.find(key, partial(_all_values, at_version))
            if place.location in leaves:
                return leaves[place.location]
    if not has_identities:
        return {}
    raise PartitionValueUnknown(leaf=place.location, table=place.root)


def _identities(snapshot: Snapshot, spec_version: int) -> dict[str, int]:
    """Give the source column's id of each identity field of a spec, by the field's column."""
    return {
        field.column: field.source_ids[0]
        for field in snapshot.specs[spec_version].fields
        if field.derivation.is_identity
    }


def _all_values(snapshot: Snapshot) -> Mapping[str, Mapping[int, pa.Scalar]]:
    leaves = snapshot.leaves().table
    ids, locations = leaves["object_id"].to_pylist(), leaves["location"].to_pylist()
    known: dict[str, Mapping[int, pa.Scalar]] = {}
    for version in snapshot.specs:
        sources = _identities(snapshot, version)
        for row, (object_id, location) in enumerate(zip(ids, locations, strict=True)):
            if object_id.startswith(leaf_prefix(version)):
                known[location] = {at: leaves[name][row] for name, at in sources.items()}
    return known


def _manifest(root: str, path: str, storage_options: dict[str, str] | None) -> bytes | None:
    """Read what a version of a leaf is by one request; Lance asks for the file's size before.

    Returns:
        None where it is not as Lance writes it: then Lance opens the leaf, and says what it is.
    """
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, "manifest")
        try:
            file_session(root, storage_options).download_file(path, str(copy))
            content = copy.read_bytes()
        except (OSError, ValueError):
            return None
    return manifest_in(content)


def keep_opened(
    root: str,
    location: str,
    dataset: lance.LanceDataset,
    storage_options: Mapping[str, str] | None = None,
) -> None:
    """Keep a detached version that was just committed, for who reads it or builds on it.

    Args:
        root: Path or URL of the partitioned namespace.
        location: The leaf's ``location`` in the manifest.
        dataset: The leaf at the version.
        storage_options: What it was opened with.
    """
    storage = storage_identity(storage_options)
    key = leaf_key(root, location, int(dataset.version), storage=storage, table="")
    if key is not None:
        _PLACES[dataset] = _Place(root, location, storage_options)
        _opened.keep(key, dataset)


def leaf_missing(
    dataset: lance.LanceDataset, missing: type[LeafMissing] = LeafMissing
) -> LeafMissing:
    """Give the error that files of an opened leaf are not there."""
    table, _, leaf = str(dataset.uri).rstrip("/").rpartition("/")
    return missing(leaf=leaf, table=table, version=f"version {dataset.version}")


def leaf_failure(
    dataset: lance.LanceDataset, error: Exception
) -> LeafMissing | StorageFailure | None:
    """Give the error of files of an opened leaf that cannot be read; None for other errors."""
    if _says_missing(error):
        is_of_index = f"/{_INDICES}/" in str(error)
        return leaf_missing(dataset, IndexFilesMissing if is_of_index else LeafMissing)
    if _SAYS_STORAGE in str(error):
        return storage_failure("read", str(dataset.uri), error)
    return None


def check_files(
    dataset: lance.LanceDataset, storage_options: Mapping[str, str] | None = None
) -> None:
    """Check that a leaf that is to be built on has its oldest data files.

    A clean-up that knows nothing of detached versions takes these first; what is written on top
    of such a leaf could never be read. A store is asked once in an hour.

    Args:
        dataset: The leaf at a version.
        storage_options: Given to Lance.

    Raises:
        LeafMissing: One is gone.
    """
    fragment = next(iter(dataset.get_fragments()), None)
    if fragment is None:
        return
    own = [file.path for file in fragment.metadata.files if file.base_id is None]

    def checked() -> bool:
        if not are_there(str(dataset.uri), own, storage_options):
            raise leaf_missing(dataset)
        return True

    uri, storage = str(dataset.uri), storage_identity(storage_options)
    if "://" in uri:
        hour = int(time.time() / _ASKED_AGAIN_SECONDS)
        _checked.find(TableKey(uri, hour, "", storage, "/".join(own)), checked)
    else:
        checked()


def are_there(
    uri: str, paths: Iterable[str], storage_options: Mapping[str, str] | None = None
) -> bool:
    """Whether data files of a leaf are there.

    Args:
        uri: The leaf.
        paths: Below its ``data``.
        storage_options: Given to Lance.
    """
    root, _, leaf = uri.rstrip("/").rpartition("/")
    names, session = {f"{leaf}/data/{path}" for path in paths}, file_session(root, storage_options)
    if len(names) > _MOST_ASKED_FOR:
        return names <= set(session.list(f"{leaf}/data"))
    return all(map(session.contains, names))


def resolve_reference(
    root: str,
    location: str,
    reference: tuple[str | None, str | None],
    version: int | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> ResolvedLeaf:
    """Look up where a branch or a tag of a leaf is, as of now.

    Args:
        root: Path or URL of the partitioned namespace.
        location: The leaf's ``location`` in the manifest.
        reference: Branch and tag; the tag decides where both are there. No branch is main.
        version: The version to read, of that branch; None for its newest. A tag has its own.
        storage_options: Passed to Lance, never printed.

    Raises:
        LeafMissing: There is no such branch or tag.
    """
    branch, tag = reference
    if tag is not None:
        tags = open_leaf(root, location, None, storage_options).tags.list()
        if tag not in tags:
            raise LeafMissing(leaf=location, table=root, version=f"tag '{tag}'")
        branch, version = tags[tag]["branch"], int(tags[tag]["version"])
    if branch is not None and branch != _MAIN:
        location = f"{location}/tree/{branch}"
    dataset = open_leaf(root, location, version, storage_options)
    return ResolvedLeaf(location, int(dataset.version), version_identity(dataset))


def check_is_main(root: str, location: str, branch: str | None, tag: str | None) -> None:
    """Check that a leaf is read on its main branch, where alone Pennon writes.

    Raises:
        LeafReadAtReference: The manifest names a branch or a tag of it.
    """
    if tag is not None:
        raise LeafReadAtReference(leaf=location, table=root, reference=f"tag '{tag}'")
    if branch is not None and branch != _MAIN:
        raise LeafReadAtReference(leaf=location, table=root, reference=f"branch '{branch}'")


def forget_opened() -> None:
    """Drop the opened datasets, and what Lance remembers of their files."""
    for cache in (_opened, _checked):
        cache.forget(lambda _: True)
    forget_sessions()


def drop_dataset(uri: str, storage_options: Mapping[str, str]) -> None:
    """Delete a dataset with all its versions.

    Args:
        uri: Its address.
        storage_options: Passed to Lance.

    Raises:
        OSError: The storage refused, or nothing is there.
    """
    lance.LanceDataset.drop(uri, storage_options=lance_options(storage_options))


def _says_missing(error: Exception) -> bool:
    return is_not_found(error) or "no such file" in str(error).lower()


def index_files(uri: str, storage_options: Mapping[str, str] | None = None) -> dict[str, set[str]]:
    """Name the files that a leaf has of each segment of an index, by the segment's id.

    Args:
        uri: The leaf.
        storage_options: Given to Lance.
    """
    root, _, leaf = uri.rstrip("/").rpartition("/")
    folder = f"{leaf}/{_INDICES}"
    files: dict[str, set[str]] = {}
    for path in file_session(root, storage_options).list(folder):
        segment, _, name = path.removeprefix(f"{folder}/").partition("/")
        files.setdefault(segment, set()).add(name)
    return files


def leaf_indexes(dataset: lance.LanceDataset) -> tuple[LeafIndex, ...]:
    """Tell what indexes a leaf has, and how many of its rows are in them.

    A fragment that an index names may have gone since, or have been rewritten.
    """
    rows = {fragment.fragment_id: fragment for fragment in dataset.get_fragments()}
    listed = []
    for index in dataset.describe_indices():
        named = {number for segment in index.segments for number in segment.fragment_ids}
        num_rows = sum(rows[number].count_rows() for number in named & rows.keys())
        size = index.total_size_bytes
        listed.append(LeafIndex(index.name, index.index_type, num_rows, size, len(index.segments)))
    return tuple(listed)
