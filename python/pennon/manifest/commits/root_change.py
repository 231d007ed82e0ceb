"""Commits to the root namespace: a new partition spec, schema or properties.

Lance has no commit that changes columns and metadata at once. So the columns of ``__manifest``
come first: a partition column that no spec names yet is ignored by readers, and a wider one holds
the same values; then one metadata commit makes spec and schema visible together. A crash between
the two leaves the namespace as it was, and the change can be made again.

Two concurrent changes of spec or schema both write the key ``schema``: Lance refuses the second.
"""

from __future__ import annotations

import contextlib
import hashlib
import secrets
import time
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Self

import lance
import pyarrow as pa

from pennon.caching.lance_sessions import lance_options, saw_newest
from pennon.errors import (
    InternalError,
    ManifestNotRepairable,
    NamespaceExists,
    NamespaceHasNoManifest,
    PennonError,
)
from pennon.manifest.commits.manifest_commit import (
    ConcurrentChange,
    ManifestCommitted,
    ManifestOutcome,
)
from pennon.manifest.dataset.storage import (
    MANIFEST,
    StorageOptions,
    is_conflict,
    manifest_uri,
    open_manifest,
    storage_failure,
)
from pennon.manifest.format.names import ObjectId
from pennon.manifest.format.properties import (
    COMMENT,
    SCHEMA,
    TRANSACTION,
    TURN,
    property_keys,
    root_metadata,
)
from pennon.manifest.format.rows import (
    NAMESPACE,
    CommitIdentity,
    CommitRecord,
    ManifestRow,
    manifest_schema,
    partition_columns,
    table_of_rows,
)
from pennon.manifest.snapshot import Snapshot
from pennon.manifest.table_identity import open_commit_base
from pennon.spec.partition_spec import PartitionSpec
from pennon.spec.schema import NamespaceSchema

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "Turn",
    "change_root",
    "commit_metadata",
    "confirm_schema",
    "create",
    "replace_rows",
    "restore_version",
    "schema_id",
    "write_keys",
]


# Commits of ``__manifest`` that write no rows: their record is Lance's commit message.
#
# They read no file of the table either, so that Lance makes one where the table was dropped since
# it was opened, in a folder that is made anew. Such a commit is found out, and removed.


def schema_id(metadata: Mapping[str, str]) -> str:
    """Tell the schema of a version from others: equal schemas have equal ids.

    Args:
        metadata: The metadata of ``__manifest`` at the version.

    Example:
        >>> schema_id({"schema": "{}"})
        'd905e156'
    """
    text = metadata.get(SCHEMA, "")
    return hashlib.blake2b(text.encode(), digest_size=4).hexdigest()


def commit_metadata(
    base: lance.LanceDataset,
    written: Mapping[str, str | None],
    spec_version: int = 0,
    storage_options: StorageOptions | None = None,
) -> lance.LanceDataset:
    """Change keys of the metadata; Lance refuses it where another commit changes one of them.

    Args:
        base: ``__manifest`` at the version that the change was made for.
        written: Values by key; None removes it.
        spec_version: The newest partition spec at that version.
        storage_options: Given to Lance.

    Raises:
        NamespaceHasNoManifest: The table was dropped meanwhile.
        OSError: Another commit came first, or the storage refused.
    """
    updates = lance.LanceOperation.UpdateMap(dict(written))
    changed = lance.LanceOperation.UpdateConfig(table_metadata_updates=updates)
    return _committed(base, changed, "alter", base, spec_version, storage_options)


def restore_version(
    newest: lance.LanceDataset,
    restored: int,
    older: lance.LanceDataset,
    spec_version: int = 0,
    storage_options: StorageOptions | None = None,
) -> lance.LanceDataset:
    """Make a version the newest one, whatever others commit meanwhile.

    Args:
        newest: ``__manifest`` at its newest version.
        restored: The version, detached or not.
        older: The version of the main branch that it is a copy of.
        spec_version: The newest partition spec at that version.
        storage_options: Given to Lance.

    Raises:
        NamespaceHasNoManifest: The table was dropped meanwhile.
        OSError: The storage refused.
    """
    brought = lance.LanceOperation.Restore(restored)
    return _committed(newest, brought, "rollback", older, spec_version, storage_options)


def confirm_schema(
    restored: lance.LanceDataset, storage_options: StorageOptions | None = None
) -> lance.LanceDataset:
    """Write the schema of a restored version once more, which every change of it conflicts with.

    It changes nothing and has no record: in the history it is maintenance.

    Args:
        restored: ``__manifest`` at the version that ``restore_version`` has made.
        storage_options: Given to Lance.

    Raises:
        OSError: Another commit has changed the schema since, or the storage refused.
    """
    written = lance.LanceOperation.UpdateMap({SCHEMA: restored.metadata[SCHEMA]})
    return lance.LanceDataset.commit(
        restored,
        lance.LanceOperation.UpdateConfig(table_metadata_updates=written),
        read_version=restored.version,
        storage_options=lance_options(storage_options),
    )


def _committed(  # noqa: PLR0917
    dataset: lance.LanceDataset,
    operation: lance.LanceOperation.BaseOperation,
    name: str,
    base: lance.LanceDataset,
    spec_version: int,
    storage_options: StorageOptions | None,
) -> lance.LanceDataset:
    record = CommitRecord(
        CommitIdentity.fresh(),
        name,
        base_version=int(base.version),
        spec_version=spec_version,
        schema_id=schema_id(base.metadata),
        made_at=int(time.time()),
    )
    options = lance_options(storage_options) or {}
    made = lance.LanceDataset.commit(
        dataset,
        operation,
        read_version=dataset.version,
        commit_message=record.to_json(),
        storage_options=options or None,
    )
    if _is_dropped(dataset, made, options):
        location = str(made.uri).rstrip("/").removesuffix(f"/{MANIFEST}")
        raise NamespaceHasNoManifest(location=location)
    return made


def _is_dropped(
    before: lance.LanceDataset, made: lance.LanceDataset, options: dict[str, str]
) -> bool:
    """Whether a commit stands where nothing is left of the table; it is removed then.

    The version before may merely have expired, where others stand or the rows can be read.
    """
    try:
        lance.dataset(before.uri, version=before.version, storage_options=options or None)
    except (OSError, ValueError):
        if [int(entry["version"]) for entry in made.versions()] != [int(made.version)]:
            return False
    else:
        return False
    try:
        is_read = bool(made.get_fragments()) and made.to_table(limit=1).num_rows >= 0
    except (OSError, ValueError, RuntimeError):
        with contextlib.suppress(OSError, ValueError):
            lance.LanceDataset.drop(made.uri, storage_options=options or None)
        return True
    return not is_read


# Turns: a writer that keeps losing races asks the others to let it through.
#
# Who changes hundreds of leaves needs longer from its look at them to its commit than others need
# for a commit of one leaf, and while some of these never stop, it would never come to an end. So it
# writes into the metadata of ``__manifest`` that it is its turn, for a few seconds. The others read
# that at their next look, which opens the manifest anyway, and wait. It is a request and no lock:
# who does not know it, or does not wait, commits as ever, and the commit itself says who came
# first.

_PATIENCE: Final = 3
_LASTS_SECONDS: Final = 5.0
_LOOKS_EACH_SECONDS: Final = 0.05


class Turn:
    """One commit's turn; it is given back when the context is left.

    Args:
        location: The namespace.
        storage_options: Given to Lance.
    """

    def __init__(self, location: str, storage_options: StorageOptions | None) -> None:
        self._location = location
        self._options = storage_options
        self._id = secrets.token_hex(8)
        self._ends = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Give it back, if it was taken."""
        if self._ends:
            self._write(None)

    @property
    def is_mine(self) -> bool:
        """Whether it was taken and is not over."""
        return time.time() < self._ends

    def after(self, others: Callable[[], Snapshot]) -> Snapshot:
        """Look at the table; again, while it is another writer's turn.

        Args:
            others: Opens the newest version.
        """
        latest = time.monotonic() + _LASTS_SECONDS
        while True:
            snapshot = others()
            is_free = self.is_mine or not self._is_of_another(snapshot.manifest.metadata)
            if is_free or time.monotonic() > latest:
                return snapshot
            time.sleep(_LOOKS_EACH_SECONDS)

    def take_where_late(self, attempt: int) -> None:
        """Ask for it where many tries were in vain.

        Args:
            attempt: How many have failed before the last one.
        """
        if attempt + 1 >= _PATIENCE and not self.is_mine:
            ends = time.time() + _LASTS_SECONDS
            if self._write(f"{self._id} {int(ends * 1000)}"):
                self._ends = ends

    def _is_of_another(self, metadata: Mapping[str, str]) -> bool:
        name, _, ends = metadata.get(TURN, "").partition(" ")
        return ends.isdecimal() and name != self._id and time.time() * 1000 < int(ends)

    def _write(self, text: str | None) -> bool:
        """Write whose turn it is; whether that could be done, for nothing depends on it."""
        try:
            manifest = open_manifest(self._location, storage_options=self._options)
            if text is not None and self._is_of_another(manifest.metadata):
                return False
            manifest.update_metadata({TURN: text})
        except (PennonError, OSError, RuntimeError, ValueError):
            return False
        return True


# Creates a partitioned namespace.


def create(
    location: str,
    schema: NamespaceSchema,
    spec: PartitionSpec,
    properties: Mapping[str, str] | None = None,
    *,
    strong: bool = True,
    comment: str | None = None,
    storage_options: StorageOptions | None = None,
) -> Snapshot:
    """Create the ``__manifest`` of a new partitioned namespace.

    Two commits: the table with the row of ``v<N>``, then the metadata that makes it a partitioned
    namespace. What a crash between them leaves is an empty directory namespace, which the next
    ``create`` at the location completes.

    Args:
        location: Path or URL; it is made where it does not exist.
        schema: The namespace schema.
        spec: Its first partition spec.
        properties: The user's table properties.
        strong: Whether a write that touches many leaves is one transaction.
        comment: The table's comment.
        storage_options: Given to Lance; never part of an error.

    Returns:
        The first snapshot.

    Raises:
        NamespaceExists: The location has a ``__manifest`` with something in it.
        InvalidPartitionSpec: The spec does not fit the schema.
        ReservedProperty: A property has a name of Pennon's own.
        StorageFailure: The location cannot be written.

    Spec: "Metadata Definition", "Manifest Table Schema".
    """
    spec.check(schema)
    began, specs = time.monotonic(), {spec.spec_version: spec}
    metadata = root_metadata(schema, specs, properties or {}, strong=strong, comment=comment)
    arrow = manifest_schema(specs, strong=strong)
    rows = table_of_rows([ManifestRow(str(ObjectId(spec.spec_version)), NAMESPACE)], arrow)
    manifest = _unfinished(location, storage_options)
    if manifest is None:
        manifest = _first_version(location, rows, storage_options)
    elif manifest.schema != arrow or manifest.count_rows() != len(rows):
        raise NamespaceExists(location=location)
    try:
        manifest.update_metadata(dict(metadata))
    except OSError as error:
        if is_conflict(error):
            raise NamespaceExists(location=location) from error
        raise storage_failure("create", location, error) from error
    saw_newest(manifest_uri(location), storage_options, manifest, began, is_own=True)
    return Snapshot.open(location, storage_options=storage_options)


def _first_version(
    location: str, rows: pa.Table, storage_options: StorageOptions | None
) -> lance.LanceDataset:
    """Write version 1 of the manifest, and nothing but version 1.

    ``write_dataset(mode="create")`` looks once and then retries as an overwrite: of two racing
    creators the second would replace what the first has made. Based on version 0, without
    retries, Lance lets one pass.
    """
    uri, options = manifest_uri(location), lance_options(storage_options) or {}
    try:
        fragments = lance.fragment.write_fragments(
            rows, uri, schema=rows.schema, mode="create", storage_options=options
        )
        return lance.LanceDataset.commit(
            uri,
            lance.LanceOperation.Overwrite(rows.schema, fragments),
            read_version=0,
            max_retries=0,
            storage_options=options,
        )
    except OSError as error:
        message = str(error).lower()
        if "already exists" in message or "0.manifest was not found" in message:
            raise NamespaceExists(location=location) from error
        raise storage_failure("create", location, error) from error


def _unfinished(location: str, storage_options: StorageOptions | None) -> lance.LanceDataset | None:
    """Open what an interrupted creation left."""
    try:
        manifest = open_manifest(location, None, None, storage_options)
    except NamespaceHasNoManifest:
        return None
    if manifest.metadata:
        raise NamespaceExists(location=location)
    return manifest


# Commits a repair of ``__manifest``: keys of the metadata, then all rows and columns at once.
#
# Lance writes metadata and rows in two commits. The rows come in one that replaces every fragment
# and the columns: a reader sees the damage or none of it, the version before stays one to roll back
# to, and Lance refuses the commit behind any other, and any other that was begun before it.


def write_keys(
    manifest: lance.LanceDataset, location: str, keys: Mapping[str, str]
) -> lance.LanceDataset:
    """Write keys of the metadata.

    Args:
        manifest: ``__manifest`` as it was looked at.
        location: The namespace.
        keys: Their values.

    Returns:
        The version that has them, in which nothing else was changed.

    Raises:
        ManifestNotRepairable: Another writer came first.
        StorageFailure: The storage refused.

    Spec: "Metadata Definition".
    """
    version = int(manifest.version) + 1
    try:
        manifest.update_metadata(dict(keys))
    except (OSError, RuntimeError, ValueError) as error:
        raise _refused(location, error) from error
    if manifest.version != version:
        raise _changed_meanwhile(location)
    return manifest


def replace_rows(
    manifest: lance.LanceDataset,
    location: str,
    rows: pa.Table,
    spec_version: int,
    storage_options: StorageOptions | None = None,
) -> int:
    """Put rows in the place of all rows of a version; its metadata stays.

    Args:
        manifest: ``__manifest`` as it was looked at.
        location: The namespace.
        rows: All of them, with all columns.
        spec_version: The newest partition spec.
        storage_options: Given to Lance.

    Returns:
        The version that has the rows.

    Raises:
        ManifestNotRepairable: Another writer came first.
        StorageFailure: The storage refused.

    Spec: "Manifest Table Schema".
    """
    record = CommitRecord(
        CommitIdentity.fresh(),
        "repair",
        base_version=int(manifest.version),
        spec_version=spec_version,
        schema_id=schema_id(manifest.metadata),
        made_at=int(time.time()),
    )
    options = lance_options(storage_options)
    try:
        fragments = lance.fragment.write_fragments(
            rows, manifest, mode="overwrite", schema=rows.schema, storage_options=options
        )
        # Lance does not look for versions that have expired meanwhile.
        if open_manifest(location, storage_options=options).version != manifest.version:
            raise _changed_meanwhile(location)
        made = lance.LanceDataset.commit(
            manifest,
            lance.LanceOperation.Overwrite(rows.schema, fragments),
            read_version=manifest.version,
            max_retries=0,
            commit_message=record.to_json(),
            storage_options=options,
        )
    except (OSError, RuntimeError, ValueError) as error:
        raise _refused(location, error) from error
    return int(made.version)


def _refused(location: str, error: Exception) -> Exception:
    return (
        _changed_meanwhile(location)
        if is_conflict(error)
        else storage_failure("repair", location, error)
    )


def _changed_meanwhile(location: str) -> ManifestNotRepairable:
    return ManifestNotRepairable(
        location=location,
        why="another writer changed its __manifest meanwhile",
        advice="Run it again",
    )


def change_root(
    snapshot: Snapshot,
    *,
    schema: NamespaceSchema | None = None,
    spec: PartitionSpec | None = None,
    properties: Mapping[str, str] | None = None,
    removed_properties: Sequence[str] = (),
    comment: str | None = None,
    mode: str | None = None,
    indexes: Mapping[str, str | None] = MappingProxyType({}),
) -> ManifestOutcome:
    """Change what the metadata of a namespace says.

    Args:
        snapshot: The snapshot that the change was made against.
        schema: The new namespace schema; None leaves it.
        spec: The next partition spec; None adds none.
        properties: Table properties to set.
        removed_properties: Table properties to remove.
        comment: The table's comment; None leaves it, an empty one removes it.
        mode: Ends what keeps writers away, in the same commit: the mode in which they go on. Where
            another process has ended it, the change is refused.
        indexes: Definitions of indexes by their keys; None removes one.

    Returns:
        The version that has the change, or that another writer came first.

    Raises:
        InvalidPartitionSpec: The spec does not fit the schema.
        ReservedProperty: A property has a name of Pennon's own.
        StorageFailure: The storage refused.
        TableMadeAnew: Another table stands there by now.

    Spec: "Partition Evolution", "Manifest Table Schema".
    """
    written: dict[str, str | None] = dict(property_keys(properties or {}))
    written.update(dict.fromkeys(property_keys(dict.fromkeys(removed_properties, ""))))
    written.update(indexes)
    if comment is not None:
        written[COMMENT] = comment or None
    if mode is not None:
        written[TRANSACTION] = mode
    if schema is not None or spec is not None:
        written[SCHEMA] = (schema or snapshot.schema).to_json()
    if spec is not None:
        if spec.spec_version in snapshot.specs:
            raise InternalError(what=f"{spec.key} exists and specs never change")
        spec.check(schema or snapshot.schema)
        written[spec.key] = spec.to_json()
    base = open_commit_base(snapshot)
    try:
        if spec is not None:
            _fit_columns(base, spec)
        if written:
            number = snapshot.current_spec.spec_version
            base = commit_metadata(base, written, number, snapshot.storage_options)
    except (OSError, RuntimeError, ValueError) as error:
        if not is_conflict(error):
            raise storage_failure("change", snapshot.location, error) from error
        return ConcurrentChange()
    return ManifestCommitted(base.version)


def _fit_columns(manifest: lance.LanceDataset, spec: PartitionSpec) -> None:
    """Add the partition columns that are missing and widen those that are too narrow."""
    present = {field.name: field.type for field in manifest.schema}
    expected = partition_columns([spec])
    added = [pa.field(name, kind) for name, kind in expected.items() if name not in present]
    if added:
        manifest.add_columns(added)
    for name, kind in expected.items():
        if name in present and present[name] != kind:
            manifest.alter_columns({"path": name, "data_type": kind})  # type: ignore[dict-item]
