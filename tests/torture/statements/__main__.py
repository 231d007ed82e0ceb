"""Random statements from Python on many tables, no Spark, each against a model that asks DuckDB.

Run it with ``make torture-statements N=2000``; a failure prints the seed and all that was done to
its table. Rows are changed by all statements of the Python API, in both write modes, under strong
and weak transactions, while specs and columns evolve and versions are compacted, rolled back and
expired in between.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
import traceback
from pathlib import Path

from tests.torture.statements.changing_table import ChangingTable

_STEPS_PER_TABLE = 14


def main() -> int:
    """Run the statements that the command line asks for."""
    parser = argparse.ArgumentParser(prog="make torture-statements ARGS=…")
    parser.add_argument("--statements", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1, help="odd ones make weak tables")
    parser.add_argument("--seconds", type=float, default=1e9)
    options = parser.parse_args()
    started, failed, tables = time.monotonic(), 0, 0
    for seed in range(options.seed, options.seed + -(-options.statements // _STEPS_PER_TABLE)):
        if time.monotonic() - started > options.seconds:
            break
        tables += 1
        with tempfile.TemporaryDirectory(prefix="pennon-statements-") as folder:
            table = ChangingTable(Path(folder) / "t", seed, is_strong=seed % 2 == 0)
            try:
                table.run(_STEPS_PER_TABLE)
            except Exception:  # noqa: BLE001 - whatever it is, what was done has to be told
                failed += 1
                print("\n".join(table.log))
                traceback.print_exc()
    seconds, statements = time.monotonic() - started, tables * _STEPS_PER_TABLE
    print(f"{statements} statements, {failed} of {tables} tables differ, {seconds:.0f} s")
    return failed


if __name__ == "__main__":
    sys.exit(1 if main() else 0)
