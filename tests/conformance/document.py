"""Which test holds which sentence of the specification, from the markers: a table in ``build/``.

``statements.tsv`` lists the specification's sentences, table rows and appendices in short, each
under its section and a number; ``readings.tsv`` the places where the text is silent, and what
Pennon does there. A test names what it holds: ``@pytest.mark.spec("Schema 3", "reading 12")``; a
section without a number is that section as a whole.

Run as a script it writes the file; ``test_conformance.py`` fails where a sentence has no test.
"""

from __future__ import annotations

import ast
import csv
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCUMENT = ROOT / "build" / "conformance.md"
NONE = "*no test*"
PERMISSION = "—"

INTRODUCTION = """# Conformance

Every sentence, table row and appendix of the partitioning specification, in short, and the tests
that hold it. Written by `make docs` from the markers of the tests.
"""
READINGS = """## Readings

Where the specification is silent or contradicts itself: what Pennon does, and the test of it.
"""


def table_of(name: str) -> list[dict[str, str]]:
    text = (Path(__file__).parent / name).read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines(), delimiter="\t", quoting=csv.QUOTE_NONE))


def statements() -> dict[str, str]:
    """Give the sentences by their names, ``Schema 3``."""
    return {row["section"]: row["statement"] for row in table_of("statements.tsv")}


def readings() -> dict[str, dict[str, str]]:
    """Give the readings by their names, ``reading 12``."""
    return {f"reading {row['number']}": row for row in table_of("readings.tsv")}


def section_of(name: str) -> str:
    return name.rpartition(" ")[0]


def known() -> set[str]:
    """Give every name that a marker may have."""
    return {*statements(), *map(section_of, statements()), *readings()}


def marked() -> Iterator[tuple[str, str]]:
    """Give what the markers name, each with its test."""
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if not isinstance(node, ast.FunctionDef):
                continue
            for decorator in node.decorator_list:
                if isinstance(decorator, ast.Call) and is_marker(decorator.func):
                    for argument in decorator.args:
                        yield ast.literal_eval(argument), f"{path.relative_to(ROOT)}::{node.name}"


def is_marker(decorator: ast.expr) -> bool:
    return ast.unparse(decorator) == "pytest.mark.spec"


def document() -> str:
    """Write the whole text of the table."""
    tests: dict[str, list[str]] = defaultdict(list)
    for name, test in marked():
        tests[name].append(test)
    lines = [INTRODUCTION]
    section = ""
    for name, statement in statements().items():
        if section_of(name) != section:
            section = section_of(name)
            lines.append(f"## {section}\n")
            if tests[section]:
                lines.append(f"The section as a whole: {shown(tests[section])}\n")
            lines += ["| | statement | tests |", "|---|---|---|"]
        number = name.rpartition(" ")[2]
        found = PERMISSION if is_permission(statement) else shown(tests[name])
        lines.append(f"| {number} | {cell(statement)} | {found} |")
        if next_section(name) != section:
            lines.append("")
    lines += [READINGS, "| | place | question | Pennon | tests |", "|---|---|---|---|---|"]
    for name, row in readings().items():
        cells = [row["number"], row["place"], cell(row["question"]), cell(row["reading"])]
        lines.append(f"| {' | '.join(cells)} | {shown(tests[name])} |")
    return "\n".join(lines) + "\n"


def needing_a_test() -> list[str]:
    """Give the names of all sentences but permissions, and of all readings."""
    sentences = [name for name, text in statements().items() if not is_permission(text)]
    return [*sentences, *readings()]


def is_permission(statement: str) -> bool:
    """Whether a sentence allows something, so that no behaviour can break it."""
    return statement.endswith("(a permission)")


def next_section(name: str) -> str:
    names = list(statements())
    following = names.index(name) + 1
    return section_of(names[following]) if following < len(names) else ""


def cell(text: str) -> str:
    return text.replace("|", "\\|")


def shown(tests: list[str]) -> str:
    return "<br>".join(f"`{test.removeprefix('tests/')}`" for test in tests) or NONE


if __name__ == "__main__":
    DOCUMENT.parent.mkdir(exist_ok=True)
    DOCUMENT.write_text(document(), encoding="utf-8")
