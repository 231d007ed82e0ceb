"""A program of a user passes pyright's and mypy's strict checks beside pyarrow's stubs.

Both are fetched. Run by ``make test-deployments``; ``tests/test_typing.py`` has mypy alone.
"""

from __future__ import annotations

import subprocess
import sysconfig
from pathlib import Path

import pytest
from benchmarks.fetched import virtual_environment
from tests.separate_process import ROOT
from tests.test_typing import MISTAKES, PROGRAM

CHECKERS = ("pyright==1.1.414", "mypy==2.4.1", "pyarrow-stubs==20.0.0.20260819", "pyarrow==26.0.1")
ROWS = """
import pyarrow as pa

lake.create_table("shop.new", pa.schema({"id": pa.int64()}), partition_by=["bucket(4, id)"])
orders.append(pa.table({"id": [1]}))
print(scan.to_arrow().num_rows)
"""


@pytest.mark.parametrize("checker", ["pyright", "mypy"])
def test_a_program_passes_and_its_mistakes_are_found(checker: str, tmp_path: Path) -> None:
    programs = virtual_environment("typing", *CHECKERS)
    if programs is None:
        pytest.skip("the checkers cannot be had here")
    site = Path(sysconfig.get_path("purelib", vars={"base": str(programs.parent)}))
    # Behind the checkers: what Pennon needs.
    (site / "pennon.pth").write_text(f"{sysconfig.get_path('purelib')}\n{ROOT / 'python'}\n")
    (tmp_path / "pyrightconfig.json").write_text('{"typeCheckingMode": "strict"}')
    (tmp_path / "good.py").write_text(PROGRAM + ROWS)
    (tmp_path / "bad.py").write_text(PROGRAM + "\n".join(MISTAKES) + "\n")
    options = {
        "pyright": ["--pythonpath", str(programs / "python")],
        "mypy": ["--strict", "--config-file="],
    }
    found = {}
    for program in ("good.py", "bad.py"):
        done = subprocess.run(
            [programs / checker, *options[checker], program],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        lines = [
            line.split(":")
            for line in done.stdout.splitlines()
            if "error:" in line or " - error" in line
        ]
        found[program] = {int(parts[1]) for parts in lines}, done.stdout
    assert not found["good.py"][0], found["good.py"][1]
    assert "0 errors" in found["good.py"][1] or "no issues" in found["good.py"][1]
    first = PROGRAM.count("\n") + 1
    assert found["bad.py"][0] == {first + n for n in range(len(MISTAKES))}, found["bad.py"][1]
