"""A procedure is declared once: Python's methods, SQL and the documents say the same of it."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import pytest
from tests.transaction.lake import append, make

from pennon.catalog.configured_catalog import Catalog
from pennon.cli.command_line import main
from pennon.errors import ProcedureArgument
from pennon.maintenance.calls.procedure_declaration import Procedure
from pennon.maintenance.procedures import PROCEDURES, call
from pennon.namespace.upkeep import Maintenance

DOCUMENT = Path(__file__).parents[2] / "docs" / "sql.md"
# Methods of tables and lakes, or of the command line alone.
# Methods of other classes, or of none.
NOT_IN_PYTHON = {
    *("adopt", "migrate", "changes", "register_table"),
    *("rollback_to_timestamp", "refresh_indexes"),
}
METHODS = {name for name in vars(Maintenance) if inspect.isfunction(getattr(Maintenance, name))}


def row_of_the_document(procedure: Procedure[Any]) -> str:
    taken = [one for one in procedure.parameters if one.instead is None]
    required = ", ".join(one.name for one in taken if one.is_required)
    others = "".join(f", {one.name}" for one in taken if not one.is_required)
    stated = f"{required}[{others}]" if others else required
    columns = ", ".join(f"`{column.name}`" for column in procedure.columns)
    return f"| `{procedure.name}({stated})` | {procedure.description} | {columns} |"


def test_every_procedure_is_in_the_document_as_it_is() -> None:
    lines = DOCUMENT.read_text(encoding="utf-8").splitlines()
    assert [row for row in map(row_of_the_document, PROCEDURES.values()) if row not in lines] == []


@pytest.mark.parametrize("name", sorted(PROCEDURES.keys() - NOT_IN_PYTHON))
def test_a_method_of_python_has_the_parameters_of_the_procedure(name: str) -> None:
    of_method = dict(inspect.signature(getattr(Maintenance, name)).parameters)
    of_function = inspect.signature(PROCEDURES[name].function).parameters
    stated = [one.name for one in PROCEDURES[name].own_parameters]
    assert set(of_method) - {"self", "progress"} == set(stated)
    for one in stated:
        assert of_method[one].default == of_function[one].default
        assert of_method[one].annotation == of_function[one].annotation


def test_every_public_method_of_python_is_a_procedure() -> None:
    assert {name for name in METHODS if name[0] != "_"} == PROCEDURES.keys() - NOT_IN_PYTHON


def test_every_parameter_says_what_it_means_and_every_column_shows_something() -> None:
    for procedure in PROCEDURES.values():
        assert all(one.meaning for one in procedure.own_parameters), procedure.name
        for column in procedure.columns:
            assert column.type in ("string", "long", "timestamp"), column
        assert not procedure.command or procedure.said or procedure.name == "check"


def test_sql_takes_what_the_command_line_takes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = append(make(tmp_path), {1: "eu"})
    append(first, {2: "us"})
    catalog, table = Catalog("lance", str(tmp_path)), {"table": first.location}
    found = call(catalog, "check", {**table, "version": first.version}).rows
    assert {row[0] for row in found} == {"note"}  # of the leaf that a later version has
    with pytest.raises(ProcedureArgument, match="one of version and timestamp is required"):
        call(catalog, "rollback", table)
    with pytest.raises(ProcedureArgument, match="one of version and timestamp is required"):
        call(catalog, "rollback", {**table, "version": 1, "timestamp": 2**52})
    newest = {**table, "timestamp": 2**52}
    ((version,),) = call(catalog, "rollback", newest).rows
    assert call(catalog, "rollback_to_timestamp", newest).rows == ((version,),)
    assert main(["rollback", first.location, "--timestamp", "2999-01-01"]) == 0
    assert capsys.readouterr().out == (
        f"{first.location} is at version {version}, with the rows of 2999-01-01 00:00:00 UTC\n"
    )
