"""A Spark session in a process of its own, told what to do: the end that asks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.join_side import ANSWER
from benchmarks.side_by_side import FOLDER, ROOT


@dataclass(slots=True)
class Side:
    """A process with a session, and how its tables are named.

    Args:
        name: As printed.
        python: The interpreter of its virtual environment.
        conf: Its settings.
        prefix: Of the names of its tables.
        root: Of Pennon's catalog; None for none.
        partitioned: Whether it has a table for each layout.
    """

    name: str
    python: Path
    conf: dict[str, str]
    prefix: str
    root: Path | None = None
    partitioned: bool = True
    spark: str = ""
    process: subprocess.Popen[str] | None = field(default=None, repr=False)

    def start(self) -> dict[str, object]:
        log = (FOLDER / f"{self.name}.log").open("w")
        self.process = subprocess.Popen(
            [str(self.python), "-m", "benchmarks.join_side"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            # Each side runs the Spark of its own virtual environment.
            env={key: value for key, value in os.environ.items() if key != "SPARK_HOME"},
        )
        root = None if self.root is None else str(self.root)
        return self.ask(do="start", conf=self.conf, root=root)

    def ask(self, **order: object) -> dict[str, object]:
        """Give an order and wait for the answer."""
        assert self.process is not None
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(json.dumps(order), file=self.process.stdin, flush=True)
        for line in self.process.stdout:
            if line.startswith(ANSWER):
                return json.loads(line.removeprefix(ANSWER))
        sys.exit(f"{self.name} has ended: see {FOLDER / f'join {self.name}.log'}")

    def run(self, *statements: str) -> None:
        answer = self.ask(do="run", statements=statements)
        if "error" in answer:
            sys.exit(f"{self.name}: {answer['error']}")
        self.spark = str(answer["spark"])

    def stop(self) -> None:
        if self.process is not None and self.process.stdin is not None:
            self.process.stdin.close()
            self.process.wait(timeout=60)
