"""The archive of Spark's classes that the JVMs of the tests map instead of loading them anew.

A JVM that starts Spark loads some 20,000 classes out of 200 jars and verifies each, half of the
time of a short session, and the suite starts such JVMs by the dozen (shells, servers, clusters,
documents). ``make test`` has one of them write down what it loaded (the JVM's class data
sharing); the others map that file. A JVM that it does not fit, with other jars, passes it over.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

ARCHIVE = Path(__file__).parents[1] / "build" / "classes.jsa"
# A JVM that lives for minutes spends most of its time in the optimizing compiler; two run at once.
# Without it a JVM has room for 48 MB of compiled code, and sweeps out and compiles again.
_COMPILED_ONCE = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC -Xmn400m"
_QUIET = "-Xlog:cds=off -Xlog:cds+dynamic=off"

# What most sessions of the tests do: make a table, write, change, read and join it. The JVM
# writes the archive as it ends, which Python does not wait for by itself.
_SESSION = """
import sys
from pennon import session
builder = session.spark(root=sys.argv[1]).master("local[2]")
spark = builder.config("spark.ui.enabled", "false").getOrCreate()
spark.sql("CREATE NAMESPACE lance.n")
spark.sql("CREATE TABLE lance.n.t (a INT, b STRING) PARTITIONED BY (bucket(4, a))")
spark.sql("INSERT INTO lance.n.t VALUES (1, 'x'), (2, 'y')")
spark.sql("DELETE FROM lance.n.t WHERE b = 'x'")
spark.sql("SELECT a, count(*) FROM lance.n.t t JOIN lance.n.t u USING (a) GROUP BY a").collect()
spark.range(9).selectExpr("id % 3 AS k").groupBy("k").count().orderBy("k").toPandas()
jvm = spark.sparkContext._gateway.proc
spark.stop()
jvm.stdin.close()
jvm.wait()
"""


def options() -> str:
    """What a JVM of the tests is started with: a compiler that costs little, the archive if any."""
    if not ARCHIVE.exists():
        return _COMPILED_ONCE
    return f"{_COMPILED_ONCE} -XX:SharedArchiveFile={ARCHIVE} {_QUIET}"


def write() -> None:
    """Make the archive out of one short session.

    Raises:
        CalledProcessError: the session failed; what it printed is shown.
    """
    ARCHIVE.parent.mkdir(exist_ok=True)
    ARCHIVE.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory(dir=ARCHIVE.parent) as folder:
        written = Path(folder) / ARCHIVE.name
        dump = f"{_COMPILED_ONCE} -XX:ArchiveClassesAtExit={written} {_QUIET}"
        session = subprocess.run(
            [sys.executable, "-c", _SESSION, str(Path(folder) / "lake")],
            env={**os.environ, "SPARK_SUBMIT_OPTS": dump},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        if session.returncode:
            sys.stderr.write(session.stdout)
        session.check_returncode()
        written.replace(ARCHIVE)


if __name__ == "__main__":
    write()
