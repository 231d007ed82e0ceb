"""Creates transforms from JSON objects and SQL calls.

SQL takes the specification's transforms under their own names, and the plural time forms, which
stand for the levels of one column.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pennon.errors import UnknownTransform
from pennon.transforms.bucket import Bucket, MultiBucket
from pennon.transforms.calendar import Day, Hour, Month, Year
from pennon.transforms.epoch import Epoch, EpochUnit, unit_of_levels
from pennon.transforms.expression import Expression
from pennon.transforms.identity import Identity
from pennon.transforms.transform import SizedTransform
from pennon.transforms.truncate import Truncate

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    import pyarrow as pa

    from pennon.transforms.transform import Transform

# A new transform is its file and its name here, and Java's evaluation of it.
_TRANSFORMS: Final[tuple[type[Transform], ...]] = (
    *(Identity, Year, Month, Day, Hour),
    *(Epoch, Bucket, MultiBucket, Truncate),
    Expression,
)
_BY_TYPE: Final = {transform.type: transform for transform in _TRANSFORMS}
_IN_FORMAT: Final = {
    name: transform for name, transform in _BY_TYPE.items() if transform not in (Epoch, Expression)
}
_IN_SQL: Final = {name: transform for transform in _TRANSFORMS for name in transform.sql_names()}
# What Iceberg calls them as well; as a word of SQL, date is no column's.
_OTHER_NAMES: Final = {"date": "days", "date_hour": "hours"}

IDENTITY: Final[Transform] = Identity()
LEVELS: Final = EpochUnit.HOURS.level_types
"""The types of the calendar fields, coarse to fine."""


@dataclass(frozen=True, slots=True)
class TransformCall:
    """What a transform in SQL stands for: partition fields over columns.

    Args:
        transforms: One per partition field, coarse to fine; each takes all ``columns``.
        columns: Paths of the source columns.
        composed: ``years`` … ``hours`` when the transforms are levels, else None.
    """

    transforms: tuple[Transform, ...]
    columns: tuple[tuple[str, ...], ...]
    composed: str | None = None

    def __str__(self) -> str:
        names = [".".join(path) for path in self.columns]
        if self.composed is not None:
            return f"{self.composed}({', '.join(names)})"
        return ", ".join(transform.sql(names) for transform in self.transforms)


def from_json(obj: Mapping[str, object]) -> Transform:
    """Read the specification's transform object.

    Raises:
        UnknownTransform: The type is none of the specification's.
        InvalidTransform: A parameter is missing or out of range.

    Example:
        >>> from_json({"type": "bucket", "num_buckets": 16})
        Bucket(num_buckets=16)

    Spec: "Transform Schema".
    """
    name = obj.get("type")
    if not isinstance(name, str) or name not in _IN_FORMAT:
        raise UnknownTransform(name=name, known=", ".join(_IN_FORMAT))
    return _IN_FORMAT[name].from_json(obj)


def expression(sql: str, result_type: pa.DataType | None = None) -> Transform:
    """Make the transform that evaluates DataFusion SQL over ``col0``, ``col1``, ….

    Args:
        sql: The expression.
        result_type: The type of its values; None for the natural one.

    Spec: "Partition Expression".
    """
    return Expression(sql, result_type)


def sized(name: str, size: int) -> Transform | None:
    """Make the transform with a number of one column that a function computes; None if none does.

    Example:
        >>> sized("bucket", 16), sized("year", 16)
        (Bucket(num_buckets=16), None)
    """
    transform = _BY_TYPE.get(name)
    if transform is None or transform.takes_many or not issubclass(transform, SizedTransform):
        return None
    return transform.of_size(size)


def composed_of(level_types: Collection[str]) -> Transform | None:
    """Recognise the composed transform in the transform types of one column's fields.

    Returns:
        The finest transform all of whose levels are there; None when even the year is missing.

    Example:
        >>> composed_of({"year", "month", "bucket"})
        Epoch(unit=<EpochUnit.MONTHS: 'months'>)
    """
    unit = unit_of_levels(level_types)
    return None if unit is None else Epoch(unit)


def from_message(
    written: Mapping[str, object], read_type: Callable[[object], pa.DataType]
) -> Transform:
    """Read what ``to_message`` of a transform gives.

    Args:
        written: The object.
        read_type: Reads a type as it was written.
    """
    transform = _BY_TYPE.get(str(written.get("type")))
    return from_json(written) if transform is None else transform.from_message(written, read_type)


def from_spark(transform: Mapping[str, object]) -> TransformCall:
    """Read a transform as Spark's parser gives it: ``{"function": …, "arguments": […]}``."""
    function, arguments = transform.get("function"), transform.get("arguments", [])
    if not isinstance(function, str) or not isinstance(arguments, list | tuple):
        raise UnknownTransform(name=transform, known=", ".join(_IN_SQL))
    return from_sql(function, arguments)


def from_sql(function: str, arguments: Sequence[Mapping[str, object]]) -> TransformCall:
    """Read a transform call of SQL.

    Args:
        function: Name, in any case.
        arguments: ``{"column": ["a", "b"]}`` or ``{"literal": 16}`` each, in any order.

    Raises:
        UnknownTransform: Lists the known ones.
        InvalidTransform: Arguments are missing, too many or out of range.

    Example:
        >>> print(from_sql("bucket", [{"literal": 16}, {"column": ["customer_id"]}]))
        bucket(16, customer_id)
        >>> print(from_sql("date", [{"column": ["ordered_at"]}]))
        days(ordered_at)
    """
    name = _OTHER_NAMES.get(function.lower(), function.lower())
    if name not in _IN_SQL:
        raise UnknownTransform(name=function, known=", ".join(_IN_SQL))
    columns = tuple(_path(argument["column"]) for argument in arguments if "column" in argument)
    literals = [argument["literal"] for argument in arguments if "literal" in argument]
    if not columns:
        raise _IN_SQL[name].invalid_call(name, "no column", "at least one column")
    transform = _IN_SQL[name].from_sql(name, literals, len(columns))
    if transform.levels:
        return TransformCall(transform.levels, columns, transform.sql_name)
    return TransformCall((transform,), columns)


def _path(column: object) -> tuple[str, ...]:
    return (column,) if isinstance(column, str) else tuple(map(str, column))  # type: ignore[call-overload]
