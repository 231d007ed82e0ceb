"""Runs a race in real processes at a chosen interleaving, and holds it against serial orders."""

from __future__ import annotations

import json
import queue
import random
import subprocess
import sys
import threading
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Self

from tests.torture.races.contender import opened
from tests.torture.races.model import Statement, bag, serial_orders
from tests.torture.races.random_race import Race
from tests.transaction.lake import table_of

__all__ = ["Contenders", "Ended", "problems"]

# A process that says nothing so long waits for another one, which has to go on first.
_BLOCKED_SECONDS: Final = 2.0
_STUCK_SECONDS: Final = 120.0


@dataclass(slots=True)
class Ended:
    """How a race went.

    Args:
        log: Who went on to which gate, in this order.
        endings: By statement, what was told of its end.
        before: Pairs of statements of which the first had ended when the second began.
    """

    log: list[str] = field(default_factory=list)
    endings: dict[int, dict[str, Any]] = field(default_factory=dict)
    before: list[tuple[int, int]] = field(default_factory=list)

    @property
    def done(self) -> list[int]:
        """The statements that were acknowledged."""
        return sorted(at for at, ending in self.endings.items() if "done" in ending)

    @property
    def refusals(self) -> Counter[str]:
        """The kinds of errors of the others."""
        return Counter(ending["refused"] for ending in self.endings.values() if "refused" in ending)


class Contenders:
    """Some processes that wait for statements."""

    def __init__(self, count: int) -> None:
        self._told: queue.Queue[tuple[int, dict[str, Any]]] = queue.Queue()
        command = [sys.executable, "-m", "tests.torture.races.contender"]
        self._processes = [
            subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            for _ in range(count)
        ]
        for number, process in enumerate(self._processes):
            threading.Thread(target=self._listen, args=(number, process), daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes:
            if process.stdin is not None:
                process.stdin.close()
            process.wait()

    def run(self, race: Race, root: Path, choose: random.Random) -> Ended:
        """Run each statement in a process of its own; which goes on is chosen at every gate.

        Raises:
            TimeoutError: A process says nothing any more, and none waits for its turn.
        """
        ended = Ended()
        running = set(range(len(race.statements)))
        waiting: dict[int, str] = {}
        begun: set[int] = set()
        # Mostly all have read before the first commits: then there is something to go wrong.
        reads_first, runs_free = choose.random() < 0.7, choose.random() < 0.15
        for at in running:
            self._say(at, json.dumps({"root": str(root), "statement": race.statements[at]}))
        while running or waiting:
            self._listened(ended, running, waiting)
            if not waiting:
                continue
            early = [at for at in waiting if waiting[at] == "begin"]
            if race.is_nested:
                chosen = 0 if 0 in early else min(waiting, key=lambda at: (at == 0, at))
            else:
                chosen = choose.choice(early if early and reads_first else sorted(waiting))
            if waiting.pop(chosen) == "begin":
                begun.add(chosen)
                ended.before += [(first, chosen) for first in ended.done]
            ended.log.append(str(chosen + 1))
            running.add(chosen)
            self._say(chosen, "run" if runs_free and not early else "go")
        return ended

    def _listened(self, ended: Ended, running: set[int], waiting: dict[int, str]) -> None:
        """Take what processes say until each waits, or seems to wait for another one."""
        while running:
            try:
                at, told = self._told.get(timeout=_BLOCKED_SECONDS if waiting else _STUCK_SECONDS)
            except queue.Empty:
                if waiting:
                    return
                message = f"statements {running} wait for nobody, after {ended.log}"
                raise TimeoutError(message) from None
            running.discard(at)
            if "gate" in told:
                waiting[at] = told["gate"]
            else:
                ended.endings[at] = told
                how = "done" if "done" in told else told.get("refused", "failed")
                ended.log.append(f"{at + 1} {how}")

    def _listen(self, number: int, process: subprocess.Popen[str]) -> None:
        if process.stdout is not None:
            for line in process.stdout:
                self._told.put((number, json.loads(line)))
        self._told.put((number, {"failed": f"its process ended: {process.wait()}"}))

    def _say(self, number: int, line: str) -> None:
        stdin = self._processes[number].stdin
        if stdin is not None:
            stdin.write(line + "\n")
            stdin.flush()


def problems(race: Race, ended: Ended, root: Path) -> list[str]:
    """Compare the table with every serial order of what was acknowledged.

    Args:
        race: The table before, and the statements.
        ended: How they ended.
        root: Where the table is.
    """
    wrong = [str(ending) for ending in ended.endings.values() if "failed" in ending]
    table = opened(str(root))
    rows = bag(table.scan().to_arrow().to_pylist())
    numbers = ended.done
    places = {at: place for place, at in enumerate(numbers)}
    before = [(places[one], places[two]) for one, two in ended.before if two in places]
    done: list[Statement] = [race.statements[at] for at in numbers]
    states = list(serial_orders(race.state, done, before))
    if not any(
        bag(state.rows) == rows and set(state.columns) == set(table.schema.names)
        for state in states
    ):
        expected = [sorted(bag(state.rows).elements()) for state in states]
        wrong.append(f"no serial order has these rows: {sorted(rows.elements())}, but {expected}")
    if table_of(table).stored.has_manifest:
        report = table.maintenance.check()
        wrong += [] if report.is_valid else [str(report)]
    return wrong
