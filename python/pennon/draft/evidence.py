"""Decides how a draft's leaf names are read, by the rows of its leaves.

A name has a value only under a reading of its column's function (`readings`), and the draft
leaves open which one its writer had. So rows are looked at: all of them where there are few, else
the first of each leaf. A reading that a row contradicts is out. Where rows are left unseen, a
hash is believed only after so many hits that chance is out of the question, and only where no
row hides a NULL that the draft does not say where to put.

Soundness: a name that no reading explains says nothing. The leaf is kept then by every predicate
on the column, and its rows are filtered like any others.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from pennon.errors import LeafTypeMismatch, PennonError
from pennon.leaf import LeafSource
from pennon.manifest.draft import DraftColumn
from pennon.predicate.dialect import DataFusion
from pennon.predicate.values.time_units import EPOCH
from pennon.spec import NamespaceSchema, PartitionSpec, spec_of
from pennon.spec.column_names import NULL_TEXT, value_of_text
from pennon.transforms.registry import TransformCall, from_sql

if TYPE_CHECKING:
    import lance

    from pennon.manifest.draft import DraftLeaf

__all__ = ["LeafEvidence", "Reading", "chosen_readings", "examine", "is_null_text", "readings"]

# The transforms of the current format that a partition column of the older draft may stand for.
#
# The draft is ambiguous: its table counts years from 1970, its text says four digits; the bytes
# that are hashed and the sign of a hash are not recorded. So a column has several readings, each a
# transform of the current format and how a name's text is read as its values; the rows decide.
# Counts since 1970 become levels: 672 months are (2026, 1), so that they prune as months do.

_EPOCH: Final = EPOCH.replace(tzinfo=None)  # counts have no zone
_MONTHS: Final = 12
_HASH_BITS: Final = 32
_NULL_TEXTS: Final = frozenset({NULL_TEXT, "", "null", "NULL", "None"})

_Numbers = Callable[[str], Sequence[object] | None]


@dataclass(frozen=True, slots=True)
class Reading:
    """One reading of a column.

    Args:
        meaning: What it takes the values for, for reports.
        call: The transform of the current format.
        spec: A spec of this transform alone.
        numbers: Turns a name's text into one value per field; None or ValueError for others.
    """

    meaning: str
    call: TransformCall
    spec: PartitionSpec
    numbers: _Numbers

    def values(self, text: str) -> list[list[pa.Scalar]]:
        """Give the partition values that a name can mean: as it stands, and percent-decoded."""
        kinds = [field.result_type for field in self.spec.fields]
        choices = []
        for spelling in dict.fromkeys((text, unquote(text))):
            try:
                numbers = self.numbers(spelling)
                pairs = [] if numbers is None else list(zip(numbers, kinds, strict=True))
                choices += [[pa.scalar(number, kind) for number, kind in pairs]] if pairs else []
            except (ValueError, OverflowError, pa.ArrowInvalid):
                continue
        return choices


def is_null_text(text: str) -> bool:
    """Whether a name's text may stand for NULL."""
    return text in _NULL_TEXTS


def readings(column: DraftColumn, schema: NamespaceSchema) -> list[Reading]:
    """List the readings of a column, the likeliest first; none for an unknown function.

    Spec: the draft, §3.1 to §3.6.
    """
    possible = []
    for meaning, function, literals, numbers in _forms(column, schema):
        arguments: list[dict[str, object]] = [{"literal": literal} for literal in literals]
        arguments += [{"column": list(path)} for path in column.sources]
        try:
            call = from_sql(function, arguments)
            spec = spec_of(schema, [call])
        except PennonError:
            continue  # this reading does not take the column's type
        possible.append(Reading(meaning, call, spec, numbers))
    return possible


_Form = tuple[str, str, Sequence[object], _Numbers]


def _forms(column: DraftColumn, schema: NamespaceSchema) -> list[_Form]:
    size, function = column.size, column.function
    source = schema.field_by_path(column.sources[0])
    kind = pa.utf8() if source is None else source.field.type

    def typed(text: str) -> Sequence[object] | None:
        value = value_of_text(text, kind)
        if value is None:
            return None
        return [value.as_py()]

    match function:
        case "identity":
            return [("the values", "identity", [], typed)]
        case "bucket" if size is not None:
            signed = f"((CAST(murmur3(col0) AS BIGINT) % {size}) + {size}) % {size}"
            masked = f"(CAST(murmur3(col0) AS BIGINT) & 2147483647) % {size}"
            forms: list[_Form] = [
                ("the hash's absolute value", "bucket", [size], _whole),
                ("the hash without its sign bit", "expression", [masked], _whole),
            ]
            if size & (size - 1):  # for powers of 2 it is the one before
                forms.append(("the floored remainder of the hash", "expression", [signed], _whole))
            return forms
        case "truncate" if size is not None:
            floored = f"col0 - (((col0 % {size}) + {size}) % {size})"
            return [
                ("rounded towards 0", "truncate", [size], typed),
                ("rounded down", "expression", [floored], typed),
            ]
        case "hash":
            return [("the hash", "expression", ["murmur3(col0)"], _hash)]
        case "year":
            return [
                ("calendar years", "year", [], _whole),
                ("years since 1970", "years", [], _years),
            ]
        case "month":
            return [
                ("months since 1970", "months", [], _months),
                ("calendar months", "month", [], _whole),
            ]
        case "day":
            return [("days since 1970", "days", [], _days), ("calendar days", "day", [], _whole)]
        case "hour":
            return [
                ("hours since 1970", "hours", [], _hours),
                ("calendar hours", "hour", [], _whole),
            ]
    return []


def _whole(text: str) -> Sequence[object]:
    return [int(text)]


def _years(text: str) -> Sequence[object]:
    return [_EPOCH.year + int(text)]


def _months(text: str) -> Sequence[object]:
    count = int(text)
    return [_EPOCH.year + count // _MONTHS, count % _MONTHS + 1]


def _days(text: str) -> Sequence[object]:
    day = dt.date.fromisoformat(text) if "-" in text[1:] else _EPOCH + dt.timedelta(int(text))
    return [day.year, day.month, day.day]


def _hours(text: str) -> Sequence[object]:
    time = _EPOCH + dt.timedelta(hours=int(text))
    return [time.year, time.month, time.day, time.hour]


def _hash(text: str) -> Sequence[object]:
    number = int(text.removeprefix("0x"), 16)
    return [number - (1 << _HASH_BITS) if number >= 1 << (_HASH_BITS - 1) else number]


Values = tuple[pa.Scalar, ...]

_HASHES: Final = frozenset({"bucket", "hash"})
# One in a million millions: as unlikely as that is a chance hit of a hash.
_CHANCE: Final = 1e-12


@dataclass(frozen=True, slots=True)
class Fit:
    """A reading that explains a leaf's name.

    Args:
        values: One partition value per field of the reading.
        num_sources: Different source values that were seen.
    """

    values: Values
    num_sources: int


@dataclass(frozen=True, slots=True)
class LeafEvidence:
    """What the rows of one version of a leaf say.

    Args:
        num_rows: Its rows.
        is_complete: Whether all of them were seen.
        fits: Per partition column and reading, how it explains the name; None where it does not.
    """

    num_rows: int
    is_complete: bool
    fits: tuple[tuple[Fit | None, ...], ...]


def examine(
    dataset: lance.LanceDataset,
    leaf: DraftLeaf,
    readings: Sequence[Sequence[Reading]],
    schema: NamespaceSchema,
    most_rows: int,
) -> LeafEvidence:
    """Look at rows of a leaf.

    Args:
        dataset: The leaf.
        leaf: Its name.
        readings: Per partition column its readings.
        schema: The namespace schema.
        most_rows: How many rows to look at.
    """
    num_rows = dataset.count_rows()
    tops = _columns(readings, schema)
    try:
        rows = _first_rows(dataset, tops, most_rows)
    except LeafTypeMismatch:
        # Whoever reads the leaf gets an error; queries that do not need it are not affected.
        nothing = tuple(tuple(None for _ in of_column) for of_column in readings)
        return LeafEvidence(num_rows, False, nothing)
    is_complete = rows.num_rows == num_rows
    fits = []
    for at, of_column in enumerate(readings):
        text = None if leaf.texts is None else leaf.texts[at]
        fits_of_column = [_fit(text, reading, rows, schema) for reading in of_column]
        if (
            not is_complete
            and any(fits_of_column)
            and _may_hide_nulls(dataset, of_column, rows, schema)
        ):
            fits_of_column = [None for _ in of_column]
        fits.append(tuple(fits_of_column))
    return LeafEvidence(num_rows, is_complete, tuple(fits))


def _columns(readings: Sequence[Sequence[Reading]], schema: NamespaceSchema) -> pa.Schema:
    columns: dict[str, pa.Field] = {}
    for of_column in readings:
        for reading in of_column:
            for field in reading.spec.fields:
                for source in _paths(field.source_ids, schema):
                    columns[source[0]] = schema.arrow.field(source[0])
    return pa.schema(list(columns.values()))


def _paths(source_ids: Sequence[int], schema: NamespaceSchema) -> list[tuple[str, ...]]:
    fields = [schema.field_by_id(number) for number in source_ids]
    return [schema_field.path for schema_field in fields if schema_field is not None]


def _first_rows(dataset: lance.LanceDataset, columns: pa.Schema, most: int) -> pa.Table:
    batches = list(LeafSource(dataset).batches(columns, limit=most))
    if not batches:
        return columns.empty_table()
    return pa.Table.from_batches(batches).combine_chunks()


def _fit(text: str | None, reading: Reading, rows: pa.Table, schema: NamespaceSchema) -> Fit | None:
    if text is None:
        return None
    tuples = reading.values(text)
    nulls = [pa.scalar(None, field.result_type) for field in reading.spec.fields]
    if is_null_text(text):
        tuples.append(nulls)
    if not rows.num_rows:
        return Fit(tuple(tuples[0]), 0) if tuples else None
    first_values = []
    for field in reading.spec.fields:
        sources = [_source(rows, path) for path in _paths(field.source_ids, schema)]
        values = field.derivation.apply(sources).cast(field.result_type)
        different = values.unique()
        if len(different) != 1:
            return None
        first_values.append(different[0])
    if not any(_same(first_values, line) for line in tuples):
        return None
    (first, *_) = _paths(reading.spec.fields[0].source_ids, schema)
    seen = _source(rows, first).drop_null().unique()
    return Fit(tuple(first_values), len(seen))


def _source(rows: pa.Table, path: tuple[str, ...]) -> pa.Array:
    top = rows.column(path[0])
    column = top if len(path) == 1 else pc.struct_field(top, list(path[1:]))
    return column.combine_chunks()


def _same(one: Sequence[pa.Scalar], other: Sequence[pa.Scalar]) -> bool:
    return all(a.equals(b) for a, b in zip(one, other, strict=True))


def _may_hide_nulls(
    dataset: lance.LanceDataset,
    readings: Sequence[Reading],
    rows: pa.Table,
    schema: NamespaceSchema,
) -> bool:
    """Whether a row that was not seen is NULL where all that were seen are not."""
    first = readings[0]
    if first.call.transforms[0].is_identity:
        return False  # the name is the value of every row
    for path in _paths(first.spec.fields[0].source_ids, schema):
        if not schema.arrow.field(path[0]).nullable:
            continue
        if len(path) > 1:
            return True
        if _source(rows, path).null_count:
            continue
        is_null = exp.Is(this=exp.column(path[0], quoted=True), expression=exp.Null())
        column = pa.schema([schema.arrow.field(path[0])])
        batches = LeafSource(dataset).batches(column, is_null.sql(dialect=DataFusion), limit=1)
        if any(batch.num_rows for batch in batches):
            return True
    return False


def chosen_readings(
    columns: Sequence[DraftColumn],
    readings: Sequence[Sequence[Reading]],
    evidence: Mapping[str, LeafEvidence],
) -> list[int | None]:
    """Choose the reading of each column; None where its names are not understood.

    An identity is chosen always: a leaf whose name it does not explain goes without.

    Args:
        columns: The partition columns.
        readings: Their readings.
        evidence: By leaf, what its rows say.
    """
    return [
        _chosen(
            column,
            of_column,
            [leaf.fits[at] for leaf in evidence.values() if leaf.num_rows],
            is_complete=all(leaf.is_complete for leaf in evidence.values()),
        )
        for at, (column, of_column) in enumerate(zip(columns, readings, strict=True))
    ]


def _chosen(
    column: DraftColumn,
    readings: Sequence[Reading],
    fits: Sequence[Sequence[Fit | None]],
    *,
    is_complete: bool,
) -> int | None:
    if column.function == "identity":
        return 0 if readings else None
    alive = [
        at for at in range(len(readings)) if all(leaf_fits[at] is not None for leaf_fits in fits)
    ]
    if not alive:
        return None
    if is_complete:
        return alive[0]
    if column.function in _HASHES:
        hits = sum(
            fit.num_sources for leaf_fits in fits if (fit := leaf_fits[alive[0]]) is not None
        )
        parts = column.size or 1 << 32
        is_sure = parts == 1 or parts ** -min(hits, 64) < _CHANCE
        return alive[0] if len(alive) == 1 and is_sure else None
    if column.function == "truncate" and len(alive) > 1:
        # Both ways of rounding agree from 0 on, and towards 0 is the wider one at 0.
        values = [
            fit.values[0].as_py() for leaf_fits in fits if (fit := leaf_fits[alive[0]]) is not None
        ]
        return alive[0] if all(value is None or value >= 0 for value in values) else None
    return alive[0] if len(alive) == 1 else None
