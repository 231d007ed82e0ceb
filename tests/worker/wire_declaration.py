"""The wire as its dataclasses declare it, for the jar; its digest, and one golden message of each.

``python -m tests.worker.wire_declaration`` writes all of them (``make wire``).
"""

from __future__ import annotations

import hashlib
import json
import types
from collections.abc import Iterator, Mapping
from dataclasses import is_dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

from pennon.errors import RAISED_BY_THE_JAR, PennonError
from pennon.worker.handshake import Jvm
from pennon.worker.messages.messages import (
    ReadMetadata,
    Write,
    WriteDeletes,
    WriteDeletesReply,
    WriteReply,
)
from pennon.worker.messages.scan_messages import (
    DeriveKeys,
    DeriveKeysReply,
    Read,
    RunFragment,
    StreamReply,
)
from pennon.worker.plans.plan_outline import OPERATORS
from pennon.worker.requests.operations import _DRIVER, REPEATABLE
from pennon.worker.wire.framing import StreamEnd
from pennon.worker.wire.json_fields import SPELLINGS, declared_fields

ROOT = Path(__file__).parents[2]
IN_JAR = ROOT / "jvm-shim/src/main/resources/dev/pennon/spark/worker/wire.json"
FAILURES_IN_JAR = IN_JAR.parents[1] / "failures" / "failures.json"
IN_PACKAGE = ROOT / "python/pennon/worker/wire/protocol.py"
GOLDEN = ROOT / "tests/golden/wire"

STREAMED: Mapping[type[Any], type[Any]] = {
    Read: StreamReply,
    RunFragment: StreamReply,
    ReadMetadata: StreamReply,
    Write: WriteReply,
    WriteDeletes: WriteDeletesReply,
    DeriveKeys: DeriveKeysReply,
}


def replies() -> dict[type[Any], type[Any]]:
    """The reply to each request, as what answers it is annotated."""
    found = dict(STREAMED)
    for request, answer in _DRIVER:
        given = get_type_hints(answer)["return"]
        found[request] = get_args(given)[0] if get_origin(given) is tuple else given
    return found


TAGS = {message: {"node": kind} for kind, message in OPERATORS.items()}
UNASKED = (StreamEnd, Jvm, *OPERATORS.values())
"""What is neither a request nor a reply, nor a part that either declares."""


def declared(message: type[Any]) -> Iterator[tuple[str, Any]]:
    """The fields of a message by their keys in JSON, with their annotations."""
    for key, (_, annotation) in declared_fields(message).items():  # type: ignore[arg-type]
        yield key, annotation


def type_texts(message: type[Any]) -> dict[str, str]:
    """The fields of a message, what tells it from others too, as ``Wire.java`` reads them."""
    texts = dict.fromkeys(tag(message), "string")
    for key, (field, annotation) in declared_fields(message).items():  # type: ignore[arg-type]
        texts[key] = field.metadata.get("type") or type_text(annotation)
    return texts


def tag(message: type[Any]) -> dict[str, object]:
    """The field that says which of several messages it is."""
    return {"op": message.op} if hasattr(message, "op") else {**TAGS.get(message, {})}


def messages() -> dict[str, type[Any]]:
    """All that goes over the socket, by name, with the parts."""
    answered = replies()
    whole = (*answered, *answered.values(), *UNASKED)
    return {part.__name__: part for message in whole for part in parts(message)}


def parts(message: type[Any]) -> Iterator[type[Any]]:
    """A message and those that stand in it."""
    yield message
    for _, annotation in declared(message):
        yield from _within(annotation)


def _within(annotation: Any) -> Iterator[type[Any]]:
    if annotation in SPELLINGS:
        return
    if is_dataclass(annotation):
        yield from parts(annotation)  # type: ignore[arg-type]
    for argument in get_args(annotation):
        yield from _within(argument)


def type_text(annotation: Any) -> str:
    """Spell a type as ``Wire.java`` reads it."""
    arguments = get_args(annotation)
    if annotation in SPELLINGS:
        return SPELLINGS[annotation].type
    if get_origin(annotation) is types.UnionType:
        (one,) = (member for member in arguments if member is not types.NoneType)
        return type_text(one) + "?"
    if get_origin(annotation) is tuple:
        return type_text(arguments[0]) + "[]"
    if get_origin(annotation) is Mapping:
        return type_text(arguments[1]) + "{}"
    if is_dataclass(annotation) and isinstance(annotation, type):
        return annotation.__name__
    if issubclass(annotation, StrEnum):
        return "string"
    return {str: "string", int: "integer", bool: "boolean", object: "any"}[annotation]


def declaration() -> str:
    """The text of ``wire.json``: one line per field, so that changes merge."""
    answered = replies()
    stated = {
        "requests": {request.op: request.__name__ for request in answered},
        "replies": {request.op: reply.__name__ for request, reply in answered.items()},
        "repeatable": {request.op: request.__name__ for request in REPEATABLE},
        "operators": {kind: message.__name__ for kind, message in OPERATORS.items()},
        "messages": {name: type_texts(message) for name, message in messages().items()},
    }
    return json.dumps(stated, indent=2, sort_keys=True) + "\n"


def jar_errors() -> dict[str, type[PennonError]]:
    """What the jar raises by itself, by condition."""
    return {one.condition: one for one in RAISED_BY_THE_JAR}


def failures() -> str:
    """The text of ``failures.json``: template and SQL state of each condition."""
    stated = {
        condition: {"template": one.template, "sql_state": one.sql_state}
        for condition, one in jar_errors().items()
    }
    return json.dumps(stated, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def protocol() -> str:
    """The text of ``protocol.py``: jar and package compare the digest when a worker starts."""
    digest = hashlib.sha256(declaration().encode()).hexdigest()[:12]
    return f'''"""The hash of the declared protocol, written by ``make wire``, never by hand."""

from typing import Final

PROTOCOL: Final = "{digest}"
"""Digest of the declaration of all messages; the jar takes that of its ``wire.json``."""
'''


STRUCT = {
    "type": "struct",
    "fields": [{"name": "id", "type": "long", "nullable": False, "metadata": {}}],
}
TRANSFORM = {"function": "bucket", "arguments": [{"literal": 8}, {"column": ["id"]}]}
ORDER = {**TRANSFORM, "desc": True, "nulls_first": False}
# What Spark or Java reads as an object of its own.
OBJECTS: Mapping[str, object] = {
    "Catalog.root": "/the root",  # which is its one spelling
    "Catalog.storage": {"aws_region": "the storage"},
    "schema": STRUCT,
    "hidden_columns": {"type": "struct", "fields": []},
    "metadata_columns": {"type": "struct", "fields": []},
    "partitioning": [TRANSFORM],
    "keys": [TRANSFORM],
    "distribution": [TRANSFORM],
    "ordering": [ORDER],
    "scans": {"0": "bucket(8, id)"},
    "ExplainScanReply.rows": [["partitions", "2 of 8"]],
    "FragmentReply.mode": "complete",
    "PlanWrite.mode": "append",
    "CreateTable.mode": "create",
    "StageTable.mode": "create_or_replace",
    "PublishTable.mode": "create_or_replace",
    "DeriveKeys.nodes": [{"node": "one_row"}],
    "Column.type": STRUCT,
    "Project.expressions": [[4, "`1` + 1", "long"]],
    "Join.type": "inner",
    "Join.broadcast": "left",
    "ComparedColumn.types": ["integer", "long"],
    "Group.columns": [[3, "`c1`", "long"]],
    "AggregateCall.name": "sum",
    "AggregateCall.argument_type": "integer",
    "AggregateCall.type": "long",
    "Group.keys": [[3, "`1`", "long"]],
    "Group.outputs": [[6, "`5` + 1", "long"]],
    "WindowCall.type": "integer",
    "Window.outputs": [[6, "`5`", "integer"]],
    "Union.columns": [[3, 1, 2]],
    "Expand.expressions": [[4, ["`1`", None], "long"]],
}


def sample(message: type[Any]) -> dict[str, object]:
    """A message whose every field has a value of its own."""
    stated = tag(message)
    for at, (key, annotation) in enumerate(declared(message)):
        known = OBJECTS.get(f"{message.__name__}.{key}")
        if known is None and message not in TAGS:
            known = OBJECTS.get(key)
        stated[key] = _value(annotation, key, at + 1) if known is None else known
    return stated


def _value(annotation: Any, key: str, at: int) -> object:
    arguments = get_args(annotation)
    if annotation in SPELLINGS:
        return f"the {key}"
    if get_origin(annotation) is types.UnionType:
        return _value(arguments[0], key, at)
    if get_origin(annotation) is tuple:
        return [_value(arguments[0], key, at)]
    if get_origin(annotation) is Mapping:
        # Objects within a message go by the positions of operators; others by names.
        name = key if arguments[1] in (str, object) else str(at)
        return {name: _value(arguments[1], key, at)}
    if is_dataclass(annotation):
        return sample(annotation)  # type: ignore[arg-type]
    if annotation in (bool, int):
        return True if annotation is bool else at
    return f"the {key}"


def golden() -> dict[str, str]:
    """The name and the text of each golden file."""
    return {
        f"{name}.json": json.dumps(sample(message), indent=2, ensure_ascii=False) + "\n"
        for name, message in messages().items()
    }


def write() -> None:
    """Write the declaration into the jar's resources, its digest, and the golden messages."""
    IN_JAR.write_text(declaration(), encoding="utf-8")
    FAILURES_IN_JAR.write_text(failures(), encoding="utf-8")
    IN_PACKAGE.write_text(protocol(), encoding="utf-8")
    texts = golden()
    for path in GOLDEN.glob("*.json"):
        if path.name not in texts:
            path.unlink()
    for name, text in texts.items():
        (GOLDEN / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write()
