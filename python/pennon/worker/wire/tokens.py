"""The opaque tokens that the JVM carries: table, plan, scan, split, write.

Each is declared once and read strictly: a text with another field, or without one, is none of this
worker's. ``scan`` and ``write`` hold storage options, because executors receive nothing else.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Final, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pennon.caching import TextCache
from pennon.catalog.configured_catalog import WriteMode
from pennon.errors import MalformedMessage
from pennon.execution import LeafRead, Relation
from pennon.leaf import WriteTarget
from pennon.leaf.read.row_keys import RowKeys
from pennon.manifest.table_layout import TableLayout
from pennon.metadata_tables.changes_table import ChangeRange
from pennon.planning.leaf_constants import CONSTANTS
from pennon.spec.schema import children_of, with_children
from pennon.spec.write_order import OrderColumn
from pennon.transforms.evaluation import INT64_DIGITS, low_halves
from pennon.worker.wire.json_fields import decode, encode

if TYPE_CHECKING:
    from pennon.planning.splits import Piece


# Writes the tokens of splits for 100,000 leaves at once; ``Split`` of ``tokens.py`` reads them.


def packed_column(leaves: pa.Table, packed: Sequence[Sequence[Piece]]) -> pa.Array:
    """Write one split per list of pieces.

    Args:
        leaves: Columns ``location``, ``read_version`` and ``residual``.
        packed: The pieces of each split, by the rows of ``leaves``.
    """
    texts = split_column(leaves).to_pylist()

    joined = (",".join(piece_text(texts, piece) for piece in pieces) for pieces in packed)
    return pa.array([f"[{text}]" for text in joined], pa.utf8())


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
        leaves: Columns ``location``, ``read_version`` and ``residual``; ``num_rows`` where planned;
            ``constants`` where rows have such metadata columns.

    Example:
        >>> leaf = {"location": ["x"], "read_version": [3], "residual": [-1]}
        >>> split_column(pa.table(leaf))[0].as_py()
        '{"leaf":"x","version":"3","residual":-1}'
    """
    location = leaves["location"].cast(pa.utf8())
    if _needs_escape(location):
        escaped = [json.dumps(text)[1:-1] for text in location.to_pylist()]
        location = pa.chunked_array([pa.array(escaped, pa.utf8())])
    joined = pc.binary_join_element_wise(
        '{"leaf":"',
        location,
        '","version":"',
        leaves["read_version"].cast(pa.utf8()),
        '","residual":',
        leaves["residual"].cast(pa.utf8()),
        *((',"constants":', leaves[CONSTANTS]) if CONSTANTS in leaves.column_names else ()),
        _num_rows(leaves),
        "}",
        "",
    )
    combined = joined.combine_chunks()
    return combined if isinstance(combined, pa.Array) else combined.chunk(0)


def _num_rows(leaves: pa.Table) -> pa.ChunkedArray | str:
    if "num_rows" not in leaves.column_names:
        return ""
    counts = leaves["num_rows"].cast(pa.utf8())
    texts: pa.ChunkedArray = pc.binary_join_element_wise(',"rows":', counts, "")
    return texts.fill_null("")


def _needs_escape(texts: pa.ChunkedArray) -> bool:
    """Whether a text has a byte that JSON writes otherwise; ten times as fast as a pattern."""
    for chunk in texts.chunks:
        _, offsets, encoded = chunk.buffers()
        if len(chunk) == 0 or encoded is None:
            continue
        ends = np.frombuffer(offsets, np.int32)[chunk.offset : chunk.offset + len(chunk) + 1]
        written = np.frombuffer(encoded, np.uint8)[ends[0] : ends[-1]]
        if len(written) and (
            written.min() < ord(" ")
            or any(np.any(written == ord(character)) for character in '"\\')
        ):
            return True
    return False


# Columns as they go to Spark: without metadata, and short decimals as their unscaled BIGINT.
#
# Arrow holds sixteen bytes of any decimal; Spark holds eight of one of up to 18 digits, as Parquet
# does. Those eight are the lower half of Arrow's, and the upper half need not pass the socket.


def sent_schema(schema: pa.Schema) -> pa.Schema:
    """Give the schema in which rows of ``schema`` are sent to a task.

    Example:
        >>> sent_schema(pa.schema([("a", pa.decimal128(12, 2)), ("b", pa.decimal128(19, 2))])).types
        [DataType(int64), Decimal128Type(decimal128(19, 2))]
    """
    return pa.schema(
        [field.with_type(_sent_type(field.type)).remove_metadata() for field in schema]
    )


def sent_batch(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Give rows as a schema has them: their own, or that of :func:`sent_schema`."""
    if batch.schema.equals(schema):
        return batch
    columns = [
        _sent(column, data_type)
        for column, data_type in zip(batch.columns, schema.types, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def in_nanoseconds(data_type: pa.DataType) -> pa.DataType:
    """Give the only unit in which Spark takes times, whatever their precision, for those of a type.

    Example:
        >>> in_nanoseconds(pa.list_(pa.time32("s")))
        ListType(list<item: time64[ns]>)
    """
    if pa.types.is_time(data_type):
        return pa.time64("ns")
    children = children_of(data_type)
    moved = [child.with_type(in_nanoseconds(child.type)) for child in children]
    return data_type if moved == children else with_children(data_type, moved)


def _sent_type(data_type: pa.DataType) -> pa.DataType:
    return pa.int64() if _is_short(data_type) else in_nanoseconds(data_type)


def _sent(column: pa.Array, data_type: pa.DataType) -> pa.Array:
    if _is_short(column.type) and column.type != data_type:
        return _unscaled(column)
    is_same = column.type == data_type or in_nanoseconds(column.type) == column.type
    return column if is_same else column.cast(data_type)


def _is_short(data_type: pa.DataType) -> bool:
    return pa.types.is_decimal128(data_type) and data_type.precision <= INT64_DIGITS


def _unscaled(column: pa.Array) -> pa.Array:
    if not len(column):  # may have no buffers
        return pa.array([], pa.int64())
    validity = column.buffers()[0]
    first, more = divmod(column.offset, 8)  # bits of validity begin at any row, their bytes do not
    return pa.Array.from_buffers(
        pa.int64(),
        len(column),
        [
            None if validity is None else validity.slice(first),
            pa.py_buffer(np.ascontiguousarray(low_halves(column, more))),
        ],
        column.null_count,
        more,
    )


_NO_COLUMNS: Final = pa.schema([])
_MOST_BYTES: Final = 32 << 20


class Token:
    """A text that only Python reads, made of a declared value."""

    __slots__ = ()

    def to_json(self) -> str:
        """Write the token."""
        return json.dumps(encode(self))  # type: ignore[arg-type]  # each subclass is a dataclass

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read the token.

        Raises:
            MalformedMessage: It is another one, or of another version of Pennon.
        """
        try:
            stored = json.loads(text)
        except json.JSONDecodeError as error:
            raise MalformedMessage(why=f"the text of a {cls.__name__} is no JSON") from error
        return decode(cls, stored)  # type: ignore[type-var]  # each subclass is a dataclass


@dataclass(frozen=True, slots=True)
class TableToken(Token):
    """A table at the version that the query sees.

    Args:
        name: For errors.
        location: Path or URL.
        version: Version of ``__manifest``, or of the plain dataset.
        layout: How it is stored.
        identity: What distinguishes it from another table that was, or will be, at the location;
            and, where the manifest leaves the versions of leaves open, one query's look from the
            next one's.
        table_id: What all its versions have in common; empty where it is unknown.
    """

    name: str
    location: str
    version: int
    layout: TableLayout
    identity: str = ""
    table_id: str = ""


@dataclass(frozen=True, slots=True)
class MetadataToken(Token):
    """A metadata table of a table.

    Args:
        metadata: Its name: ``partitions``.
        of: The table.
        changes: Which changes are read of it, for a change feed.
    """

    metadata: str
    of: TableToken
    changes: ChangeRange | None = None


@dataclass(frozen=True, slots=True)
class PlanToken(Token):
    """A planned scan, which can be planned again.

    Args:
        table: What is scanned.
        predicates: Spark SQL texts.
        time_zone: The session's.
        leaves: A fingerprint of the partitions that were chosen, in their order.
        constants: The requested metadata columns that splits bring along.
    """

    table: TableToken
    predicates: tuple[str, ...]
    time_zone: str
    leaves: int
    constants: pa.Schema = _NO_COLUMNS


@dataclass(frozen=True, slots=True)
class ScanToken(Token):
    """What all splits of a scan have in common.

    Args:
        location: Path or URL of the namespace.
        schema: The requested columns, with field ids.
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

    @classmethod
    def from_json(cls, text: str) -> ScanToken:
        """Read the token; every task of a scan brings the same."""
        return _SCAN_TOKENS.find(text)

    def relation(self, splits: Sequence[Split]) -> Relation:
        """Put together what a task reads of the scan."""
        leaves = tuple(
            LeafRead(
                split.location,
                split.version,
                self.residuals[split.residual] if split.residual >= 0 else None,
                split.fragments,
                split.constants,
                split.num_rows,
            )
            for split in splits
        )
        return Relation(
            self.location,
            leaves,
            self.schema,
            self.namespace_schema,
            self.storage_options,
            identity=self.identity,
        )


_SCAN_TOKENS: Final = TextCache(
    "scan tokens", max_bytes=_MOST_BYTES, read=super(ScanToken, ScanToken).from_json
)


@lru_cache(maxsize=1)
def row_keys(text: str) -> RowKeys:
    """Read the keys that a query found while it ran; every task of a scan brings the same.

    Only the last ones are kept, for there may be half a million of them.

    Raises:
        MalformedMessage: They are of another version of Pennon.
    """
    return decode(RowKeys, json.loads(text))


@dataclass(frozen=True, slots=True)
class Split:
    """One leaf of a scan; ``worker/wire/tokens.py`` writes it.

    Args:
        location: The leaf, relative to the namespace.
        version: Lance version; a text in JSON, where numbers lose the high bit.
        residual: Number of the scan's residual filter; -1 for none.
        fragments: First fragment and the one after the last, by position; None for all.
        constants: What all rows have in metadata columns that the manifest knows; None for none.
        num_rows: Rows of the whole leaf, as planned; None where unknown.
    """

    location: str
    version: int
    residual: int
    fragments: tuple[int, int] | None = None
    constants: Mapping[str, object] | None = None
    num_rows: int | None = None

    @classmethod
    def from_json(cls, text: str) -> tuple[Split, ...]:
        """Read a split, or a list of them.

        Raises:
            MalformedMessage: It is another text, or of another version of Pennon.
        """
        try:
            stored = json.loads(text)
        except json.JSONDecodeError as error:
            raise MalformedMessage(why="the text of a split is no JSON") from error
        return cls.of(stored if isinstance(stored, list) else [stored])

    @classmethod
    def of(cls, stored: Sequence[object]) -> tuple[Split, ...]:
        """Read splits from their JSON objects, as ``from_json``."""
        return tuple(map(cls._of, stored))

    @classmethod
    def _of(cls, stored: object) -> Split:
        """Read one by hand: a task may have 100,000 of them."""
        match stored:
            case {"leaf": str(leaf), "version": str(version), "residual": int(residual), **more}:
                part, constants = more.pop("fragments", None), more.pop("constants", None)
                rows = more.pop("rows", None)
                tuple_values = constants if isinstance(constants, dict) else None
                count = rows if isinstance(rows, int) else None
                if not more and version.isdecimal() and tuple_values is constants and count is rows:
                    match part:
                        case None:
                            return cls(leaf, int(version), residual, None, tuple_values, count)
                        case [int(first), int(end)]:
                            return cls(
                                leaf, int(version), residual, (first, end), tuple_values, count
                            )
        raise MalformedMessage(why="a split has other fields than this worker's")


@dataclass(frozen=True, slots=True)
class WriteToken(Token):
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
