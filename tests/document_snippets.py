"""The fenced snippets of documents; run as a module it runs those of some of them in Spark.

``python document_snippets.py DOCUMENT …`` works in the current folder, whose ``lake`` is the root.
"""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_FENCED = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)

# What the snippets of a document take for granted, before the first one of SQL.
GIVEN = {
    "README.md": [],
    "quickstart.md": [],
    "sql.md": ["CREATE NAMESPACE lance.shop"],
    "joins.md": [
        "CREATE NAMESPACE lance.shop",
        "CREATE TABLE lance.shop.orders (customer_id INT, ts TIMESTAMP)",
        "CREATE TABLE lance.shop.customers (id INT, name STRING)",
    ],
}


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
    """Run the snippets of Python and SQL as a reader would, one after the other in one session."""
    import pennon

    builder = pennon.spark(root="lake").master("local[2]").config("spark.ui.enabled", "false")
    spark = builder.config("spark.sql.shuffle.partitions", "2").getOrCreate()
    rows = "SELECT id, id % 5 AS customer_id, TIMESTAMP '2025-12-11 10:00:00' AS ordered_at"
    spark.sql(f"{rows} FROM range(20)").write.parquet("my/orders.parquet")
    for document in documents:
        spark.sql("DROP NAMESPACE IF EXISTS lance.shop CASCADE")
        run_one(document, spark)
        print("ran", document.name, flush=True)


def run_one(document: Path, spark: SparkSession) -> None:
    """Run the snippets of a document."""
    from pennon.cli.query_run import statements_of

    for statement in GIVEN[document.name]:
        spark.sql(statement)
    names: dict[str, object] = {"spark": spark}
    for language, text in snippets(document, "python", "sql"):
        if language == "python":
            exec(compile(text, str(document), "exec"), names)  # noqa: S102 - our own document
            continue
        if "CREATE NAMESPACE" in text:
            spark.sql("DROP NAMESPACE IF EXISTS lance.shop CASCADE")
        for part in statements_of(text):
            spark.sql(part.sql).collect()


if __name__ == "__main__":
    run([Path(argument) for argument in sys.argv[1:]])
