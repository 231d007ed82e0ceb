"""The ``metadata`` text of ``__manifest`` rows: statistics of leaves, read for all rows at once.

A table row's metadata is a JSON object; Pennon writes ``num_rows``, ``num_bytes``,
``num_fragments`` and ``write_order`` into it and keeps every other key. The numbers are written as
JSON strings: upstream's directory namespace takes the object for a map of strings and cannot
describe a table otherwise. Both forms are read. A row without them has NULL statistics.

The numbers are those of one version, ``counted_version``. Another writer may move a row on and
keep what it does not know: then they say nothing of the version that is read. Of a row without it,
and of a leaf that is read at its newest version, they may be another version's.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json

from pennon.manifest.format.column_statistics import COLUMN_STATISTICS
from pennon.spec.json_text import object_or_empty, text_of

__all__ = [
    "COUNTED_VERSION",
    "IS_COUNTED",
    "RECORDED_ORDER",
    "STATISTICS",
    "order_at",
    "order_column",
    "recorded_order",
    "statistics_columns",
    "with_statistics",
    "without_columns",
]

# So few texts, as a commit asks for, are read without a pool of threads.
_FEW: Final = 32
STATISTICS: Final = ("num_rows", "num_bytes", "num_fragments")
NUM_FRAGMENTS: Final = "num_fragments"
IS_COUNTED: Final = "is_counted"
RECORDED_ORDER: Final = "write_order"
COUNTED_VERSION: Final = "counted_version"
_AT_ONCE: Final = 50_000
_WRITTEN: Final = pa.schema(dict.fromkeys((*STATISTICS, COUNTED_VERSION), pa.utf8()))
# Versions of detached commits need all 64 bits.
_READ: Final = pa.schema({**dict.fromkeys(STATISTICS, pa.int64()), COUNTED_VERSION: pa.uint64()})


def statistics_columns(
    metadata: pa.ChunkedArray, versions: pa.ChunkedArray | None = None
) -> dict[str, pa.ChunkedArray]:
    """Take the statistics out of a column of JSON texts, without a Python loop over rows.

    Args:
        metadata: The texts.
        versions: The versions that are read (uint64; NULL for the newest). None to take the
            numbers as they stand.

    Returns:
        The statistics, NULL where they are known to be another version's or that of a leaf that is
        read at its newest. With ``versions`` also ``is_counted``, whether they are known to be
        those of the version that is read; ``num_fragments``, of which parts of leaves are made, is
        NULL where they are not.

    Example:
        >>> texts = pa.chunked_array([['{"num_rows":"3","num_bytes":"120"}', "{}", None]])
        >>> statistics_columns(texts)["num_rows"].to_pylist()
        [3, None, None]

    Spec: "Manifest Table Schema" (metadata).
    """
    columns = _columns(metadata)
    counted = columns.pop(COUNTED_VERSION)
    if versions is None:
        return columns
    is_counted = pc.fill_null(pc.equal(counted, versions), fill_value=False)
    is_possible = pc.or_(is_counted, pc.and_(pc.is_null(counted), pc.is_valid(versions)))
    counts = {
        name: pc.if_else(
            is_counted if name == NUM_FRAGMENTS else is_possible,
            column,
            pa.scalar(None, column.type),
        )
        for name, column in columns.items()
    }
    is_known = pc.and_(is_counted, pc.is_valid(counts["num_rows"]))
    return {**counts, IS_COUNTED: is_known}


def _columns(metadata: pa.ChunkedArray) -> dict[str, pa.ChunkedArray]:
    if len(metadata) <= _FEW:
        return _columns_of_few(metadata.to_pylist())
    parsed = _parsed(metadata)
    if parsed is not None:
        return {name: parsed[name] for name in _READ.names}
    columns = {}
    for name, data_type in zip(_READ.names, _READ.types, strict=True):
        # A quoted key, a colon and a number cannot stand inside a JSON string unescaped.
        digits = 20 if name == COUNTED_VERSION else 18
        pattern = rf'"{name}"\s*:\s*"?(?P<number>\d{{1,{digits}}})\b'
        matched = pc.extract_regex(metadata, pattern)
        columns[name] = pc.cast(pc.struct_field(matched, "number"), data_type)
    return columns


def _columns_of_few(texts: Sequence[str | None]) -> dict[str, pa.ChunkedArray]:
    stated = [object_or_empty(text) for text in texts]
    return {
        name: pa.chunked_array(
            [pa.array([_number(leaf.get(name), data_type) for leaf in stated], data_type)]
        )
        for name, data_type in zip(_READ.names, _READ.types, strict=True)
    }


def _number(value: object, data_type: pa.DataType) -> int | None:
    if isinstance(value, str) and value.isdecimal():
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    return value if 0 <= value < 1 << (63 if data_type == pa.int64() else 64) else None


def _parsed(metadata: pa.ChunkedArray) -> pa.Table | None:
    """Parse all texts as JSON files; None where one of them has not the form that we write.

    Five times as fast as a regular expression per statistic. Of so many texts as one file that
    their bytes never exceed what 32-bit offsets can address.
    """
    if len(metadata) == 0:
        return None
    pieces = [_one_file(metadata.slice(at, _AT_ONCE)) for at in range(0, len(metadata), _AT_ONCE)]
    parsed = [piece for piece in pieces if piece is not None]
    return pa.concat_tables(parsed) if len(parsed) == len(pieces) else None


def _one_file(metadata: pa.ChunkedArray) -> pa.Table | None:
    stated = without_columns(pc.fill_null(metadata, ""))
    texts = pa.concat_arrays(pc.if_else(pc.equal(stated, ""), "{}", stated).chunks)
    lines = pc.binary_join(pa.ListArray.from_arrays([0, len(texts)], texts), "\n")
    try:
        parsed = pyarrow.json.read_json(
            pa.BufferReader(lines.buffers()[2]),
            parse_options=pyarrow.json.ParseOptions(
                explicit_schema=_WRITTEN, unexpected_field_behavior="ignore"
            ),
        )
    except pa.ArrowInvalid:
        return None
    try:
        return parsed.cast(_READ) if len(parsed) == len(metadata) else None
    except pa.ArrowInvalid:
        return None


def without_columns(texts: pa.ChunkedArray) -> pa.ChunkedArray:
    """Cut off the statistics of columns, ten times as long as all others and the last of them.

    Where another writer has put more behind them it is lost here, and unknown.

    Example:
        >>> texts = pa.chunked_array([['{"num_rows":"3","column_statistics":"{}"}', None]])
        >>> without_columns(texts).to_pylist()
        ['{"num_rows":"3"}', None]
    """
    parts = pc.split_pattern(texts, f',"{COLUMN_STATISTICS}":', max_splits=1)
    first = pc.list_element(parts, 0)
    is_cut = pc.equal(pc.list_value_length(parts), 2)
    closed: pa.ChunkedArray = pc.binary_join_element_wise(first, "}", "")
    return pc.if_else(is_cut, closed, first)


def recorded_order(version: int, order: str) -> str:
    """Write what is recorded of an order: only rows of that version are known to be in it.

    Another writer may move a row on and keep what it does not know.

    Args:
        version: The leaf's Lance version.
        order: The identity of the order.

    Example:
        >>> recorded_order(7, "0 int64 ASC")
        '7 0 int64 ASC'
    """
    return f"{version} {order}"


def order_at(recorded: str | None, version: int) -> str | None:
    """Give the order that is recorded for a version; None where none is.

    Example:
        >>> order_at("7 0 int64 ASC", 7), order_at("7 0 int64 ASC", 8)
        ('0 int64 ASC', None)
    """
    stated, _, order = (recorded or "").partition(" ")
    return order if order and stated == str(version) else None


def order_column(metadata: pa.ChunkedArray) -> pa.ChunkedArray:
    """Take what a column of JSON texts records of the order of leaves' rows.

    It is the version that was recorded and the order's identity; NULL where nothing is recorded.

    Example:
        >>> order_column(pa.chunked_array([['{"write_order":"7 0 int64 ASC"}', "{}"]])).to_pylist()
        ['7 0 int64 ASC', None]
    """
    pattern = rf'"{RECORDED_ORDER}"\s*:\s*"(?P<order>[^"\\]*)"'
    return pc.struct_field(pc.extract_regex(metadata, pattern), "order")


def with_statistics(metadata: str | None, statistics: Mapping[str, int | str | None]) -> str:
    """Write statistics into a row's JSON text; its other keys stay.

    Example:
        >>> with_statistics('{"note":"x","num_rows":1}', {"num_rows": 2})
        '{"note":"x","num_rows":"2"}'
    """
    kept = json.loads(metadata) if metadata else {}
    written = kept if isinstance(kept, dict) else {}
    for name, value in statistics.items():
        if value is None or name == COLUMN_STATISTICS:
            written.pop(name, None)
        if value is not None:
            written[name] = str(value)
    if COLUMN_STATISTICS in written:  # the last one, so that readers of the others can cut it off
        written[COLUMN_STATISTICS] = written.pop(COLUMN_STATISTICS)
    return text_of(written)
