"""What the opaque texts say that the JVM carries around: table, scan, split, write.

``scan`` and ``write`` hold storage options, because executors are told nothing else.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pennon.catalog.write_mode import WriteMode
from pennon.errors import MalformedMessage
from pennon.leaf import WriteTarget
from pennon.manifest.table_layout import TableLayout
from pennon.spec.write_order import OrderColumn

if TYPE_CHECKING:
    from pennon.planning.splits import Piece


@dataclass(frozen=True, slots=True)
class TableToken:
    """A table at the version that the query sees.

    Args:
        name: For errors.
        location: Path or URL.
        version: Version of ``__manifest``, or of the plain dataset.
        layout: How it is stored.
        identity: What tells it from another table that was, or will be, at the location; and, where
            the manifest leaves the versions of leaves open, one query's look from the next one's.
    """

    name: str
    location: str
    version: int
    layout: TableLayout
    identity: str = ""

    def to_json(self) -> str:
        """Write the token."""
        return json.dumps(
            {
                "name": self.name,
                "location": self.location,
                "version": str(self.version),
                "layout": self.layout,
                "identity": self.identity,
            }
        )

    @classmethod
    def from_json(cls, text: str) -> TableToken:
        """Read the token."""
        stored = _object(text, "table")
        return cls(
            str(stored["name"]),
            str(stored["location"]),
            int(stored["version"]),
            TableLayout(stored["layout"]),
            str(stored["identity"]),
        )


@dataclass(frozen=True, slots=True)
class ScanToken:
    """What all splits of a scan have in common.

    Args:
        location: Path or URL of the namespace.
        schema: The wanted columns, with field ids.
        namespace_schema: All columns, with field ids.
        residuals: The filters that splits name by number.
        storage_options: Given to Lance.
        order: The order that each split's rows can be given in.
        identity: The identity of the plan's leaves, a part of every key under which one is kept.
    """

    location: str
    schema: pa.Schema
    namespace_schema: pa.Schema
    residuals: tuple[str, ...] = ()
    storage_options: Mapping[str, str] = field(default_factory=dict, repr=False)
    order: tuple[OrderColumn, ...] = ()
    identity: str = ""

    def to_json(self) -> str:
        """Write the token."""
        return json.dumps(
            {
                "location": self.location,
                "schema": schema_text(self.schema),
                "namespace_schema": schema_text(self.namespace_schema),
                "residuals": list(self.residuals),
                "storage": dict(self.storage_options),
                "order": [column.to_json() for column in self.order],
                "identity": self.identity,
            }
        )

    @classmethod
    def from_json(cls, text: str) -> ScanToken:
        """Read the token; every task of a scan brings the same."""
        return _scan_token(text)


@lru_cache(maxsize=32)
def _scan_token(text: str) -> ScanToken:
    stored = _object(text, "scan")
    return ScanToken(
        str(stored["location"]),
        schema_of(stored["schema"]),
        schema_of(stored["namespace_schema"]),
        tuple(stored["residuals"]),
        stored["storage"],
        tuple(map(OrderColumn.from_json, stored["order"])),
        str(stored["identity"]),
    )


@dataclass(frozen=True, slots=True)
class Split:
    """One leaf of a scan.

    Args:
        location: The leaf, relative to the namespace.
        version: Lance version.
        residual: Number of the scan's residual filter; -1 for none.
        fragments: First fragment and the one after the last, by position; None for all.
    """

    location: str
    version: int
    residual: int
    fragments: tuple[int, int] | None = None

    @classmethod
    def from_json(cls, text: str) -> tuple[Split, ...]:
        """Read a split, or a list of them; the version is text, for numbers lose the high bit."""
        try:
            stored = json.loads(text)
            return cls.of(stored if isinstance(stored, list) else [stored])
        except (json.JSONDecodeError, KeyError, TypeError) as error:
            raise MalformedMessage(why="the text split is not one of the worker's") from error

    @classmethod
    def of(cls, stored: Sequence[Mapping[str, Any]]) -> tuple[Split, ...]:
        """Read splits from their JSON objects."""
        return tuple(map(cls._of, stored))

    @classmethod
    def _of(cls, stored: Mapping[str, Any]) -> Split:
        fragments = stored.get("fragments")
        return cls(
            str(stored["leaf"]),
            int(stored["version"]),
            int(stored["residual"]),
            None if fragments is None else (int(fragments[0]), int(fragments[1])),
        )


def packed_column(leaves: pa.Table, packed: Sequence[Sequence[Piece]]) -> pa.Array:
    """Write one split per list of pieces.

    Args:
        leaves: Columns ``location``, ``read_version`` and ``residual``.
        packed: The pieces of each split, by the rows of ``leaves``.
    """
    texts = split_column(leaves).to_pylist()

    joined = (",".join(piece_text(texts, piece) for piece in pieces) for pieces in packed)
    return pa.array([f"[{each}]" for each in joined], pa.utf8())


def piece_text(splits: Sequence[str], piece: Piece) -> str:
    """Write the split of a piece.

    Args:
        splits: The texts of whole leaves.
        piece: A leaf or a part of it.
    """
    if piece.fragments is None:
        return splits[piece.leaf]
    return _part(splits[piece.leaf], piece.fragments)


def assigned_column(rows: pa.Table, leaves: Mapping[int, pa.Table]) -> pa.Array:
    """Write the split of each part of a leaf; NULL where the leaf's own stands for all of it.

    Args:
        rows: ``scan``, ``leaf``, ``first_fragment`` and ``end_fragment``.
        leaves: For each scan, columns ``location``, ``read_version`` and ``residual``.
    """
    parts = rows.filter(pc.is_valid(rows["first_fragment"]))
    own: dict[int, list[str]] = {}
    texts: list[str] = []
    for part in parts.to_pylist():
        scan = part["scan"]
        if scan not in own:
            own[scan] = split_column(leaves[scan]).to_pylist()
        fragments = (part["first_fragment"], part["end_fragment"])
        texts.append(_part(own[scan][part["leaf"]], fragments))
    whole = pa.nulls(rows.num_rows, pa.utf8())
    is_part = pc.is_valid(rows["first_fragment"]).combine_chunks()
    return pc.replace_with_mask(whole, is_part, pa.array(texts, pa.utf8()))


def _part(split: str, fragments: tuple[int, int]) -> str:
    return f'{split[:-1]},"fragments":{json.dumps(fragments)}}}'


def split_column(leaves: pa.Table) -> pa.Array:
    """Write the split of each planned leaf, for 100,000 leaves in a few milliseconds.

    Args:
        leaves: Columns ``location``, ``read_version`` and ``residual``.

    Example:
        >>> leaf = {"location": ["x"], "read_version": [3], "residual": [-1]}
        >>> split_column(pa.table(leaf))[0].as_py()
        '{"leaf":"x","version":"3","residual":-1}'
    """
    location = leaves["location"].cast(pa.utf8())
    if _needs_escape(location):
        escaped = [json.dumps(each)[1:-1] for each in location.to_pylist()]
        location = pa.chunked_array([pa.array(escaped, pa.utf8())])
    joined = pc.binary_join_element_wise(
        '{"leaf":"',
        location,
        '","version":"',
        leaves["read_version"].cast(pa.utf8()),
        '","residual":',
        leaves["residual"].cast(pa.utf8()),
        "}",
        "",
    )
    combined = joined.combine_chunks()
    return combined if isinstance(combined, pa.Array) else combined.chunk(0)


def _needs_escape(texts: pa.ChunkedArray) -> bool:
    """Whether a text has a byte that JSON writes otherwise; ten times as fast as a pattern."""
    for chunk in texts.chunks:
        _, offsets, encoded = chunk.buffers()
        if len(chunk) == 0 or encoded is None:
            continue
        ends = np.frombuffer(offsets, np.int32)[chunk.offset : chunk.offset + len(chunk) + 1]
        written = np.frombuffer(encoded, np.uint8)[ends[0] : ends[-1]]
        if len(written) and (
            written.min() < ord(" ") or any(np.any(written == ord(each)) for each in '"\\')
        ):
            return True
    return False


@dataclass(frozen=True, slots=True)
class WriteToken:
    """What all tasks of a write have in common.

    Args:
        table: The table at the version that the write is based on.
        target: What its tasks write to.
        schema: The columns of the rows.
        mode: As the table's check returned it.
        predicates: What rows are overwritten, Spark SQL texts; none means all.
    """

    table: TableToken
    target: WriteTarget
    schema: pa.Schema
    mode: WriteMode
    predicates: tuple[str, ...] = ()

    def to_json(self) -> str:
        """Write the token."""
        return json.dumps(
            {
                "table": self.table.to_json(),
                "target": self.target.to_json(),
                "schema": schema_text(self.schema),
                "mode": self.mode,
                "predicates": list(self.predicates),
            }
        )

    @classmethod
    def from_json(cls, text: str) -> WriteToken:
        """Read the token."""
        stored = _object(text, "write")
        return cls(
            TableToken.from_json(stored["table"]),
            WriteTarget.from_json(stored["target"]),
            schema_of(stored["schema"]),
            WriteMode(stored["mode"]),
            tuple(stored["predicates"]),
        )


def _object(text: str, what: str) -> dict[str, Any]:
    try:
        stored = json.loads(text)
    except json.JSONDecodeError as error:
        raise MalformedMessage(why=f"the text {what} is not one of the worker's") from error
    if not isinstance(stored, dict):
        raise MalformedMessage(why=f"the text {what} is not one of the worker's")
    return stored


def schema_text(schema: pa.Schema) -> str:
    """Write a schema."""
    return base64.b64encode(memoryview(schema.serialize())).decode("ascii")


def schema_of(text: str) -> pa.Schema:
    """Read a schema."""
    return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(text)))
