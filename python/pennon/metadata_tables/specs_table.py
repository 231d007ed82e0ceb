"""``table.specs``: one row per field of each partition spec; a spec without fields has one row."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from pennon.metadata_tables.metadata_table import MetadataTable, Selection

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pennon.manifest import Snapshot
    from pennon.spec.partition_spec import PartitionField

__all__ = ["SPECS"]

_SCHEMA = pa.schema(
    {
        "spec_version": pa.int32(),
        "is_current": pa.bool_(),
        "position": pa.int32(),
        "field_id": pa.utf8(),
        "transform": pa.utf8(),
        "source_columns": pa.list_(pa.utf8()),
        "result_type": pa.utf8(),
    }
)


def _schema(_: Snapshot) -> pa.Schema:
    return _SCHEMA


def _rows(snapshot: Snapshot, _: Selection) -> Iterator[pa.Table]:
    current = snapshot.current_spec.spec_version
    rows: list[dict[str, object]] = []
    for version, spec in sorted(snapshot.specs.items()):
        row: dict[str, object] = {"spec_version": version, "is_current": version == current}
        fields = [
            {**row, "position": at, **_described(snapshot, field)}
            for at, field in enumerate(spec.fields)
        ]
        rows += fields or [row]
    yield pa.Table.from_pylist(rows, _SCHEMA)


def _described(snapshot: Snapshot, field: PartitionField) -> dict[str, object]:
    sources = [snapshot.schema.field_by_id(id_) for id_ in field.source_ids]
    # A dropped column has no name any more; its id is what the spec says.
    names = [
        f"<dropped column {source}>" if column is None else str(column)
        for source, column in zip(field.source_ids, sources, strict=True)
    ]
    return {
        "field_id": field.field_id,
        "transform": field.derivation.sql(names),
        "source_columns": names,
        "result_type": str(field.result_type),
    }


SPECS = MetadataTable("specs", _schema, _rows)
