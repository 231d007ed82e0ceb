"""Nodes of a plan over rows in memory: the rows that a fragment of them gives."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import lance
import pyarrow as pa

from pennon.execution import BatchStream, Fragment, LeafRead, Query, Relation, run
from pennon.execution.engine import result_schema
from pennon.pushdown import Group, Node, Output, Project, Scan, Semantics
from pennon.pushdown.query import fragment_query

ANSI = Semantics(ansi=True)


def relation(root: Path, name: str, schema: pa.Schema, leaves: Sequence[pa.Table]) -> Relation:
    """Write leaves; ``schema`` has the wanted columns, each leaf what it has of them."""
    reads = []
    for at, rows in enumerate(leaves):
        location = f"{name}_{at}"
        lance.write_dataset(rows, str(root / location), max_rows_per_file=4)
        reads.append(LeafRead(location, 1))
    return Relation(str(root), tuple(reads), schema, schema)


def computed(
    nodes: Sequence[Node], relations: Sequence[Relation], semantics: Semantics = ANSI
) -> pa.Table:
    """Run the whole plan as one fragment; its scans are the relations, in order."""
    query = fragment_query(nodes, len(nodes) - 1, semantics)
    planned = result_schema([each.schema for each in relations], query.sql)
    assert planned is not None
    stream: BatchStream = run(Fragment(tuple(relations), Query(query.sql, query.schema)))
    return pa.Table.from_batches(stream.batches, stream.schema)


def scan_of(table: pa.Table | pa.Schema) -> Scan:
    """Scan columns that are called ``c`` and their number."""
    schema = table if isinstance(table, pa.Schema) else table.schema
    return Scan(tuple((int(field.name[1:]), field.name, field.type) for field in schema))


def value_of(text: str, result: pa.DataType, rows: pa.Table, root: Path) -> list[object]:
    """Compute one expression over rows with the columns ``c1``, ``c2``, …"""
    nodes = [scan_of(rows), Project(0, (Output(99, text, result),))]
    return computed(nodes, [relation(root, "leaf", rows.schema, [rows])])["c99"].to_pylist()


def aggregate_of(
    nodes: Sequence[Node], group: Group, rows: pa.Table, root: Path, semantics: Semantics = ANSI
) -> pa.Table:
    """Aggregate rows after some nodes."""
    below = [scan_of(rows), *nodes]
    return computed([*below, group], [relation(root, "leaf", rows.schema, [rows])], semantics)
