"""The leaf versions that versions of ``__manifest`` read, and those they ever recorded.

Consecutive versions share most of their fragments, so each fragment is read once in each state of
its deletions: the work grows with the number of commits and not with its square.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa
import pyarrow.compute as pc

from pennon.leaf.dataset import FIRST_DETACHED
from pennon.maintenance.checks.manifest_rows import RawRows, newest_version, version_row_of
from pennon.manifest.dataset.storage import StorageOptions
from pennon.manifest.format.columns import READ_VERSION
from pennon.manifest.format.rows import TABLE, TABLE_VERSION
from pennon.manifest.versions.shared_fragments import open_present, unseen_rows

__all__ = ["LeafVersion", "named_versions", "recorded_versions"]

LeafVersion = tuple[str, int]
"""A leaf's directory and one of its versions."""


def named_versions(
    location: str, versions: Iterable[int], storage_options: StorageOptions
) -> set[LeafVersion]:
    """Give the leaf versions that some versions of the manifest read.

    Args:
        location: The namespace.
        versions: Versions of its ``__manifest``.
        storage_options: Given to Lance.
    """
    named: set[LeafVersion] = set()
    seen: set[tuple[str, ...]] = set()
    for version in versions:
        manifest = open_present(location, version, storage_options)
        if manifest is None:
            continue
        rows = unseen_rows(
            location, manifest, seen, f"object_type = '{TABLE}'", with_deletions=True
        )
        if rows is None:
            continue
        if rows[READ_VERSION.name].null_count:
            named |= set(_named_by_records(RawRows.read(location, manifest)))
        named |= _pairs(rows)
    return named


def _named_by_records(raw: RawRows) -> Iterator[LeafVersion]:
    records = raw.version_rows()
    for object_id, row in raw.of_type(TABLE).items():
        version = newest_version(row, records.get(object_id, {}))
        if row.location is not None and version is not None:
            yield row.location, version


def recorded_versions(
    location: str, versions: Iterable[int], storage_options: StorageOptions
) -> set[LeafVersion]:
    """Give the detached leaf versions that some versions of the manifest name; as above."""
    tables: dict[str, str] = {}
    records: list[tuple[str, int]] = []
    seen: set[tuple[str, ...]] = set()
    kinds = f"object_type IN ('{TABLE}', '{TABLE_VERSION}')"
    for version in versions:
        manifest = open_present(location, version, storage_options)
        if manifest is None:
            continue
        rows = unseen_rows(location, manifest, seen, kinds, with_deletions=False)
        for row in [] if rows is None else rows.to_pylist():
            object_id, number = row["object_id"], row[READ_VERSION.name]
            if row["object_type"] == TABLE and row["location"] is not None:
                tables[object_id] = row["location"]
            if number is not None and number >= FIRST_DETACHED:
                leaf_and_version = (
                    version_row_of(object_id) if row["object_type"] == TABLE_VERSION else None
                )
                records.append(
                    (object_id if leaf_and_version is None else leaf_and_version[0], number)
                )
    return {(tables[table], number) for table, number in records if table in tables}


def _pairs(rows: pa.Table) -> set[LeafVersion]:
    recorded = rows.filter(pc.and_(rows["location"].is_valid(), rows[READ_VERSION.name].is_valid()))
    return set(
        zip(recorded["location"].to_pylist(), recorded[READ_VERSION.name].to_pylist(), strict=True)
    )
