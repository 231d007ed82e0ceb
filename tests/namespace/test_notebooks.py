"""What a notebook shows: the cells that need no Spark, run without Jupyter."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pytest

import pennon
from pennon.errors import UnknownColumn

NOTEBOOKS = sorted((Path(__file__).parents[2] / "notebooks").glob("*.ipynb"))


def shown(source: str, names: dict[str, Any]) -> object:
    """Run a cell; its last line is what a notebook shows."""
    tree = ast.parse(source)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "cell", "exec"), names)  # noqa: S102 - our own notebook
    return last and eval(ast.unparse(last), names)  # noqa: S307


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_cells_of_a_notebook_show_html(notebook: Path) -> None:
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    names: dict[str, Any] = {}
    tables = []
    for cell in cells:
        source = "".join(cell["source"])
        if "pennon.spark" in source:  # tests/deployments/notebooks.py has the rest
            break
        if cell["cell_type"] == "code":
            assert cell["outputs"] == []
            tables.append(getattr(shown(source, names), "_repr_html_", str)())
    assert next(html for html in tables if "<table" in html).startswith("<p><b>lance.")
    assert sum("<table" in html for html in tables) >= 5


def test_an_error_shows_the_callers_line_and_the_message(tmp_path: Path) -> None:
    import pyarrow as pa

    table = pennon.create(tmp_path / "t", pa.schema({"letter": pa.string()}))
    with pytest.raises(UnknownColumn) as caught:
        table.scan("lettre = 'a'").to_arrow()
    lines = caught.value._render_traceback_()
    assert 'table.scan("lettre' in lines[0]
    assert "test_notebooks.py" in lines[0]
    assert lines[1:] == [f"UnknownColumn: {caught.value}"]


def test_names_are_escaped_and_a_lake_shows_what_cannot_be_read(tmp_path: Path) -> None:
    import pyarrow as pa

    lake = pennon.connect(tmp_path)
    lake.create_namespace("<i>")
    table = lake.create_table("`<i>`.t", pa.schema({"<b>": pa.int64()}))
    table.append([{"<b>": 1}])
    assert "&lt;b&gt;" in table._repr_html_()
    assert "<b>t" not in lake._repr_html_()
    assert "&lt;i&gt;" in lake._repr_html_()
