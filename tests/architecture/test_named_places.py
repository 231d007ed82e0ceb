"""What docstrings and comments refer to is there: modules, what stands in them, files."""

from __future__ import annotations

import ast
import importlib
import io
import re
import subprocess
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow  # it reads every comment and docstring

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "python" / "pennon"
SOURCES = sorted(
    path
    for folder in (PACKAGE, ROOT / "tests", ROOT / "benchmarks")
    for path in folder.rglob("*.py")
)
SUBJECTS = {path.stem for path in PACKAGE.iterdir() if path.suffix in ("", ".py")}
PLACES = ("python", "tests", "benchmarks", "docs", "jvm-shim", "setup", "typings")
# ``planning.binding.bind``, or a class or function in it; of ``pennon.x`` most are properties.
DOTTED = re.compile(r"`((?:pennon\.\w+\.)?[a-z_]+(?:\.\w+)+)(?:\(\))?`")
FILE = re.compile(r"(?<![\w/.<>…-])((?:[\w-]+/)*[\w-]+\.(?:py|java|md))\b")


@cache
def prose() -> tuple[tuple[str, str], ...]:
    """Give the docstrings and comments of each file, with its name."""
    return tuple(read_prose())


def read_prose() -> Iterator[tuple[str, str]]:
    for path in SOURCES:
        source = path.read_text(encoding="utf-8")
        named = str(path.relative_to(ROOT))
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
                yield named, str(node.value.value)
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            if token.type == tokenize.COMMENT:
                yield named, token.string


def is_there(dotted: str) -> bool:
    parts = dotted.removeprefix("pennon.").split(".")
    for count in range(len(parts), 0, -1):
        place = PACKAGE.joinpath(*parts[:count])
        if place.is_dir() or place.with_suffix(".py").is_file():
            value: object = importlib.import_module(".".join(("pennon", *parts[:count])))
            for name in parts[count:]:
                if not hasattr(value, name):
                    return False
                value = getattr(value, name)
            return True
    return False


def test_modules_that_prose_names_are_there() -> None:
    dotted = {
        (path, name)
        for path, text in prose()
        for name in DOTTED.findall(text)
        if name.removeprefix("pennon.").split(".")[0] in SUBJECTS
    }
    assert len(dotted) > 10
    assert sorted((path, name) for path, name in dotted if not is_there(name)) == []


def test_files_that_prose_names_are_there() -> None:
    """By their path, or as much of its end as tells which."""
    files = {
        f"/{path.relative_to(ROOT)}" for folder in PLACES for path in (ROOT / folder).rglob("*.*")
    }
    files |= {f"/{path.name}" for path in ROOT.glob("*.md")}
    named = {(path, name) for path, text in prose() for name in FILE.findall(text)}
    assert len(named) > 20
    ends = {file[at + 1 :] for file in files for at, sign in enumerate(file) if sign == "/"}
    assert sorted((path, name) for path, name in named if name not in ends) == []


def test_sections_are_those_of_a_text_that_readers_have() -> None:
    offences = [
        (path, line.strip())
        for path, text in prose()
        for line in text.splitlines()
        if "§" in line and "the draft" not in line
    ]
    assert offences == []


def test_what_tests_leave_behind_is_in_no_commit() -> None:
    committed = subprocess.run(
        ["git", "-C", ROOT, "ls-files"], capture_output=True, text=True, check=False
    )
    if committed.returncode:
        pytest.skip("this is no checkout of git")
    data = re.compile(r"(_versions/|_transactions/|\.lance$|\.parquet$|^s3:)")
    frozen = ("tests/interop/frozen/",)
    stray = [
        f for f in committed.stdout.splitlines() if data.search(f) and not f.startswith(frozen)
    ]
    assert not stray, stray[:5]
