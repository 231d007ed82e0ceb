"""The golden messages that Python wrote, read by the classes of the jar, field by field."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyspark
import pytest
from py4j import java_gateway
from py4j.java_collections import JavaArray, JavaList, JavaMap, JavaSet
from py4j.protocol import Py4JJavaError, get_return_value

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

GOLDEN = Path(__file__).parents[2] / "golden" / "wire"
DECLARED = Path(__file__).parents[3] / "jvm-shim/src/main/resources/dev/pennon/spark/worker"
MESSAGES = json.loads((DECLARED / "wire.json").read_text(encoding="utf-8"))["messages"]
PACKAGE = "dev.pennon.spark"
JAVA = Path(__file__).parents[3] / "jvm-shim/src/main/java" / PACKAGE.replace(".", "/")
# Before Spark 4.2 there is nothing that a table of changing columns could implement.
RECORDS = [
    (name, ".".join((*path.relative_to(JAVA).parent.parts, path.stem)) + nested)
    for path in sorted(JAVA.rglob("*.java"))
    for name in re.findall(r"\brecord (\w+)\(", path.read_text(encoding="utf-8"))
    for nested in ["" if name == path.stem else f"${name}"]
    if name in MESSAGES and not (pyspark.__version__ < "4.2" and path.stem == "EvolvingTable")
]
"""The records of the jar that hold a message or a part of one, each with its class."""


class Jar:
    """The jar's classes as they are, private methods too."""

    def __init__(self, spark: SparkSession) -> None:
        self.jvm: Any = spark._jvm
        self.gateway: Any = spark.sparkContext._gateway
        # Each part of a name is asked of the JVM each time.
        self.messages = self.jvm.dev.pennon.spark.worker.Messages
        self.wire = self.jvm.dev.pennon.spark.worker.Wire

    def parse(self, message: object) -> Any:
        return self.messages.parse(json.dumps(message))

    def check(self, name: str, message: object) -> None:
        self.wire.check(name, self.parse(message))

    def record(self, name: str, kind: str) -> Any:
        """A golden message, read as a record."""
        loader = self.jvm.java.lang.Thread.currentThread().getContextClassLoader()
        record = loader.loadClass(f"{PACKAGE}.{kind}")
        return self.call("replies.Replies", "read", self.parse(golden(name)), record)

    def held(self, value: Any) -> Any:
        """A value of a record as a message has it, and what Spark describes as it does."""
        if value is None or isinstance(value, bool | int | str):
            return value
        if isinstance(value, JavaMap):
            return {str(key): self.held(value[key]) for key in value}
        if isinstance(value, JavaArray | JavaList | JavaSet):
            return [self.held(item) for item in value]
        kind = value.getClass()
        if kind.isRecord() and kind.getSimpleName() in MESSAGES:
            return {
                snake(one.getName()): self.held(self.read(one, value))
                for one in kind.getRecordComponents()
            }
        if kind.isEnum():
            return str(value).lower()
        match kind.getSimpleName():
            case "OptionalLong":
                return value.getAsLong()
            case "SecretText":
                return value.text()
            case "StructType":
                return json.loads(value.json())
            case "ObjectNode":
                return json.loads(value.toString())
        return str(value)

    def read(self, component: Any, record: Any) -> Any:
        accessor = component.getAccessor()
        accessor.setAccessible(True)
        return accessor.invoke(record, self.gateway.new_array(self.jvm.java.lang.Object, 0))

    def refusal(self, name: str, message: object) -> str:
        with pytest.raises(Py4JJavaError) as refused:
            self.check(name, message)
        # The text of the Python error would fetch the stack, too.
        message = str(refused.value.java_exception.getMessage())
        assert message.startswith("[WORKER_PROTOCOL]")
        return message

    def call(self, cls: str, method: str, *arguments: object) -> Any:
        loader = self.jvm.java.lang.Thread.currentThread().getContextClassLoader()
        methods = loader.loadClass(f"{PACKAGE}.{cls}").getDeclaredMethods()
        signature = (method, len(arguments))
        (one,) = (
            method
            for method in methods
            if (method.getName(), method.getParameterCount()) == signature
        )
        one.setAccessible(True)
        given = self.gateway.new_array(self.jvm.java.lang.Object, len(arguments))
        for at, argument in enumerate(arguments):
            given[at] = argument
        return one.invoke(None, given)


@pytest.fixture
def jar(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Jar:
    # Spark's own asks the JVM a dozen times what kind of exception one is.
    monkeypatch.setattr(java_gateway, "get_return_value", get_return_value)
    return Jar(spark)


def snake(name: str) -> str:
    return re.sub(r"(?<!^)([A-Z])", r"_\1", name).lower()


def described(value: Any) -> Any:
    """A value of a golden message, and transforms and orders as Spark describes them."""
    match value:
        case {"function": name, "arguments": [{"literal": number}, {"column": [column]}], **order}:
            return f"{name}({number}, {column})" + (" DESC NULLS LAST" if order else "")
        case {**fields}:
            return {name: described(field) for name, field in fields.items()}
        case [*items]:
            return [described(item) for item in items]
    return value


def golden(name: str) -> dict[str, Any]:
    message: dict[str, Any] = json.loads((GOLDEN / f"{name}.json").read_text(encoding="utf-8"))
    return message


def test_the_jar_refuses_a_field_too_many_too_few_or_of_another_type(jar: Jar) -> None:
    for name in sorted(MESSAGES):
        message = golden(name)
        jar.check(name, message)
        refused = jar.refusal(name, {**message, "renamed": 1})
        assert f"a {name} has the unknown field renamed" in refused
        for field in message:
            without = {key: value for key, value in message.items() if key != field}
            assert f"a {name} has no field {field}" in jar.refusal(name, without)
            declared = MESSAGES[name][field].rstrip("?")
            if declared != "any":
                other = jar.refusal(name, {**message, field: 0.5})
                assert field in other or f"a {declared} is no object" in other
                assert "0.5" not in other


def test_the_jar_reads_parts_of_messages_as_strictly(jar: Jar) -> None:
    message = golden("DeriveKeysReply")
    message["fragments"][0]["columns"] = ["5"]
    assert "FragmentReply.columns is STRING, not integer" in jar.refusal("DeriveKeysReply", message)
    [[computed]] = message["computed"].values()
    del computed["function"]
    message["fragments"] = []
    assert "a ComputedKey has no field function" in jar.refusal("DeriveKeysReply", message)


@pytest.mark.parametrize(("name", "kind"), RECORDS)
def test_the_jars_records_hold_what_python_wrote(jar: Jar, name: str, kind: str) -> None:
    held = jar.held(jar.record(name, kind))
    message = golden(name)
    assert held == {field: described(message[field]) for field in held}
    assert held


def test_what_executors_send_back_is_not_printed(jar: Jar) -> None:
    """It may hold storage options."""
    table, keys = golden("TableReply"), golden("DeriveKeysReply")
    assert table["table"] not in str(jar.record("TableReply", "tables.TableReply"))
    reply = jar.record("DeriveKeysReply", "fragments.DeriveKeysReply")
    assert keys["fragments"][0]["scan"] not in str(reply)
