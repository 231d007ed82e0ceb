"""Every notebook of ``notebooks/`` runs in a kernel of Jupyter, and what it shows is shown.

Jupyter is fetched. Run by ``make test-deployments``; ``tests/namespace/test_notebooks.py`` runs the
cells that need no Spark without it.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from benchmarks.fetched import virtual_environment
from tests.separate_process import ENVIRONMENT, ROOT

JUPYTER = ("nbclient==0.11.0", "ipykernel==7.4.0", "tqdm==4.70.1")
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
FAILING = "import pennon\npennon.open('nowhere')"
SLOW = """
import time
from pennon.notebook import progress_bar
with progress_bar("reading", 3, "rows") as read:
    for _ in range(3):
        time.sleep(0.6)
        read(1)
"""
RUN = """
import sys, nbformat
from nbclient import NotebookClient
notebook = nbformat.read(sys.argv[1], 4)
NotebookClient(notebook, timeout=300, allow_errors=sys.argv[3] == "errors").execute()
nbformat.write(notebook, sys.argv[2])
"""


def executed(notebook: Path, folder: Path, *, errors: bool = False) -> list[dict]:
    programs = virtual_environment("jupyter", *JUPYTER)
    if programs is None:
        pytest.skip("Jupyter cannot be had here")
    site = Path(sysconfig.get_path("purelib", vars={"base": str(programs.parent)}))
    # Behind Jupyter's own packages: what Pennon needs.
    (site / "pennon.pth").write_text(f"{sysconfig.get_path('purelib')}\n{ROOT / 'python'}\n")
    shown = folder / "shown.ipynb"
    done = subprocess.run(
        [programs / "python", "-c", RUN, notebook, shown, "errors" if errors else ""],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
        env=ENVIRONMENT | {"PENNON_PYTHON": sys.executable, "IPYTHONDIR": str(folder / "ipython")},
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    cells = json.loads(shown.read_text(encoding="utf-8"))["cells"]
    return [cell for cell in cells if cell["cell_type"] == "code"]


def html_of(cells: list[dict]) -> list[str]:
    outputs = [output for cell in cells for output in cell["outputs"]]
    return ["".join(output.get("data", {}).get("text/html", "")) for output in outputs]


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_shows_tables(notebook: Path, tmp_path: Path) -> None:
    shown = [html for html in html_of(executed(notebook, tmp_path)) if "<table" in html]
    assert len(shown) >= 6
    columns = {"first_table": ("region", "orders")}.get(notebook.stem, ("module", "name"))
    heads = "".join(f"<th>{column}</th>" for column in columns)
    assert any(heads in re.sub(r"\n\s*", "", html) for html in shown)


def test_an_error_shows_the_cell_and_the_message_and_progress_is_shown(tmp_path: Path) -> None:
    made = {
        "cells": [
            {
                "cell_type": "code",
                "id": f"cell{place}",
                "metadata": {},
                "execution_count": None,
                "outputs": [],
                "source": source,
            }
            for place, source in enumerate((FAILING, SLOW))
        ],
        "metadata": {},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    notebook = tmp_path / "made.ipynb"
    notebook.write_text(json.dumps(made))
    failed, slow = executed(notebook, tmp_path, errors=True)
    traceback = failed["outputs"][0]["traceback"]
    assert len(traceback) <= 4, traceback
    assert "pennon.open('nowhere')" in traceback[0]
    assert traceback[-1].startswith("NamespaceHasNoManifest: [NOT_A_NAMESPACE] Cannot open")
    assert "reading" in "".join(str(output) for output in slow["outputs"])
