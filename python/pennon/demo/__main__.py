"""Run the demo: ``python -m pennon.demo FOLDER``; each run starts from a fresh lake."""

from __future__ import annotations

import shutil
import sys
import time
from pathlib import Path

import pennon
from pennon.demo import flights_data, screen
from pennon.demo.story import Story
from pennon.errors import PennonError


def main(folder: Path) -> int:
    """Run the demo in a folder and return the exit code."""
    started = time.monotonic()
    lake = folder / "lake"
    shutil.rmtree(lake, ignore_errors=True)
    lake.mkdir(parents=True)
    try:
        with screen.progress("unpacking the 2013 flights"):
            csv = flights_data.unpack(folder / "csv")
        with screen.progress("starting Spark"):
            spark = (
                pennon.spark(root=lake)
                .appName("Pennon: flights")
                .config("spark.log.level", "ERROR")
                .config("spark.ui.showConsoleProgress", "false")
                .config("spark.sql.session.timeZone", "UTC")
                .config("spark.sql.autoBroadcastJoinThreshold", "-1")
                .config("spark.sql.adaptive.autoBroadcastJoinThreshold", "-1")
                .config("spark.sql.shuffle.partitions", "8")
                .getOrCreate()
            )
        Story(spark, lake, csv).tell()
        spark.stop()
    except PennonError as error:
        print(f"\n{error}", file=sys.stderr)
        return 1
    print(f"\nDone in {time.monotonic() - started:.0f} s. The lake is in {lake}: look around with")
    print(f"    .venv/bin/pennon sql --root {lake}")
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1] if len(sys.argv) > 1 else "build/demo").absolute()))
