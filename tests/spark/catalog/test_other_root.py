"""A session keeps what a catalog began with: root, implementation and the keys of its store."""

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
spark.sql("RESET spark.sql.catalog.lance.root")
spark.conf.set("spark.sql.catalog.lance.storage.aws_region", "first")
refused("SHOW NAMESPACES IN lance")
spark.sql("RESET spark.sql.catalog.lance.storage.aws_region")
spark.sql("SET spark.sql.catalog.lance.implementation = rest")
refused("SHOW NAMESPACES IN lance")
spark.sql("RESET spark.sql.catalog.lance.implementation")
print(spark.sql("SHOW NAMESPACES IN lance").count())
beside = spark.newSession()
beside.conf.set("spark.sql.catalog.lance.storage.aws_region", "secret")
print(beside.sql("SHOW NAMESPACES IN lance").count())
beside.conf.set("spark.sql.catalog.lance.storage.aws_region", "secreter")
spark = beside
refused("SHOW NAMESPACES IN lance")
"""


def test_what_a_catalog_began_with_is_kept(tmp_path: Path) -> None:
    one, other = str(tmp_path / "one"), str(tmp_path / "other")
    printed = run_script(SCRIPT, one, other).splitlines()
    first, second, names, third, implementation, reset, beside, fourth = printed
    for said in (first, second):
        assert said.startswith(f"[CATALOG_ROOT_FIXED] Cannot move catalog lance to {other}")
        assert f"has it at {one}" in said
    assert names == "['first', 'third']"
    for said in (third, fourth):
        assert said.startswith("[CATALOG_STORAGE_FIXED] Cannot change storage.aws_region of cat")
    assert implementation.startswith(
        "[CATALOG_IMPLEMENTATION_FIXED] Cannot change the implementation of catalog lance to rest"
    )
    assert reset == "2"
    assert beside == "2", "a new session begins with what it states"
    assert not any("secret" in line for line in printed)
