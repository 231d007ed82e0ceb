"""The golden messages that Python wrote, read by the classes of the jar, field by field."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from py4j import java_gateway
from py4j.protocol import Py4JJavaError, get_return_value

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

GOLDEN = Path(__file__).parents[2] / "golden" / "wire"
DECLARED = Path(__file__).parents[3] / "jvm-shim/src/main/resources/dev/pennon/spark/worker"
MESSAGES = json.loads((DECLARED / "wire.json").read_text(encoding="utf-8"))["messages"]
PACKAGE = "dev.pennon.spark"


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

    def record(self, name: str) -> Any:
        """The golden message of a record's name, read as it."""
        loader = self.jvm.java.lang.Thread.currentThread().getContextClassLoader()
        message = golden(name.rpartition(".")[2])
        kind = loader.loadClass(f"{PACKAGE}.{name}")
        return self.call("replies.Replies", "read", self.parse(message), kind)

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


def test_the_jars_records_hold_what_python_wrote(jar: Jar) -> None:
    table = golden("TableReply")
    record = jar.record("tables.TableReply")
    assert record.table().text() == table["table"]
    read = str(record)
    assert f"name={table['name']}, " in read
    assert "schema=StructType(StructField(id,LongType,false))" in read
    assert "partitioning=[bucket(8, id)]" in read
    assert "ordering=[bucket(8, id) DESC NULLS LAST]" in str(jar.record("read.PlanScanReply"))

    keys = golden("DeriveKeysReply")
    reply = jar.record("fragments.DeriveKeysReply")
    (told,) = keys["fragments"]
    (fragment,) = reply.fragments()
    assert fragment.scan().text() == told["scan"]
    names = ("description", "restricted")
    assert {name: getattr(fragment, name)() for name in names} == {n: told[n] for n in names}
    assert str(fragment.mode()).lower() == told["mode"]
    assert fragment.rows().getAsLong() == told["rows"]
    assert fragment.bytes().getAsLong() == told["bytes"]
    assert list(fragment.columns()) == told["columns"]

    # What executors send back may hold storage options.
    assert table["table"] not in read
    assert told["scan"] not in str(reply)

    ((side, (computed,)),) = keys["computed"].items()
    (function,) = reply.computed().get(int(side))
    assert function.function() == computed["function"]
    assert function.numBuckets() == computed["num_buckets"]
    (column,) = function.columns()
    assert {"attribute": column.attribute(), "names": list(column.names())} == computed["columns"][
        0
    ]
