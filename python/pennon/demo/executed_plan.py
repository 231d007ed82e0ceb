"""What a query did, read from the plan that Spark executed: its joins and its shuffles.

Spark prints a plan as a tree of lines; a node's subtree are the deeper lines that follow it. Under
adaptive execution the text holds the final plan first and the initial plan behind it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_NODE = re.compile(r"^(?P<indent>[\s:+\-]*)(?:\*\(\d+\) |\* )?(?P<name>[A-Za-z]+)")

_COLUMN_NUMBER = re.compile(r"#\d+L?")
_COLUMNS_OF_FRAGMENT = re.compile(r"\[[^\]]*\] (?=fragment: )")
# What a part of a query reads is listed behind it: r0, and r1 where there are two tables.
_JOINED_FRAGMENT = re.compile(r"^BatchScan .* fragment: .*; r1: ")


@dataclass(frozen=True, slots=True)
class PlanLine:
    """One node of a printed plan."""

    depth: int
    name: str
    text: str


@dataclass(frozen=True, slots=True)
class ExecutedPlan:
    r"""The nodes of an executed plan, from the root down.

    Example:
        >>> plan = ExecutedPlan.parse(
        ...     "SortMergeJoin [a], [b], Inner\n"
        ...     ":- *(1) Sort [a]\n"
        ...     ":  +- Exchange hashpartitioning(a, 5)\n"
        ...     "+- *(2) Sort [b]\\n"
        ...     "   +- BatchScan t[b]"
        ... )
        >>> plan.shuffles, plan.joins
        (1, ('SortMergeJoin',))
    """

    lines: tuple[PlanLine, ...]

    @classmethod
    def of(cls, frame: DataFrame) -> ExecutedPlan:
        """Read the plan of a frame whose rows have been fetched."""
        return cls.parse(frame._jdf.queryExecution().executedPlan().toString())  # noqa: SLF001

    @classmethod
    def parse(cls, text: str) -> ExecutedPlan:
        """Read a plan from Spark's text."""
        if "== Final Plan ==" in text:
            text = text.split("== Final Plan ==")[1]
        text = text.split("== Initial Plan ==")[0]
        lines = []
        for line in text.splitlines():
            node = _NODE.match(line)
            if node is not None:
                lines.append(PlanLine(len(node["indent"]), node["name"], line))
        return cls(tuple(lines))

    @property
    def joins(self) -> tuple[str, ...]:
        """The names of Spark's joins, from the root down."""
        return tuple(line.name for line in self.lines if line.name.endswith("Join"))

    @property
    def is_joined_in_workers(self) -> bool:
        """Whether a scan's rows are joined before Spark sees them."""
        return any(_JOINED_FRAGMENT.match(line.text.lstrip(" :+-")) for line in self.lines)

    @property
    def shuffles(self) -> int:
        """The number of shuffles; a broadcast is none."""
        return sum(line.name == "Exchange" for line in self.lines)

    def print_join(self, width: int = 92) -> str:
        """Print the topmost join and what is under it, without Spark's numbers of columns."""
        start = next((n for n, line in enumerate(self.lines) if line.name.endswith("Join")), 0)
        top = self.lines[start].depth
        printed: list[str] = []
        for line in self.lines[start:]:
            if printed and line.depth <= top:
                break
            text = _COLUMN_NUMBER.sub("", _COLUMNS_OF_FRAGMENT.sub(" ", line.text[top:]))
            printed.append(text if len(text) <= width else text[: width - 1] + "…")
        return "\n".join(printed)
