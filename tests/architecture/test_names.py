"""Names say what they hold, in the field's words."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "python" / "pennon"
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


def test_no_name_is_of_the_house_s_own_idiom() -> None:
    offences = [
        f"{path.relative_to(PACKAGE)}:{line}: {name}"
        for path in sorted(PACKAGE.rglob("*.py"))
        for line, name in stored_names(ast.parse(path.read_text(encoding="utf-8")))
        if name in IDIOM
    ]
    assert offences == []
