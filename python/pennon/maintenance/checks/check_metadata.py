"""The metadata map of a namespace against the specification: schema, specs, their evolution."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from pennon.errors import CorruptJson, InvalidArrowJson, InvalidNamespaceSchema, PennonError
from pennon.maintenance.checks.findings import Finding, note, violation, warning
from pennon.manifest.format.properties import SCHEMA, WRITER_FLAGS, has_guard
from pennon.spec import NamespaceSchema, PartitionField, PartitionSpec
from pennon.spec.partition_spec import is_same_kind
from pennon.spec.schema import children_of, field_id_of
from pennon.transforms.expression_checks import check_constant, check_expression

__all__ = ["CheckedMetadata", "check_metadata"]

_KEY: Final = re.compile(r"partition_spec_v(.*)", re.DOTALL)
_DEFINITION: Final = "Metadata Definition"
_REUSE: Final = "Partition Spec, Field ID Reuse"
_FIELD_ID: Final = "Partition Spec, Partition Field ID"
_SCHEMA: Final = "Schema"
_FIELD: Final = "Partition Field Schema"


@dataclass(frozen=True, slots=True)
class CheckedMetadata:
    """What could be read of a metadata map, and what is wrong with the rest.

    Args:
        schema: The namespace schema; None where it cannot be read.
        specs: The specs that can be read, by version.
        findings: What was found.
    """

    schema: NamespaceSchema | None
    specs: Mapping[int, PartitionSpec]
    findings: Sequence[Finding]


def check_metadata(metadata: Mapping[str, str]) -> CheckedMetadata:
    """Check the metadata map of ``__manifest``.

    Args:
        metadata: The map.

    Spec: "Metadata Definition", "Schema", "Partition Spec".
    """
    findings: list[Finding] = []
    schema = _schema(metadata, findings)
    specs = _specs(metadata, schema, findings)
    findings += _versions(specs)
    findings += _reuse(specs)
    if not has_guard(metadata):
        findings.append(
            note(
                "Manifest Table Schema",
                WRITER_FLAGS,
                "no writer guard is set: upstream's directory namespace would drop the partition"
                " columns at its next change",
            )
        )
    return CheckedMetadata(schema, specs, tuple(findings))


def _schema(metadata: Mapping[str, str], findings: list[Finding]) -> NamespaceSchema | None:
    text = metadata.get(SCHEMA)
    if text is None:
        findings.append(violation(_DEFINITION, SCHEMA, "the key is missing"))
        return None
    try:
        schema = NamespaceSchema.from_json(text)
    except CorruptJson as error:
        findings.append(violation(_DEFINITION, SCHEMA, error.message))
        return None
    except (InvalidArrowJson, InvalidNamespaceSchema) as error:
        findings.append(violation(_SCHEMA, SCHEMA, error.message))
        return None
    for column in schema.arrow:
        findings.extend(
            violation(_SCHEMA, SCHEMA, f"field '{path}' has no lance:field_id")
            for path in _without_id(column, "")
        )
    names = [column.name for column in schema.arrow]
    findings.extend(
        violation(_SCHEMA, SCHEMA, f"two columns have the name '{name}'")
        for name in sorted({name for name in names if names.count(name) > 1})
    )
    return schema


def _without_id(column: pa.Field, above: str) -> Iterator[str]:
    path = f"{above}{column.name}"
    if field_id_of(column) is None:
        yield path
    for child in children_of(column.type):
        yield from _without_id(child, f"{path}.")


def _specs(
    metadata: Mapping[str, str], schema: NamespaceSchema | None, findings: list[Finding]
) -> dict[int, PartitionSpec]:
    specs: dict[int, PartitionSpec] = {}
    keys = [(key, match.group(1)) for key in metadata if (match := _KEY.fullmatch(key)) is not None]
    if not keys:
        findings.append(violation(_DEFINITION, "metadata", "there is no partition_spec_v<N> key"))
    for key, number in sorted(keys):
        if not (number.isascii() and number.isdecimal()):
            findings.append(violation(_DEFINITION, key, "its N is no number"))
            continue
        try:
            spec = PartitionSpec.from_json(metadata[key], key)
        except CorruptJson as error:
            findings.append(violation(_DEFINITION, key, error.message))
            continue
        except PennonError as error:
            findings.append(violation(_FIELD, key, error.message))
            continue
        if schema is not None:
            findings.extend(_against_schema(spec, schema))
            if not all(_is_computable(field, schema) for field in spec.fields):
                continue
        specs[spec.spec_version] = spec
    return dict(sorted(specs.items()))


def _is_computable(field: PartitionField, schema: NamespaceSchema) -> bool:
    """Whether the values of rows can be computed one by one, and come out the same again."""
    types = [kind for kind in field.source_types(schema) if kind is not None]
    if field.expression is None or len(types) < len(field.source_ids):
        return True
    try:
        check_constant(field.derivation, tuple(types))
    except PennonError:
        return False
    return True


def _against_schema(spec: PartitionSpec, schema: NamespaceSchema) -> Iterator[Finding]:
    for field in spec.fields:
        missing = [number for number in field.source_ids if schema.field_by_id(number) is None]
        if missing:
            yield note(
                "Partition Expression, Column removal resistant",
                f"{spec.key} field '{field.field_id}'",
                f"source id {missing[0]} is not in the schema: it reads as NULL",
            )
    try:
        spec.check(schema)
    except PennonError as error:
        yield violation("Partition Expression", spec.key, error.message)
        return
    for field in spec.fields:
        types = [kind for kind in field.source_types(schema) if kind is not None]
        if field.expression is None or len(types) < len(field.source_ids):
            continue
        try:
            check_expression(field.derivation, types)
        except PennonError as error:
            where = f"{spec.key} field '{field.field_id}'"
            yield violation("Partition Expression", where, error.message)


def _versions(specs: Mapping[int, PartitionSpec]) -> Iterator[Finding]:
    for at, version in enumerate(specs, 1):
        if at != version:
            yield warning(
                "Partition Evolution",
                f"partition_spec_v{version}",
                f"spec versions are not consecutive from 1: version {at} is missing",
            )
            return


def _reuse(specs: Mapping[int, PartitionSpec]) -> Iterator[Finding]:
    seen: list[tuple[str, PartitionField]] = []
    for spec in specs.values():
        for field in spec.fields:
            where = f"{spec.key} field '{field.field_id}'"
            yield from _against_earlier(where, field, seen)
            seen.append((spec.key, field))


def _against_earlier(
    where: str, field: PartitionField, seen: Sequence[tuple[str, PartitionField]]
) -> Iterator[Finding]:
    for key, other in seen:
        is_same_id, is_same_derivation = (
            other.field_id == field.field_id,
            other.derives_as(field),
        )
        if is_same_id and not is_same_derivation:
            yield violation(
                _FIELD_ID, where, f"{key} uses this field id for another source or derivation"
            )
            return
        if is_same_derivation and not is_same_id:
            yield violation(
                _REUSE, where, f"{key} derives the same under field id '{other.field_id}'"
            )
            return
        if is_same_id and not is_same_kind(field.result_type, other.result_type):
            yield violation(
                _FIELD_ID,
                where,
                f"its result_type is {field.result_type}, but {other.result_type} in {key}",
            )
            return
        if not is_same_id and other.field_id.lower() == field.field_id.lower():
            yield warning(_FIELD_ID, where, f"it differs from '{other.field_id}' of {key} in case")
            return
