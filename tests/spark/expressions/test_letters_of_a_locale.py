"""Spark changes the case of letters by the rules of its JVM's language."""

from __future__ import annotations

import ast
from pathlib import Path

from tests.separate_process import run_script

# A Turkish i keeps its dot as a capital; Greek capitals have no accents.
JOB = """
import sys
import pennon

folder, language = sys.argv[1:]
builder = pennon.spark(root=folder).master("local[1]")
builder = builder.config("spark.driver.extraJavaOptions", f"-Duser.language={language}")
spark = builder.config("spark.ui.enabled", "false").getOrCreate()
rows = "VALUES ('IĞ'), ('iş'), ('άλφα'), ('plain') AS rows(word)"
spark.sql("CREATE NAMESPACE lance.shop")
spark.sql(f"CREATE TABLE lance.shop.words AS SELECT * FROM {rows}")
queries = (
    "SELECT lower(word) AS l, upper(word) AS u, count(*) FROM {} GROUP BY 1, 2 ORDER BY 1, 2",
    "SELECT word FROM {} WHERE lower(word) = 'ığ' OR upper(word) IN ('İŞ', 'ΑΛΦΑ') ORDER BY 1",
)
print([
    [tuple(map(str, row)) for row in spark.sql(query.format(source)).collect()]
    for source in ("lance.shop.words", f"(SELECT * FROM {rows})")
    for query in queries
])
"""


def test_the_case_of_letters_is_that_of_the_language_of_spark(tmp_path: Path) -> None:
    for language in ("tr", "el"):
        grouped, kept, *of_spark = ast.literal_eval(
            run_script(JOB, str(tmp_path / language), language).splitlines()[-1]
        )
        assert [grouped, kept] == of_spark
        assert kept
