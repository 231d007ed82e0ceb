"""Partition tuples of all spec versions as one struct: one field per partition field.

The struct's fields are the field ids, in order of first use. A field that a leaf's spec lacks is
NULL, and so is the struct of a table without any partition field.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from pennon.manifest.format.rows import PARTITION_PREFIX

if TYPE_CHECKING:
    from pennon.manifest.snapshot import Snapshot

__all__ = ["partition_names", "spec_versions", "struct_array", "struct_fields"]


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


# Names of partitions, as SHOW PARTITIONS of Spark spells them: ``region=eu/shard=3``.
#
# Two partitions of one spec never share a name, and a name can be read back: it is split at ``/``
# and ``=``, and what Hive writes as ``%2F`` in paths is decoded.

_NULL: Final = "null"
# The text is not NULL: its first letter is escaped.
_NULL_TEXT: Final = "%6Eull"
# What Hive escapes in the path of a partition, as Spark does.
_ESCAPED: Final = re.compile(r"""[\x01-\x1f\x7f"#%'*/:=?\\{\[\]^]""")


def partition_names(snapshot: Snapshot, leaves: pa.Table) -> pa.Array:
    """Spell the partitions of leaves; NULL for those of a spec without any field.

    Args:
        snapshot: The namespace.
        leaves: Rows of ``Snapshot.leaves``.
    """
    texts = {name: _texts(leaves[name]) for name in snapshot.partition_columns}
    names: list[str | None] = []
    for row, version in enumerate(spec_versions(leaves).to_pylist()):
        fields = snapshot.specs[version].fields
        parts = [f"{_escape(field.field_id)}={texts[field.column][row]}" for field in fields]
        names.append("/".join(parts) or None)
    return pa.array(names, pa.utf8())


def _texts(values: pa.ChunkedArray) -> list[str]:
    if pa.types.is_binary(values.type):
        return [_NULL if value is None else value.hex() for value in values.to_pylist()]
    return [_value_text(value) for value in values.cast(pa.utf8()).to_pylist()]


def _value_text(value: str | None) -> str:
    if value is None:
        return _NULL
    return _NULL_TEXT if value == _NULL else _escape(value)


def _escape(text: str) -> str:
    return _ESCAPED.sub(lambda character: f"%{ord(character[0]):02X}", text)
