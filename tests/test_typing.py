"""A program of a user is checked by mypy as its own: no ignores, and a mistyped name is one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import datetime as dt

import pennon

lake = pennon.connect("lake")
orders = lake.load_table("shop.orders")
scan = orders.scan("customer_id = 17", columns=["id"])
rows: int = sum(batch.num_rows for batch in scan.to_batches())
version: int = orders.append([{"id": 1}])
orders.create_tag("q1", retain=dt.timedelta(days=365))
try:
    orders.delete("id = 1")
except pennon.errors.PennonError as error:
    print(error.condition, version)
print(scan.plan().partitions[0].location)
"""
MISTAKES = ["pennon.conect('lake')", "orders.scan(7)", "lake.tables", "pennon.PennonError"]


@pytest.mark.slow
def test_mypy_takes_a_program_and_finds_its_mistakes(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM + "\n".join(MISTAKES) + "\n")
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", "program.py"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    first = PROGRAM.count("\n") + 1
    found = [line.split(":")[1] for line in done.stdout.splitlines() if ": error:" in line]
    assert found == [str(first + n) for n in range(len(MISTAKES))], done.stdout
