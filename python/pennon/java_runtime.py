"""Finds the Java that Spark will start, and checks its version.

Spark's launcher takes ``$JAVA_HOME/bin/java`` when JAVA_HOME is set and else the first ``java`` on
PATH. Without this check a missing Java shows as "Java gateway process exited", and Java 11 as an
``UnsupportedClassVersionError``.
"""

from __future__ import annotations

import locale
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pennon.errors import (
    JarNameNotReadable,
    JavaNotFound,
    JavaTooOld,
    SparkVersionNotSupported,
    WorkingFolderRemoved,
)

# The Spark versions that the jar supports.

OLDEST_SPARK: Final = (4, 1)
NEWEST_SPARK: Final = (4, 3)


def check_spark_version(version: str) -> None:
    """Refuse a version of Spark that the jar does not work with.

    Args:
        version: As Spark prints it, for example ``4.3.0``.

    Raises:
        SparkVersionNotSupported: It is older or newer than those that are tested.

    Example:
        >>> check_spark_version("4.3.0-SNAPSHOT")
    """
    numbers = tuple(int(part) for part in version.split(".")[:2] if part.isdigit())
    if not OLDEST_SPARK <= numbers <= NEWEST_SPARK:
        raise SparkVersionNotSupported(actual=version, newest=_dotted(NEWEST_SPARK), **BOUNDS)


def _dotted(version: tuple[int, int]) -> str:
    return ".".join(map(str, version))


BOUNDS: Final = {
    "oldest": _dotted(OLDEST_SPARK),
    "end": _dotted((NEWEST_SPARK[0], NEWEST_SPARK[1] + 1)),
}
"""The oldest version that works and the first that is not tested, as pip spells them."""


OLDEST_JAVA = 17
_VERSION = re.compile(r'version "(?P<text>(?P<first>\d+)(?:\.(?P<second>\d+))?[^"]*)"')


@dataclass(frozen=True, slots=True)
class JavaRuntime:
    """A ``java`` command and the feature version it states."""

    command: str
    text: str
    feature: int

    def __str__(self) -> str:
        """Print as the user sees it: the version and where it was found."""
        return f"{self.text} ({self.command})"


def check_java() -> JavaRuntime:
    """Find the Java that Spark will start and make sure that Spark can run on it.

    Returns:
        The runtime.

    Raises:
        JavaNotFound: There is no ``java`` where Spark's launcher looks.
        JavaTooOld: It is older than 17.
        WorkingFolderRemoved: No Java starts in the working folder.
    """
    home = os.environ.get("JAVA_HOME")
    program = str(Path(home) / "bin" / "java") if home else "java"
    command = shutil.which(program)
    if command is None:
        where = f"JAVA_HOME is {home}" if home else "JAVA_HOME is not set and PATH has no java"
        raise JavaNotFound(where=where)
    answer = _ask(command)
    version = read_version(answer)
    if version is None:
        _require_working_folder()
        said = " ".join(answer.split()) or "nothing"
        raise JavaNotFound(where=f"{command} does not state its version, but says: {said}")
    text, feature = version
    if feature < OLDEST_JAVA:
        raise JavaTooOld(actual=text, command=command)
    return JavaRuntime(command, text, feature)


def check_jar_name(jar: Path) -> None:
    """Make sure that a JVM which this process starts will find the jar.

    Java reads the names of files in the encoding of the locale, and Python always as UTF-8: with
    ``LC_ALL=C`` only Python finds ``/home/jürgen/pennon-spark.jar``. On macOS both have UTF-8.

    Raises:
        JarNameNotReadable: The encoding lacks a letter of the path.
    """
    encoding = locale.getencoding()
    try:
        str(jar).encode(encoding)
    except UnicodeEncodeError as error:
        if sys.platform != "darwin":
            raise JarNameNotReadable(jar=jar, encoding=encoding) from error


def read_version(output: str) -> tuple[str, int] | None:
    """Read the version from what ``java -version`` prints.

    Returns:
        The version as printed and the feature version (8 for ``1.8.0``), or None when the text
        states none.

    Example:
        >>> read_version('openjdk version "17.0.15" 2025-04-15')
        ('17.0.15', 17)
        >>> read_version('java version "1.8.0_292"')
        ('1.8.0_292', 8)
    """
    match = _VERSION.search(output)
    if match is None:
        return None
    first, second = int(match["first"]), int(match["second"] or 0)
    return match["text"], second if first == 1 else first


def _require_working_folder() -> None:
    """A JVM does not start in a folder that is gone, not even to state its version."""
    try:
        Path.cwd()
    except FileNotFoundError as error:
        raise WorkingFolderRemoved from error


def _ask(command: str) -> str:
    try:
        answer = subprocess.run(  # noqa: S603 - the command is the user's own java
            [command, "-version"], capture_output=True, text=True, check=False, timeout=60
        )
    except OSError as error:
        raise JavaNotFound(where=f"{command} does not start: {error.strerror}") from error
    return answer.stderr + answer.stdout
