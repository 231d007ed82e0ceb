"""The ``table_version`` rows of ``__manifest``: which Lance versions a leaf has had.

``<table id>$<n>``: n is a sequence number in numeric order, the column ``read_version`` holds the
Lance version. Where a table row has no ``read_version``, the newest of these rows names the
version.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

import lance
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from pennon.caching import CarriedOver, TableKey
from pennon.manifest.dataset.storage import reading_failure
from pennon.manifest.format.rows import TABLE_VERSION
from pennon.predicate.dialect import DataFusion

__all__ = ["carry_sequence_numbers", "last_sequence_numbers", "newest_versions", "version_row_ids"]

_PARTS: Final = r"^(?P<leaf>.*)\$(?P<number>\d{1,18})$"
# Beyond so many leaves one pass over all rows is cheaper than as many conditions.
_MAX_CONDITIONS: Final = 64

_NUMBERS: Final[CarriedOver[int]] = CarriedOver(
    "numbers of leaves' versions", max_bytes=4 << 20, weigh=lambda _: 8
)


def newest_versions(manifest: lance.LanceDataset, leaves: Sequence[str]) -> dict[str, int | None]:
    """Give the version in the newest ``table_version`` row of each leaf that has one.

    Args:
        manifest: The ``__manifest`` at the snapshot's version.
        leaves: Object ids of table rows.

    Spec: Appendix C.
    """
    rows = _version_rows(manifest, leaves)
    newest = rows.group_by("leaf").aggregate([("number", "max")])
    both = newest.join(
        rows, keys=["leaf", "number_max"], right_keys=["leaf", "number"], join_type="inner"
    )
    return dict(zip(both["leaf"].to_pylist(), both["read_version"].to_pylist(), strict=True))


def last_sequence_numbers(
    manifest: lance.LanceDataset, key: TableKey, leaves: Sequence[str]
) -> dict[str, int]:
    """Give the highest n of each leaf's ``table_version`` rows, 0 where it has none.

    Args:
        manifest: The ``__manifest`` at a version.
        key: The namespace at that version.
        leaves: Object ids of table rows.
    """

    def read(missing: list[str]) -> dict[str, int]:
        rows = _version_rows(manifest, missing).sort_by("number")
        by_leaf = dict(zip(rows["leaf"].to_pylist(), rows["number"].to_pylist(), strict=True))
        return {**dict.fromkeys(missing, 0), **by_leaf}

    return _NUMBERS.find(key, leaves, read)


def version_row_ids(manifest: lance.LanceDataset, leaves: Sequence[str]) -> list[str]:
    """Give the object ids of all ``table_version`` rows of some leaves."""
    object_ids: list[str] = _version_rows(manifest, leaves)["object_id"].to_pylist()
    return object_ids


def carry_sequence_numbers(
    before: TableKey, after: TableKey, object_ids: Sequence[str], removed: Sequence[str]
) -> None:
    """Take the numbers that are known along to the version that a commit has made.

    Args:
        before: The version that the commit was made on.
        after: The next one; nobody else has committed between.
        object_ids: Those of the ``table_version`` rows that it wrote.
        removed: Leaves that it removed, with their rows.
    """
    written = {leaf: int(number) for leaf, _, number in (id_.rpartition("$") for id_ in object_ids)}
    _NUMBERS.carry(before, after, written, removed)


def _version_rows(manifest: lance.LanceDataset, leaves: Sequence[str]) -> pa.Table:
    columns = ["object_id"]
    if "read_version" in manifest.schema.names:
        columns.append("read_version")
    condition = _condition(tuple(leaves) if len(leaves) <= _MAX_CONDITIONS else None)
    try:
        # Half of the CPU of Lance's SQL, and each commit of few leaves pays for it.
        rows = manifest.to_table(columns=columns, filter=condition)
    except OSError as error:
        raise reading_failure(manifest, error) from error
    parts = pc.extract_regex(rows["object_id"], _PARTS)
    versions = pa.table(
        {
            "object_id": rows["object_id"],
            "leaf": pc.struct_field(parts, "leaf"),
            "number": pc.cast(pc.struct_field(parts, "number"), pa.int64()),
            "read_version": rows["read_version"]
            if "read_version" in columns
            else pa.nulls(len(rows), pa.uint64()),
        }
    )
    is_asked = pc.is_in(versions["leaf"], value_set=pa.array(leaves, pa.utf8()))
    return versions.filter(is_asked)


@lru_cache(maxsize=1024)
def _condition(leaves: tuple[str, ...] | None) -> str:
    condition: exp.Expr = exp.column("object_type").eq(exp.Literal.string(TABLE_VERSION))
    if leaves is not None:
        starts = [
            exp.func("starts_with", exp.column("object_id"), exp.Literal.string(f"{leaf}$"))
            for leaf in leaves
        ]
        condition = exp.and_(condition, exp.or_(*starts) if starts else exp.false())
    return condition.sql(dialect=DataFusion)
