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
from collections.abc import Iterable, Sequence
from typing import Final

import pyarrow as pa

from pennon.errors import InvalidColumnName, UnsupportedColumnType
from pennon.spec.schema import children_of

__all__ = ["check_column", "column_path", "hiding_column", "listed_columns"]

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
