"""The name of a registered namespace, in the ``__manifest`` of a directory namespace.

Upstream's interface can make and drop a namespace and not change one. A table that is replaced or
renamed would have no name in between, or two, so its row is changed here, in one commit.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from sqlglot import exp

from pennon.caching.lance_sessions import near
from pennon.errors import NamespaceHasNoManifest, WriteConflict
from pennon.manifest.dataset.select import select
from pennon.manifest.dataset.storage import (
    StorageOptions,
    is_conflict,
    open_manifest,
    storage_failure,
)
from pennon.manifest.format.names import SEPARATOR, ObjectId
from pennon.manifest.format.properties import SCHEMA, runtime_properties
from pennon.manifest.format.rows import NAMESPACE, PARTITION_PREFIX, TABLE
from pennon.manifest.snapshot import Snapshot
from pennon.predicate.dialect import DataFusion
from pennon.spec.arrow_json import object_or_empty
from pennon.spec.column_names import python_rows

if TYPE_CHECKING:
    import lance

    from pennon.caching import TableKey

__all__ = [
    "StoredName",
    "change_properties",
    "child_namespaces",
    "is_below_spec",
    "is_registered",
    "move_registration",
    "namespace_properties",
    "rename_registration",
    "row_of_leaf",
    "stored_name",
    "take_plain_name",
]


# The description of one namespace or leaf of a snapshot: its runtime properties and version.


def is_below_spec(snapshot: Snapshot, path: Sequence[str]) -> bool:
    """Whether a path is a spec version of the namespace or an object below one."""
    parsed = ObjectId.parse(SEPARATOR.join(path))
    return parsed is not None and parsed.spec_version in snapshot.specs


def namespace_properties(snapshot: Snapshot, path: Sequence[str]) -> dict[str, str]:
    """Give the properties that describing a namespace returns, at every level.

    Args:
        snapshot: The partitioned namespace.
        path: Of a namespace that is there: ``[]``, ``["v1"]`` or ``["v1", "k7m2n9p4q8r5s3t6"]``.

    Returns:
        For the root the schema and every spec as they are stored; for a spec version its spec; for
        a partition the value of its own level; for objects that are not the format's nothing.

    Spec: "Metadata Definition", "Runtime Namespace Properties", Appendix E.
    """
    if not path:
        metadata_keys = {SCHEMA, *(spec.key for spec in snapshot.specs.values())}
        return {name: text for name, text in snapshot.metadata.items() if name in metadata_keys}
    if not is_below_spec(snapshot, path):
        return {}
    # Upstream joins a name's parts: ["v1$k7m2n9p4q8r5s3t6"] is the same namespace to it.
    path = SEPARATOR.join(path).split(SEPARATOR)
    spec = snapshot.specs[int(path[0][1:])]
    if len(path) - 1 > len(spec.fields):
        return {}
    return runtime_properties(snapshot.specs, path, _values(snapshot, path))


def child_namespaces(snapshot: Snapshot, path: Sequence[str]) -> list[str]:
    """Give the names of the namespaces right below one, in order.

    Args:
        snapshot: The partitioned namespace.
        path: ``[]`` for its root.
    """
    above = SEPARATOR.join((*path, ""))
    start = exp.func("starts_with", exp.column("object_id"), exp.Literal.string(above))
    rows = select(snapshot.manifest, ["object_id"], "namespace", start if path else None).table
    below = (object_id.removeprefix(above) for object_id in rows["object_id"].to_pylist())
    return sorted(name for name in below if SEPARATOR not in name)


def _values(snapshot: Snapshot, path: Sequence[str]) -> Mapping[str, pa.Scalar]:
    if len(path) == 1:
        return {}
    columns = snapshot.partition_columns
    rows = select(snapshot.manifest, columns, "namespace", _is_object(path)).table
    if not len(rows):
        return {}
    return {name.removeprefix(PARTITION_PREFIX): rows[name][0] for name in columns}


def row_of_leaf(snapshot: Snapshot, path: Sequence[str]) -> Mapping[str, object]:
    """Give the row of ``Snapshot.leaves`` for one leaf; none where there is no such leaf.

    Spec: "Read Behavior".
    """
    leaves = snapshot.leaves(_is_object(path)).table
    rows = python_rows(leaves.slice(0, 1))
    return rows[0] if rows else {}


def _is_object(path: Sequence[str]) -> exp.Expr:
    return exp.column("object_id").eq(exp.Literal.string(SEPARATOR.join(path)))


_PATIENCE_SECONDS: Final = 20.0
_PAUSE_SECONDS: Final = 0.05


def move_registration(
    root: str, name: Sequence[str], old: str, new: str, storage_options: StorageOptions
) -> bool:
    """Point a name to another location; readers see the one or the other.

    Args:
        root: Path or URL of the directory namespace.
        name: The parts of the name below it.
        old: The ``location`` property as it is.
        new: The ``location`` property as it shall be.
        storage_options: Given to Lance.

    Returns:
        False where the name has another location by now; nothing is changed then.
    """
    return change_properties(root, name, {"location": old}, {"location": new}, storage_options)


def is_registered(
    root: str, name: Sequence[str], location: str, storage_options: StorageOptions
) -> bool:
    """Whether a name points to a location.

    Args:
        root: Path or URL of the directory namespace.
        name: The parts of the name below it.
        location: The ``location`` property that it may have.
        storage_options: Given to Lance.

    Raises:
        StorageFailure: The storage refused.
    """
    manifest = open_manifest(root, storage_options=storage_options)
    is_named = _is_named(SEPARATOR.join(name)).sql(dialect=DataFusion)
    rows = manifest.to_table(columns=["metadata"], filter=is_named)
    texts = rows["metadata"].to_pylist()
    return any(json.loads(text or "{}").get("location") == location for text in texts)


@dataclass(frozen=True)
class StoredName:
    """What the manifest of a directory namespace says of a name.

    Args:
        is_free: Neither a namespace nor a table has it.
        properties: Those of the namespace; None where the name is no namespace's.
    """

    is_free: bool
    properties: Mapping[str, str] | None = None


def stored_name(
    manifest: lance.LanceDataset,
    key: TableKey,
    name: Sequence[str],
    storage_options: StorageOptions,
) -> StoredName | None:
    """Read what a manifest on a store says of a name; the store is asked for little.

    Args:
        manifest: That of a directory namespace at a version.
        key: The directory namespace at that version.
        name: The parts of the name below it.
        storage_options: Given to Lance.

    Returns:
        None where it cannot be read like this.
    """
    is_named = _is_named(SEPARATOR.join(name)).sql(dialect=DataFusion)
    try:
        table = near(manifest, key, storage_options).to_table(
            columns=["object_type", "metadata"], filter=is_named
        )
    except (OSError, ValueError):  # who asks the implementation is told what is wrong
        return None
    rows = table.to_pylist()
    if not rows:
        return StoredName(is_free=True)
    if len(rows) > 1:
        return None
    if rows[0]["object_type"] != NAMESPACE:
        return StoredName(is_free=False)
    properties = object_or_empty(rows[0]["metadata"])
    return StoredName(False, {key: str(value) for key, value in properties.items()})


def change_properties(
    root: str,
    name: Sequence[str],
    old: Mapping[str, str],
    new: Mapping[str, str],
    storage_options: StorageOptions,
) -> bool:
    """Give a namespace other properties; readers see the ones or the others.

    Args:
        root: Path or URL of the directory namespace.
        name: The parts of the name below it.
        old: The properties as they are.
        new: The properties as they shall be.
        storage_options: Given to Lance.

    Returns:
        False where it has other properties by now, or is gone; nothing is changed then.
    """
    manifest = open_manifest(root, storage_options=storage_options)
    is_named = _is_named(SEPARATOR.join(name))
    rows = manifest.to_table(columns=["metadata"], filter=is_named.sql(dialect=DataFusion))
    for text in rows["metadata"].to_pylist():
        properties = json.loads(text or "{}")
        if any(properties.get(key) != value for key, value in old.items()):
            return False
        kept = {key: value for key, value in properties.items() if key not in old}
        changed = json.dumps({**kept, **new})
        stored = exp.column("metadata")
        is_unchanged = stored.is_(exp.null()) if text is None else stored.eq(_text(text))
        updated = manifest.update(
            {"metadata": _text(changed).sql(dialect=DataFusion)},
            where=exp.and_(is_named, is_unchanged).sql(dialect=DataFusion),
        )
        return bool(updated["num_rows_updated"])
    return False


def take_plain_name(
    root: str,
    name: Sequence[str],
    location: str,
    properties: Mapping[str, str],
    storage_options: StorageOptions,
) -> bool:
    """Give the name of a plain table to a partitioned namespace; the table's files stay.

    Args:
        root: Path or URL of the directory namespace.
        name: The parts of the name below it.
        location: The plain table's, relative to the root.
        properties: Those of the namespace.
        storage_options: Given to Lance.

    Returns:
        False where no plain table of that name and location is registered: one that is merely a
        folder, or that another writer replaced or dropped. Nothing is changed then.
    """
    try:
        manifest = open_manifest(root, storage_options=storage_options)
    except NamespaceHasNoManifest:
        return False
    is_plain = exp.and_(
        _is_named(SEPARATOR.join(name)),
        exp.column("object_type").eq(exp.Literal.string(TABLE)),
        exp.column("location").eq(exp.Literal.string(location)),
    )
    below = exp.func("starts_with", exp.column("object_id"), _text(SEPARATOR.join([*name, ""])))
    if manifest.count_rows(below.sql(dialect=DataFusion)):
        return False
    changed = {
        "object_type": _text(NAMESPACE),
        "location": exp.func("nullif", exp.column("location"), exp.column("location")),
        "metadata": _text(json.dumps(dict(properties))),
    }
    updated = manifest.update(
        {column: value.sql(dialect=DataFusion) for column, value in changed.items()},
        where=is_plain.sql(dialect=DataFusion),
    )
    return bool(updated["num_rows_updated"])


def rename_registration(
    root: str, name: Sequence[str], to: Sequence[str], storage_options: StorageOptions
) -> bool:
    """Give a registered namespace another name; readers see the one or the other.

    Args:
        root: Path or URL of the directory namespace.
        name: The parts of the name below it.
        to: Those of the new name.
        storage_options: Given to Lance.

    Returns:
        False where the name is gone or the new one is taken by now; nothing is changed then.

    Raises:
        WriteConflict: Others changed the root each time it was tried, for a while.
    """
    old, new = SEPARATOR.join(name), SEPARATOR.join(to)
    condition = exp.and_(_is_named(old), exp.column("object_type").eq(_text(NAMESPACE)))
    deadline = time.monotonic() + _PATIENCE_SECONDS
    tried: pa.Table | None = None
    while time.monotonic() < deadline:
        manifest = open_manifest(root, storage_options=storage_options)
        row = manifest.to_table(filter=condition.sql(dialect=DataFusion))
        if row.num_rows != 1:
            return tried is not None and _is_there(manifest, new, tried)
        at = row.schema.get_field_index("object_id")
        row = row.set_column(at, row.schema.field(at), pa.array([new]))
        match _inserted(manifest, row, _is_named(old)):
            case _Inserted.YES:
                return True
            case _Inserted.NAME_TAKEN:
                return False
            case _Inserted.OVERTAKEN:
                # Some row of the root has changed, most often another name's: look again. Where the
                # store's answer was lost, it may be this very change.
                tried = row
                time.sleep(random.uniform(0, _PAUSE_SECONDS))  # noqa: S311
    why = f"other names of the root were changed for {_PATIENCE_SECONDS:.0f} seconds"
    raise WriteConflict(table=".".join(name), why=why)


class _Inserted(Enum):
    """How an insertion into the manifest of a root ended."""

    YES = auto()
    NAME_TAKEN = auto()
    OVERTAKEN = auto()


def _inserted(manifest: lance.LanceDataset, row: pa.Table, instead_of: exp.Expr) -> _Inserted:
    """Insert a row and delete another one in one commit, unless its key is there or comes first."""
    merge = (
        manifest.merge_insert("object_id")
        .when_matched_fail()
        .when_not_matched_insert_all()
        .when_not_matched_by_source_delete(instead_of.sql(dialect=DataFusion))
        .conflict_retries(0)
    )
    try:
        merge.execute(row)
    except (OSError, ValueError) as error:
        if "found matching row" in str(error):
            return _Inserted.NAME_TAKEN
        if is_conflict(error):
            return _Inserted.OVERTAKEN
        raise storage_failure("change", manifest.uri, error) from error
    return _Inserted.YES


def _is_there(manifest: lance.LanceDataset, object_id: str, row: pa.Table) -> bool:
    """Whether a name has what a row was to give it: the namespace at the same place."""
    existing = manifest.to_table(filter=_is_named(object_id).sql(dialect=DataFusion))
    return all(existing.column(name) == row.column(name) for name in ("object_type", "metadata"))


def _is_named(object_id: str) -> exp.Expr:
    return exp.column("object_id").eq(_text(object_id))


def _text(value: str) -> exp.Literal:
    return exp.Literal.string(value)
