"""The leaf version that a request of ``lance_namespace`` reads, and its location."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lance_namespace import errors as upstream_errors

from pennon.catalog.upstream.namespace_requests import upstreams_errors, value_of
from pennon.leaf.dataset import FIRST_DETACHED, leaf_uri, resolve_reference
from pennon.manifest import Snapshot
from pennon.manifest.format.names import SEPARATOR
from pennon.manifest.namespace_rows import row_of_leaf

__all__ = ["at_read_version", "read_place"]


def read_place(snapshot: Snapshot, path: Sequence[str]) -> tuple[int | None, str | None]:
    """Give the version at which a snapshot reads a leaf, and where it is.

    Args:
        snapshot: The partitioned namespace.
        path: The leaf.

    Returns:
        The version, None for the newest of the main branch; path or URL of the branch that has it,
        None for the leaf itself.

    Raises:
        LeafMissing: There is no such branch or tag.

    Spec: "Read Behavior".
    """
    row = row_of_leaf(snapshot, path)
    version = row.get("read_version")
    stated = version if isinstance(version, int) else None
    branch, tag = (_text(row.get(name)) for name in ("read_branch", "read_tag"))
    if branch is None and tag is None:
        return stated, None
    root, location = snapshot.location, str(row["location"])
    resolved = resolve_reference(root, location, (branch, tag), stated, snapshot.storage_options)
    is_elsewhere = resolved.location != location
    return resolved.version, leaf_uri(root, resolved.location) if is_elsewhere else None


def at_read_version(
    operation: str, request: Any, snapshot: Snapshot | None, path: Sequence[str]
) -> dict[str, Any]:
    """Give what makes a request read a leaf at its read version.

    Raises:
        UnsupportedOperationError: The request cannot name that version, or not its branch.
    """
    if snapshot is None or value_of(request, "branch") is not None:
        return {}
    with upstreams_errors():
        version, elsewhere = read_place(snapshot, path)
    if version is None:
        return {}
    has_version = isinstance(request, Mapping) or "version" in type(request).model_fields
    if version >= FIRST_DETACHED or elsewhere is not None or not has_version:
        where = "" if elsewhere is None else f" of {elsewhere}"
        message = (
            f"Cannot answer {operation} for {SEPARATOR.join(value_of(request, 'id'))}: the table"
            f" is read at version {version}{where}, which this operation cannot name. Open the"
            " location that describe_table gives with lance.dataset(location, version=…)."
        )
        raise upstream_errors.UnsupportedOperationError(message)
    return {"version": version}


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
