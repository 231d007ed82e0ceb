"""The metadata map of ``__manifest``: specs and schema, Pennon's own keys, the user's properties.

| key | value |
|---|---|
| ``schema``, ``partition_spec_v<N>`` | JSON text, as the specification has them |
| ``pennon.salt`` | 32 hexadecimal digits: the secret that partition names are derived with |
| ``pennon.transaction`` | ``strong`` or ``weak``: what new writes do; while that changes they are
  refused, and it is ``changing to`` and what ``change_notice.py`` has |
| ``pennon.comment`` | the table's comment |
| ``pennon.turn`` | which commit others let through, and until when: ``commits/turn.py`` |
| ``pennon.property.<name>`` | a table property of the user |
| ``lance.namespace.manifest.writer_feature_flags`` | the writer guard: bit 62 is set |

The guard: upstream's directory namespace rewrites ``__manifest`` on every change and drops the
columns it does not know. It refuses to change (and still reads) a manifest whose writer flags,
a decimal number, have a bit that it does not know. Bit 62 is Pennon's and says: "this manifest has
partition columns and ``read_version``; who writes it has to keep them".
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

import pyarrow as pa

from pennon.caching import TextCache
from pennon.errors import (
    DraftLayout,
    NamespaceSchemaMissing,
    NotPartitionedNamespace,
    ReservedProperty,
)
from pennon.spec.partition_spec import PartitionSpec
from pennon.spec.schema import NamespaceSchema
from pennon.spec.value_text import text_of_value

__all__ = [
    "CHANGING",
    "COMMENT",
    "DRAFT_ENABLED",
    "MODES",
    "SALT",
    "SCHEMA",
    "STRONG",
    "TRANSACTION",
    "TURN",
    "WEAK",
    "WRITER_FLAGS",
    "guarded_flags",
    "has_guard",
    "has_specs",
    "read_specs",
    "root_metadata",
    "runtime_properties",
    "user_properties",
]

SCHEMA: Final = "schema"
SALT: Final = "pennon.salt"
TRANSACTION: Final = "pennon.transaction"
STRONG: Final = "strong"
WEAK: Final = "weak"
MODES: Final = (STRONG, WEAK)
CHANGING: Final = "changing to "
COMMENT: Final = "pennon.comment"
TURN: Final = "pennon.turn"
WRITER_FLAGS: Final = "lance.namespace.manifest.writer_feature_flags"
_GUARD_BIT: Final = 1 << 62
DRAFT_ENABLED: Final = "lance.partitioning.enabled"
_PROPERTY: Final = "pennon.property."
_SPEC_KEY = re.compile(r"partition_spec_v(\d+)")


def root_metadata(
    schema: NamespaceSchema,
    specs: Mapping[int, PartitionSpec],
    properties: Mapping[str, str],
    *,
    strong: bool,
    comment: str | None,
) -> dict[str, str]:
    """Give the whole metadata map of a new namespace, a fresh salt included.

    Raises:
        ReservedProperty: A user's property is named as one of Pennon's own records.

    Spec: "Metadata Definition".
    """
    written = {spec.key: spec.to_json() for spec in specs.values()}
    written[SCHEMA] = schema.to_json()
    written[SALT] = secrets.token_hex(16)
    written[TRANSACTION] = STRONG if strong else WEAK
    written[WRITER_FLAGS] = guarded_flags({})
    if comment is not None:
        written[COMMENT] = comment
    return {**written, **property_keys(properties)}


def has_guard(metadata: Mapping[str, str]) -> bool:
    """Whether upstream's directory namespace refuses to change the manifest.

    Example:
        >>> has_guard({}), has_guard({WRITER_FLAGS: guarded_flags({})})
        (False, True)
    """
    return bool(_flags(metadata) & _GUARD_BIT)


def guarded_flags(metadata: Mapping[str, str]) -> str:
    """Write the writer flags of a manifest with the guard among them.

    Example:
        >>> int(guarded_flags({WRITER_FLAGS: "3"})) == (1 << 62) + 3
        True
    """
    return str(_flags(metadata) | _GUARD_BIT)


def _flags(metadata: Mapping[str, str]) -> int:
    text = metadata.get(WRITER_FLAGS, "0")
    return int(text) if text.isdecimal() else 0


def property_keys(properties: Mapping[str, str]) -> dict[str, str]:
    """Give the metadata keys under which a user's properties are kept."""
    for name in properties:
        if name.startswith("pennon."):
            raise ReservedProperty(name=name, prefix="pennon.")
    return {_PROPERTY + name: value for name, value in properties.items()}


def user_properties(metadata: Mapping[str, str]) -> Mapping[str, str]:
    """Give the user's properties of a metadata map.

    Example:
        >>> dict(user_properties({"pennon.property.owner": "ops", "schema": "{}"}))
        {'owner': 'ops'}
    """
    return MappingProxyType(
        {
            name.removeprefix(_PROPERTY): value
            for name, value in metadata.items()
            if name.startswith(_PROPERTY)
        }
    )


# A commit of rows leaves the text as it is: what is worked out of a schema serves all versions.
_SCHEMAS: Final = TextCache(
    "schemas", max_bytes=32 << 20, read=lambda text: NamespaceSchema.from_json(text, SCHEMA)
)


def read_schema(metadata: Mapping[str, str], location: str) -> NamespaceSchema:
    """Read the namespace schema of a metadata map.

    Raises:
        NamespaceSchemaMissing: There is no ``schema`` key.

    Spec: "Metadata Definition".
    """
    text = metadata.get(SCHEMA)
    if text is None:
        keys = ", ".join(sorted(name for name in metadata if _SPEC_KEY.fullmatch(name)))
        raise NamespaceSchemaMissing(location=location, keys=keys)
    return _SCHEMAS.find(text)


def has_specs(metadata: Mapping[str, str]) -> bool:
    """Whether a metadata map makes its directory namespace a partitioned one.

    Example:
        >>> has_specs({"partition_spec_v1": "{}"}), has_specs({"schema": "{}"})
        (True, False)

    Spec: "Metadata Definition".
    """
    return any(_SPEC_KEY.fullmatch(name) for name in metadata)


def read_specs(metadata: Mapping[str, str], location: str) -> Mapping[int, PartitionSpec]:
    """Read every partition spec of a metadata map, by version.

    Raises:
        NotPartitionedNamespace: There is none.
        DraftLayout: There are those of the older draft.
        CorruptJson: A text is no JSON object.
        InvalidPartitionSpec: A spec breaks a rule; no other version is read without it.

    Spec: "Metadata Definition".
    """
    keys = sorted(
        (int(matched.group(1)), name)
        for name in metadata
        if (matched := _SPEC_KEY.fullmatch(name)) is not None
    )
    if not keys:
        if metadata.get(DRAFT_ENABLED, "").lower() == "true":
            raise DraftLayout(verb="open", location=location)
        raise NotPartitionedNamespace(location=location)
    return MappingProxyType(
        {number: PartitionSpec.from_json(metadata[name], name) for number, name in keys}
    )


def runtime_properties(
    specs: Mapping[int, PartitionSpec],
    path: Sequence[str],
    values: Mapping[str, pa.Scalar],
) -> dict[str, str]:
    """Give the properties that describing a namespace below the root returns.

    Args:
        specs: The spec versions.
        path: The namespace: ``["v1"]`` or ``["v1", "k7m2n9p4q8r5s3t6"]``.
        values: The partition values of the namespace's row, by field id.

    Returns:
        ``partition_spec`` for a spec version; for a partition the value of its own level alone,
        left out where it is NULL.

    Example:
        >>> spec = PartitionSpec(1, ())
        >>> runtime_properties({1: spec}, ["v1"], {})
        {'partition_spec': '{"id":1,"fields":[]}'}

    Spec: "Runtime Namespace Properties", Appendix E.
    """
    spec = specs[int(path[0][1:])]
    depth = len(path) - 1
    if depth == 0:
        return {"partition_spec": spec.to_json()}
    own = spec.fields[depth - 1]
    value = values.get(own.field_id)
    if value is None or not value.is_valid:
        return {}
    return {f"partition.{own.field_id}": text_of_value(value)}
