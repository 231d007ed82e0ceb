"""The fenced snippets of documents; run as a module it runs those of some of them in Spark.

``python -m tests.document_snippets DOCUMENT …`` works in the current folder, whose ``lake`` is the
root. Snippets of SQL and Python run without a title; what becomes of the others, `ELSEWHERE` says.
"""

from __future__ import annotations

import re
import shlex
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_FENCED = re.compile(
    r"^```(?P<language>\w*)(?: title=\"(?P<title>.*?)\")?\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
# What runs the other snippets, or why nothing does: by document and title or first words.
ELSEWHERE: Mapping[tuple[str, str], str] = {
    ("README.md", "lake/shop_orders/"): "a picture",
    ("README.md", "make demo"): "tests/test_demo.py",
    ("architecture.md", "graph TD"): "a picture: tests/import_picture.py",
    ("benchmarks.md", "make bench"): "hours",
    ("command-line.md", "pennon sql"): "tests/cli/test_shell.py",
    ("dbt.md", ""): "tests/deployments/dbt_runs.py",
    ("deployment.md", "pennon conf"): "tests/test_session.py",
    ("deployment.md", "spark-submit"): "tests/spark/deployments/test_submitted.py",
    ("deployment.md", "spark-submit --master spark"): "tests/deployments/standalone.py",
    ("deployment.md", "python -m venv"): "tests/deployments/yarn.py, with an archive of its own",
    ("deployment.md", "FROM apache/spark"): "there is no Docker here",
    ("deployment.md", "spark-submit --master k8s"): "there is no Kubernetes here",
    ("deployment.md", "pennon serve"): "tests/spark/deployments/test_thrift.py, test_connect.py",
    ("deployment.md", "logger.statements"): "tests/spark/deployments/test_thrift.py",
    ("deployment.md", "spark.sql.extensions"): "tests/deployments/matrix.py",
    ("deployment.md", "spark.executor"): "tests/spark/deployments/test_submitted.py",
    ("deployment.md", "A service of names"): "tests/stores/test_credentials.py",
    ("migration.md", "Iceberg"): "tests/deployments/iceberg_job.py",
    ("migration.md", "Delta"): "tests/deployments/delta_job.py",
    ("neighbours.md", "Ray"): "by hand: the package is large",
    ("neighbours.md", "Daft"): "by hand: the package is large",
    ("neighbours.md", "torch"): "by hand: the package is large",
    ("quickstart.md", "make demo"): "tests/test_demo.py",
    ("quickstart.md", "mkdir lake"): "tests/cli/test_shell.py",
    ("quickstart.md", ".venv/bin/pennon serve"): "tests/spark/deployments/test_thrift.py",
}


@dataclass(frozen=True, slots=True)
class Snippet:
    """A fenced part of a document; a title names what it needs that is not here."""

    language: str
    title: str
    text: str

    @property
    def runs(self) -> bool:
        """Whether it runs in Spark with all others of its document."""
        return self.language in ("python", "sql") and not self.title


def snippets(document: Path) -> list[Snippet]:
    """Give the fenced snippets of a document, in order."""
    parts = _FENCED.finditer(document.read_text(encoding="utf-8"))
    return [Snippet(part["language"], part["title"] or "", part["text"]) for part in parts]


def elsewhere(document: Path, snippet: Snippet) -> tuple[str, str] | None:
    """Give the key of `ELSEWHERE` with the most words that is a snippet's."""
    told = snippet.title or snippet.text
    keys = [key for key in ELSEWHERE if key[0] == document.name and told.startswith(key[1])]
    return max(keys, key=lambda key: len(key[1]), default=None)


def commands(document: Path) -> Iterator[list[str]]:
    """Give the words behind ``pennon`` of each command line in a document."""
    for snippet in snippets(document):
        if snippet.language != "sh":
            continue
        for line in snippet.text.replace("\\\n", " ").splitlines():
            words = shlex.split(line.split(" > ")[0], comments=True)
            if words and words[0].split("/")[-1] == "pennon":
                yield words[1:]


def run(documents: list[Path]) -> None:
    """Run the snippets of each document in a folder without a table, in the reader's order."""
    import pennon

    builder = pennon.spark(root="lake").master("local[2]").config("spark.ui.enabled", "false")
    spark = builder.config("spark.sql.shuffle.partitions", "2").getOrCreate()
    for document in documents:
        if document.name in BEFORE:
            BEFORE[document.name]()
        run_one(document, spark)
        print("ran", document.name, flush=True)
        for table in spark.catalog.listTables("spark_catalog.default"):
            kind = "VIEW" if table.isTemporary or table.tableType == "VIEW" else "TABLE"
            place = "" if table.isTemporary else "spark_catalog.default."
            spark.sql(f"DROP {kind} {place}{table.name}")
        for namespace in pennon.connect("lake").list_namespaces():
            spark.sql(f"DROP NAMESPACE lance.{namespace} CASCADE")
        for path in {*Path().iterdir()} - {Path("lake")}:
            shutil.rmtree(path)


def run_one(document: Path, spark: SparkSession) -> None:
    """Run the snippets of a document, those of Python in one shell."""
    from pennon.cli.query_run import statements_of

    names: dict[str, object] = {"spark": spark}
    for snippet in snippets(document):
        if not snippet.runs:
            continue
        if snippet.language == "python":
            code = compile(snippet.text, str(document), "exec")
            exec(code, names)  # noqa: S102 - our own document
            continue
        # Names of tables that are paths are whole ones.
        for part in statements_of(snippet.text.replace("/data/", f"{Path.cwd()}/")):
            spark.sql(part.sql).collect()


def _write_draft() -> None:
    from tests.draft import older_draft

    column, name, _, _ = older_draft.CASES["epoch day"]
    older_draft.make(Path("old"), [column], lambda row: [name(row)])


# What a reader of a document has already, where it does not make it.
BEFORE: Mapping[str, Callable[[], None]] = {"layouts.md": _write_draft}


if __name__ == "__main__":
    run([Path(argument) for argument in sys.argv[1:]])
