"""Nodes of a plan over rows in memory: the rows that a fragment of them gives."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
from tests.pushdown.stated_nodes import output_of

from pennon.execution import BatchStream, Fragment, LeafRead, Relation, run
from pennon.execution.engine import result_schema
from pennon.plan import AggregateCall, Column, Group, Output, PlanNode, Project, Scan
from pennon.pushdown import Semantics
from pennon.pushdown.query import fragment_query
from pennon.spec.schema import NamespaceSchema

ANSI = Semantics(ansi=True)


def relation(root: Path, name: str, schema: pa.Schema, leaves: Sequence[pa.Table]) -> Relation:
    """Write leaves that state the ids of their fields, as Pennon's do.

    Args:
        root: Where.
        name: How the leaves' names begin.
        schema: The wanted columns.
        leaves: Their rows, each with what it has of the columns.
    """
    wanted = NamespaceSchema.with_fresh_ids(schema).arrow
    reads = []
    for at, rows in enumerate(leaves):
        dataset = lance.write_dataset(rows, str(root / f"{name}_{at}"), max_rows_per_file=4)
        dataset.update_field_metadata(
            {
                column_name: {"lance:field_id": str(field_id(wanted, column_name))}
                for column_name in rows.column_names
            }
        )
        reads.append(LeafRead(f"{name}_{at}", dataset.version))
    return Relation(str(root), tuple(reads), wanted, wanted)


def field_id(schema: pa.Schema, name: str) -> int:
    return int((schema.field(name).metadata or {})[b"lance:field_id"])


def computed(
    nodes: Sequence[PlanNode], relations: Sequence[Relation], semantics: Semantics = ANSI
) -> pa.Table:
    """Run the whole plan as one fragment; its scans are the relations, in order."""
    query = fragment_query(nodes, len(nodes) - 1, semantics).select
    schemas = [relation_.schema for relation_ in relations]
    result_schema(schemas, query.sql, zone_offsets=query.zone_offsets)
    stream: BatchStream = run(Fragment(tuple(relations), query))
    return pa.Table.from_batches(stream.batches, stream.schema)


def scan_of(table: pa.Table | pa.Schema) -> Scan:
    """Scan columns that are called ``c`` and their number."""
    schema = table if isinstance(table, pa.Schema) else table.schema
    return columns_of(*((int(field.name[1:]), field.name, field.type) for field in schema))


def columns_of(*columns: tuple[int, str, pa.DataType]) -> Scan:
    """Scan columns by their attribute, name and type."""
    return Scan(tuple(Column(*column) for column in columns))


def grouped(child: int, keys: Sequence[Output], calls: Sequence[AggregateCall]) -> Group:
    """Aggregate by keys that get attributes of their own."""
    return Group(child, keys=tuple(keys), calls=tuple(calls))


def value_of(text: str, result: pa.DataType, rows: pa.Table, root: Path) -> list[Any]:
    """Compute one expression over rows with the columns ``c1``, ``c2``, …"""
    nodes: list[PlanNode] = [scan_of(rows), Project(0, (output_of(99, text, result),))]
    return computed(nodes, [relation(root, "leaf", rows.schema, [rows])])["c99"].to_pylist()


def aggregate_of(
    nodes: Sequence[PlanNode], group: Group, rows: pa.Table, root: Path, semantics: Semantics = ANSI
) -> pa.Table:
    """Aggregate rows after some nodes."""
    below = [scan_of(rows), *nodes]
    return computed([*below, group], [relation(root, "leaf", rows.schema, [rows])], semantics)
