"""The command line on a namespace made here; errors are one message and exit code 1."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import pennon
from pennon.catalog import table_ddl as tables
from pennon.catalog.configured_catalog import Catalog
from pennon.cli import main


@pytest.fixture
def orders(tmp_path: Path) -> str:
    path = str(tmp_path / "orders")
    field = {"name": "day", "type": "date", "nullable": True, "metadata": {}}
    by = {"function": "days", "arguments": [{"column": ["day"]}]}
    tables.create(
        Catalog("lance", str(tmp_path)),
        (path,),
        schema={"type": "struct", "fields": [field]},
        transforms=[by],
        properties={"comment": "what was sold"},
        mode="create",
    )
    return path


def test_describe_shows_columns_and_specs(orders: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["describe", orders]) == 0
    text = capsys.readouterr().out
    for shown in ("what was sold", "day: date32", "partition spec 1 (current)", "partitions: 0"):
        assert shown in text
    assert main(["describe", orders, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["columns"] == {"day": "date32[day]"}


def test_plan_shows_the_manifest_query(orders: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", orders, "day = DATE '2013-01-01'"]) == 0
    assert "partitions: 0 of 0" in capsys.readouterr().out
    assert main(["plan", orders, "day >", "--json"]) == 1
    error = capsys.readouterr().err
    assert error.startswith("[PREDICATE_SYNTAX")
    assert "Traceback" not in error


def test_a_path_without_a_namespace_is_one_message(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["describe", str(tmp_path)]) == 1
    assert str(tmp_path) in capsys.readouterr().err


def test_the_package_opens_without_spark(orders: str) -> None:
    namespace = pennon.open(orders)
    assert namespace.schema.names == ["day"]
    assert namespace.scan("day IS NULL").to_arrow().num_rows == 0
    with pytest.raises(AttributeError, match="levitate"):
        pennon.levitate  # noqa: B018
