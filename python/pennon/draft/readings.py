"""The transforms of the current format that a partition column of the older draft may stand for.

The draft is ambiguous: its table counts years from 1970, its text says four digits; the bytes
that are hashed and the sign of a hash are not recorded. So a column has several readings, each a
transform of the current format and how a name's text is read as its values; the rows decide.
Counts since 1970 become levels: 672 months are (2026, 1), so that they prune as months do.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote

import pyarrow as pa

from pennon.errors import PennonError
from pennon.manifest.draft import DraftColumn
from pennon.predicate.values.time_units import EPOCH
from pennon.spec import NamespaceSchema, PartitionSpec, spec_of
from pennon.spec.value_text import NULL_TEXT, value_of_text
from pennon.transforms.registry import TransformCall, from_sql

__all__ = ["Reading", "is_null_text", "readings"]

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
