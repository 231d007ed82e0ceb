"""Iceberg's procedures, and the ones that do the same here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pennon.catalog.near_names import near_name

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["instead_of"]

# What does the work of Iceberg's procedures.
_ALSO_CALLED: Final[Mapping[str, str]] = {
    "rewrite_data_files": "compact",
    "rewrite_position_delete_files": "compact",
    "remove_orphan_files": "vacuum",
    "rollback_to_snapshot": "rollback",
    "set_current_snapshot": "rollback",
    "compute_table_stats": "analyze",
    "compute_partition_stats": "analyze",
    "add_files": "adopt",
    "create_changelog_view": "changes",
    "register": "register_table",
}
# Other procedures of Iceberg, and why there is none here.
_NOT_NEEDED: Final[Mapping[str, str]] = {
    "ancestors_of": "SELECT * FROM <table>.history lists the versions",
    "cherrypick_snapshot": "the format has no branches to take a version from",
    "fast_forward": "the format has no branches",
    "publish_changes": "the format has no branches, and what is committed is published",
    "rewrite_manifests": "commits keep the manifest small by themselves",
    "rewrite_table_path": "its paths are relative, so that a copied folder is a table",
    "snapshot": "CREATE TABLE … AS SELECT copies a table",
}


def instead_of(name: str, callable_names: Sequence[str]) -> str:
    """Say what to call in place of a procedure that is not there; nothing where nothing is near.

    Args:
        name: The procedure that was called.
        callable_names: Those that are there.

    Example:
        >>> instead_of("rewrite_data_files", ["compact", "vacuum"])
        ', did you mean compact'
        >>> instead_of("rewrite_manifests", ["compact"])
        ', and commits keep the manifest small by themselves'
    """
    if name in _NOT_NEEDED:
        return f", and {_NOT_NEEDED[name]}"
    instead = _ALSO_CALLED.get(name) or near_name(name, callable_names)
    return "" if instead is None else f", did you mean {instead}"
