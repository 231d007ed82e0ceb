"""The page of what workers compute, ``docs/functions.md``, written from the table of functions.

``python -m tests.function_page`` writes it (``make docs``).
"""

from __future__ import annotations

from pathlib import Path

from sqlglot import exp
from tests.pushdown.spark_answers import golden_lines

from pennon.predicate.expressions import casts
from pennon.predicate.expressions.functions import SECTIONS, Function, Nulls, function_of
from pennon.predicate.parse import parse_with_lists

ROOT = Path(__file__).parent.parent
DOCUMENT = ROOT / "docs" / "functions.md"
INTRODUCTION = """# What workers compute

Workers compute these functions exactly as Spark does, ANSI errors included, and leave everything
else to Spark: one call that is not here leaves the whole expression to it. `explain_join` names the
call. Each row is compared with Spark over rows of edge values, with ANSI and without
(`tests/golden/expressions`). `make docs` writes this page from
`predicate/expressions/functions.py`.

A function is NULL where an operand is; *NULL* says otherwise. *Asks* says what it needs of a time:
a condition on no more than the day prunes partitions by day, month or year, and one on what never
decreases (*ranges*) is a range of the time.
"""
CASTS = """
## Casts

"""


def examples() -> dict[str, list[tuple[str, exp.Expr]]]:
    """The golden lines of each function, by its names, those of it alone first, and short ones."""
    found: dict[str, list[tuple[str, exp.Expr]]] = {}
    trees = [
        (line, parse_with_lists(line)) for line in sorted(golden_lines(declined=False), key=len)
    ]
    for is_top in (True, False):
        for line, tree in trees:
            for node in tree.walk():
                function = function_of(node)
                if function is not None and (node is tree) is is_top:
                    found.setdefault(function.names, []).append((line, node))
    return found


def asked(function: Function, nodes: list[exp.Expr]) -> str:
    """What a function asks of a time, in the examples that there are."""
    asks, monotone = function.facts.asks, function.facts.monotone
    units = {answer.unit.value for node in nodes if asks is not None and (answer := asks(node))}
    return ", ".join([*sorted(units), *(["ranges"] if monotone is not None else [])])


def page() -> str:
    """Write the page."""
    calls = examples()
    written = [INTRODUCTION]
    for title, functions in SECTIONS.items():
        written.append(
            f"\n## {title}\n\n| function | types | NULL | asks | left to Spark | example |"
        )
        written.append("\n|---|---|---|---|---|---|\n")
        for function in functions:
            of = calls.get(function.names, [])
            cells = [
                *(function.names, function.signature),
                "" if function.facts.nulls is Nulls.STRICT else function.facts.nulls.value,
                *(asked(function, [node for _, node in of]), function.left),
                f"`{of[0][0]}`" if of else "",
            ]
            escaped = [cell.replace("|", "\\|") for cell in cells]
            written.append(f"| {' | '.join(escaped)} |\n")
    rows = [line for line in (casts.__doc__ or "").splitlines() if line.startswith("|")]
    table = [line.rstrip("|").rpartition("|")[0] + "|" for line in rows]
    return "".join([*written, CASTS, "\n".join(table), "\n"])


if __name__ == "__main__":
    DOCUMENT.write_text(page(), encoding="utf-8")
