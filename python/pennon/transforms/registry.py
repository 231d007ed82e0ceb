"""Creates transforms from JSON objects and SQL calls.

SQL takes the specification's transforms under their own names, and the plural time forms, which
stand for the levels of one column.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pennon.errors import InvalidTransform, UnknownTransform
from pennon.transforms.bucket import Bucket, MultiBucket
from pennon.transforms.calendar import Day, Hour, Month, Year
from pennon.transforms.epoch import EpochUnit
from pennon.transforms.expression import Expression
from pennon.transforms.identity import Identity
from pennon.transforms.truncate import Truncate

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pennon.transforms.transform import Transform

_PLAIN: dict[str, Transform] = {
    transform.type: transform for transform in (Identity(), Year(), Month(), Day(), Hour())
}
_SIZED: dict[str, tuple[str, type[Bucket | MultiBucket | Truncate]]] = {
    Bucket.type: ("num_buckets", Bucket),
    MultiBucket.type: ("num_buckets", MultiBucket),
    Truncate.type: ("width", Truncate),
}
_FORMS = {
    "identity": "identity(column)",
    **{name: f"{name}(column)" for name in ("year", "month", "day", "hour", *EpochUnit)},
    "bucket": "bucket(16, column)",
    "multi_bucket": "multi_bucket(16, column, column)",
    "truncate": "truncate(10, column)",
    "expression": "expression('lower(col0)', column)",
}
# What Iceberg calls them as well; as a word of SQL, date is no column's.
_OTHER_NAMES = {"date": "days", "date_hour": "hours"}


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
    if isinstance(name, str) and name in _PLAIN:
        return _PLAIN[name]
    if not isinstance(name, str) or name not in _SIZED:
        raise UnknownTransform(name=name, known=", ".join([*_PLAIN, *_SIZED]))
    parameter, transform = _SIZED[name]
    size = obj.get(parameter)
    if not isinstance(size, int) or isinstance(size, bool):
        raise InvalidTransform(
            transform=name,
            actual=f"{parameter} = {size!r}",
            expected="a whole number",
            form=f'{{"type": "{name}", "{parameter}": 16}}',
        )
    return transform(size)


def from_spark(transform: Mapping[str, object]) -> TransformCall:
    """Read a transform as Spark's parser gives it: ``{"function": …, "arguments": […]}``."""
    function, arguments = transform.get("function"), transform.get("arguments", [])
    if not isinstance(function, str) or not isinstance(arguments, list | tuple):
        raise UnknownTransform(name=transform, known=", ".join(_FORMS))
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
    if name not in _FORMS:
        raise UnknownTransform(name=function, known=", ".join(_FORMS))
    columns = tuple(_path(argument["column"]) for argument in arguments if "column" in argument)
    literals = [argument["literal"] for argument in arguments if "literal" in argument]
    if not columns:
        raise _invalid(name, "no column", "at least one column")
    if name in _SIZED:
        return _sized_call(name, columns, literals)
    if name == Expression.type:
        if len(literals) != 1 or not isinstance(literals[0], str):
            raise _invalid(name, _listed(literals), "one string of DataFusion SQL")
        return TransformCall((Expression(literals[0]),), columns)
    if literals or len(columns) != 1:
        raise _invalid(name, f"{len(arguments)} arguments", "one column")
    if name in _PLAIN:
        return TransformCall((_PLAIN[name],), columns)
    return TransformCall(EpochUnit(name).levels, columns, name)


def _sized_call(
    name: str, columns: tuple[tuple[str, ...], ...], literals: list[object]
) -> TransformCall:
    match literals:
        case [int() as size] if not isinstance(size, bool):
            pass
        case _:
            raise _invalid(name, _listed(literals), "one whole number")
    if name == Truncate.type and len(columns) > 1:
        raise _invalid(name, f"{len(columns)} columns", "one column")
    if name == Bucket.type and len(columns) > 1:
        return TransformCall((MultiBucket(size),), columns)
    return TransformCall((_SIZED[name][1](size),), columns)


def _path(column: object) -> tuple[str, ...]:
    return (column,) if isinstance(column, str) else tuple(map(str, column))  # type: ignore[call-overload]


def _listed(literals: list[object]) -> str:
    return ", ".join(map(repr, literals)) or "no literal"


def _invalid(name: str, actual: str, expected: str) -> InvalidTransform:
    return InvalidTransform(transform=name, actual=actual, expected=expected, form=_FORMS[name])
