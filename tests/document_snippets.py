"""The fenced snippets of documents; run as a module it runs those of some of them in Spark.

``python document_snippets.py DOCUMENT …`` works in the current folder, whose ``lake`` is the root.
"""

from __future__ import annotations

import re
import shlex
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_FENCED = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def snippets(document: Path, *languages: str) -> Iterator[tuple[str, str]]:
    """Give language and text of each fenced snippet, in order."""
    for language, text in _FENCED.findall(document.read_text(encoding="utf-8")):
        if language in languages:
            yield language, text


def commands(document: Path) -> Iterator[list[str]]:
    """Give the words behind ``pennon`` of each command line in a document."""
    for _, text in snippets(document, "sh"):
        for line in text.replace("\\\n", " ").splitlines():
            words = shlex.split(line.split(" > ")[0], comments=True)
            if words and words[0].split("/")[-1] == "pennon":
                yield words[1:]


def run(documents: list[Path]) -> None:
    """Run the snippets of each document in a folder without a table, in the reader's order."""
    import pennon

    builder = pennon.spark(root="lake").master("local[2]").config("spark.ui.enabled", "false")
    spark = builder.config("spark.sql.shuffle.partitions", "2").getOrCreate()
    for document in documents:
        run_one(document, spark)
        print("ran", document.name, flush=True)
        for row in spark.sql("SHOW TABLES IN spark_catalog.default").collect():
            kind = "VIEW" if row.isTemporary else "TABLE"
            spark.sql(f"DROP {kind} {row.tableName}")
        for namespace in pennon.connect("lake").list_namespaces():
            spark.sql(f"DROP NAMESPACE lance.{namespace} CASCADE")
        for path in {*Path().iterdir()} - {Path("lake")}:
            shutil.rmtree(path)


def run_one(document: Path, spark: SparkSession) -> None:
    """Run the snippets of a document, those of Python in one shell."""
    from pennon.cli.query_run import statements_of

    names: dict[str, object] = {"spark": spark}
    for language, text in snippets(document, "python", "sql"):
        if language == "python":
            exec(compile(text, str(document), "exec"), names)  # noqa: S102 - our own document
            continue
        for part in statements_of(text):
            spark.sql(part.sql).collect()


if __name__ == "__main__":
    run([Path(argument) for argument in sys.argv[1:]])
