"""Thirteen bugs that were found by reading the code, and the tests that show each of them mended.

``grep -rn "mended(5)" tests`` finds the tests of a bug.
"""

from __future__ import annotations

import re
from pathlib import Path

BUGS = {
    1: "Sixty conditions joined by OR ended in INTERNAL_ERROR: the parser went too deep.",
    2: "A table made anew at a path was written to the destinations of the dropped one.",
    3: "Leaves were kept by location and version: rewritten ones, and other credentials, went by.",
    4: "A crash within a replacement or a rename lost a table, or left it two names.",
    5: "A write that failed in its first row was told so behind the last one.",
    6: "A query that was tried again held the memory of the first try.",
    7: "Memory was counted for the machine, not for the executors on it; 8g was not understood.",
    8: "An error could not be pickled, and hung process pools.",
    9: "Concurrent plans changed what is known of totals without a lock.",
    10: "LIKE with escapes, and quotients of decimals, were others than Spark's in Python.",
    11: "A plan made again after it was forgotten could have its partitions in another order.",
    12: "A schema that says timestamp without unit and zone was refused.",
    13: "Tests of the wire, and of the conditions of errors, could not fail.",
}
MARKER = re.compile(r"@pytest\.mark\.mended\((\d+)\)")


def test_each_has_a_test() -> None:
    tests = Path(__file__).parent.rglob("test_*.py")
    marked = {int(number) for test in tests for number in MARKER.findall(test.read_text())}
    assert marked == set(BUGS)
