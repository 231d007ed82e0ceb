"""Every snippet of README and docs/ runs as it stands, in a folder that starts empty.

What runs those that need more than Spark, or why nothing does: `ELSEWHERE` in document_snippets.py.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests import import_picture
from tests.document_snippets import ELSEWHERE, commands, elsewhere, snippets
from tests.separate_process import ENVIRONMENT

from pennon.catalog.upstream.namespace_alias import IMPLEMENTATION
from pennon.cli.command_line import parser

ROOT = Path(__file__).parent.parent
SHIM = ROOT / "jvm-shim/src/main/java/dev/pennon/spark"
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.stem)
def test_every_command_line_is_one(document: Path) -> None:
    for words in commands(document):
        parser().parse_args(words)


def test_every_test_that_a_document_names_is_there() -> None:
    named = [
        re.findall(r"`(tests/\S+\.py)::(\w+)`", document.read_text()) for document in DOCUMENTS
    ]
    found = {name for some in named for name in some}
    assert len(found) > 20
    for path, test in found:
        assert f"def {test}(" in (ROOT / path).read_text(), test


def test_the_ways_through_the_code_name_files_that_are_there() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    files = re.findall(r"`([\w/]+\.(?:py|java))`", text)
    places = {"py": ROOT / "python/pennon", "java": SHIM}
    assert len(files) > 30
    assert [file for file in files if not (places[file.split(".")[1]] / file).is_file()] == []


def test_the_picture_of_imports_is_that_of_the_code() -> None:
    assert import_picture.picture() in import_picture.DOCUMENT.read_text(encoding="utf-8")


def test_the_class_for_lance_namespace_is_named_where_it_is() -> None:
    assert IMPLEMENTATION in (ROOT / "docs" / "quickstart.md").read_text(encoding="utf-8")


def test_every_document_has_its_place_on_the_site() -> None:
    site = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    assert [path.name for path in DOCUMENTS[1:] if f": {path.name}\n" not in site] == []


def test_every_snippet_runs_or_it_is_said_where_or_why_not() -> None:
    others = [
        (document.name, snippet.text.split("\n")[0], elsewhere(document, snippet))
        for document in DOCUMENTS
        for snippet in snippets(document)
        if not snippet.runs
    ]
    assert [other for other in others if other[2] is None] == []
    assert {key for _, _, key in others} == {*ELSEWHERE}
    tests = [re.findall(r"tests/[\w/]+\.py", told) for told in ELSEWHERE.values()]
    assert [path for some in tests for path in some if not (ROOT / path).is_file()] == []


@pytest.mark.slow
def test_snippets_of_sql_and_python_run(tmp_path: Path) -> None:
    documents = [str(path) for path in DOCUMENTS if any(snippet.runs for snippet in snippets(path))]
    assert len(documents) >= 9
    done = subprocess.run(
        [sys.executable, "-m", "tests.document_snippets", *documents],
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
        cwd=tmp_path,
        env=ENVIRONMENT | {"PYTHONPATH": f"{ROOT / 'python'}:{ROOT}"},
    )
    ran = [line for line in done.stdout.splitlines() if line.startswith("ran ")]
    assert len(ran) == len(documents), f"{ran}\n{done.stderr[-3000:]}"
