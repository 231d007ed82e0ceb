"""Starting: what is set for a user, and one clear message for each thing that can be missing."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

from pennon import java_runtime, session
from pennon.errors import (
    ArgumentRefused,
    JarNotFound,
    JavaNotFound,
    JavaTooOld,
    SparkNotInstalled,
    SparkVersionNotSupported,
    UnknownSetting,
)

ROOT = Path(__file__).parent.parent


def fake_java(folder: Path, answer: str) -> None:
    folder.mkdir(exist_ok=True)
    command = folder / "java"
    command.write_text(f"#!/bin/sh\necho '{answer}' >&2\n")
    command.chmod(0o755)


@pytest.fixture
def no_java_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    return tmp_path


@pytest.fixture
def jar(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    path = tmp_path / "pennon-spark.jar"
    path.touch()
    monkeypatch.setenv("PENNON_JAR", str(path))
    return path


def test_no_java_is_one_message_that_says_what_to_install(no_java_home: Path) -> None:
    with pytest.raises(JavaNotFound, match="JAVA_NOT_FOUND.*Install a Java runtime of version 17"):
        session.spark(root=no_java_home)


def test_java_home_without_java_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(JavaNotFound, match=re.escape(f"JAVA_HOME is {tmp_path}")):
        java_runtime.check_java()


@pytest.mark.parametrize(
    ("answer", "shown"),
    [
        ('openjdk version "11.0.22" 2024-01-16', "11.0.22"),
        ('java version "1.8.0_292"', "1.8.0_292"),
        ('openjdk version "16" 2021-03-16', "16"),
    ],
)
def test_a_java_before_17_is_refused_with_its_version(
    no_java_home: Path, answer: str, shown: str
) -> None:
    fake_java(no_java_home, answer)
    with pytest.raises(JavaTooOld, match=re.escape(f"Java {shown} (")):
        session.spark(root=no_java_home)


def test_java_17_and_an_early_access_java_are_accepted(no_java_home: Path) -> None:
    fake_java(no_java_home, 'openjdk version "26-ea" 2026-03-17')
    assert java_runtime.check_java().feature == 26


def test_a_java_that_states_no_version_is_refused_with_what_it_says(no_java_home: Path) -> None:
    fake_java(no_java_home, "cannot find a JVM")
    with pytest.raises(JavaNotFound, match="not state its version, but says: cannot find a JVM"):
        java_runtime.check_java()


def test_a_working_folder_that_is_gone_is_named_as_the_reason(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    start = "import os, pennon; os.rmdir(os.getcwd()); pennon.spark(root='/lake')"
    done = subprocess.run(
        [sys.executable, "-c", start], cwd=gone, capture_output=True, encoding="utf-8", check=False
    )
    last = done.stderr.splitlines()[-1]
    assert "[WORKING_FOLDER_REMOVED] Cannot start Spark: the working folder" in last


def test_a_pyspark_of_another_version_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata, "version", lambda _: "3.5.1")
    with pytest.raises(SparkVersionNotSupported, match="Spark 3.5.1.*4.1 to 4.3"):
        session.spark_conf("lake")


def test_a_missing_pyspark_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(_: str) -> str:
        raise metadata.PackageNotFoundError

    monkeypatch.setattr(metadata, "version", absent)
    with pytest.raises(SparkNotInstalled, match=r"pip install 'pyspark>=4\.1"):
        session.spark_conf("lake")


def test_a_clone_without_a_jar_says_how_to_build_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENNON_JAR", "nowhere.jar")
    with pytest.raises(JarNotFound, match="none at nowhere.jar.*make jar"):
        session.spark_conf("lake")


def test_a_jar_whose_name_java_cannot_read_is_refused_before_java_starts(
    tmp_path: Path,
) -> None:
    elsewhere = tmp_path / "jürgen" / "pennon-spark.jar"
    elsewhere.parent.mkdir()
    elsewhere.touch()
    builder = "import pennon; pennon.spark(root='lake'); print('ready')"
    printed = []
    for language in ("C", "C.UTF-8"):
        done = subprocess.run(
            [sys.executable, "-c", builder],
            env={**os.environ, "LC_ALL": language, "PENNON_JAR": str(elsewhere)},
            capture_output=True,
            encoding="utf-8",
            check=False,
        )
        printed.append((done.stdout + done.stderr).splitlines()[-1])
    assert "[JAR_NAME_NOT_READABLE] Cannot give " in printed[0]
    assert f"{elsewhere} to Java" in printed[0]
    assert printed[1] == "ready"


def test_an_unknown_option_names_the_near_or_lists_the_known(jar: Path) -> None:
    with pytest.raises(UnknownSetting, match="Cannot set exection: .* did you mean execution"):
        session.spark_conf("lake", exection="spark")
    with pytest.raises(UnknownSetting, match="options there are implementation, default"):
        session.spark_conf("lake", warehouse="x")


def test_a_local_root_becomes_absolute_and_a_url_stays(jar: Path) -> None:
    conf = session.spark_conf("lake", "one")
    assert conf["spark.sql.catalog.one.root"] == str(Path.cwd() / "lake")
    assert session.spark_conf("s3://b/lake")["spark.sql.catalog.lance.root"] == "s3://b/lake"


@pytest.mark.parametrize("root", ["", " "])
def test_an_empty_root_is_refused_before_a_session_starts(jar: Path, root: str) -> None:
    with pytest.raises(ArgumentRefused, match="this root: it is empty. Give a path or URL"):
        session.spark_conf(root)


def test_what_the_user_has_set_stays(jar: Path) -> None:
    present = {
        "spark.jars": "/his/own.jar",
        "spark.sql.extensions": "his.Extensions",
        "spark.pyspark.python": "/his/python",
    }
    conf = session.spark_conf("lake", present=present)
    assert conf["spark.jars"] == f"/his/own.jar,{jar}"
    assert conf["spark.sql.extensions"] == f"his.Extensions,{session.EXTENSIONS_CLASS}"
    assert "spark.pyspark.python" not in conf


@pytest.mark.parametrize("present", [None, "hush", "(?i)hush|catalog[.][^.]+[.]storage[.]"])
def test_storage_options_are_redacted_where_spark_shows_settings(
    jar: Path, present: str | None
) -> None:
    """Also those that are stated to ``spark-submit`` beside what ``pennon conf`` prints."""
    before = {} if present is None else {"spark.redaction.regex": present}
    for options in (None, {"aws_region": "hidden"}):
        conf = session.spark_conf("s3://b/lake", storage_options=options, present=before)
        shown = re.compile(conf["spark.redaction.regex"])
        assert shown.search("spark.sql.catalog.lance.storage.aws_session")
        assert shown.search("spark.sql.catalog.lance.namespace.header.Authorization")
        assert shown.search("a.secret" if present is None else "hush")
        assert not shown.search("spark.sql.catalog.lance.root")
        assert not shown.search("spark.storage.replication.proactive")
        assert "\\" not in shown.pattern
    assert conf["spark.sql.catalog.lance.storage.aws_region"] == "hidden"


@pytest.mark.slow
def test_a_jvm_that_runs_without_pennon_is_refused() -> None:
    """In a process of its own: Spark allows one JVM per process."""
    script = (
        "from pyspark.sql import SparkSession\n"
        "SparkSession.builder.master('local[1]').getOrCreate()\n"
        "from pennon import errors, session\n"
        "try:\n"
        "    session.spark(root='lake')\n"
        "except errors.JvmWithoutPennon as error:\n"
        "    print('refused:', error)\n"
    )
    answer = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env=os.environ | {"PYTHONPATH": str(ROOT / "python")},
    )
    assert "refused: [JVM_WITHOUT_PENNON]" in answer.stdout, answer.stderr
