"""Parses JSON metadata, with errors that name key, line and column."""

from __future__ import annotations

import json

from pennon.errors import CorruptJson

__all__ = ["object_from_text", "object_or_empty", "text_of"]


def object_from_text(text: str, key: str) -> dict[str, object]:
    """Parse a JSON object.

    Args:
        text: The value of a metadata key.
        key: The key, for errors.

    Raises:
        CorruptJson: The text is not JSON, or its value is not an object.

    Example:
        >>> object_from_text('{"id": 1}', "partition_spec_v1")
        {'id': 1}

    Spec: "Metadata Definition".
    """
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise CorruptJson(
            key=key, problem=error.msg, line=error.lineno, column=error.colno
        ) from error
    if not isinstance(value, dict):
        raise CorruptJson(
            key=key, problem=f"expected an object, found {text[:40]!r}", line=1, column=1
        )
    return value


def object_or_empty(text: str | None) -> dict[str, object]:
    """Read a JSON object; an empty one where the text is none, as another writer may leave it.

    Example:
        >>> object_or_empty('{"num_rows": "3"}'), object_or_empty("[1]"), object_or_empty(None)
        ({'num_rows': '3'}, {}, {})
    """
    try:
        value = json.loads(text or "{}")
    except json.JSONDecodeError:
        return {}
    return value if isinstance(value, dict) else {}


def text_of(written: object) -> str:
    """Write JSON as the specification's examples have it: compact, keys in their order.

    Example:
        >>> text_of({"id": 1, "fields": []})
        '{"id":1,"fields":[]}'

    Spec: Appendix E.
    """
    return json.dumps(written, separators=(",", ":"), ensure_ascii=False)
