"""The description of one namespace or leaf of a snapshot: its runtime properties and version."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
from sqlglot import exp

from pennon.manifest.dataset.select import select
from pennon.manifest.format.columns import PARTITION_PREFIX
from pennon.manifest.format.names import SEPARATOR, ObjectId
from pennon.manifest.format.properties import SCHEMA, runtime_properties
from pennon.manifest.snapshot import Snapshot
from pennon.spec.value_text import python_rows

__all__ = ["child_namespaces", "is_below_spec", "namespace_properties", "row_of_leaf"]


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
