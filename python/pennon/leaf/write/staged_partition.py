"""The messages of a writing task: its target, and the partitions that it staged."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

__all__ = ["StagedPartition", "WriteTarget"]


@dataclass(frozen=True, slots=True)
class WriteTarget:
    """The namespace and the partition spec that a task writes to.

    Args:
        location: Path or URL of the partitioned namespace.
        version: Version of its ``__manifest`` that the write is based on.
        spec_version: The partition spec that the rows are split by.
        storage_options: Passed to Lance, never printed.
        file_bytes: About how large a file becomes; None for Lance's own bound.
        table_id: Which table it is, whatever its version; empty where nobody asks.
    """

    location: str
    version: int
    spec_version: int
    storage_options: Mapping[str, str] = field(default_factory=dict, repr=False)
    file_bytes: int | None = None
    table_id: str = ""


@dataclass(frozen=True, slots=True)
class StagedPartition:
    """The uncommitted fragments that one task wrote for one partition.

    Args:
        spec_version: The partition spec that ``values`` belong to.
        object_id: The leaf's ``object_id`` in the manifest, also when it is not there yet.
        location: The leaf's directory.
        values: One row, one column ``partition_field_<id>`` per partition field, typed.
        fragments: The fragments as Lance's JSON.
        layout: What the fragments' columns are; they fit only a leaf that numbers them the same.
        num_rows: Rows in the fragments.
        num_bytes: Bytes of the fragments' files.
        order: The write order in which each fragment's rows are; None where they are in none.
        statistics: Those of the rows' columns as the manifest has them; None where unknown.
        spec: The identity of that partition spec; None where unknown.
    """

    spec_version: int
    object_id: str
    location: str
    values: pa.RecordBatch
    fragments: tuple[str, ...]
    layout: str
    num_rows: int
    num_bytes: int
    order: str | None = None
    statistics: str | None = None
    spec: str | None = None

    def to_json(self) -> str:
        """Write the report as text; partition values survive exactly, whatever their type."""
        return json.dumps(
            {
                "spec_version": self.spec_version,
                "object_id": self.object_id,
                "location": self.location,
                "values": _encode(self.values),
                "fragments": list(self.fragments),
                "layout": self.layout,
                "num_rows": self.num_rows,
                "num_bytes": self.num_bytes,
                "order": self.order,
                "statistics": self.statistics,
                "spec": self.spec,
            }
        )

    @classmethod
    def from_json(cls, text: str) -> StagedPartition:
        """Read what ``to_json`` wrote."""
        stored = json.loads(text)
        stored["values"] = _decode(stored["values"])
        stored["fragments"] = tuple(stored["fragments"])
        return cls(**stored)


def _encode(values: pa.RecordBatch) -> str:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, values.schema) as writer:
        writer.write_batch(values)
    return base64.b64encode(sink.getvalue()).decode("ascii")


def _decode(text: str) -> pa.RecordBatch:
    return pa.ipc.open_stream(base64.b64decode(text)).read_next_batch()
