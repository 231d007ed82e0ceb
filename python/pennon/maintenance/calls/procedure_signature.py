"""The signature of a procedure of CALL: parameters, result columns and function."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from pennon.errors import ProcedureArgument
from pennon.maintenance.calls.procedure_call import Arguments, ProcedureCall

__all__ = ["Parameter", "Procedure", "Rows"]

Rows = tuple[tuple[object, ...], ...]


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a procedure.

    Args:
        name: Its name.
        type: Its type as Spark's DDL spells it: ``string``, ``long``, ``boolean``, ``timestamp``
            (which arrives as microseconds of UTC), ``array<long>``.
        is_required: Whether it has to be given.
        instead: For a parameter that Iceberg's procedure of this name has and this one has not:
            what to write. It is declared so that a call gets this sentence, not Spark's.
        least: The least value of a number.
        choices: The values of a text, which is read in any case.
    """

    name: str
    type: str = "string"
    is_required: bool = False
    instead: str | None = None
    least: int | None = None
    choices: Sequence[str] = ()

    def refusal(self, value: object) -> str | None:
        """Say why a value is not taken; None where it is."""
        if value is None:
            return None
        if self.instead is not None:
            return f"it is that of Iceberg's; {self.instead}"
        if not isinstance(value, _PYTHON[self.type]):
            return f"it is {value!r}, not a {self.type}"
        if self.least is not None and isinstance(value, int) and value < self.least:
            return f"it is {value}, and at least {self.least} is needed"
        if self.choices and str(value).lower() not in self.choices:
            return f"it is {value!r}, not one of {', '.join(self.choices)}"
        return None


@dataclass(frozen=True, slots=True)
class Procedure:
    """A procedure: ``CALL lance.system.<name>(…)``.

    Args:
        name: Its name.
        description: What it does, for DESCRIBE PROCEDURE.
        parameters: In the order of positional arguments.
        columns: Result columns, name → Spark's type.
        run: Does it, and gives the rows.
        renews_table: Whether what a session keeps of the table is to be read anew: the newest
            version has other rows, or those of an older one are in files that may go.
    """

    name: str
    description: str
    parameters: Sequence[Parameter]
    columns: Mapping[str, str]
    run: Callable[[ProcedureCall], Rows]
    renews_table: bool = False

    @property
    def schema(self) -> dict[str, object]:
        """The result as the JSON of a Spark StructType."""
        fields = [
            {"name": name, "type": kind, "nullable": True, "metadata": {}}
            for name, kind in self.columns.items()
        ]
        return {"type": "struct", "fields": fields}

    @property
    def signature(self) -> tuple[Parameter, ...]:
        """The parameters in the form that Spark takes.

        Spark asks for required ones before it looks at the others, so beside one that is refused
        none is required: `checked` asks for them.
        """
        if all(parameter.instead is None for parameter in self.parameters):
            return tuple(self.parameters)
        return tuple(replace(parameter, is_required=False) for parameter in self.parameters)

    def checked(self, arguments: Arguments) -> dict[str, object]:
        """Bring arguments to the parameters' names.

        Raises:
            ProcedureArgument: One is unknown, missing or of another type.
        """
        by_name = {parameter.name.lower(): parameter for parameter in self.parameters}
        signature = (
            ", ".join(parameter.name for parameter in self.parameters if parameter.instead is None)
            or "none"
        )
        checked: dict[str, object] = {}
        for name, value in arguments.items():
            parameter = by_name.get(name.lower())
            if parameter is None:
                raise ProcedureArgument(
                    procedure=self.name, parameter=name, why="there is no such one", known=signature
                )
            why = parameter.refusal(value)
            if why is not None:
                raise ProcedureArgument(
                    procedure=self.name, parameter=name, why=why, known=signature
                )
            checked[parameter.name] = value
        for parameter in self.parameters:
            if parameter.is_required and checked.get(parameter.name) is None:
                raise ProcedureArgument(
                    procedure=self.name,
                    parameter=parameter.name,
                    why="it is required",
                    known=signature,
                )
        return checked


_PYTHON: Final[Mapping[str, type]] = {
    "string": str,
    "long": int,
    "boolean": bool,
    "timestamp": int,
    "array<long>": list,
}
