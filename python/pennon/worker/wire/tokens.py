"""The opaque tokens that the JVM carries: table, plan, scan, split, write.

Each is declared once and read strictly: a text with another field, or without one, is none of this
worker's. ``scan`` and ``write`` hold storage options, because executors receive nothing else.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, Self

import pyarrow as pa

from pennon.caching import TextCache
from pennon.catalog.write_mode import WriteMode
from pennon.errors import MalformedMessage
from pennon.execution import LeafRead, Relation
from pennon.leaf import WriteTarget
from pennon.leaf.read.row_keys import RowKeys
from pennon.manifest.table_layout import TableLayout
from pennon.metadata_tables.change_feed import ChangeRange
from pennon.spec.write_order import OrderColumn
from pennon.worker.wire.json_fields import decode, encode

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
    """One leaf of a scan; ``split_texts.py`` writes it.

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
