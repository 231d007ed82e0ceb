"""Writers in processes of their own that are stopped at random, while everything old is expired.

    python -m tests.torture.pauses [--seconds 60] [--writers 3] [--retain 1] [--seed N]

Each appends, updates, merges and deletes rows of its own in partitions that all share, and says
what was acknowledged. They are stopped by SIGSTOP for up to a second, wherever they are. Beside
them versions expire and small files are put together. At the end each row is there once, with its
last acknowledged value; what was refused is nowhere.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

import lance
import pyarrow as pa

import pennon
from pennon.errors import PennonError
from pennon.maintenance.checks.check_manifest import check
from pennon.maintenance.expire import expire

SCHEMA = pa.schema({"writer": pa.int64(), "n": pa.int64(), "part": pa.int64(), "v": pa.int64()})
PARTS = 6

_WRITER = """
import random, sys
import pyarrow as pa
import pennon
from pennon.errors import PennonError
from tests.torture.pauses import PARTS, SCHEMA

place, who, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
chance, table, kept, n = random.Random(seed), pennon.open(place), [], 0

def rows(n, v):
    return pa.Table.from_pylist(
        [{"writer": who, "n": n, "part": part, "v": v} for part in range(PARTS)], SCHEMA
    )

while True:
    kind = chance.choice(["append", "append", "append", "update", "merge", "delete"])
    mine = chance.choice(kept) if kept else None
    kind = kind if mine is not None else "append"
    v = chance.randrange(1 << 30)
    number = n if kind == "append" else mine
    print("try", kind, number, v, flush=True)
    try:
        if kind == "append":
            table.append(rows(n, v))
            kept.append(n)
            n += 1
        elif kind == "update":
            table.update({"v": str(v)}, where=f"writer = {who} AND n = {mine}")
        elif kind == "merge":
            merge = table.merge(rows(mine, v), ["writer", "n", "part"])
            merge.when_matched_update_all().execute()
        else:
            table.delete(f"writer = {who} AND n = {mine}")
            kept.remove(mine)
        print("ack", flush=True)
    except PennonError as error:
        print("err", type(error).__name__, str(error).splitlines()[0][:300], flush=True)
"""


def main(arguments: list[str] | None = None) -> int:
    """Run it; 1 where a row is lost, doubled or half there."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--writers", type=int, default=3)
    parser.add_argument("--retain", type=int, default=1)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))  # noqa: S311
    chosen = parser.parse_args(arguments)
    print(f"seed {chosen.seed}")
    chance = random.Random(chosen.seed)  # noqa: S311 - repeats
    with tempfile.TemporaryDirectory() as folder:
        place = str(Path(folder) / "t")
        pennon.create(place, SCHEMA, ["part"])
        logs = [Path(folder) / f"writer{number}" for number in range(chosen.writers)]
        writers = [
            _started(place, number, chance.randrange(1 << 30), log)
            for number, log in enumerate(logs)
        ]
        counts = _pause(place, writers, chance, chosen.seconds, chosen.retain)
        for writer in writers:
            writer.send_signal(signal.SIGCONT)
            writer.kill()
            writer.wait()
        faults = list(_faults(place, logs))
        print(dict(counts), f"{sum(log.read_text().count('ack') for log in logs)} acknowledged")
    for fault in faults[:10]:
        print("WRONG:", fault)
    return 1 if faults else 0


def _started(place: str, number: int, seed: int, log: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", _WRITER, place, str(number), str(seed)]
    with log.open("w") as out:
        return subprocess.Popen(
            command, stdout=out, stderr=subprocess.STDOUT, env=os.environ.copy()
        )


def _pause(
    place: str,
    writers: list[subprocess.Popen[bytes]],
    chance: random.Random,
    seconds: float,
    retain: int,
) -> Counter[str]:
    counts: Counter[str] = Counter()
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        time.sleep(chance.uniform(0.02, 0.4))
        stopped = chance.choice(writers)
        stopped.send_signal(signal.SIGSTOP)
        counts["pauses"] += 1
        time.sleep(chance.uniform(0.05, 1.0))
        try:
            if chance.random() < 0.2:
                pennon.open(place).maintenance.compact()
            soon = datetime.now(UTC) + timedelta(seconds=1)
            counts["expired"] += len(expire(place, older_than=soon, retain_last=retain).versions)
        except PennonError as error:
            counts[f"{type(error).__name__}: {error.message[:120]}"] += 1
        stopped.send_signal(signal.SIGCONT)
    return counts


def _faults(place: str, logs: list[Path]) -> list[str]:
    manifest = lance.dataset(f"{place}/__manifest").to_table(columns=["object_id"])
    doubled = [
        name for name, times in Counter(manifest["object_id"].to_pylist()).items() if times > 1
    ]
    if doubled:
        return [f"rows of __manifest stand twice: {doubled}"]
    faults = [str(finding) for finding in check(place).findings if finding.severity == "violation"]
    found: dict[tuple[int, int], Counter[int]] = {}
    for row in pennon.open(place).scan().to_arrow().to_pylist():
        found.setdefault((row["writer"], row["n"]), Counter())[row["v"]] += 1
    for who, log in enumerate(logs):
        allowed = _allowed(log.read_text().splitlines())
        for n, values in allowed.items():
            seen = found.pop((who, n), Counter())
            if dict(seen) not in [{} if value is None else {value: PARTS} for value in values]:
                faults.append(f"writer {who}, rows {n}: {dict(seen)}, expected one of {values}")
    return faults + [f"rows of nobody: {key}" for key in found]


def _allowed(lines: list[str]) -> dict[int, list[int | None]]:
    """What each row may be: as acknowledged; of a statement that was killed, also as before."""
    state: dict[int, int | None] = {}
    tried: tuple[int, int | None] | None = None
    for line in lines:
        word, *rest = line.split()
        if word == "try":
            tried = int(rest[1]), None if rest[0] == "delete" else int(rest[2])
        elif word == "ack" and tried is not None:
            state[tried[0]], tried = tried[1], None
        elif word == "err":
            tried = None
    allowed = {n: [value] for n, value in state.items()}
    if tried is not None:
        allowed.setdefault(tried[0], [None]).append(tried[1])
    return allowed


if __name__ == "__main__":
    sys.exit(main())
