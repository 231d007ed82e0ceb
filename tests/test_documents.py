"""Every snippet of README and docs/ runs as it stands.

Left out are those of docs/layouts.md, which are about folders of other programs
(tests/maintenance has them), and the clusters of docs/deployment.md but for standalone
(tests/spark/deployments/test_submitted.py, tests/deployments/standalone.py).
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests import import_picture
from tests.document_snippets import GIVEN, commands, snippets
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


def test_python_without_spark_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    document = ROOT / "docs" / "python.md"
    names: dict[str, object] = {}
    texts = [text for _, text in snippets(document, "python")]
    assert len(texts) >= 5
    for text in texts:
        exec(compile(text, str(document), "exec"), names)  # noqa: S102 - our own document


@pytest.mark.slow
def test_snippets_of_sql_and_python_run(tmp_path: Path) -> None:
    documents = [str(path) for path in DOCUMENTS if path.name in GIVEN]
    assert len(documents) == len(GIVEN)
    done = subprocess.run(
        [sys.executable, str(ROOT / "tests" / "document_snippets.py"), *documents],
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
        cwd=tmp_path,
        env=ENVIRONMENT,
    )
    ran = [line for line in done.stdout.splitlines() if line.startswith("ran ")]
    assert len(ran) == len(documents), f"{ran}\n{done.stderr[-3000:]}"
