"""The columns of ``__manifest``: upstream's five, ``read_version``, one per partition field.

The first five are exactly what upstream's directory namespace V2 makes, down to the name of the
list's child and the primary-key metadata: ``merge_insert`` compares schemas strictly.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import pyarrow as pa

from pennon.spec.partition_spec import PARTITION_PREFIX, PartitionSpec

__all__ = [
    "BASE_COLUMNS",
    "PARTITION_PREFIX",
    "PRIMARY_KEY",
    "READ_BRANCH",
    "READ_TAG",
    "READ_VERSION",
    "manifest_schema",
    "partition_columns",
]

PRIMARY_KEY: Final = b"lance-schema:unenforced-primary-key:position"
READ_VERSION: Final = pa.field("read_version", pa.uint64())
# An older text of the specification has these; Pennon honours them and makes none.
READ_BRANCH: Final = "read_branch"
READ_TAG: Final = "read_tag"
BASE_COLUMNS: Final = (
    pa.field(
        "object_id",
        pa.utf8(),
        nullable=False,
        metadata={PRIMARY_KEY: b"0"},
    ),
    pa.field("object_type", pa.utf8(), nullable=False),
    pa.field("location", pa.utf8()),
    pa.field("metadata", pa.utf8()),
    pa.field("base_objects", pa.list_(pa.field("object_id", pa.utf8()))),
)


def partition_columns(specs: Iterable[PartitionSpec]) -> dict[str, pa.DataType]:
    """Give the partition columns that specs need and their types, in order of first use.

    A field id that later versions declare wider (its source was promoted) has the latest type.

    Example:
        >>> partition_columns([])
        {}

    Spec: "Manifest Table Schema".
    """
    types: dict[str, pa.DataType] = {}
    for spec in sorted(specs, key=lambda spec: spec.spec_version):
        for field in spec.fields:
            types[field.column] = field.result_type
    return types


def manifest_schema(specs: Mapping[int, PartitionSpec], *, strong: bool) -> pa.Schema:
    """Give the schema of a new ``__manifest``.

    Args:
        specs: The spec versions of the namespace.
        strong: Whether leaves are read at a recorded version (column ``read_version``).

    Spec: "Manifest Table Schema", "Multi-Partition Transaction (Strong)".
    """
    partition = [pa.field(name, kind) for name, kind in partition_columns(specs.values()).items()]
    return pa.schema([*BASE_COLUMNS, *([READ_VERSION] if strong else []), *partition])
