"""Looks up rows of ``__manifest`` by object id, for commits.

A write looks for the leaf of its rows, a commit for the leaf as it is, and once more for the whole
rows that it replaces, those of the namespaces above among them. All of it is read at once, and what
a commit itself has written needs not be read for the next one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from pennon.caching import CarriedOver, TableKey
from pennon.errors import ManifestRowDoubled
from pennon.manifest.dataset.storage import reading_failure
from pennon.manifest.format.names import SEPARATOR
from pennon.manifest.format.rows import NAMESPACE, TABLE
from pennon.predicate.dialect import DataFusion

if TYPE_CHECKING:
    import lance

__all__ = ["MOST_NAMES", "carry_rows", "check_single", "named_rows", "namespaces_above"]

MOST_NAMES: Final = 64
"""How many rows may be asked for by their names; a pass over all rows costs less beyond."""

_OBJECT_ID: Final = "object_id"
_ROWS: Final[CarriedOver[pa.Table]] = CarriedOver(
    "rows by name", max_bytes=32 << 20, weigh=lambda rows: int(rows.nbytes)
)


def namespaces_above(object_id: str) -> Iterator[str]:
    """Give the namespaces above a leaf.

    Example:
        >>> list(namespaces_above("v1$k7m2n9p4q8r5s3t6$dataset"))
        ['v1', 'v1$k7m2n9p4q8r5s3t6']
    """
    *above, _ = object_id.split(SEPARATOR)
    for depth in range(1, len(above) + 1):
        yield SEPARATOR.join(above[:depth])


def named_rows(manifest: lance.LanceDataset, key: TableKey, object_ids: Sequence[str]) -> pa.Table:
    """Give the whole rows of leaves and namespaces; those that are not there are left out.

    Args:
        manifest: The ``__manifest`` at a version.
        key: The namespace at that version.
        object_ids: Their ids, at most ``MOST_NAMES``.

    Returns:
        All columns of ``__manifest``, those that Pennon does not know included.

    Raises:
        ManifestRowDoubled: Two rows are one of the leaves, or one of their namespaces.
        StorageFailure: The storage refused.

    Spec: "Manifest Table Schema".
    """
    rows_by_name = _ROWS.find(key, object_ids, lambda names: _read(manifest, names))
    rows = [row for row in rows_by_name.values() if row.num_rows]
    if not rows:
        return manifest.schema.empty_table()
    whole = pa.concat_tables(rows)
    check_single(whole[_OBJECT_ID], key.location, key.version)
    return whole


def check_single(object_ids: pa.ChunkedArray, location: str, version: int) -> None:
    """Refuse two rows of one object: a read would count its rows twice, a commit keep both.

    Args:
        object_ids: Of the rows that were found.
        location: The namespace.
        version: The version of its manifest.

    Raises:
        ManifestRowDoubled: One is there twice.
    """
    if pc.count_distinct(object_ids).as_py() == len(object_ids):
        return
    counts = object_ids.value_counts()
    at = pc.index(pc.greater(counts.field("counts"), 1), value=True).as_py()
    doubled = counts[at].as_py()
    raise ManifestRowDoubled(
        location=location, version=version, count=doubled["counts"], object_id=doubled["values"]
    )


def carry_rows(
    before: TableKey, after: TableKey, written: pa.Table, removed: Sequence[str]
) -> None:
    """Take what is known of a version along to the one that a commit has made of it.

    Args:
        before: The version.
        after: The next one; nobody else has committed between.
        written: The rows that the commit wrote, whole.
        removed: The ids of leaves that it removed.
    """
    _ROWS.carry(before, after, _by_name(written), removed)


def _read(manifest: lance.LanceDataset, names: Sequence[str]) -> dict[str, pa.Table]:
    asked = dict.fromkeys(
        [*names, *(namespace for name in names for namespace in namespaces_above(name))]
    )
    keys = [exp.Literal.string(object_id) for object_id in asked]
    text = exp.column(_OBJECT_ID).isin(*keys).sql(dialect=DataFusion)
    try:
        rows = manifest.to_table(columns=list(manifest.schema.names), filter=text)
    except OSError as error:
        raise reading_failure(manifest, error) from error
    return {**dict.fromkeys(asked, rows.schema.empty_table()), **_by_name(rows)}


def _by_name(rows: pa.Table) -> dict[str, pa.Table]:
    """Divide rows by their ids; two of one id, which nobody may write, stay together."""
    places: dict[str, list[int]] = {}
    kinds = rows["object_type"].to_pylist()
    for at, (name, kind) in enumerate(zip(rows[_OBJECT_ID].to_pylist(), kinds, strict=True)):
        if kind in (NAMESPACE, TABLE):
            places.setdefault(name, []).append(at)
    return {name: rows.take(at) for name, at in places.items()}
