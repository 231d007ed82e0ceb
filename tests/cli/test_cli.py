"""The command line on tables made here; errors are one message and exit code 1."""

from __future__ import annotations

import io
import json
import sys
from contextlib import suppress
from datetime import date
from pathlib import Path

import pyarrow as pa
import pytest

import pennon
from pennon.cli import main
from pennon.cli import output as progress_line

SCHEMA = pa.schema({"day": pa.date32(), "n": pa.int64()})


@pytest.fixture
def lake(tmp_path: Path) -> str:
    connected = pennon.connect(tmp_path / "lake")
    connected.create_namespace("shop")
    orders = connected.create_table("shop.orders", SCHEMA, ["days(day)"], comment="what was sold")
    orders.append([{"n": 1}])
    connected.create_table("shop.returns", SCHEMA, ["n"])
    return connected.root


@pytest.fixture
def orders(lake: str) -> str:
    return pennon.connect(lake).load_table("shop.orders").location


def test_describe_shows_columns_and_specs(orders: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["describe", orders]) == 0
    text = capsys.readouterr().out
    for shown in ("what was sold", "  day  date32", "spec 1 (current): 1 partition, 1 row"):
        assert shown in text
    assert main(["describe", orders, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["columns"] == {"day": "date32[day]", "n": "int64"}


def test_describe_draws_where_the_rows_are_in_each_spec_version(
    lake: str, capsys: pytest.CaptureFixture[str]
) -> None:
    returns = pennon.connect(lake).load_table("shop.returns")
    returns.append([{"n": at % 12 if at < 90 else None} for at in range(1_090)])
    returns.add_partition_field("days(day)")
    returns = pennon.connect(lake).load_table("shop.returns")
    returns.append([{"n": 7}])
    assert main(["describe", "--root", lake, "shop.returns"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "14 partitions, 1,091 rows" in lines[2]
    assert any(line.startswith("partition spec 1: 13 partitions, 1,090 rows") for line in lines)
    assert any(line.startswith("partition spec 2 (current): 1 partition, 1 row") for line in lines)
    drawn = {line.split()[0]: line for line in lines if "▎" in line or "█" in line}
    assert drawn["n=null"].count("█") == max(line.count("█") for line in drawn.values())
    assert drawn["n=0"].split()[1:3] == ["▎", "8"]
    assert "  … and 6 more" in lines


def test_plan_shows_the_manifest_query(orders: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", orders, "day = DATE '2013-01-01'"]) == 0
    assert "partitions: 0 of 1" in capsys.readouterr().out
    assert main(["plan", orders, "day >", "--json"]) == 1
    error = capsys.readouterr().err
    assert error.startswith("[PREDICATE_SYNTAX")
    assert "Traceback" not in error


@pytest.mark.parametrize(
    "command",
    [
        ["describe", "shop.orders"],
        ["plan", "shop.orders", "n = 1"],
        ["check", "lance.shop.orders"],
        ["repair", "shop.orders"],
        ["expire", "shop.orders"],
    ],
)
def test_every_command_takes_a_name_below_the_root(
    lake: str, command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([command[0], "--root", lake, *command[1:]]) == 0
    assert capsys.readouterr().err == ""
    assert main([command[0], "--root", lake, "shop.order", *command[2:]]) == 1
    assert "[TABLE_NOT_FOUND]" in (said := capsys.readouterr().err)
    assert "orders" in said  # the near name


def test_a_name_without_a_root_says_what_is_missing(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["describe", "shop.orders"]) == 1
    assert "--root" in capsys.readouterr().err


def test_history_tells_what_made_each_version(
    lake: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["history", "--root", lake, "shop.orders", "--limit", "1"]) == 0
    names, _, row = capsys.readouterr().out.splitlines()
    assert names.split()[0] == "version"
    version = pennon.connect(lake).load_table("shop.orders").version
    assert [row.split()[at] for at in (0, 3, 4)] == [str(version), "append", "1"]


def test_history_and_tags_are_json_for_programs(
    lake: str, capsys: pytest.CaptureFixture[str]
) -> None:
    table = ("--root", lake, "shop.orders")
    assert main(["history", *table, "--json"]) == 0
    newest = json.loads(capsys.readouterr().out)[-1]
    assert (newest["operation"], newest["added_rows"]) == ("append", 1)
    assert main(["tag", *table, "q1", "--retain-days", "2"]) == 0
    capsys.readouterr()
    assert main(["tag", *table, "--json"]) == 0
    (tag,) = json.loads(capsys.readouterr().out)
    assert (tag["name"], tag["version"]) == ("q1", newest["version"])
    assert tag["retain_seconds"] == 2 * 86_400


def test_tables_are_listed(lake: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tables", "--root", lake]) == 0
    assert capsys.readouterr().out.splitlines() == ["shop.orders", "shop.returns"]


def test_a_table_is_given_a_name(
    lake: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    elsewhere = pennon.create(str(tmp_path / "elsewhere"), SCHEMA, ["n"])
    elsewhere.append([{"n": 7}])
    assert main(["register", "--root", lake, "shop.late", elsewhere.location]) == 0
    assert elsewhere.location in capsys.readouterr().out
    assert pennon.connect(lake).load_table("shop.late").scan().to_arrow()["n"].to_pylist() == [7]
    assert main(["register", "--root", lake, "shop.later", elsewhere.location]) == 1
    assert "it has the name lance.shop.late" in capsys.readouterr().err


@pytest.mark.parametrize("form", [["check", "ROOT"], ["check", "--root", "ROOT"]])
def test_a_whole_root_is_checked_and_a_healthy_one_has_no_finding(
    lake: str, form: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    pennon.connect(lake).load_table("shop.orders").add_partition_field("n")
    assert main([lake if word == "ROOT" else word for word in form]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2
    assert all(line.endswith("0 violations") for line in lines)


@pytest.mark.parametrize(
    "words",
    [
        ["serve", "thrift", "--port", "99999"],
        ["sql", "--conf", "foo"],
        ["sql", "--limit", "0"],
        ["describe", "somewhere", "--storage", "key"],
        ["tag", "somewhere", "--drop"],
        ["compact", "somewhere", "--target-bytes", "-1"],
        ["vacuum", "somewhere", "--older-than", "yesterday"],
    ],
)
def test_a_wrong_use_is_a_usage_error(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 2
    assert "usage: pennon" in capsys.readouterr().err


@pytest.mark.parametrize("command", [["sql", "-e", "SELECT 1"], ["serve", "connect"]])
def test_a_root_that_is_a_file_is_refused(
    tmp_path: Path, command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    assert main([*command, "--root", str(tmp_path / "file")]) == 1
    assert "it is a file and not a folder" in capsys.readouterr().err


@pytest.mark.parametrize(
    "command",
    [
        ["tables"],
        ["describe", "shop.orders"],
        ["plan", "shop.orders", "n = 1"],
        ["register", "shop.orders", "orders"],
        ["expire", "shop.orders"],
    ],
)
def test_a_lake_that_is_not_there_is_named(
    tmp_path: Path, command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    nowhere = tmp_path / "nowhere"
    assert main([*command, "--root", str(nowhere)]) == 1
    told = capsys.readouterr().err
    assert "ROOT_NOT_FOUND" in told
    assert str(nowhere) in told
    assert not nowhere.exists()


def test_a_lake_without_tables_is_said_to_be_empty(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["tables", "--root", str(tmp_path)]) == 0
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err == f"There are no tables below {tmp_path}.\n"


@pytest.mark.parametrize("form", ["lines", "json"])
def test_a_lake_without_tables_is_no_healthy_one(
    tmp_path: Path, form: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["check", "--root", str(tmp_path), *(["--json"] if form == "json" else [])]
    assert main(words) == 1
    printed = capsys.readouterr()
    assert printed.out == ("[]\n" if form == "json" else "")
    assert printed.err == f"There are no tables below {tmp_path}.\n"


def test_a_path_without_a_namespace_is_one_message(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["describe", str(tmp_path)]) == 1
    assert str(tmp_path) in capsys.readouterr().err


def test_the_package_opens_without_spark(orders: str) -> None:
    namespace = pennon.open(orders)
    assert namespace.schema.names == ["day", "n"]
    assert namespace.scan("day IS NULL").to_arrow().num_rows == 1
    with pytest.raises(AttributeError, match="levitate"):
        pennon.levitate  # type: ignore[attr-defined]  # noqa: B018


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_long_work_shows_how_far_it_is_and_leaves_no_line_behind(
    orders: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pennon.open(orders).append([{"n": n, "day": date(2024, 1, n)} for n in range(1, 8)])
    monkeypatch.setattr(progress_line, "_SECONDS_BETWEEN", 0.0)
    monkeypatch.setattr(sys, "stderr", terminal := _Terminal())
    assert main(["check", orders]) == 0
    *shown, rest = terminal.getvalue().split("\r")
    assert "leaves checked: 8 of 8\033[K" in shown
    assert rest == "\033[K"
    with suppress(KeyboardInterrupt), progress_line.progress_line() as progress:
        progress("leaves compacted", 1, 2)
        raise KeyboardInterrupt
    assert terminal.getvalue().endswith("leaves compacted: 1 of 2\033[K\r\033[K")
