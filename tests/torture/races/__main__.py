"""Random statements that race on one table in real processes, each race against serial orders.

    make torture-races N=500 ARGS="--seed 7"

Two or three processes run one statement each: rows that are added, or made of the table's own,
overwrites, DELETE, UPDATE, MERGE, columns and partition fields that come and go, compaction,
rollback, and the table put in its own place; of some races the first statement goes on around the
others, which are about what it replaces. A seed chooses the table, the statements, and who
goes on at every gate: before a table is opened, before the newest version is looked at, before
Lance commits. What is left has to be what the acknowledged statements leave in some serial order,
in which none comes before one that had ended when it began. A failure prints its seed and all that
was done.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from tests.torture.races.nested_race import nested_race
from tests.torture.races.race import Contenders, problems
from tests.torture.races.random_race import random_race


def main() -> int:
    """Run the races that the command line asks for; gives how many went wrong."""
    parser = argparse.ArgumentParser(prog="make torture-races ARGS=…")
    parser.add_argument("--races", type=int, default=500)
    parser.add_argument("--seed", type=int, default=int(time.time()) % 1_000_000)
    parser.add_argument("--nested", type=float, default=0.2, help="how many around two others")
    parser.add_argument("--plain", type=float, default=0.15, help="how many on plain datasets")
    options = parser.parse_args()
    sys.stdout.write(f"seeds {options.seed} to {options.seed + options.races - 1}\n")
    failed, told = 0, Counter[str]()
    with Contenders(3) as contenders:
        for seed in range(options.seed, options.seed + options.races):
            choose = random.Random(seed)  # noqa: S311 - to be repeated
            with tempfile.TemporaryDirectory(prefix="pennon-races-") as folder:
                root = Path(folder)
                is_nested, is_plain = (choose.random() < x for x in (options.nested, options.plain))
                race = (
                    nested_race(choose, root)
                    if is_nested
                    else random_race(choose, root, is_plain=is_plain)
                )
                ended = contenders.run(race, root, choose)
                told.update({"done": len(ended.done)} | ended.refusals)
                wrong = problems(race, ended, root)
            if (seed - options.seed) % 100 == 99:
                sys.stdout.write(f"{seed - options.seed + 1} races, {failed} wrong\n")
                sys.stdout.flush()
            if wrong:
                failed += 1
                lines = [
                    f"WRONG: seed {seed}",
                    f"  before: {race.state}",
                    *map(str, race.statements),
                ]
                lines += ["  " + ", ".join(ended.log), *map(str, ended.endings.values()), *wrong]
                sys.stdout.write("\n  ".join(lines) + "\n")
                sys.stdout.flush()
    sys.stdout.write(f"{options.races} races, {failed} wrong; {dict(told)}\n")
    return failed


if __name__ == "__main__":
    sys.exit(1 if main() else 0)
