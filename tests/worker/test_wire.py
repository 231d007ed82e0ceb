"""Both ends of the socket by their declarations: what Java reads of a message stands in it."""

from __future__ import annotations

import json
import re
from dataclasses import MISSING, fields
from pathlib import Path

import pytest
from tests.worker import wire_declaration
from tests.worker.worker_client import compared, joined

from pennon.errors import MalformedMessage
from pennon.plan import Window
from pennon.worker.plans.plan_outline import OPERATORS, decoded_plan
from pennon.worker.wire.json_fields import decode, encode

SHIM = Path(__file__).parents[2] / "jvm-shim/src/main/java/dev/pennon/spark"
JAVA = {path: path.read_text(encoding="utf-8") for path in sorted(SHIM.rglob("*.java"))}
DECLARED = {
    name: {key for key, _ in wire_declaration.declared(message)}
    for name, message in wire_declaration.messages().items()
}
REQUESTS = {request.__name__: request for request in wire_declaration.replies()}
KEYED = {
    "grouping": ["(`c1` + 1)"],
    **dict.fromkeys(("functions", "keys", "outputs", "unknown")),
    "columns": [],
}
RECORD = re.compile(r"\brecord (\w+)\(([^{]*?)\)\s*(?:implements [\w, ]+)?\{")
READ = [
    (path.name, message, re.sub(r"(?<!^)([A-Z])", r"_\1", component).lower())
    for path, text in JAVA.items()
    for message, components in RECORD.findall(text)
    if message in DECLARED
    for component in re.findall(r"(\w+)(?:,|$)", re.sub(r"<.*?>+", "", components))
]
"""The fields that Java reads: a record of a message's name has a component for each."""


@pytest.mark.parametrize(("file", "message", "field"), READ)
def test_a_field_that_java_requires_is_declared(file: str, message: str, field: str) -> None:
    del file
    assert field in DECLARED[message]


def test_replies_are_read_by_fields_that_are_required() -> None:
    """``path`` gives nothing for a field that is not there, ``get`` gives null: in silence."""
    lenient = re.compile(r'\b(?:reply|end|told)\s*\.(?:path|get)\("(\w+)"\)')
    offences = [(path.name, name) for path, text in JAVA.items() for name in lenient.findall(text)]
    # Not every reply says that a stream follows it.
    assert offences == [("WorkerConnection.java", "arrow")]
    assert len(READ) > 30


# What a reply says that Java has no use for: people and tests do.
UNREAD = {
    ("CommitWriteReply", "snapshot"),
    ("WriteReply", "rows"),
    ("WriteReply", "bytes"),
    ("WriteDeletesReply", "rows"),
}
# Both kinds of staged rows come out of one method.
SHARED = {("WriteDeletesReply", "staged"): ("WriteReply", "staged")}


def test_java_reads_what_replies_declare() -> None:
    """A field that is told and never read is dead, or read leniently somewhere."""
    read = {(message, field) for _, message, field in READ}
    unread = {
        (message, field)
        for message, names in DECLARED.items()
        if message.endswith("Reply") or message in {name for name, _ in read}
        for field in names - {"arrow"}
        if SHARED.get((message, field), (message, field)) not in read
    }
    assert unread == UNREAD


def test_java_writes_what_requests_declare() -> None:
    """The field of a request that Python does not know would be left away in silence."""
    request = re.compile(r'(?:call|request|send)\w*\(\s*"([a-z_]+)"((?:[^;]|\n)*?);')
    declared = {request.op: DECLARED[name] for name, request in REQUESTS.items()}
    offences = [
        (path.name, op, field)
        for path, text in JAVA.items()
        for op, chain in request.findall(text)
        for field in re.findall(r'\.(?:put|set)\(\s*"(\w+)"', chain)
        if op in declared and field not in declared[op]
    ]
    assert offences == []


@pytest.mark.parametrize("name", sorted(REQUESTS))
def test_a_request_with_a_field_too_many_or_too_few_is_refused(name: str) -> None:
    path = wire_declaration.GOLDEN / f"{name}.json"
    golden = json.loads(path.read_text(encoding="utf-8"))
    request = REQUESTS[name]
    assert encode(decode(request, golden)) | {"op": request.op} == golden
    with pytest.raises(MalformedMessage, match=f"{name} knows no field renamed"):
        decode(request, {**golden, "renamed": 1})
    for field in golden.keys() - {"op"}:
        with pytest.raises(MalformedMessage, match=f"{name} has no field {field}"):
            decode(request, {key: value for key, value in golden.items() if key != field})


def test_messages_have_no_defaults() -> None:
    """All fields are demanded: a default would say that one may be left away."""
    assert [
        (name, field.name)
        for name, message in wire_declaration.messages().items()
        for field in fields(message)
        if message.__module__.startswith("pennon.worker")
        and (field.default is not MISSING or field.default_factory is not MISSING)
    ] == []


def test_every_operator_that_is_declared_becomes_a_node() -> None:
    for kind, message in OPERATORS.items():
        path = wire_declaration.GOLDEN / f"{message.__name__}.json"
        told = json.loads(path.read_text(encoding="utf-8"))
        assert told["node"] == kind
        if kind != "scan":
            assert len(decoded_plan([told]).plan) == 1


def test_an_operator_with_a_field_too_many_or_too_few_is_refused() -> None:
    limit = {"node": "limit", "child": 0, "count": 5}
    with pytest.raises(MalformedMessage, match="LimitMessage knows no field offset"):
        decoded_plan([{**limit, "offset": 1}])
    with pytest.raises(MalformedMessage, match="LimitMessage has no field count"):
        decoded_plan([{"node": "limit", "child": 0}])


@pytest.mark.parametrize(
    "data_type",
    [{"type": "struct"}, {"type": "struct", "fields": [{"name": "a"}]}, {"type": "array"}],
)
def test_an_operator_whose_type_is_of_no_form_is_malformed(data_type: object) -> None:
    project = {"node": "project", "child": 0, "expressions": [[1, "`c2`", data_type]]}
    with pytest.raises(MalformedMessage, match="a plan node of kind project: "):
        decoded_plan([project])


@pytest.mark.parametrize("ignores_nulls", [True, False])
def test_whether_a_function_of_a_window_ignores_nulls_is_said_beside_its_name(
    *, ignores_nulls: bool
) -> None:
    path = wire_declaration.GOLDEN / "Window.json"
    window = json.loads(path.read_text(encoding="utf-8"))
    (call,) = window["functions"]
    call |= {"name": "last_value", "ignores_nulls": ignores_nulls}
    (node,) = decoded_plan([window]).plan
    assert isinstance(node, Window)
    (read,) = node.calls or ()
    assert (read.name, read.ignores_nulls) == ("last_value", ignores_nulls)


@pytest.mark.parametrize(
    ("operator", "shuffles"),
    [
        ({"node": "group", "child": 0, **KEYED}, True),
        ({"node": "group", "child": 0, **KEYED, "grouping": []}, False),
        ({"node": "group_limit", "child": 0, "partition": ["`c1`"]}, True),
        ({"node": "group_limit", "child": 0, "partition": []}, False),
        ({"node": "opaque", "children": [0], "name": "Any", "of_groups": True}, True),
        ({"node": "opaque", "children": [0], "name": "Sort", "of_groups": False}, False),
        (joined(0, 0, "inner"), True),
        (joined(0, 0, "inner") | {"compared": [compared(1, 11) | {"right": None}]}, True),
        (joined(0, 0, "inner") | {"compared": []}, False),
        (joined(0, 0, "inner") | {"broadcast": "left"}, False),
    ],
)
def test_operators_that_spark_would_shuffle_for_are_known(
    operator: dict[str, object], *, shuffles: bool
) -> None:
    rows: dict[str, object] = {"node": "opaque", "children": [], "name": "LocalRelation"}
    rows["of_groups"] = False
    assert decoded_plan([rows, operator]).shuffling.keys() == ({1} if shuffles else set())
