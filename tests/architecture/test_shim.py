"""What holds of the shim: it is thin, knows no format, and has the declared wire."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from pathlib import Path

from tests.worker import wire_declaration

ROOT = Path(__file__).parents[2]
SHIM = ROOT / "jvm-shim" / "src" / "main" / "java"
JAVA = sorted(SHIM.rglob("*.java"))

# Without comments and imports. What Spark demands to be a JVM class was about this much.
# To it came what Spark asks in the JVM alone: JDBC's questions, plans of searches, of
# joins with the nearest rows and of the first rows by a distance.
MOST_LINES_OF_JAVA = 8_502
# The format's words: what a Java class must not know.
FORMAT_WORDS = ("__manifest", "partition_field_", "partition_spec_v", "read_version", "dataset$")


def test_the_shim_stays_thin() -> None:
    """What is more than this belongs into Python, or replaces something: the limit only falls."""
    text = "\n".join(path.read_text(encoding="utf-8") for path in JAVA)
    lines = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL).splitlines()
    beside = ("//", "import ", "package ")
    code = [line for line in lines if line.strip() and not line.lstrip().startswith(beside)]
    assert len(code) <= MOST_LINES_OF_JAVA


def test_packages_hold_about_a_dozen_classes() -> None:
    sizes = Counter(path.parent.name for path in JAVA if path.name != "package-info.java")
    assert {package: size for package, size in sizes.items() if size > 15} == {}


def test_packages_import_each_other_in_no_circle() -> None:
    """Neither directly nor through others: each next one imports only those that are there."""
    imported: dict[str, set[str]] = defaultdict(set)
    for path in JAVA:
        text = path.read_text(encoding="utf-8")
        names = re.findall(r"^import (?:static )?dev\.pennon\.spark\.(\w+)", text, re.MULTILINE)
        root = path.parent.name
        imported[root] |= {"spark" if name[0].isupper() else name for name in names} - {root}
    layers: set[str] = set()
    while below := {package for package in imported if imported[package] <= layers} - layers:
        layers |= below
    assert {
        package: sorted(imported[package] - layers) for package in imported.keys() - layers
    } == {}


def test_the_shim_knows_nothing_of_the_format() -> None:
    offences = []
    for path in JAVA:
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if line.lstrip().startswith(("*", "//", "/*")):
                continue
            offences += [
                f"{path.relative_to(ROOT)}:{number}: {word}"
                for word in FORMAT_WORDS
                if word in line
            ]
    assert offences == []


def test_the_jar_and_the_golden_messages_have_the_declared_wire() -> None:
    """A message is declared in Python; ``make wire`` writes the rest, and the jar is built anew."""
    assert wire_declaration.IN_JAR.read_text(encoding="utf-8") == wire_declaration.declaration()
    assert (
        wire_declaration.FAILURES_IN_JAR.read_text(encoding="utf-8") == wire_declaration.failures()
    )
    assert wire_declaration.IN_PACKAGE.read_text(encoding="utf-8") == wire_declaration.protocol()
    files = wire_declaration.GOLDEN.glob("*.json")
    written = {path.name: path.read_text(encoding="utf-8") for path in files}
    assert written == wire_declaration.golden()


def test_java_asks_for_what_the_worker_answers() -> None:
    operations = {request.op for request in wire_declaration.replies()}
    texts = "\n".join(path.read_text(encoding="utf-8") for path in JAVA)
    named = re.findall(r'(?i:request|send)\w*\(\s*"([a-z_]+)"|new Source\("(\w+)"', texts)
    assert {one or other for one, other in named} - operations == set()
    unnamed = {operation for operation in operations if f'"{operation}"' not in texts}
    assert unnamed == set()
