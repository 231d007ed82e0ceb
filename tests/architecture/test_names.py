"""Names say what they hold, in the field's words."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.architecture.test_architecture import trees

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "python" / "pennon"
SHIM = ROOT / "jvm-shim" / "src" / "main" / "java"
# Comments and strings are for people.
NO_CODE = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', re.DOTALL)
# What they hold is not told by any of these: the rows, the match, the expected type.
IDIOM = {"each", "found", "offer", "spare", "there", "told", "wanted"}


def stored_names(tree: ast.AST) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.lineno, node.name.lower()


def test_no_name_in_java_is_of_the_house_s_own_idiom() -> None:
    offences = [
        f"{path.relative_to(SHIM)}: {name}"
        for path in sorted(SHIM.rglob("*.java"))
        for name in re.findall(r"\w+", NO_CODE.sub("", path.read_text(encoding="utf-8")))
        if name in IDIOM
    ]
    assert offences == []


def test_no_name_is_of_the_house_s_own_idiom() -> None:
    offences = [
        f"{path.relative_to(PACKAGE)}:{line}: {name}"
        for path, tree in trees()
        for line, name in stored_names(tree)
        if name in IDIOM
    ]
    assert offences == []


def test_how_long_an_hour_and_a_day_are_stands_in_one_module() -> None:
    """A number of zeros more or less prunes a partition with rows: see ``time_units``."""
    lengths = {unit * factor for unit in (3_600, 86_400) for factor in (10**3, 10**6, 10**9)}
    lengths.add(86_400)
    offences = [
        f"{path.relative_to(PACKAGE)}:{node.lineno}: {node.value}"
        for path, tree in trees()
        if path.name != "time_units.py"
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and node.value in lengths
    ]
    assert offences == []
