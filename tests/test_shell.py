"""``pennon sql``: how texts become statements, and what a person sees."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from pennon.cli import quiet_start, shell
from pennon.session import spark as session_builder
from separate_process import ENVIRONMENT


@pytest.mark.parametrize(
    ("text", "statements"),
    [
        ("SELECT 1", ["SELECT 1"]),
        ("SELECT 1;\nSELECT 2;\n", ["SELECT 1", "SELECT 2"]),
        ("SELECT ';'; SELECT \";\"; SELECT `;`", ["SELECT ';'", 'SELECT ";"', "SELECT `;`"]),
        (r"SELECT 'it\'s; one'; SELECT 2", [r"SELECT 'it\'s; one'", "SELECT 2"]),
        ("SELECT 'it''s; one'; SELECT 2", ["SELECT 'it''s; one'", "SELECT 2"]),
        ("SELECT 1 -- one; two\n; SELECT 2", ["SELECT 1 -- one; two", "SELECT 2"]),
        ("SELECT /* ; */ 1; -- the end;", ["SELECT /* ; */ 1"]),
        ("-- only a remark\n; /* and */ ;", []),
        ("", []),
    ],
)
def test_statements_end_at_semicolons_outside_quotes_and_comments(
    text: str, statements: list[str]
) -> None:
    assert shell.split_statements(text) == statements


def test_a_file_that_is_not_there_is_one_message(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    builder = session_builder(root=tmp_path)
    assert shell.run(builder, files=[str(tmp_path / "nothing.sql")]) == 1
    assert capsys.readouterr().err.startswith("[FILE_NOT_READABLE] Cannot read ")


def pennon_sql(root: Path, *arguments: str, typed: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pennon.cli", "sql", "--root", str(root), *arguments],
        input=typed,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        env=ENVIRONMENT,
    )


def test_a_condition_that_spark_does_not_know_is_one_message() -> None:
    class Translated(Exception):
        def getMessage(self) -> str:  # noqa: N802 - PySpark's name
            raise ValueError

    error = Translated("[PACKAGE_VERSION] Cannot start.\n\nJVM stacktrace:\n\tat x")
    assert quiet_start.message_of(error) == "[PACKAGE_VERSION] Cannot start."


@pytest.mark.slow
def test_statements_files_and_a_failure_print_tables_and_one_message(tmp_path: Path) -> None:
    file = tmp_path / "read.sql"
    file.write_text("SELECT count(*) AS rows, max(s) AS s\nFROM lance.cli.t;\nSELECT nothing;")
    done = pennon_sql(
        tmp_path,
        "-e",
        "CREATE NAMESPACE lance.cli; CREATE TABLE lance.cli.t (s STRING) PARTITIONED BY (s)",
        "-e",
        "INSERT INTO lance.cli.t VALUES ('a;b'), (NULL)",
        "-f",
        str(file),
    )
    assert done.stdout.splitlines() == ["rows  s", "----  ---", "   2  a;b", "(1 row)"]
    assert "UNRESOLVED_COLUMN" in done.stderr
    assert not any(word in done.stderr for word in ("Traceback", "\tat ", "WARN"))
    assert done.returncode == 1


@pytest.mark.slow
def test_a_spark_that_does_not_start_is_one_message_that_names_its_log(tmp_path: Path) -> None:
    done = pennon_sql(tmp_path, "--master", "nowhere", typed="SELECT 1;")
    assert done.stderr.startswith("[SPARK_DID_NOT_START] Cannot start Spark")
    assert len(done.stderr.splitlines()) == 1
    assert done.returncode == 1
