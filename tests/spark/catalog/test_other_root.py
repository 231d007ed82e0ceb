"""A session keeps the root of a catalog: another one is refused with both, never written to."""

from __future__ import annotations

from pathlib import Path

from tests.separate_process import run_script

SCRIPT = """
import sys
import pennon
from pyspark.errors import PySparkException

def refused(statement):
    try:
        spark.sql(statement).collect()
    except PySparkException as error:
        print(str(error).splitlines()[0])

one, other = sys.argv[1:]
start = lambda root: pennon.spark(root=root).master("local[1]").getOrCreate()
spark = start(one)
spark.sql("CREATE NAMESPACE lance.first")
spark = start(other)
refused("CREATE NAMESPACE lance.second")
spark = start(one)
spark.sql("CREATE NAMESPACE lance.third")
spark.sql(f"SET spark.sql.catalog.lance.root = {other}")
refused("SHOW NAMESPACES IN lance")
print(sorted(pennon.connect(one).list_namespaces()))
"""


def test_a_second_root_is_refused_and_both_are_named(tmp_path: Path) -> None:
    one, other = str(tmp_path / "one"), str(tmp_path / "other")
    first, second, names = run_script(SCRIPT, one, other).splitlines()
    for said in (first, second):
        assert said.startswith(f"[CATALOG_ROOT_FIXED] Cannot move catalog lance to {other}")
        assert f"has it at {one}" in said
    assert names == "['first', 'third']"
