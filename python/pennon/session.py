"""``pennon.spark`` and ``pennon.configure``: a Spark session with the jar, catalog and extension.

A user names the root and nothing else. A value that the user has set himself always stays.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Mapping
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from pennon import settings
from pennon.arguments import checked
from pennon.catalog.configured_catalog import (
    check_catalog_options,
    check_storage_options,
    stated_place,
)
from pennon.errors import (
    JarNotFound,
    JvmWithoutPennon,
    SparkNotInstalled,
)
from pennon.java_runtime import BOUNDS, check_jar_name, check_java, check_spark_version

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# How spark-submit passes the JVM that it has started to Python.
_GATEWAY = "PYSPARK_GATEWAY_PORT"
_OF_CONNECT = ("SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED")
CATALOG_CLASS = "dev.pennon.spark.PennonCatalog"
EXTENSIONS_CLASS = "dev.pennon.spark.PennonExtensions"
# Spark's own default in 4.x, and the storage options, which are credentials more often than not and
# would else show on the Environment page and in the event log.
_REDACTED = r"(?i)secret|password|token|access[.]?key"
# Without backslashes, which a file of properties takes for its own.
_STORAGE = "catalog[.][^.]+[.](storage|namespace)[.]"


@checked("pennon.spark")
def spark(
    root: str | os.PathLike[str],
    name: str = "lance",
    *,
    storage_options: Mapping[str, str] | None = None,
    **options: str,
) -> SparkSession.Builder:
    """Start a builder of a Spark session that has Pennon's catalog.

    Args:
        root: The folder or URL under which the namespaces are.
        name: The catalog's name in SQL.
        storage_options: Handed to Lance as they are; never printed.
        **options: Further options of the catalog, see ``pennon.settings``.

    Returns:
        A builder; add what you like and call ``getOrCreate()``.

    Raises:
        PennonError: Java, pyspark or the jar is missing or of a wrong version.

    Example:
        >>> session = spark(root="lake").getOrCreate()  # doctest: +SKIP
        >>> session.sql("SHOW NAMESPACES IN lance").show()  # doctest: +SKIP
    """
    _check_spark()
    from pyspark.sql import SparkSession  # noqa: PLC0415 - optional, and 0.3 s

    return configure(SparkSession.builder, root, name, storage_options=storage_options, **options)


@checked("pennon.configure")
def configure(
    builder: SparkSession.Builder,
    root: str | os.PathLike[str],
    name: str = "lance",
    *,
    storage_options: Mapping[str, str] | None = None,
    **options: str,
) -> SparkSession.Builder:
    """Add Pennon's catalog to a builder; call it once per catalog.

    Args:
        builder: Any ``SparkSession.builder`` that has not started its session.
        root: The folder or URL under which the namespaces are.
        name: The catalog's name in SQL.
        storage_options: Handed to Lance as they are; never printed.
        **options: Further options of the catalog, see ``pennon.settings``.

    Returns:
        The same builder.

    Raises:
        PennonError: Java, pyspark or the jar is missing or of a wrong version.

    Example:
        >>> from pyspark.sql import SparkSession
        >>> builder = configure(SparkSession.builder, "lake", "one")  # doctest: +SKIP
        >>> builder = configure(builder, "/other/lake", "two")  # doctest: +SKIP
    """
    is_jvm_running = _is_jvm_running()
    present = {**_submitted_settings(), **getattr(builder, "_options", {})}
    conf = spark_conf(root, name, storage_options=storage_options, present=present, **options)
    if not is_jvm_running:
        check_jar_name(find_jar())
    for key, value in conf.items():
        builder.config(key, value)
    if not is_jvm_running and "getOrCreate" not in vars(builder):
        builder.getOrCreate = partial(_started, builder.getOrCreate, builder)
    return builder


def _started(start: Callable[[], SparkSession], builder: SparkSession.Builder) -> SparkSession:
    """Start a session whose JVM gets no credentials on its command line, which anybody may read.

    Spark writes there what the builder has while no JVM runs. So one is started before, without the
    storage options; those come over Spark's own socket, as all settings do of a JVM that runs.
    """
    options = getattr(builder, "_options", {})
    plain = {key: value for key, value in options.items() if not re.search(_STORAGE, key)}
    api = options.get("spark.api.mode", os.environ.get("SPARK_API_MODE", "classic"))
    is_remote = any(name in os.environ for name in _OF_CONNECT) or "spark.remote" in options
    is_remote = is_remote or str(api).lower() != "classic"
    if len(plain) < len(options) and not is_remote and not _is_jvm_running():
        from pyspark import SparkConf, SparkContext  # noqa: PLC0415 - optional, and 0.3 s

        conf = SparkConf()
        for key, value in plain.items():
            conf.set(key, str(value))
        SparkContext._ensure_initialized(conf=conf)  # noqa: SLF001 - as SparkContext does it
    return start()


def spark_conf(
    root: str | os.PathLike[str],
    name: str = "lance",
    *,
    storage_options: Mapping[str, str] | None = None,
    present: Mapping[str, object] | None = None,
    **options: str,
) -> dict[str, str]:
    """List the Spark settings that give a session Pennon's catalog.

    For ``spark-defaults.conf``, ``spark-submit --conf`` and servers; ``configure`` uses the same.

    Args:
        root: The folder or URL under which the namespaces are.
        name: The catalog's name in SQL.
        storage_options: Handed to Lance as they are; never printed.
        present: Settings that are there already; lists are continued, single values stay.
        **options: Further options of the catalog, see ``pennon.settings``.

    Returns:
        Keys and values.
    """
    present = present or {}
    _check_spark()
    check_catalog_options(options)
    check_storage_options(storage_options or ())
    catalog = f"spark.sql.catalog.{name}"
    conf = {
        "spark.jars": _continued(present.get("spark.jars"), str(find_jar())),
        "spark.sql.extensions": _continued(present.get("spark.sql.extensions"), EXTENSIONS_CLASS),
        catalog: CATALOG_CLASS,
        f"{catalog}.root": stated_place(root, "root"),
    }
    conf |= {f"{catalog}.{option}": value for option, value in options.items()}
    if storage_options:
        conf |= {f"{catalog}.storage.{key}": value for key, value in storage_options.items()}
    redacted = str(present.get("spark.redaction.regex") or _REDACTED)
    if _STORAGE not in redacted:
        redacted = f"{redacted}|{_STORAGE}"
    return conf | {"spark.redaction.regex": redacted} | _worker_conf(present)


def find_jar() -> Path:
    """Find the jar inside the installed package, or the one that PENNON_JAR names.

    Raises:
        JarNotFound: There is none, which happens in a clone before ``make jar``.
    """
    stated = settings.from_environment(settings.JAR)
    if stated is not None:
        if Path(stated).is_file():
            return Path(stated).absolute()
        raise JarNotFound(place=stated)
    folder = Path(__file__).parent / "jars"
    jars = sorted(folder.glob("pennon*.jar"))
    if not jars:
        raise JarNotFound(place=str(folder))
    return jars[-1]


def source_path() -> str | None:
    """Name the folder that must be on PYTHONPATH for a worker to import this very package.

    Returns:
        None when the package is installed and so is found anyway.
    """
    folder = Path(__file__).parent.parent
    return None if folder.name in ("site-packages", "dist-packages") else str(folder)


def _worker_conf(present: Mapping[str, object]) -> dict[str, str]:
    """Choose the workers' interpreters, and let a checkout work without installation.

    The driver's worker runs in the interpreter of this very process. Executors may be elsewhere,
    with an environment that Spark unpacks for them: PYSPARK_PYTHON, which they do not see, becomes
    a setting, which they do.
    """
    conf: dict[str, str] = {}
    if "spark.pyspark.driver.python" not in present:
        conf["spark.pyspark.driver.python"] = sys.executable
    if "spark.pyspark.python" not in present:
        stated = settings.from_environment(settings.PYTHON)
        conf["spark.pyspark.python"] = stated or sys.executable
        os.environ.setdefault(settings.PYTHON.name, sys.executable)
    folder = source_path()
    if folder is not None:
        search = [folder, *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
        os.environ["PYTHONPATH"] = os.pathsep.join(dict.fromkeys(search))
        key = "spark.executorEnv.PYTHONPATH"
        conf[key] = str(present.get(key) or os.environ["PYTHONPATH"])
    return conf


def _continued(value: object, added: str) -> str:
    items = [item for item in str(value or "").split(",") if item]
    return ",".join(dict.fromkeys([*items, added]))


def _check_spark() -> None:
    """Refuse a pyspark that the jar is not made for, and a Java that Spark cannot run on."""
    try:
        version = metadata.version("pyspark")
    except metadata.PackageNotFoundError as error:
        raise SparkNotInstalled(**BOUNDS) from error
    check_spark_version(version)
    check_java()


def _is_jvm_running() -> bool:
    """Tell whether this process has a JVM already: ``spark-submit`` starts it before Python.

    Raises:
        JvmWithoutPennon: It was started without the jar, and cannot take one later.
    """
    if _GATEWAY not in os.environ and "pyspark" not in sys.modules:
        return False
    from pyspark import SparkContext  # noqa: PLC0415 - optional, and 0.3 s

    if _GATEWAY in os.environ:
        SparkContext._ensure_initialized()  # noqa: SLF001 - as SparkConf does it
    gateway = SparkContext._gateway  # noqa: SLF001 - there is no public way to ask
    if gateway is None:
        return False
    loader = gateway.jvm.java.lang.Thread.currentThread().getContextClassLoader()
    if loader.getResource(EXTENSIONS_CLASS.replace(".", "/") + ".class") is None:
        raise JvmWithoutPennon(jar=find_jar())
    return True


def _submitted_settings() -> Mapping[str, str]:
    """Give the settings that ``spark-submit`` was given; empty where it started nothing."""
    if _GATEWAY not in os.environ:
        return {}
    from pyspark import SparkConf  # noqa: PLC0415 - optional, and 0.3 s

    return dict(SparkConf().getAll())
