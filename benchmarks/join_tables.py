"""What the join benchmark measures, and the tables that it prints of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import TYPE_CHECKING

from benchmarks.side_by_side import print_table

from pennon.demo.story import ExecutedPlan

if TYPE_CHECKING:
    from benchmarks.join_cases import Case
    from benchmarks.spark_side import Side


@dataclass(slots=True)
class Measured:
    """What the rounds gave for one query on one side."""

    seconds: list[float] = field(default_factory=list)
    cpu_seconds: list[float] = field(default_factory=list)
    peak_megabytes: float = 0.0
    shuffled_bytes: int = 0
    plan: str = ""
    error: str = ""


Results = Mapping[tuple[str, str], Measured]


def print_tables(
    title: str, asked: Sequence[Case], found: Sequence[Side], results: Results
) -> None:
    """Print seconds and factors, then memory and shuffles."""
    names = [side.name for side in found]

    def of(side: Side, case: Case) -> Measured:
        return results[side.name, case.title if side.partitioned else case.name]

    print_table(
        f"{title}: seconds, median (fastest)",
        ("query", *(f"{side.name} ({side.spark})" for side in found), *_factor_names(names)),
        [
            (case.title, *(_seconds(of(side, case)) for side in found), *_factors(found, case, of))
            for case in asked
        ],
    )
    print_table(
        "CPU seconds; peak memory, MB; MB shuffled; shuffles: of the JVM and the workers together",
        ("query", *names),
        [(case.title, *(_weight(of(side, case)) for side in found)) for case in asked],
    )
    for (side_name, query), measured in results.items():
        if measured.error:
            print(f"\n  {side_name}, {query}: {measured.error}")


def _factor_names(names: Sequence[str]) -> list[str]:
    return [f"x {name}" for name in names[1:3]]


def _factors(found, case, of) -> list[str]:
    """How many times faster the first side is than the second and the third."""
    ours = of(found[0], case).seconds
    factors = []
    for side in found[1:3]:
        theirs = of(side, case).seconds
        factors.append(f"{median(theirs) / median(ours):.1f}" if ours and theirs else "-")
    return factors


def _seconds(measured: Measured) -> str:
    if not measured.seconds:
        return "fails"
    return f"{median(measured.seconds):.2f} ({min(measured.seconds):.2f})"


def _weight(measured: Measured) -> str:
    if not measured.seconds:
        return "fails"
    shuffles = ExecutedPlan.parse(measured.plan).shuffles
    megabytes = measured.shuffled_bytes / 1e6
    cpu = min(measured.cpu_seconds)
    return f"{cpu:.1f}; {measured.peak_megabytes:.0f}; {megabytes:.1f}; {shuffles}"
