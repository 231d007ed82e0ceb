"""Partition tuples of all spec versions as one struct: one field per partition field.

The struct's fields are the field ids, in order of first use. A field that a leaf's spec lacks is
NULL, and so is the struct of a table without any partition field.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from pennon.manifest.format.columns import PARTITION_PREFIX

if TYPE_CHECKING:
    from pennon.manifest.snapshot import Snapshot

__all__ = ["spec_versions", "struct_array", "struct_fields"]


def struct_fields(snapshot: Snapshot) -> tuple[pa.Field, ...]:
    """Give the fields of the struct, each in the type of its column in the manifest.

    Args:
        snapshot: The namespace.

    Spec: "Partition Spec".
    """
    ids = [name.removeprefix(PARTITION_PREFIX) for name in snapshot.partition_columns]
    return tuple(pa.field(field_id, snapshot.partition_type(field_id)) for field_id in ids)


def struct_array(leaves: pa.Table, fields: tuple[pa.Field, ...]) -> pa.StructArray:
    """Give the tuple of each leaf.

    Args:
        leaves: Rows of ``Snapshot.leaves``.
        fields: Of ``struct_fields``, at least one.
    """
    values = [leaves[PARTITION_PREFIX + field.name].combine_chunks() for field in fields]
    return pa.StructArray.from_arrays(values, [field.name for field in fields])


def spec_versions(leaves: pa.Table) -> pa.ChunkedArray:
    """Give the version of the spec that each leaf was written with: int32.

    Args:
        leaves: With the column ``object_id``.

    Example:
        >>> spec_versions(pa.table({"object_id": ["v2$x$dataset"]})).to_pylist()
        [2]
    """
    captured = pc.extract_regex(leaves["object_id"], r"^v(?P<version>\d+)\$")
    return pc.struct_field(captured, "version").cast(pa.int32())
