"""A namespace of real leaves, appended to and read back by Lance alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import lance
import pyarrow as pa
from tests.present import present

from pennon.leaf import StagedPartition, WriteTarget, write_partitions
from pennon.manifest import Snapshot, create
from pennon.spec import NamespaceSchema, PartitionField, PartitionSpec
from pennon.transaction import Committed, Transaction
from pennon.transforms.identity import Identity

if TYPE_CHECKING:
    from pathlib import Path

    from pennon.catalog.tables.loaded_table import Table
    from pennon.namespace import PartitionedNamespace

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("region", pa.utf8())])


def table_of(opened: PartitionedNamespace) -> Table:
    """Give the table at the version that is open, as a statement of Spark has it."""
    return opened._table


def make(
    tmp_path: Path, schema: pa.Schema = SCHEMA, by: str | None = "region", *, strong: bool = True
) -> Snapshot:
    """Make an empty namespace partitioned by a column's identity, or not at all."""
    known = NamespaceSchema.with_fresh_ids(schema)
    fields: tuple[PartitionField, ...] = ()
    if by is not None:
        column = present(known.field_by_path([by]))
        fields = (PartitionField(by, (column.id,), Identity(), None, column.field.type),)
    return create(str(tmp_path / "ns"), known, PartitionSpec(1, fields), strong=strong)


def stage(
    snapshot: Snapshot, rows: pa.RecordBatch | Mapping[int, str | None]
) -> list[StagedPartition]:
    """Write rows, given as a batch or as id → region, without committing them."""
    if isinstance(rows, Mapping):
        columns = {"id": pa.array(rows, pa.int64()), "region": pa.array(rows.values(), pa.utf8())}
        rows = pa.record_batch(columns)
    target = WriteTarget(snapshot.location, snapshot.version, snapshot.current_spec.spec_version)
    return write_partitions([rows], target)


def changed(snapshot: Snapshot, change: str, *arguments: object) -> Snapshot:
    """Commit one change, by the name of the transaction's method that makes it."""
    transaction = Transaction(snapshot)
    getattr(transaction, change)(*arguments)
    outcome = transaction.commit()
    assert isinstance(outcome, Committed)
    return outcome.snapshot


def append(snapshot: Snapshot, rows: pa.RecordBatch | Mapping[int, str | None]) -> Snapshot:
    """Append and commit."""
    transaction = Transaction(snapshot)
    transaction.append(stage(snapshot, rows))
    outcome = transaction.commit()
    assert isinstance(outcome, Committed), outcome
    return outcome.snapshot


def read(snapshot: Snapshot) -> list[dict[str, Any]]:
    """Every row of every leaf at its read version, by Lance alone."""
    rows = []
    for leaf in snapshot.leaves().table.to_pylist():
        uri = f"{snapshot.location}/{leaf['location']}"
        rows += lance.dataset(uri, version=leaf["read_version"]).to_table().to_pylist()
    return rows


def regions(snapshot: Snapshot) -> dict[str | None, list[int]]:
    """The ids of every partition as the manifest names it; fails where two have the same name."""
    found: dict[str | None, list[int]] = {}
    for leaf in snapshot.leaves().table.to_pylist():
        uri = f"{snapshot.location}/{leaf['location']}"
        dataset = lance.dataset(uri, version=leaf["read_version"])
        ids = dataset.to_table()["id"].to_pylist()
        fragments = [fragment.metadata for fragment in dataset.get_fragments()]
        if leaf["num_rows"] is not None:
            assert leaf["num_rows"] == len(ids)
            assert leaf["num_fragments"] == len(fragments)
            assert leaf["num_bytes"] == sum(
                file.file_size_bytes or 0 for fragment in fragments for file in fragment.files
            )
        assert leaf["partition_field_region"] not in found
        found[leaf["partition_field_region"]] = sorted(ids)
    return found


def latest(snapshot: Snapshot) -> Snapshot:
    """The namespace as it is now."""
    return Snapshot.open(snapshot.location)
