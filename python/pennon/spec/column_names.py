"""What a column can be called, at any depth, and how names of columns are written in a text.

A field of a struct can have any name that no sibling has, in whatever case of letters. A column
has to be one that Lance can be asked for, and none that rows have beside their columns: of Lance
and of Pennon, which name a row by them, or of Spark, whose UPDATE and MERGE find by its name what
they add to a row, and would overwrite the column.

Every door by which columns come asks here. A table of another client can have such a column all
the same: it is read, and its rows are not changed one by one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Final
from urllib.parse import unquote

import pyarrow as pa

from pennon.errors import InvalidColumnName, UnsupportedColumnType
from pennon.spec.schema import children_of

__all__ = [
    "LENGTH_LIMIT",
    "NULL_TEXT",
    "STATISTICS_COLUMNS",
    "CountedColumns",
    "LengthLimit",
    "check_column",
    "column_path",
    "hiding_column",
    "listed_columns",
    "path_values",
    "python_rows",
    "python_value",
    "python_values",
    "text_of_value",
    "value_of_text",
]

_NOT_IN_COLUMNS: Final = {
    ".": "Lance keeps a dot for the fields of a struct",
    "`": "Lance does not read a column with a backquote",
}
_OF_LANCE: Final = frozenset(
    {
        "_rowid",
        "_rowaddr",
        "_rowoffset",
        "_row_created_at_version",
        "_row_last_updated_at_version",
    }
)
_OF_PENNON: Final = frozenset({"_leaf", "_leaf_version", "_partition", "_spec_version"})
_NAME_ROWS: Final = frozenset({"_leaf", "_leaf_version", "_rowaddr"})
_OF_SPARK: Final = re.compile(
    r"__row_(?:operation|id|from_source|from_target)|__original_row_id_.*", re.DOTALL
)
_ENTRY: Final = re.compile(r"(?:`[^`]*`|[^,`])+")
_PART: Final = re.compile(r"(?:^|\.)((?:`(?:[^`]|``)*`|[^.])*)")


def check_column(path: Sequence[str], data_type: pa.DataType | None = None) -> None:
    """Refuse a column or a field that could not be stored, read or changed by its name.

    Args:
        path: The names from the top; the last one is new.
        data_type: Its type, all of whose fields are new; None where they are not.

    Raises:
        InvalidColumnName: It says why, and suggests another name.
        UnsupportedColumnType: A struct has no field: Lance keeps no NULL of one, and none in a
            list.

    Example:
        >>> check_column(["place"], pa.struct({"zip.code": pa.int32()}))
        >>> check_column(["_RowId"])
        Traceback (most recent call last):
            ...
        pennon.errors.InvalidColumnName: [INVALID_COLUMN_NAME] Cannot name a column \
'_RowId': Lance has a column of its own of that name. Choose another name, for example `RowId`.
    """
    shown = ".".join(path)
    if not path[-1]:
        why = "a name has a character at least"
        raise InvalidColumnName(name=shown, why=why, example="a")
    if len(path) == 1:
        _check_top(path[0])
    if data_type is None:
        return
    if pa.types.is_struct(data_type):
        if not data_type.num_fields:
            raise UnsupportedColumnType(column=shown, type="struct<>", target="Lance")
        _check_siblings(path, data_type)
    for child in children_of(data_type):
        check_column((*path, child.name), child.type)


def _check_top(name: str) -> None:
    for character, why in _NOT_IN_COLUMNS.items():
        if character in name:
            raise InvalidColumnName(name=name, why=why, example=name.replace(character, "_"))
    if name == "*":
        why = "it stands for all columns"
        raise InvalidColumnName(name=name, why=why, example="star")
    lowered = name.lower()
    if lowered in _OF_LANCE:
        why = "Lance has a column of its own of that name"
    elif lowered in _OF_PENNON:
        why = "it is the name of a metadata column"
    elif _OF_SPARK.fullmatch(lowered):
        why = "Spark gives rows that UPDATE and MERGE change a column of that name"
    else:
        return
    raise InvalidColumnName(name=name, why=why, example=name.lstrip("_"))


def _check_siblings(path: Sequence[str], struct: pa.DataType) -> None:
    names: set[str] = set()
    for field in struct:
        if field.name.lower() in names:
            why = "its struct has a field of that name already, maybe in another case of letters"
            shown = ".".join((*path, field.name))
            raise InvalidColumnName(name=shown, why=why, example=f"{field.name}_2")
        names.add(field.name.lower())


def hiding_column(names: Iterable[str]) -> str | None:
    """Give a column for whose name single rows cannot be changed; None where there is none.

    Args:
        names: The columns of a table that another client may have made.

    Example:
        >>> hiding_column(["id", "_RowAddr"]), hiding_column(["id", "_rowoffset"])
        ('_RowAddr', None)
    """
    return next(
        (name for name in names if name.lower() in _NAME_ROWS or _OF_SPARK.fullmatch(name.lower())),
        None,
    )


def column_path(text: str) -> tuple[str, ...]:
    """Take the name of a column apart into the names from the top.

    Args:
        text: Names with dots between; one that has a dot itself stands in backquotes.

    Example:
        >>> column_path("place.`zip.code`"), column_path("a b")
        (('place', 'zip.code'), ('a b',))
    """
    return tuple(map(_unquoted, _PART.findall(text)))


def _unquoted(part: str) -> str:
    is_quoted = len(part) > 1 and part[0] == part[-1] == "`"
    return part[1:-1].replace("``", "`") if is_quoted else part


def listed_columns(text: str) -> list[str]:
    """Take names apart that have commas between: so options, properties and procedures have them.

    A name, or each part of a path with dots, may stand in backquotes, which are left away.

    Example:
        >>> listed_columns("id, `a b`, place.`zip, code`")
        ['id', 'a b', 'place.zip, code']
    """
    entries = (entry.strip() for entry in _ENTRY.findall(text))
    return [name for entry in entries if (name := ".".join(column_path(entry)))]


# The table property that selects the columns with statistics: their number, or their names.

STATISTICS_COLUMNS: Final = "write.statistics.columns"
# As many as Delta counts: tables have the columns that people ask for first, and each costs
# 20 to 40 bytes of every partition's row.
_DEFAULT: Final = 32


@dataclass(frozen=True, slots=True)
class CountedColumns:
    """Which columns are counted.

    Args:
        first: So many of the first ones that can be.
        names: Instead of these: columns by name in lower case, fields of structs by a path with
            dots; a struct's name stands for all its fields.
    """

    first: int = _DEFAULT
    names: frozenset[str] | None = None

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> CountedColumns:
        """Read a table's properties; what is not understood names no column.

        Example:
            >>> CountedColumns.of({}).first
            32
            >>> sorted(CountedColumns.of({"write.statistics.columns": "price, place.city"}).names)
            ['place.city', 'price']
        """
        text = properties.get(STATISTICS_COLUMNS, "").strip()
        if not text:
            return cls()
        if text.isdecimal():
            return cls(int(text))
        return cls(0, frozenset(name.lower() for name in listed_columns(text)))

    def has(self, path: tuple[str, ...], num_before: int) -> bool:
        """Whether a column is counted.

        Args:
            path: Its names from the top.
            num_before: How many columns before it are counted.
        """
        if self.names is None:
            return num_before < self.first
        lowered = [name.lower() for name in path]
        return any(".".join(lowered[:end]) in self.names for end in range(1, len(path) + 1))


# The length of a CHAR or VARCHAR column, which Spark keeps in the metadata of a STRING.

LENGTH_LIMIT: Final = "__CHAR_VARCHAR_TYPE_STRING"
"""The key of the metadata."""

_TYPE: Final = re.compile(r"(char|varchar)\((\d+)\)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class LengthLimit:
    """How many characters a text of a column has at most, or exactly.

    Args:
        length: So many.
        is_fixed: Whether shorter texts are filled up with spaces, as CHAR does.
    """

    length: int
    is_fixed: bool

    @classmethod
    def of(cls, column: pa.Field) -> LengthLimit | None:
        """Give the limit of a column; None where it has none.

        Example:
            >>> import pyarrow as pa
            >>> print(LengthLimit.of(pa.field("a", pa.utf8(), metadata={LENGTH_LIMIT: "char(3)"})))
            CHAR(3)
        """
        text = (column.metadata or {}).get(LENGTH_LIMIT.encode(), b"").decode()
        stated = _TYPE.fullmatch(text)
        return None if stated is None else cls(int(stated[2]), stated[1].lower() == "char")

    def __str__(self) -> str:
        """Print the type as users write it."""
        return f"{'CHAR' if self.is_fixed else 'VARCHAR'}({self.length})"


# Values as texts: in names that other writers chose, in commands, and for display.
#
# ``__HIVE_DEFAULT_PARTITION__`` is NULL.

NULL_TEXT: Final = "__HIVE_DEFAULT_PARTITION__"


def path_values(path: str) -> dict[str, str]:
    """Read the ``column=value`` parts of a path.

    Example:
        >>> path_values("/lake/region=eu%2Fwest/day=2025-01-01/part.lance")
        {'region': 'eu/west', 'day': '2025-01-01'}
    """
    pairs = (part.partition("=") for part in PurePosixPath(path).parts)
    return {name: unquote(text) for name, is_pair, text in pairs if is_pair and name}


def value_of_text(text: str, data_type: pa.DataType) -> pa.Scalar | None:
    """Read a value of a type; None where the text is none.

    Example:
        >>> value_of_text("2025-12-10", pa.date32())
        <pyarrow.Date32Scalar: datetime.date(2025, 12, 10)>
        >>> value_of_text("x", pa.int32()) is None
        True
    """
    if text == NULL_TEXT:
        return pa.scalar(None, data_type)
    try:
        if pa.types.is_binary(data_type) or pa.types.is_large_binary(data_type):
            return pa.scalar(bytes.fromhex(text), data_type)
        if pa.types.is_decimal(data_type):
            return pa.scalar(text).cast(pa.decimal128(38, data_type.scale)).cast(data_type)
        if pa.types.is_timestamp(data_type) and data_type.tz is not None:
            zoned = text if text.endswith("Z") or "+" in text else text + "Z"
            return pa.scalar(zoned).cast(data_type)
        return pa.scalar(text).cast(data_type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, ValueError):
        return None


def text_of_value(value: pa.Scalar) -> str:
    """Write a partition value as text: dates ISO, timestamps ISO with Z where they are zoned.

    Example:
        >>> text_of_value(pa.scalar(2025, pa.int32()))
        '2025'
    """
    data_type = value.type
    if pa.types.is_timestamp(data_type):
        plain = value.cast(pa.timestamp(data_type.unit, "UTC" if data_type.tz else None))
        text = str(plain.cast(pa.timestamp(data_type.unit)).cast(pa.utf8()).as_py())
        return text.replace(" ", "T", 1) + ("Z" if data_type.tz else "")
    if pa.types.is_binary(data_type) or pa.types.is_large_binary(data_type):
        return str(value.as_py().hex())
    return str(value.cast(pa.utf8()).as_py())


def python_value(value: pa.Scalar) -> object:
    """Give a value as Python's; dates and times of years that Python does not have as texts.

    Example:
        >>> python_value(pa.scalar(4_000_000, pa.int32()).cast(pa.date32()))
        '12921-08-18'
    """
    try:
        return value.as_py()
    except (OverflowError, ValueError):
        data_type = value.type
        if pa.types.is_dictionary(data_type):
            return python_value(value.cast(data_type.value_type))
        if pa.types.is_struct(data_type):
            return {child.name: python_value(value[at]) for at, child in enumerate(data_type)}
        if pa.types.is_map(data_type):
            columns = (python_values(value.values.field(at)) for at in range(2))
            return list(zip(*columns, strict=True))
        if hasattr(data_type, "value_field"):
            return python_values(value.values)
        return value.cast(pa.utf8()).as_py()


def python_values(values: pa.Array | pa.ChunkedArray) -> list[object]:
    """Give values as ``python_value`` does.

    Example:
        >>> python_values(pa.array([0, 4_000_000], pa.int32()).cast(pa.date32()))
        [datetime.date(1970, 1, 1), '12921-08-18']
    """
    try:
        return list(values.to_pylist())
    except (OverflowError, ValueError):
        return [python_value(value) for value in values]


def python_rows(table: pa.Table | pa.RecordBatch) -> list[dict[str, object]]:
    """Give rows as dicts of what ``python_value`` gives."""
    rows = zip(*map(python_values, table.columns), strict=True)
    return [dict(zip(table.schema.names, row, strict=True)) for row in rows]
