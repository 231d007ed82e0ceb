"""``pennon sql``: how texts become statements, and what a person sees."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark import StatusTracker
from tests.separate_process import ENVIRONMENT

import pennon
from pennon.cli import prompt as shell
from pennon.cli import quiet_start
from pennon.cli.output import print_table
from pennon.cli.query_run import Cancelled, Output, execute, statements_of
from pennon.session import spark as session_builder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


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
        ("BEGIN SELECT 1; SELECT 2; END; SELECT 3", ["BEGIN SELECT 1; SELECT 2; END", "SELECT 3"]),
        (
            "BEGIN IF x = 1 THEN SELECT CASE WHEN y THEN 1 END; END IF; END; SELECT 1",
            ["BEGIN IF x = 1 THEN SELECT CASE WHEN y THEN 1 END; END IF; END", "SELECT 1"],
        ),
        (
            "one: BEGIN CASE a WHEN 1 THEN SELECT 1; END CASE; BEGIN SELECT 2; END; END; SELECT 3",
            [
                "one: BEGIN CASE a WHEN 1 THEN SELECT 1; END CASE; BEGIN SELECT 2; END; END",
                "SELECT 3",
            ],
        ),
        ("SELECT begin FROM t; SELECT 2", ["SELECT begin FROM t", "SELECT 2"]),
        ("-- only a remark\n; /* and */ ;", []),
        ("", []),
    ],
)
def test_statements_end_at_semicolons_outside_quotes_and_comments(
    text: str, statements: list[str]
) -> None:
    assert [statement.sql for statement in statements_of(text)] == statements


def test_a_file_that_is_not_there_is_one_message(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    builder = session_builder(root=tmp_path)
    assert shell.run(builder, files=[str(tmp_path / "nothing.sql")]) == 1
    assert capsys.readouterr().err.startswith("[FILE_NOT_READABLE] Cannot read ")


def pennon_sql(
    root: Path, *arguments: str, typed: str = "", seconds: float = 300
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pennon.cli", "sql", "--root", str(root), *arguments],
        input=typed,
        capture_output=True,
        text=True,
        check=False,
        timeout=seconds,
        env=ENVIRONMENT,
    )


def test_a_condition_that_spark_does_not_know_is_one_message() -> None:
    class Translated(Exception):
        def getMessage(self) -> str:  # noqa: N802 - PySpark's name
            raise ValueError

    error = Translated("[PACKAGE_VERSION] Cannot start.\n\nJVM stacktrace:\n\tat x")
    assert quiet_start.message_of(error) == "[PACKAGE_VERSION] Cannot start."


def test_wide_characters_and_several_lines_stay_in_their_columns() -> None:
    lines: list[str] = []
    rows: list[list[str | None]] = [["東京", "1"], ["Köln", None], ["two\nlines", "30"]]
    assert print_table(["city", "n"], [False, True], rows, lines.append) == 3
    assert lines == [
        "city           n",
        "----------  ----",
        "東京           1",
        "Köln        NULL",
        "two\\nlines    30",
    ]
    lines.clear()
    print_table(["plan"], [False], [["== Plan ==\n Scan"]], lines.append)
    assert lines == ["== Plan ==\n Scan"]


@pytest.mark.slow
def test_statements_files_and_a_failure_print_tables_and_one_message(tmp_path: Path) -> None:
    file = tmp_path / "read.sql"
    file.write_text(
        "SELECT count(*) AS rows, max(s) AS s\nFROM lance.cli.t;\n"
        "SELECT id FROM range(1500);\nSELECT nobody;\n--! UNRESOLVED_COLUMN\nSELECT nothing;"
    )
    done = pennon_sql(
        tmp_path,
        "-e",
        "CREATE NAMESPACE lance.cli; CREATE TABLE lance.cli.t (s STRING) PARTITIONED BY (s)",
        "-e",
        "INSERT INTO lance.cli.t VALUES ('a;b'), (NULL)",
        "-f",
        str(file),
    )
    lines = done.stdout.splitlines()
    assert lines[:4] == ["rows  s", "----  ---", "   2  a;b", "(1 row)"]
    assert lines[6:1506] == [str(number).rjust(4) for number in range(1500)]
    assert lines[1506] == "(1,500 rows)"
    assert "`nobody`" in done.stdout  # it was meant to fail
    assert done.stderr.startswith("[UNRESOLVED_COLUMN")
    assert "`nothing`" in done.stderr
    assert not any(word in done.stderr for word in ("Traceback", "\tat ", "WARN", '{"ts"'))
    assert "Project" not in done.stdout + done.stderr  # the plan that is not understood
    assert done.returncode == 1


@pytest.mark.slow
def test_rows_are_printed_for_programs(tmp_path: Path) -> None:
    sql = "SELECT id, if(id = 1, NULL, named_struct('a', 'x,y')) AS s FROM range(3)"
    done = pennon_sql(tmp_path, "--format", "csv", "--limit", "2", "-e", sql)
    assert done.stdout.splitlines() == ["id,s", '0,"{x,y}"', "1,"]


@pytest.mark.slow
def test_an_example_runs_again_and_again(tmp_path: Path) -> None:
    """One whose errors are intended; tests/test_sql_examples.py runs all, which leave nothing."""
    wanted = "*.sql" if "PENNON_EXHAUSTIVE" in os.environ else "06_*.sql"
    examples = sorted((Path(__file__).parents[2] / "sql-examples").glob(wanted))
    assert any("--!" in path.read_text(encoding="utf-8") for path in examples)
    files = [word for path in [*examples, *examples] for word in ("-f", str(path))]
    done = pennon_sql(tmp_path, *files, seconds=1200)
    assert (done.stderr, done.returncode) == ("", 0)
    assert pennon.connect(tmp_path).list_namespaces() == []


def test_ctrl_c_leaves_no_call_to_the_jvm_in_the_middle(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Spark is asked for its stages too rarely to be interrupted just then by chance."""
    answered = threading.Event()
    asked = StatusTracker.getActiveStageIds

    def interrupted(tracker: StatusTracker) -> list[int]:
        signal.raise_signal(signal.SIGINT)
        stages = asked(tracker)
        answered.set()
        return stages

    monkeypatch.setattr(StatusTracker, "getActiveStageIds", interrupted)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    rows = "range(200000)"
    with pytest.raises(Cancelled):
        execute(spark, f"SELECT count(*) FROM {rows} a CROSS JOIN {rows} b", Output())
    assert answered.is_set()
    assert spark.range(3).count() == 3  # the connection is whole
    assert capsys.readouterr().err.endswith("Cancelled.\n")
    with pytest.raises(KeyboardInterrupt):  # as it was
        signal.raise_signal(signal.SIGINT)


@pytest.mark.slow
def test_ctrl_c_cancels_a_query_and_the_prompt_is_back(tmp_path: Path) -> None:
    pytest.importorskip("prompt_toolkit")
    main, side = pty.openpty()
    command = [sys.executable, "-m", "pennon.cli", "sql", "--root", str(tmp_path)]
    environment = {**ENVIRONMENT, "XDG_STATE_HOME": str(tmp_path), "TERM": "dumb"}
    process = subprocess.Popen(
        command, stdin=side, stdout=side, stderr=side, env=environment, start_new_session=True
    )
    os.close(side)
    screen = Screen(main)
    try:
        # Spark looks whether a task is killed after each 1,000 rows of the first side.
        screen.type_after(
            "pennon> ", "SELECT count(*) FROM range(100000000) a CROSS JOIN range(10000) b;\r"
        )
        screen.wait_for("tasks")
        os.killpg(process.pid, signal.SIGINT)  # a terminal's goes to all processes, the JVM too
        screen.wait_for("Cancelled.")
        screen.type_after("pennon> ", "SELECT 40 +\r 2 AS sum;\r")
        screen.wait_for("(1 row)")
        for sql, told in [
            ("CREATE NAMESPACE lance.n; CREATE TABLE lance.n.t (a INT);", " s"),
            ("INSERT INTO lance.n.t VALUES (1), (2), (3);", "(3 rows written)"),
            (
                "UPDATE lance.n.t SET a = 9 WHERE a = 2;",
                "(1 row written, 1 row deleted or replaced)",
            ),
        ]:
            screen.type_after("pennon> ", f"{sql}\r")
            screen.wait_for(told)
        screen.type_after("pennon> ", "exit;\r")
        assert process.wait(60) == 0
    finally:
        process.kill()
        os.close(main)
    assert "Traceback" not in screen.text
    history = (tmp_path / "pennon" / "sql_history").read_text()
    assert "SELECT 40 +" in history


class Screen:
    """What a program writes to a terminal, and what a person types there."""

    def __init__(self, terminal: int) -> None:
        self._terminal = terminal
        self._seen = 0
        self.text = ""

    def wait_for(self, text: str, seconds: float = 240) -> None:
        end = time.monotonic() + seconds
        while text not in self.text[self._seen :]:
            ready, _, _ = select.select([self._terminal], [], [], 1)
            if ready:
                self.text += os.read(self._terminal, 65536).decode(errors="replace")
            assert time.monotonic() < end, f"no {text!r} in {self.text[self._seen :]!r}"
        self._seen = self.text.index(text, self._seen) + len(text)

    def type_after(self, text: str, typed: str) -> None:
        self.wait_for(text)
        os.write(self._terminal, typed.encode())


@pytest.mark.slow
def test_a_spark_that_does_not_start_is_one_message_that_names_its_log(tmp_path: Path) -> None:
    done = pennon_sql(tmp_path, "--master", "nowhere", typed="SELECT 1;")
    assert done.stderr.startswith("[SPARK_DID_NOT_START] Cannot start Spark")
    assert len(done.stderr.splitlines()) == 1
    assert done.returncode == 1
