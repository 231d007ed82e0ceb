"""Hashes per second on one core: the vectorised murmur3 beside mmh3 in a Python loop."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import mmh3
import numpy as np
import pyarrow as pa

from pennon.transforms.murmur3 import murmur3, murmur3_multi


def fastest(run: Callable[[], object], runs: int) -> float:
    seconds = []
    for _ in range(runs):
        started = time.process_time()
        run()
        seconds.append(time.process_time() - started)
    return min(seconds)


def looped_longs(array: pa.Array) -> list[int]:
    return [mmh3.hash(value.to_bytes(8, "little", signed=True)) for value in array.to_pylist()]


def looped_texts(array: pa.Array) -> list[int]:
    return [mmh3.hash(value) for value in array.to_pylist()]


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--rows", type=int, default=4_000_000)
    arguments.add_argument("--runs", type=int, default=5)
    given = arguments.parse_args()
    random = np.random.default_rng(7)
    longs = pa.array(random.integers(-(2**63), 2**63 - 1, given.rows))
    nullable = pa.array(longs.to_numpy(), mask=random.random(given.rows) < 0.1)
    short = pa.array([f"customer {number}" for number in random.integers(0, 10**6, given.rows)])
    long = pa.array(["x" * length for length in random.integers(0, 200, given.rows // 10)])
    decimals = pa.array(random.integers(-(10**12), 10**12, given.rows)).cast(pa.decimal128(19, 0))
    cases: list[tuple[str, Callable[[], object], int]] = [
        ("int64", lambda: murmur3(longs), given.rows),
        ("int64, a tenth NULL", lambda: murmur3(nullable), given.rows),
        ("two int64 together", lambda: murmur3_multi([longs, longs]), given.rows),
        ("decimal(19, 0)", lambda: murmur3(decimals), given.rows),
        ("strings of 10 to 15 bytes", lambda: murmur3(short), given.rows),
        ("strings of 0 to 199 bytes", lambda: murmur3(long), len(long)),
    ]
    print("million hashes per second of CPU time, best of", given.runs)
    for name, run, rows in cases:
        print(f"{name:30} {rows / fastest(run, given.runs) / 1e6:8.1f}")
    few_longs, few_texts = longs[: given.rows // 10], short[: given.rows // 10]
    seconds = fastest(lambda: looped_longs(few_longs), 2)
    print(f"{'int64, mmh3 in a loop':30} {len(few_longs) / seconds / 1e6:8.1f}")
    seconds = fastest(lambda: looped_texts(few_texts), 2)
    print(f"{'strings, mmh3 in a loop':30} {len(few_texts) / seconds / 1e6:8.1f}")
    assert looped_longs(few_longs[:1000]) == murmur3(few_longs[:1000]).to_pylist()
    assert looped_texts(few_texts[:1000]) == murmur3(few_texts[:1000]).to_pylist()


if __name__ == "__main__":
    main()
