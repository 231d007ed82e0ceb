"""The declaration of a procedure, of which CALL, the command line and Python are three doors.

A procedure is a function of maintenance: those of its parameters that no door knows by itself are
what a user gives, with their types and defaults; its docstring says what each of them means. From
it come the signature and the rows of CALL, the command with its options and what it prints, and
what the methods of ``Maintenance`` check.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from operator import attrgetter
from typing import Any, Final, Generic, TypeVar, get_type_hints

from pennon.errors import PennonError, ProcedureArgument
from pennon.predicate.values.time_units import EPOCH
from pennon.spec.column_names import listed_columns, path_values

__all__ = [
    "HIDDEN",
    "Arguments",
    "Column",
    "Parameter",
    "Procedure",
    "Rows",
    "columns_of",
    "count",
    "planned",
]

Arguments = Mapping[str, object]
Rows = tuple[tuple[object, ...], ...]
_Result = TypeVar("_Result")

# The parameters of functions that a door gives by itself.
_OF_THE_DOOR: Final = frozenset(
    ["catalog", "identifier", "location", "storage_options", "time_zone", "progress"]
)


def _moment(micros: int) -> datetime:
    return EPOCH + timedelta(microseconds=micros)


# Annotation → type in Spark's DDL, type of the value that arrives, and what the function takes.
_KINDS: Final[Mapping[str, tuple[str, type, Callable[[Any], object]]]] = {
    "str": ("string", str, str),
    "int": ("long", int, int),
    "bool": ("boolean", bool, bool),
    "datetime": ("timestamp", int, _moment),  # microseconds of UTC
    "Sequence[str]": ("string", str, listed_columns),  # with commas between
    "Mapping[str, str]": ("string", str, path_values),  # region=eu/day=2025-01-01
    "Sequence[int]": ("array<long>", list, list),
}


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a procedure.

    Args:
        name: Its name.
        kind: Its annotation, without ``| None``.
        is_required: Whether it has to be given.
        meaning: What it means, in a line.
        instead: For a parameter that Iceberg's procedure of this name has and this one has not:
            what to write. It is declared so that a call gets this sentence, not Spark's.
        least: The least value of a number.
        choices: The values of a text, which CALL reads in any case.
    """

    name: str
    kind: str = "str"
    is_required: bool = False
    meaning: str = ""
    instead: str | None = None
    least: int | None = None
    choices: Sequence[str] = ()

    @property
    def type(self) -> str:
        """Its type as Spark's DDL spells it."""
        return _KINDS[self.kind][0]

    def refusal(self, value: object) -> str | None:
        """Say why a value of CALL is not taken; None where it is."""
        if value is None:
            return None
        if self.instead is not None:
            return f"it is that of Iceberg's; {self.instead}"
        if not isinstance(value, _KINDS[self.kind][1]):
            return f"it is {value!r}, not a {self.type}"
        if self.least is not None and isinstance(value, int) and value < self.least:
            return f"it is {value}, and at least {self.least} is needed"
        if self.choices and str(value).lower() not in self.choices:
            return f"it is {value!r}, not one of {', '.join(self.choices)}"
        return None

    def read(self, value: object) -> object:
        """Give the function's argument for a value of CALL that is taken."""
        return str(value).lower() if self.choices else _KINDS[self.kind][2](value)


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a procedure's rows; a field of a result is ``Annotated`` with it.

    Args:
        name: Its name.
        type: Its type as Spark's DDL spells it; that of the field where it is empty.
        of: The attribute of the result that it shows: a list as how many it has, or as a text.
        separator: What stands between the elements in a text.
        is_planned: Whether it lists what a dry run found, and is NULL otherwise.
        line: What the command line prints of each element.
    """

    name: str
    type: str = ""
    of: str = ""
    separator: str = ", "
    is_planned: bool = False
    line: str = "{}"

    def of_field(self, name: str, kind: object) -> Column:
        """Give the column of a field."""
        kinds: Mapping[object, str] = {int: "long", int | None: "long"}
        return replace(self, of=name, type=self.type or kinds.get(kind, "string"))


HIDDEN: Final = Column("")


def count(name: str) -> Column:
    """Give the column of how many a list has."""
    return Column(name, "long")


def planned(name: str, separator: str = "\n", line: str = "{}") -> Column:
    """Give the column of what a list has, which a dry run alone fills."""
    return Column(name, separator=separator, is_planned=True, line=line)


def columns_of(result: type) -> tuple[Column, ...]:
    """Give the columns of a result: its fields, where no other columns are stated.

    Example:
        >>> [(column.name, column.type) for column in columns_of(Column)][:2]
        [('name', 'string'), ('type', 'string')]
    """
    columns: list[Column] = []
    listed: list[Column] = []
    for name, hint in get_type_hints(result, include_extras=True).items():
        stated = getattr(hint, "__metadata__", None)
        if name == "notes":  # what a dry run found stands before them
            columns += listed
        for column in stated or (Column(name, separator="; " if name == "notes" else ", "),):
            one = column.of_field(name, hint.__origin__ if stated else hint)
            (listed if column.is_planned else columns).append(one)
    return tuple(column for column in columns if column.name)


@dataclass(frozen=True, slots=True)
class Procedure(Generic[_Result]):
    """A procedure: ``CALL lance.system.<name>(…)``, ``pennon <command>``, a method in Python.

    Args:
        function: Does it. Its parameters are those of CALL, in the order of positional arguments.
        description: What it does, in a sentence.
        columns: The columns of CALL's rows.
        rows: The attribute of the result whose elements have a row each; the result itself has,
            or its elements where it is a list, where it is empty.
        name: Its name in CALL and Python; the function's where it is empty.
        table: CALL's parameter for the table.
        least: Least values of numbers, by parameter.
        choices: The values of texts, by parameter.
        one_of: Parameters of which exactly one is given.
        left_out: Parameters of the function that this procedure has not.
        refused: Parameters of Iceberg's procedure of that name.
        renews_table: Whether what a session keeps of the table is to be read anew: the newest
            version has other rows, or those of an older one are in files that may go.
        command: Its name on the command line; none where it is empty.
        options: What parameters are called there, where it is not ``--name``.
        said: What the command prints behind lists and notes, with columns and arguments in
            braces; or a function of location, result and arguments that gives all lines.
        planned: The same of a dry run.
        finds: Tells whether a dry run found something, of which the command's exit code tells.

    Example:
        >>> def count(location: str, *, where: str | None = None) -> int: ...
        >>> [one.name for one in Procedure(count, "Count rows.", ()).parameters]
        ['table', 'where']
    """

    function: Callable[..., _Result]
    description: str
    columns: Sequence[Column]
    rows: str = ""
    name: str = ""
    table: str = "table"
    least: Mapping[str, int] = field(default_factory=dict)
    choices: Mapping[str, Sequence[str]] = field(default_factory=dict)
    one_of: tuple[str, ...] = ()
    left_out: Sequence[str] = ()
    refused: Sequence[Parameter] = ()
    renews_table: bool = False
    command: str = ""
    options: Mapping[str, str] = field(default_factory=dict)
    said: str | Callable[[str, _Result, Arguments], Iterable[str]] = ""
    planned: str = ""
    finds: Callable[[_Result], bool] = lambda _: False

    def __post_init__(self) -> None:
        """Take the function's name."""
        object.__setattr__(self, "name", self.name or self.function.__name__)

    @property
    def own_parameters(self) -> tuple[Parameter, ...]:
        """What a user gives beside the table."""
        meanings = _meanings(self.function)
        return tuple(
            Parameter(
                name,
                one.annotation.removesuffix(" | None"),
                one.default is inspect.Parameter.empty or (name,) == self.one_of,
                meanings.get(name, ""),
                least=self.least.get(name),
                choices=self.choices.get(name, ()),
            )
            for name, one in inspect.signature(self.function).parameters.items()
            if name not in _OF_THE_DOOR and name not in self.left_out
        )

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """All parameters of CALL."""
        return (Parameter(self.table, is_required=True), *self.own_parameters, *self.refused)

    @property
    def signature(self) -> tuple[Parameter, ...]:
        """The parameters in the form that Spark takes.

        Spark asks for required ones before it looks at the others, so beside one that is refused
        none is required: `checked` asks for them.
        """
        if not self.refused:
            return self.parameters
        return tuple(replace(parameter, is_required=False) for parameter in self.parameters)

    @property
    def schema(self) -> dict[str, object]:
        """The result as the JSON of a Spark StructType."""
        fields = [
            {"name": column.name, "type": column.type, "nullable": True, "metadata": {}}
            for column in self.columns
        ]
        return {"type": "struct", "fields": fields}

    def checked(self, arguments: Arguments) -> dict[str, object]:
        """Bring CALL's arguments to the parameters' names, and to what the function takes.

        Raises:
            ProcedureArgument: One is unknown, missing or of another type.
        """
        by_name = {parameter.name.lower(): parameter for parameter in self.parameters}
        checked: dict[str, object] = {}
        for name, value in arguments.items():
            parameter = by_name.get(name.lower())
            if parameter is None:
                raise self._refused(name, "there is no such one")
            why = parameter.refusal(value)
            if why is not None:
                raise self._refused(name, why)
            if value is not None:
                checked[parameter.name] = parameter.read(value)
        for parameter in self.parameters:
            if parameter.is_required and parameter.name not in checked:
                raise self._refused(parameter.name, "it is required")
        if self.one_of and len(checked.keys() & set(self.one_of)) != 1:
            raise self._refused(self.one_of[0], f"one of {' and '.join(self.one_of)} is required")
        return checked

    def _refused(self, parameter: str, why: str) -> PennonError:
        known = ", ".join(one.name for one in self.parameters if one.instead is None)
        return ProcedureArgument(procedure=self.name, parameter=parameter, why=why, known=known)

    def takes(self, name: str) -> bool:
        """Whether the function has a parameter, also one that a door gives by itself."""
        return name in inspect.signature(self.function).parameters

    def run(self, arguments: Arguments, **given: object) -> _Result:
        """Do it.

        Args:
            arguments: Values for the function by parameter; its defaults hold for the others.
            **given: What the door gives, where the function takes it.
        """
        taken = {name: value for name, value in given.items() if self.takes(name)}
        return self.function(**taken, **arguments)

    def told_rows(self, result: object, arguments: Arguments) -> Rows:
        """Give CALL's rows of a result."""
        is_dry = arguments.get("dry_run") is True
        results = attrgetter(self.rows)(result) if self.rows else result
        listed = results if isinstance(results, list | tuple) else [results]
        return tuple(self._row(one, is_dry=is_dry) for one in listed)

    def _row(self, one: object, *, is_dry: bool) -> tuple[object, ...]:
        if isinstance(one, tuple):
            return one
        if isinstance(one, int):
            return (one,)
        return tuple(
            None if column.is_planned and not is_dry else _cell(column, attrgetter(column.of)(one))
            for column in self.columns
        )

    def told_lines(self, location: str, result: _Result, arguments: Arguments) -> Iterator[str]:
        """Give what the command line prints of a result."""
        if callable(self.said):
            yield from self.said(location, result, arguments)
            return
        is_dry = arguments.get("dry_run") is True
        for column in self.columns:
            if column.name == "notes" or (is_dry and column.is_planned):
                yield from map(column.line.format, attrgetter(column.of)(result))
        (row,) = self.told_rows(result, arguments)
        cells = {column.name: cell for column, cell in zip(self.columns, row, strict=True)}
        text = self.planned if is_dry else self.said
        yield text.format(**{**arguments, **cells, "location": location})


def _cell(column: Column, value: object) -> object:
    if isinstance(value, list | tuple):
        is_count = column.type == "long"
        return len(value) if is_count else column.separator.join(map(str, value))
    return str(value) if column.type == "string" and value is not None else value


def _meanings(function: Callable[..., object]) -> dict[str, str]:
    """Read what parameters mean from the docstring of a function.

    Example:
        >>> _meanings(_meanings)
        {}
    """
    meanings: dict[str, str] = {}
    name = ""
    for line in (inspect.getdoc(function) or "").partition("\nArgs:\n")[2].splitlines():
        if not line.startswith(" "):
            break
        if line.startswith("     "):
            meanings[name] += " " + line.strip()
        else:
            name, _, text = line.strip().partition(": ")
            meanings[name] = text
    return {name: _short(text) for name, text in meanings.items()}


def _short(meaning: str) -> str:
    text = meaning.replace("``", "").removeprefix("Whether to ").rstrip(".")
    return text if text[1:2].isupper() else text[:1].lower() + text[1:]
