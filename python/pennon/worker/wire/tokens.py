"""The opaque tokens that the JVM carries: table, plan, scan, split, write, fragment.

Each is declared once and read strictly: a text with another field, or without one, is none of this
worker's. ``scan`` and ``write`` hold storage options, because executors receive nothing else.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from typing import TYPE_CHECKING, Final, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pennon.caching import TextCache
from pennon.catalog.configured_catalog import WriteMode
from pennon.errors import MalformedMessage
from pennon.execution import Fragment, LeafRead, Query, Relation, ReplicatedPart
from pennon.leaf import WriteTarget
from pennon.leaf.read.row_keys import RowKeys
from pennon.manifest.table_layout import TableLayout
from pennon.metadata_tables.changes_table import ChangeRange
from pennon.metadata_tables.metadata_table import SearchCall
from pennon.planning.leaf_constants import CONSTANTS
from pennon.spec.schema import children_of, with_children
from pennon.transforms.evaluation import INT64_DIGITS, low_halves
from pennon.worker.wire.json_fields import decode, encode

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from pennon.pushdown.tasks import FragmentTasks

    Numbers = npt.NDArray[np.int64]


# Writes what tasks read for 100,000 leaves at once, as JSON; ``leaf_reads`` reads it.


def packed_splits(leaves: pa.Table, rows: pa.Table) -> pa.Table:
    """Write one split per task.

    Args:
        leaves: Columns ``object_id``, and those of ``split_column``.
        rows: What each task reads of them (``ASSIGNED``).

    Returns:
        Columns ``object_id``, the ids of the task's leaves with commas between them, and ``split``.
    """
    tasks = rows["key"].to_numpy()
    count = int(tasks.max(initial=-1)) + 1
    ids = leaves["object_id"].combine_chunks().take(rows["leaf"].combine_chunks())
    names = [",".join(dict.fromkeys(names)) for names in task_lists(ids, tasks, count).to_pylist()]
    splits = split_lists(split_column(leaves, rows), tasks, count)
    return pa.table({"object_id": pa.array(names, pa.utf8()), "split": splits})


def split_lists(splits: pa.Array, tasks: Numbers, count: int) -> pa.Array:
    """Write the splits of each task as a list, as ``task_lists``."""
    joined = pc.binary_join(task_lists(splits, tasks, count), ",")
    lists: pa.Array = pc.binary_join_element_wise("[", joined, "]", "")
    return lists


def task_lists(values: pa.Array, tasks: Numbers, count: int) -> pa.ListArray:
    """List what each task has.

    Args:
        values: That of all tasks.
        tasks: The number of each one's task, in ascending order.
        count: How many tasks there are.
    """
    offsets = np.concatenate([[0], np.cumsum(np.bincount(tasks, minlength=count))])
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), values)


def split_column(leaves: pa.Table, rows: pa.Table | None = None) -> pa.Array:
    """Write what is read of leaves, for 100,000 of them in a few milliseconds.

    Args:
        leaves: Columns ``location``, ``read_version`` and ``residual``; ``num_rows`` where planned;
            ``constants`` where rows have such metadata columns.
        rows: What is read of them (``ASSIGNED``); None for each leaf as a whole.

    Example:
        >>> leaf = {"location": ["x"], "read_version": [3], "residual": [-1]}
        >>> split_column(pa.table(leaf))[0].as_py()
        '{"leaf":"x","version":"3","residual":-1}'
    """
    location = leaves["location"].cast(pa.utf8())
    if _needs_escape(location):
        escaped = [json.dumps(text)[1:-1] for text in location.to_pylist()]
        location = pa.chunked_array([pa.array(escaped, pa.utf8())])
    whole: pa.Array = pc.binary_join_element_wise(
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
    ).combine_chunks()
    if rows is None:
        return whole
    leaf, first, end = (
        rows[name].combine_chunks() for name in ("leaf", "first_fragment", "end_fragment")
    )
    texts = whole.take(leaf)
    if first.null_count == len(first):
        return texts
    opened = pc.utf8_slice_codeunits(texts, 0, -1)
    ends = (first.cast(pa.utf8()), ",", end.cast(pa.utf8()))
    parts = pc.binary_join_element_wise(opened, ',"fragments":[', *ends, "]}", "")
    either: pa.Array = pc.coalesce(parts, texts)
    return either


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
        search: What is searched in it, for a function of that name.
    """

    metadata: str
    of: TableToken
    changes: ChangeRange | None = None
    search: SearchCall | None = None


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
        relation: What is read, without the leaves; its order is one that each split's rows can be
            given in.
        residuals: The filters that splits name by number.
    """

    relation: Relation
    residuals: tuple[str, ...] = ()

    @classmethod
    def from_json(cls, text: str) -> ScanToken:
        """Read the token; every task of a scan brings the same."""
        return _SCAN_TOKENS.find(text)

    def of_task(self, splits: Sequence[object]) -> Relation:
        """Put together what a task reads of the scan.

        Args:
            splits: As ``splits_of`` gives them.

        Raises:
            MalformedMessage: One is of another version of Pennon.
        """
        return replace(self.relation, leaves=leaf_reads(splits, self.residuals))


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


def splits_of(text: str) -> list[object]:
    """Read the JSON of a split, or of a list of them.

    Raises:
        MalformedMessage: It is no JSON.
    """
    try:
        stored = json.loads(text)
    except json.JSONDecodeError as error:
        raise MalformedMessage(why="the text of a split is no JSON") from error
    return stored if isinstance(stored, list) else [stored]


def leaf_reads(splits: Sequence[object], residuals: Sequence[str]) -> tuple[LeafRead, ...]:
    """Read the leaves of a task by hand: there may be 100,000 of them.

    A version is a text in JSON, where numbers lose the high bit; a residual filter is a number.

    Args:
        splits: What ``split_column`` wrote, as JSON has it.
        residuals: The filters of the scan, in their order; -1 is none of them.

    Raises:
        MalformedMessage: One is of another version of Pennon.
    """
    return tuple(_leaf_read(split, residuals) for split in splits)


def _leaf_read(stored: object, residuals: Sequence[str]) -> LeafRead:
    match stored:
        case {"leaf": str(leaf), "version": str(version), "residual": int(number), **more}:
            part, constants = more.pop("fragments", None), more.pop("constants", None)
            rows = more.pop("rows", None)
            tuple_values = constants if isinstance(constants, dict) else None
            count = rows if isinstance(rows, int) else None
            if not more and version.isdecimal() and tuple_values is constants and count is rows:
                residual = residuals[number] if number >= 0 else None
                read = (leaf, int(version), residual)
                match part:
                    case None:
                        return LeafRead(*read, None, tuple_values, count)
                    case [int(first), int(end)]:
                        return LeafRead(*read, (first, end), tuple_values, count)
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


# What all tasks of a fragment share, and what each one reads.

NO_RELATIONS: Final = '{"relations":[],"keys":[]}'
"""The task of a fragment that reads nothing."""

# Of a plan that replicates 100,000 leaves, which are put together once.
_MOST_FRAGMENT_BYTES: Final = 128 << 20


@dataclass(frozen=True, slots=True)
class PartToken(Token):
    """What every worker evaluates for itself.

    Args:
        query_id: Tells the query from all others: nothing is kept from one for the next.
        scans: The relations.
        splits: What is read of each.
        query: What is computed over them.
    """

    query_id: str
    scans: tuple[ScanToken, ...]
    splits: tuple[str, ...]
    query: Query

    def part(self) -> ReplicatedPart:
        """Put together what is evaluated; equal parts of a query have one key."""
        text = json.dumps([*self.splits, *(scan.to_json() for scan in self.scans), self.query.sql])
        return ReplicatedPart(
            f"{self.query_id}/{hashlib.sha256(text.encode()).hexdigest()}",
            tuple(
                scan.of_task(splits_of(splits))
                for scan, splits in zip(self.scans, self.splits, strict=True)
            ),
            self.query,
        )


@dataclass(frozen=True)
class FragmentToken(Token):
    """What all tasks of a fragment have in common.

    Args:
        scans: The relations, without what is read of them.
        shared: What is computed, without the relations, the parts and the keys of leaves.
        parts: What every worker evaluates for itself.
    """

    scans: tuple[ScanToken, ...]
    shared: Fragment
    parts: tuple[PartToken, ...] = ()

    @classmethod
    def from_json(cls, text: str) -> FragmentToken:
        """Read the token; every task brings the same."""
        return _FRAGMENT_TOKENS.find(text)

    def fragment(self, task: str) -> Fragment:
        """Put together what one task computes.

        Args:
            task: One of ``task_texts``.
        """
        try:
            stored = json.loads(task)
            splits, keys = stored["relations"], stored["keys"]
        except (json.JSONDecodeError, KeyError, TypeError) as error:
            raise MalformedMessage(why="the text task is not one of the worker's") from error
        scans = zip(self.scans, splits, strict=True)
        prunings = zip(self.shared.prunings, keys, strict=True)
        return replace(
            self.shared,
            relations=tuple(scan.of_task(split) for scan, split in scans),
            parts=self._replicated_parts,
            prunings=tuple(replace(pruning, keys=tuple(key)) for pruning, key in prunings),
        )

    @cached_property
    def _replicated_parts(self) -> tuple[ReplicatedPart, ...]:
        """What the tasks share; of 20,000 leaves it takes a tenth of a second to put together."""
        return tuple(part.part() for part in self.parts)


_FRAGMENT_TOKENS: Final = TextCache(
    "fragment tokens",
    max_bytes=_MOST_FRAGMENT_BYTES,
    read=super(FragmentToken, FragmentToken).from_json,
)


def whole_splits(leaves: pa.Table) -> str:
    """Write all leaves of a scan as one split.

    Args:
        leaves: Columns ``location``, ``read_version`` and ``residual``.
    """
    return f"[{','.join(split_column(leaves).to_pylist())}]"


def task_texts(
    tasks: FragmentTasks,
    scans: Sequence[int],
    leaves: Mapping[int, pa.Table],
    keys: Sequence[tuple[int, pa.Array]] = (),
) -> pa.Array:
    """Write what each task reads, for 100,000 leaves in a part of a second.

    Args:
        tasks: The tasks.
        scans: The scans of the relations, in their order.
        leaves: For each scan, columns ``location``, ``read_version`` and ``residual``.
        keys: For each pruning its scan, and the key of each leaf of that: int64.

    Returns:
        One text per task, with the splits of each relation and the keys for each pruning.
    """
    if tasks.rows is None:
        return pa.array([_text_of_everything(scans, leaves, keys)], pa.utf8())
    relations = [_by_task(tasks, scan, partial(split_column, leaves[scan])) for scan in scans]
    key_texts = [_by_task(tasks, scan, partial(_key_column, key)) for scan, key in keys]
    lists, listed = (
        pc.binary_join_element_wise(*tokens, ",") if tokens else ""
        for tokens in (relations, key_texts)
    )
    texts: pa.Array = pc.binary_join_element_wise(
        '{"relations":[', lists, '],"keys":[', listed, "]}", ""
    )
    return texts


def _text_of_everything(
    scans: Sequence[int], leaves: Mapping[int, pa.Table], keys: Sequence[tuple[int, pa.Array]]
) -> str:
    relations = ",".join(whole_splits(leaves[scan]) for scan in scans)
    listed = ",".join(f"[{','.join(_key_column(key).to_pylist())}]" for _, key in keys)
    return f'{{"relations":[{relations}],"keys":[{listed}]}}'


def _by_task(tasks: FragmentTasks, scan: int, texts_of: Callable[[pa.Table], pa.Array]) -> pa.Array:
    """Write what each task has of a scan as a list, of the texts of what is read."""
    rows, numbers = tasks.numbers(scan)
    # Narrow numbers are sorted in one pass over them.
    order = np.argsort(numbers.astype(np.min_scalar_type(len(tasks.keys))), kind="stable")
    return split_lists(texts_of(rows.take(order)), numbers[order], len(tasks.keys))


def _key_column(keys: pa.Array, rows: pa.Table | None = None) -> pa.Array:
    """Write the keys of leaves, or of what is read of them."""
    texts: pa.Array = keys.cast(pa.utf8()).fill_null("null")
    return texts if rows is None else texts.take(rows["leaf"].combine_chunks())
