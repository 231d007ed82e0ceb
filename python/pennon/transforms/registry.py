"""Creates transforms from JSON objects and SQL calls.

SQL takes the specification's transforms under their own names, and the plural time forms, which
stand for the levels of one column.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import sqlglot
from sqlglot import Token, TokenType
from sqlglot.errors import TokenError

from pennon.errors import TransformSyntax, UnknownTransform
from pennon.predicate.parse import SparkSql
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

__all__ = ["parse_transform"]

# Parses and writes transforms as SQL: ``months(ordered_at)``, ``bucket(16, customer_id)``.

_Argument = dict[str, object]
# Both are typed as if the name belonged to the transform.
_NAME: Final = (
    "the name of a new field stands behind AS in SQL, and is the second argument of"
    " add_partition_field in Python"
)


def parse_transform(text: str) -> dict[str, object]:
    """Read one entry of PARTITIONED BY into the form that ``registry.from_spark`` takes.

    Args:
        text: A column, or a transform of columns; names with blanks or dots in backquotes.

    Raises:
        TransformSyntax: The text is neither.

    Example:
        >>> parse_transform("bucket(16, customer_id)")
        {'function': 'bucket', 'arguments': [{'literal': 16}, {'column': ['customer_id']}]}

    Spec: "Transform Schema".
    """
    try:
        tokens = sqlglot.tokenize(text, read=SparkSql)
    except TokenError as error:
        raise TransformSyntax(transform=text, why="a quote is not closed") from error
    if not tokens:
        raise TransformSyntax(transform=text, why="it is empty")
    _check_no_marker(text, tokens)
    end = _end(text, tokens)
    if end < len(tokens):
        raise TransformSyntax(transform=text, why=_too_much(text, tokens[end]))
    if len(tokens) > 1 and tokens[1].token_type is TokenType.L_PAREN:
        return {"function": tokens[0].text, "arguments": _arguments(text, tokens[2:-1])}
    return {"function": "identity", "arguments": [_argument(text, tokens)]}


def _check_no_marker(text: str, tokens: Sequence[Token]) -> None:
    """Refuse ``?`` and ``:n``: Spark fills in neither in what it does not parse itself."""
    for before, token in zip((None, *tokens), tokens, strict=False):
        begins = before is None or before.token_type in (TokenType.L_PAREN, TokenType.COMMA)
        if token.token_type is TokenType.PLACEHOLDER or (
            begins and token.token_type is TokenType.COLON
        ):
            why = "parameter markers are not taken here, write the values themselves"
            raise TransformSyntax(transform=text, why=why)


def _end(text: str, tokens: Sequence[Token]) -> int:
    """Give the index behind the transform or the column; the rest is for ``_argument`` to judge."""
    if len(tokens) > 1 and tokens[1].token_type is TokenType.L_PAREN:
        depth = 0
        for at, token in enumerate(tokens):
            depth += token.token_type is TokenType.L_PAREN
            depth -= token.token_type is TokenType.R_PAREN
            if at > 0 and depth == 0:
                return at + 1
        raise TransformSyntax(transform=text, why="the closing parenthesis is missing")
    at = 1
    while at + 1 < len(tokens) and tokens[at].token_type is TokenType.DOT:
        at += 2
    behind = tokens[at : at + 1]
    is_cut = bool(behind) and _is_name(tokens[0])
    if is_cut and (behind[0].token_type is TokenType.R_PAREN or _is_name(behind[0])):
        return at
    return len(tokens)


def _too_much(text: str, first: Token) -> str:
    why = f"'{text[first.start :].strip()}' at its end is too much"
    if first.token_type is TokenType.R_PAREN:
        return why
    return f"{why}: {_NAME}"


def _arguments(text: str, tokens: Sequence[Token]) -> list[_Argument]:
    pieces: list[list[Token]] = [[]]
    for token in tokens:
        if token.token_type is TokenType.COMMA:
            pieces.append([])
        else:
            pieces[-1].append(token)
    return [_argument(text, piece) for piece in pieces]


def _argument(text: str, tokens: Sequence[Token]) -> _Argument:
    match tokens:
        case [*texts] if texts and all(token.token_type is TokenType.STRING for token in texts):
            # A doubled quote comes as two strings.
            return {"literal": "'".join(token.text for token in texts)}
        case [token] if token.token_type is TokenType.NUMBER and token.text.isdecimal():
            return {"literal": int(token.text)}
        case [dash, token] if (dash.token_type, token.token_type) == (
            TokenType.DASH,
            TokenType.NUMBER,
        ) and token.text.isdecimal():
            return {"literal": -int(token.text)}
    names, dots = tokens[::2], tokens[1::2]
    is_path = (
        len(names) == len(dots) + 1
        and all(_is_name(token) for token in names)
        and all(token.token_type is TokenType.DOT for token in dots)
    )
    if not is_path:
        shown = " ".join(token.text for token in tokens) or "nothing"
        raise TransformSyntax(transform=text, why=f"{shown} is neither a column nor a literal")
    return {"column": [token.text for token in names]}


def _is_name(token: Token) -> bool:
    return token.token_type is TokenType.IDENTIFIER or token.text.replace("_", "a").isalnum()


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
