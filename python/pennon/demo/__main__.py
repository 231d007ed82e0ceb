"""Run the demo: ``python -m pennon.demo FOLDER``; each run starts from a fresh lake."""

from __future__ import annotations

import shutil
import sys
import time
from pathlib import Path

import pennon
from pennon.cli import quiet_start
from pennon.demo import lake_on_disk as flights_data
from pennon.demo import story as screen
from pennon.demo.story import Story
from pennon.errors import PennonError

# Of the demo, not of Pennon: times as the files have them, no broadcast (the tables are small
# enough for one, and the demo shows the join of large ones), few shuffle partitions.
CONF = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.adaptive.autoBroadcastJoinThreshold": "-1",
    "spark.sql.shuffle.partitions": "8",
    "spark.ui.enabled": "false",
}


def main(folder: Path) -> int:
    """Run the demo in a folder and return the exit code."""
    started = time.monotonic()
    lake = folder / "lake"
    log = folder / "spark.log"
    log.unlink(missing_ok=True)
    shutil.rmtree(lake, ignore_errors=True)
    lake.mkdir(parents=True)
    try:
        with screen.progress("unpacking the 2013 flights"):
            csv = flights_data.unpack(folder / "csv")
        with screen.progress("starting Spark"):
            builder = pennon.spark(root=lake).appName("Pennon: flights")
            for key, value in CONF.items():
                builder.config(key, value)
            spark = quiet_start.start(builder, log)
        Story(spark, lake, csv).tell()
        spark.stop()
    except PennonError as error:
        print(f"\n{error}", file=sys.stderr)
        return 1
    except quiet_start.spark_errors() as error:
        print(f"\n{quiet_start.message_of(error)}\nSpark's log is {log}.", file=sys.stderr)
        return 1
    print(f"\nDone in {time.monotonic() - started:.0f} s. The lake is in {lake}: look around with")
    print(f"    .venv/bin/pennon sql --root {lake}")
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1] if len(sys.argv) > 1 else "build/demo").absolute()))
